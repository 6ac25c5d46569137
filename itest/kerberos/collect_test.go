package kerberos

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/itest/testbed"
)

// TestCollect has NodeManagers collect the logs of jobs on a cluster where nobody gets tokens for them: they do so by those of the application's first container on each.
func TestCollect(t *testing.T) {
	testbed.Group(t, "kerberos-long")
	x := startCluster(t, testbed.KDCOptions{}, testbed.HadoopOptions{NodeManagers: 2, YARN: map[string]string{"yarn.log-aggregation-enable": "true"}})
	x.folders(t)
	t.Run("keytab", x.collectByKeytab)
	t.Run("last lines", x.lastLines)
}

// collectByKeytab runs a job whose ApplicationMaster has tokens of its own, which it has cancelled when the logs are collected, also where only an agent ran.
func (x *cluster) collectByKeytab(t *testing.T) {
	exe := testbed.BuildProgram(t, x.bed, "./cmd/heddle", "heddle")
	alice := x.ticketOf("alice")
	app := x.start(t, exe, alice, "brief", `name: brief
source: { generator: { count: 100, rate: 10, record: { n: n } } }
sink: { file: { path: "hdfs:///user/alice/brief", format: json } }
`, "--target", "yarn", "--kerberos.keytab", x.kdc.KeytabOf("alice"))
	if out, err := x.heddle(t, exe, alice, "wait", app); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, x.logs())
	}
	x.checkLines(t, "/user/alice/brief", 100)
	if logs := x.collected(t, exe, alice, app, "appmaster ", "agent-1 ", "agent-2 "); !strings.Contains(logs, "cancelled tokens") {
		t.Errorf("the ApplicationMaster does not say that it cancelled tokens:\n%s", logs)
	}
}

// lastLines kills an agent that runs on another host than the ApplicationMaster, whose NodeManager shows logs to nobody who has no ticket: without a keytab its last lines are not
// had, which is not told as if it had written nothing; who has a ticket reads them.
func (x *cluster) lastLines(t *testing.T) {
	exe := testbed.BuildProgram(t, x.bed, "./cmd/heddle", "heddle")
	alice := x.ticketOf("alice")
	app := x.start(t, exe, alice, "last", `name: last
source: { generator: { count: 1000000, rate: 10, record: { n: n } } }
sink: { discard: {} }
`, "--target", "yarn", "--yarn.max-attempts", "1")
	s := x.running(t, exe, alice, app, 0)
	node := func(pid int) string { before, _, _ := strings.Cut(placeOf(pid), "/local/"); return before }
	mine := node(x.masters(t, app)[0])
	i := slices.IndexFunc(s.Agents, func(a appmaster.Agent) bool { return a.PID != 0 && node(a.PID) != mine })
	if i < 0 {
		t.Fatalf("no agent runs elsewhere than in %s: %+v", mine, s.Agents)
	}
	testbed.Kill9(t, s.Agents[i].PID)
	out, err := x.heddle(t, exe, alice, "wait", app)
	if err == nil || !strings.Contains(out, s.Agents[i].ID) || strings.Contains(out, "last lines") || !strings.Contains(out, "heddle logs "+app) {
		t.Errorf("wait says: %v\n%s\n%s", err, out, x.logs())
	}
	if logs := x.collected(t, exe, alice, app, "appmaster ", s.Agents[i].ID+" "); !strings.Contains(logs, "an agent's last log lines are not told") {
		t.Errorf("the ApplicationMaster does not say why it tells none:\n%s", logs)
	}
}

// collected waits until the logs of an application that is over are collected, and returns them. Its own folders on nodes are gone then.
func (x *cluster) collected(t *testing.T, exe string, who []string, app string, want ...string) (logs string) {
	t.Helper()
	x.bed.Eventually("the logs of "+app+" are collected", 2*time.Minute, func() error {
		out, err := x.heddle(t, exe, who, "logs", app, "--lines", "0")
		if err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
		for _, w := range want {
			if !strings.Contains(out, "\n"+w) && !strings.HasPrefix(out, w) {
				return fmt.Errorf("%q is not in\n%.3000s", w, out)
			}
		}
		if strings.Contains(x.logs(), app) {
			return errors.New("some are still on their nodes")
		}
		logs = out
		return nil
	})
	return logs
}
