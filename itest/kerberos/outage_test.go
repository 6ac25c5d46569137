package kerberos

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/hadoop/hconf"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/itest/testbed"
	"github.com/heddle-stream/heddle/yarnclient"
)

// patience is how long anything may take on a busy machine.
const patience = 4 * time.Minute

// outage is a cluster of which parts go away while a job runs there.
type outage struct {
	*cluster
	t   *testing.T
	exe string
	app string
}

// TestOutage has a cluster with two of each master, that seals all, where a job runs by keytab: the active ResourceManager is killed, the NameNodes change places, the
// KDC goes away, and its clock is wrong when it is back. The job goes on; commands say what is the matter.
func TestOutage(t *testing.T) {
	testbed.Group(t, "kerberos-long")
	dead := deadAddr(t)
	x := startCluster(t, testbed.KDCOptions{Kdcs: []string{dead}}, testbed.HadoopOptions{
		HA: true, TwoNameNodes: true, DataTransfer: "privacy", Core: map[string]string{"hadoop.rpc.protection": "privacy"},
		HDFS: map[string]string{"dfs.namenode.delegation.token.renew-interval": "120000"},
		YARN: map[string]string{"yarn.resourcemanager.application-https.policy": "LENIENT"},
	})
	x.kdc.Admin("modprinc -maxlife \"30 seconds\" alice\n") // so that the ApplicationMaster needs the KDC again soon
	x.folders(t)
	o := &outage{cluster: x, t: t, exe: testbed.BuildHeddle(t, x.bed)}
	tokens := o.tokensOfBoth()
	job := x.bed.File("outage.yaml", `name: outage
source: { generator: { count: 1000000, rate: 20, record: { n: n } } }
sink: { file: { path: "hdfs:///user/alice/outage", format: json } }
`)
	p := x.bed.Start(testbed.Spec{Name: "heddle", Path: o.exe, Env: append(x.kdc.Env(), "HADOOP_CONF_DIR="+x.h.ConfDir, "HOME="+x.bed.Dir("home")),
		Args: []string{"run", job, "--target", "yarn", "--agents", "1", "--yarn.acl-view", "bob", "--kerberos.keytab", x.kdc.KeytabOf("alice")}})
	x.bed.Eventually("the job runs", patience, func() error {
		for _, word := range strings.Fields(p.Output()) {
			if strings.HasPrefix(word, "application_") {
				o.app = strings.TrimRight(word, ":.,")
				return nil
			}
		}
		if !p.Running() {
			t.Fatalf("the command ended:\n%s\n%s", p.Output(), x.logs())
		}
		return errors.New(p.Tail(5))
	})
	o.logged("got fresh delegation tokens", 1)
	agent := o.agent()
	o.others()

	active := x.h.Active()
	x.h.Kill(active)
	if now := x.h.Active(); now == active {
		t.Fatalf("%s is active after it was killed", now)
	}
	o.logged("registering again", 1)
	o.byTokens(tokens)
	// By its proxy, which has to know the authority of the one that is gone.
	o.says(0, []string{"agent-1"}, "status", o.app, "--yarn.client", "rest", "--kerberos.keytab", x.kdc.KeytabOf("alice"))
	nn, standby := x.h.ActiveNameNode()
	x.h.Failover(nn, standby)
	o.says(0, nil, "status", o.app, "--kerberos.keytab", x.kdc.KeytabOf("alice"))

	n := o.count("got fresh delegation tokens")
	o.logged("got fresh delegation tokens", n+1) // and now they are good for two minutes
	x.kdc.Pause()                                // as behind a firewall that drops packets
	o.unreached(dead, job)
	x.kdc.Stop()
	o.unreached(dead, job)
	o.logged("no KDC of TEST.LOCAL answers", 1)
	x.kdc.StartAt("+17m")
	o.says(3, []string{"clock is 1", "behind the KDC's; set it right"}, "list", "--kerberos.keytab", x.kdc.KeytabOf("alice"))
	o.logged("behind the KDC's", 1)
	x.kdc.Stop()
	x.kdc.Start()
	n = o.count("got fresh delegation tokens")
	o.logged("got fresh delegation tokens", n+1)
	if now := o.agent(); now != agent {
		t.Errorf("the agent was %s and is %s", agent, now)
	}
	for line := range strings.Lines(x.logs()) {
		if strings.Contains(line, "delegation tokens") {
			t.Log(line)
		}
	}
	p.Interrupt()
	if code := p.Wait(patience); code != 6 {
		t.Errorf("exit code %d:\n%s\n%s", code, p.Output(), x.logs())
	}
}

