package kerberos

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/itest/testbed"
)

// heldTokens is what heddle tokens says of an application's tokens.
type heldTokens struct {
	appmaster.Tokens
	Agents []struct {
		Agent   string
		Version uint64
	}
}

// held asks for an application's tokens as a user.
func (x *cluster) held(t *testing.T, exe string, who []string, app string) (h heldTokens, err error) {
	t.Helper()
	out, err := x.heddle(t, exe, who, "tokens", app, "--json")
	if err != nil {
		return h, fmt.Errorf("%w: %s", err, out)
	}
	return h, json.Unmarshal([]byte(out[strings.Index(out, "{"):]), &h)
}

// as is the environment of a user who has run kinit.
func (x *cluster) ticketOf(user string) []string {
	cache := filepath.Join(x.bed.Dir("tickets"), user)
	x.kdc.Kinit("FILE:"+cache, x.kdc.KeytabOf(user), user)
	return []string{"KRB5CCNAME=FILE:" + cache}
}

// tokens hands fresh tokens to an application that runs, which another user can't.
func (v *target) tokens(t *testing.T) {
	exe := testbed.BuildProgram(t, v.bed, "./cmd/heddle", "heddle")
	alice, bob := v.ticketOf("alice"), v.ticketOf("bob")
	before, err := v.held(t, exe, alice, v.app)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(before.Held, func(h appmaster.Token) bool {
		return h.Kind == token.KindHDFS && strings.HasPrefix(h.Owner, "alice") && h.Source == "submission" && h.Until.After(time.Now().Add(24*time.Hour))
	}) {
		t.Errorf("the application is said to hold %+v", before.Held)
	}
	if out, err := v.heddle(t, exe, bob, "tokens", "push", v.app); err == nil || !strings.Contains(out, "only its user") {
		t.Errorf("bob hands in tokens: %v\n%s", err, out)
	}
	if out, err := v.heddle(t, exe, alice, "tokens", "push", v.app); err != nil || !strings.Contains(out, "keeps its tokens") {
		t.Errorf("tokens that end earlier: %v\n%s", err, out)
	}
	out, err := v.heddle(t, exe, alice, "tokens", "push", v.app, "--force")
	if err != nil || !strings.Contains(out, "version 1 of the tokens is in use") {
		t.Fatalf("%v\n%s\n%s", err, out, v.logs())
	}
	after, err := v.held(t, exe, alice, v.app)
	if err != nil || after.Version != 1 || len(after.Agents) != 2 || after.Agents[0].Version != 1 || after.Agents[1].Version != 1 || after.Push.Refused != "" {
		t.Errorf("after that it has %+v, %v", after, err)
	}
	if _, err := v.cluster.open(t, "alice").Stat("/user/alice/.heddle/apps/" + v.app + "/tokens.push"); err == nil {
		t.Error("the file of tokens is still there")
	}
	if out, err := v.heddle(t, exe, alice, "status", v.app); err != nil || !strings.Contains(out, "tokens: the one for") {
		t.Errorf("%v\n%s", err, out)
	}
}

// shortLives are tokens of HDFS that end for good after a minute.
var shortLives = map[string]string{"dfs.namenode.delegation.token.renew-interval": "60000", "dfs.namenode.delegation.token.max-lifetime": "60000"}