// says runs a command to its end, and looks at its exit code and at what it says.
func (o *outage) says(code int, texts []string, args ...string) string {
	o.t.Helper()
	out, err := o.heddle(o.t, o.exe, nil, append(args, "--target", "yarn")...)
	if got := exitCode(err); got != code {
		o.t.Errorf("%v: exit code %d, want %d:\n%s", args, got, code, out)
	}
	for _, text := range texts {
		if !strings.Contains(out, text) {
			o.t.Errorf("%v says\n%s\nwant %q in it", args, out, text)
		}
	}
	return out
}

// others are bob, who may look at the application, and carol, who may not; neither may end it.
func (o *outage) others() {
	o.t.Helper()
	for _, x := range []struct {
		user, verb string
		code       int
		texts      []string
	}{
		{"bob", "status", 0, []string{"running"}}, {"bob", "cancel", 3, nil}, {"bob", "kill", 3, nil},
		{"carol", "status", 3, nil}, {"carol", "cancel", 3, nil}, {"carol", "kill", 3, nil},
	} {
		o.t.Logf("%s, %s: %s", x.user, x.verb, o.says(x.code, x.texts, x.verb, o.app, "--kerberos.keytab", o.kdc.KeytabOf(x.user)))
	}
}

// agent names the job's only agent, with its process.
func (o *outage) agent() string {
	o.t.Helper()
	pid := ""
	o.bed.Eventually("an agent writes", patience, func() error {
		links, _ := filepath.Glob("/proc/[0-9]*/environ")
		for _, l := range links {
			if b, err := os.ReadFile(l); err == nil && strings.Contains(string(b), "HEDDLE_ROLE=agent\x00") && strings.Contains(string(b), filepath.Dir(o.h.ConfDir)) {
				pid = l
				return nil
			}
		}
		return errors.New("no process is one")
	})
	return pid
}

func (o *outage) count(text string) int { return strings.Count(o.logs(), text) }

// logged waits until containers' logs have a text so many times.
func (o *outage) logged(text string, times int) {
	o.t.Helper()
	o.bed.Eventually(fmt.Sprintf("%q is in the logs %d times", text, times), patience, func() error {
		if n := o.count(text); n < times {
			return fmt.Errorf("%d times in\n%s", n, o.logs())
		}
		return nil
	})
}

// tokensOfBoth are delegation tokens that name both ResourceManagers, in a file.
func (o *outage) tokensOfBoth() string {
	o.t.Helper()
	alice := o.identity(o.t, "alice")
	def, err := o.conf.DefaultFS()
	if err != nil {
		o.t.Fatal(err)
	}
	rm, _ := o.yarn(o.t, alice, yarnclient.Auto)
	creds, err := alice.Fetch(o.t.Context(), []hconf.FileSystem{def}, rm)
	if err != nil {
		o.t.Fatal(err)
	}
	rms, err := o.conf.RMs()
	if err != nil {
		o.t.Fatal(err)
	}
	service := creds.Of(token.KindRM)[0].Service
	if want := rms[0].Client + "," + rms[1].Client; service != want {
		o.t.Errorf("the token for the ResourceManagers is for %q, want %q", service, want)
	}
	if service := creds.Of(token.KindHDFS)[0].Service; !strings.HasPrefix(service, "ha-hdfs:") {
		o.t.Errorf("the token for HDFS is for %q", service)
	}
	return o.bed.File("outage-tokens", string(creds.Append(nil)))
}

// byTokens asks the ResourceManager that took over by tokens that the other one gave.
func (o *outage) byTokens(file string) {
	o.t.Helper()
	for _, mode := range []yarnclient.Mode{yarnclient.REST, yarnclient.ByRPC} {
		rm, _ := o.yarn(o.t, o.identity(o.t, "alice", "HADOOP_TOKEN_FILE_LOCATION="+file), mode)
		if _, err := rm.NewApplication(o.t.Context()); err != nil {
			o.t.Errorf("by the other's token, %s: %v", mode, err)
		}
	}
}

// unreached runs commands that need a KDC while there is none. They say soon which ones were tried.
func (o *outage) unreached(dead, job string) {
	o.t.Helper()
	keytab := o.kdc.KeytabOf("alice")
	for _, args := range [][]string{{"list", "--kerberos.keytab", keytab}, {"run", job, "--kerberos.keytab", keytab}} {
		start := time.Now()
		o.says(7, []string{"no KDC of TEST.LOCAL answers", dead, o.kdc.Addr}, args...)
		took := time.Since(start)
		o.t.Logf("%s ends after %v", args[0], took.Round(100*time.Millisecond))
		if took > time.Minute {
			o.t.Errorf("%s took %v", args[0], took)
		}
	}
}