// TestPush is a job without a keytab that outlives its tokens three times over, since fresh ones are handed in.
func TestPush(t *testing.T) {
	testbed.Group(t, "kerberos-long")
	x := startCluster(t, testbed.KDCOptions{}, testbed.HadoopOptions{HDFS: shortLives})
	x.folders(t)
	exe := testbed.BuildProgram(t, x.bed, "./cmd/heddle", "heddle")
	alice := x.ticketOf("alice")
	const seconds = 200
	job := x.bed.File("push.yaml", fmt.Sprintf(`name: push
source: { generator: { count: %d, rate: 10, record: { n: n } } }
sink: { file: { path: "hdfs:///user/alice/push", format: json } }
`, 10*seconds))
	p := x.bed.Start(testbed.Spec{Name: "heddle", Path: exe, Env: append(append(x.kdc.Env(), "HADOOP_CONF_DIR="+x.h.ConfDir, "HOME="+x.bed.Dir("home")), alice...),
		Args: []string{"run", job, "--target", "yarn", "--agents", "1", "--yarn.max-attempts", "1"}})
	var app string
	x.bed.Eventually("the job runs", 4*time.Minute, func() error {
		out := p.Output()
		if app = appID.FindString(out); app != "" && strings.Contains(out, "dashboard") {
			return nil
		}
		if !p.Running() {
			t.Fatal(out)
		}
		return errors.New(out)
	})
	pushes := 0
	for p.Running() {
		out, err := x.heddle(t, exe, alice, "tokens", "push", app)
		if err != nil && p.Running() && !strings.Contains(out, "does not run") {
			t.Errorf("%v\n%s", err, out)
			break
		}
		if strings.Contains(out, "is in use") {
			pushes++
		}
		select {
		case <-time.After(15 * time.Second):
		case <-t.Context().Done():
		}
	}
	logs := x.logs()
	if code := p.Wait(4 * time.Minute); code != 0 {
		t.Fatalf("exit code %d:\n%s\n%s", code, p.Output(), logs)
	}
	if pushes < 4 {
		t.Errorf("tokens were handed in %d times", pushes)
	}
	if !strings.Contains(logs, "cancelled tokens") {
		t.Errorf("the log does not say that tokens were cancelled\n%s", logs)
	}
	x.checkLines(t, "/user/alice/push", 10*seconds)
}

// appID finds the application in what a command says.
var appID = regexp.MustCompile(`application_[0-9]+_[0-9]+`)

// checkLines counts the lines of files in a folder of alice's.
func (x *cluster) checkLines(t *testing.T, dir string, want int) {
	t.Helper()
	f := x.open(t, "alice")
	files, err := f.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, file := range files {
		data, err := f.ReadFile(file.Path, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		lines += strings.Count(string(data), "\n")
	}
	if lines != want {
		t.Errorf("HDFS has %d records of %d in %s", lines, want, dir)
	}
}

// TestSecondAttempt kills an ApplicationMaster when the tokens of its submission have ended for good: the next one logs in by the keytab before it trusts them, and the
// job goes on.
func TestSecondAttempt(t *testing.T) {
	testbed.Group(t, "kerberos-long")
	x := startCluster(t, testbed.KDCOptions{}, testbed.HadoopOptions{HDFS: shortLives})
	x.folders(t)
	exe := testbed.BuildProgram(t, x.bed, "./cmd/heddle", "heddle")
	job := x.bed.File("attempt.yaml", `name: attempt
source: { generator: { count: 1000000, rate: 10, record: { n: n } } }
sink: { file: { path: "hdfs:///user/alice/attempt", format: json, overwrite: true } }
`)
	alice := x.ticketOf("alice")
	out, err := x.heddle(t, exe, alice, "run", job, "--target", "yarn", "--agents", "1", "--detach", "--quiet", "--kerberos.keytab", x.kdc.KeytabOf("alice"))
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, x.logs())
	}
	submitted := time.Now()
	app := strings.TrimSpace(out[strings.LastIndex(out, "application_"):])
	x.running(t, exe, alice, app, 0)
	x.bed.Eventually("the submission's tokens have ended for good", 4*time.Minute, func() error {
		if left := time.Until(submitted.Add(65 * time.Second)); left > 0 {
			return fmt.Errorf("they have %v to go", left)
		}
		return nil
	})
	x.killMaster(t, app)
	x.running(t, exe, alice, app, 1)
	x.bed.Eventually("the tokens of the first attempt are cancelled", time.Minute, func() error {
		if !strings.Contains(x.logs(), "cancelled tokens") {
			return errors.New("the log does not say so")
		}
		return nil
	})
	h, err := x.held(t, exe, alice, app)
	if err != nil || !slices.ContainsFunc(h.Held, func(h appmaster.Token) bool { return h.Source == "keytab" && h.Until.After(time.Now()) }) {
		t.Errorf("it holds %+v, %v", h.Held, err)
	}
	if out, err := x.heddle(t, exe, alice, "cancel", app); err != nil {
		t.Errorf("%v\n%s\n%s", err, out, x.logs())
	}
}
