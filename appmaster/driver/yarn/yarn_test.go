package yarn

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/appmaster/driver/drivertest"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl"
	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/yarnclient/amrm"
	"github.com/heddle-stream/heddle/yarnclient/book"
	"github.com/heddle-stream/heddle/yarnclient/nm"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
	"github.com/heddle-stream/heddle/yarnclient/yarntest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var _ interface {
	appmaster.Driver
	appmaster.Excluder
	appmaster.Witness
} = (*Driver)(nil)

func newDriver(t *testing.T, c *yarntest.Cluster, change func(*Config)) *Driver {
	t.Helper()
	cfg := Config{
		Master: amrm.Config{Addrs: c.Addrs(), Token: c.Token(), Dial: c.Dial, Busy: 5 * time.Millisecond, Idle: 20 * time.Millisecond},
		Nodes:  nm.Config{Dial: c.Dial}, MemoryMB: 64, Command: "run", Grace: time.Second,
		Credentials: token.Credentials{Tokens: []token.Named{{Token: c.Token()}}},
	}
	if change != nil {
		change(&cfg)
	}
	d, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// where finds an agent's container by the secrets that it was started with.
func where(t *testing.T, c *yarntest.Cluster, id cluster.AgentID) yarnid.Container {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		for _, k := range c.Running() {
			creds, err := token.Parse(k.Context.GetTokens())
			if err != nil || len(creds.Of(token.KindAMRM)) != 0 {
				t.Fatalf("credentials of %v: %v, %v", k.ID, creds.Tokens, err)
			}
			var s ctl.AgentSecrets
			if err := json.Unmarshal(creds.Secret(SecretName), &s); err != nil {
				t.Fatal(err)
			}
			if s.AgentID == id {
				return k.ID
			}
		}
	}
	t.Fatalf("%s does not run", id)
	return yarnid.Container{}
}

// TestConformance holds the driver to the rules of all drivers, on a cluster in the process.
func TestConformance(t *testing.T) {
	drivertest.Test(t, func(t *testing.T, _ string) drivertest.Subject {
		c := yarntest.New(yarntest.Options{})
		d := newDriver(t, c, nil)
		t.Cleanup(func() { d.Close(); c.Close() })
		up := map[cluster.AgentID]bool{} // agents that ran once may have ended since
		return drivertest.Subject{
			Driver: d,
			Up: func(id cluster.AgentID) {
				if !up[id] {
					where(t, c, id)
				}
				up[id] = true
			},
			Crash: func(id cluster.AgentID) { c.End(where(t, c, id), 3, "out of luck") },
		}
	})
}

// start starts a driver on a cluster, in a world that notes what it says.
func start(t *testing.T, opt yarntest.Options, change func(*Config)) (*yarntest.Cluster, *Driver, *drivertest.World, *notes) {
	t.Helper()
	c := yarntest.New(opt)
	d := newDriver(t, c, change)
	w := drivertest.NewWorld(t.TempDir())
	n := &notes{exits: make(chan appmaster.AgentExit, 100), refusals: make(chan string, 100), granted: make(chan cluster.AgentID, 100)}
	env := w.Env()
	env.Exited = func(e appmaster.AgentExit) { n.exits <- e }
	env.Refused = func(why string) { n.refusals <- why }
	env.Granted = func(id cluster.AgentID, _ cluster.ContainerID, host string) {
		n.granted <- id
		if !strings.HasPrefix(host, "node") {
			t.Errorf("host %q", host)
		}
	}
	if err := d.Start(env); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, d, w, n
}

type notes struct {
	exits    chan appmaster.AgentExit
	refusals chan string
	granted  chan cluster.AgentID
}

func next[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(time.Minute):
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

func stop(t *testing.T, d *Driver) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	d.Stop(ctx)
}

// TestLife is an application's: agents come, some end, the rest is stopped, and YARN hears how it went.
func TestLife(t *testing.T) {
	c, d, _, n := start(t, yarntest.Options{}, func(c *Config) {
		c.Logs = func(_ context.Context, g book.Grant) []string { return []string{"last words on " + g.HTTP} }
	})
	c.Surplus(3)
	d.Ask(4)
	for range 4 {
		where(t, c, next(t, "a grant", n.granted))
	}
	c.End(where(t, c, "agent-2"), -104, "running beyond physical memory limits")
	if e := next(t, "an exit", n.exits); !e.Blame || !strings.Contains(e.Reason, "agent.memory") || !strings.Contains(e.Reason, "64 MB") || !strings.Contains(e.Reason, "beyond physical") || len(e.LastLogs) != 1 || !strings.Contains(e.LastLogs[0], ":8042") {
		t.Errorf("exit %+v", e)
	}
	c.End(where(t, c, "agent-3"), -102, "")
	if e := next(t, "an exit", n.exits); e.Blame || !strings.Contains(e.Reason, "preempted") {
		t.Errorf("exit %+v", e)
	}
	stop(t, d)
	if len(c.Running()) != 0 {
		t.Errorf("%d containers run after Stop", len(c.Running()))
	}
	if err := d.Finish(t.Context(), pb.FinalApplicationStatusProto_APP_SUCCEEDED, "done"); err != nil {
		t.Fatal(err)
	}
	f := c.Figures()
	if f.Finished.GetDiagnostics() != "done" || f.Held != 0 || len(f.Released) < 3 {
		t.Errorf("at the end: %+v", f)
	}
}

// TestKept gives back what an earlier attempt had, and asks for nothing in its place.
func TestKept(t *testing.T) {
	c := yarntest.New(yarntest.Options{})
	defer c.Close()
	c.Keep(3)
	d := newDriver(t, c, nil)
	if err := d.Start(drivertest.NewWorld(t.TempDir()).Env()); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); c.Figures().Held > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("kept containers were not given back")
		}
	}
	if f := c.Figures(); f.Granted != 0 || len(f.Released) != 3 {
		t.Errorf("%+v", f)
	}
	stop(t, d)
	d.Close()
}

// TestLaunchFails blames the agent and gives its container back (FLINK-10868: the master counts such failures).
func TestLaunchFails(t *testing.T) {
	c, d, _, n := start(t, yarntest.Options{}, nil)
	c.Script("startContainers", yarntest.Fail("org.apache.hadoop.yarn.exceptions.YarnException", "no such user"))
	d.Ask(1)
	if e := next(t, "an exit", n.exits); !e.Blame || !strings.Contains(e.Reason, "no such user") {
		t.Errorf("exit %+v", e)
	}
	stop(t, d)
	d.Close()
}

// TestReturnWhileLaunching takes an agent back that a slow NodeManager has not started yet (FLINK-13554).
func TestReturnWhileLaunching(t *testing.T) {
	c, d, _, n := start(t, yarntest.Options{}, nil)
	c.Script("startContainers", yarntest.Slow(300*time.Millisecond))
	d.Ask(1)
	id := next(t, "a grant", n.granted)
	d.Return(id, true)
	if e := next(t, "an exit", n.exits); e.Blame {
		t.Errorf("exit %+v", e)
	}
	stop(t, d)
	if len(c.Running()) != 0 {
		t.Error("a container runs that nobody wants")
	}
	d.Close()
}

// TestRefusals: an ask that can't be met, and the end of the attempt, are told to the master.
func TestRefusals(t *testing.T) {
	c, d, _, n := start(t, yarntest.Options{}, nil)
	c.Script("allocate", yarntest.Fail(hrpc.ClassInvalidLabel, "no such label"), yarntest.Fail(hrpc.ClassInvalidLabel, "no such label"), yarntest.Fail(hrpc.ClassInvalidLabel, "no such label"))
	d.Ask(1)
	if why := next(t, "a refusal", n.refusals); !strings.Contains(why, "no such label") {
		t.Errorf("refused: %s", why)
	}
	c.EndAttempt()
	if why := next(t, "a refusal", n.refusals); !strings.Contains(why, "ended this attempt") {
		t.Errorf("refused: %s", why)
	}
	stop(t, d)
	d.Close()
}

func TestTooLarge(t *testing.T) {
	c := yarntest.New(yarntest.Options{MaxMB: 100})
	defer c.Close()
	d := newDriver(t, c, func(c *Config) { c.MemoryMB = 200 })
	if err := d.Start(drivertest.NewWorld(t.TempDir()).Env()); err == nil || !strings.Contains(err.Error(), "agent.memory") {
		t.Errorf("started: %v", err)
	}
	// It is registered, so that it can tell YARN not to try again.
	if err := d.Finish(t.Context(), pb.FinalApplicationStatusProto_APP_FAILED, "too large"); err != nil || c.Figures().Finished.GetDiagnostics() != "too large" {
		t.Errorf("unregistered: %v", err)
	}
}

// TestKinds: resources that the cluster does not have are refused when the master registers, where it says which it has.
func TestKinds(t *testing.T) {
	for _, x := range []struct {
		has []string
		err string
	}{{[]string{"memory-mb", "vcores"}, "no such resource, only memory-mb, vcores"}, {[]string{"memory-mb", "vcores", "yarn.io/gpu"}, ""}, {nil, ""}} {
		d := &Driver{cfg: Config{Custom: map[string]int64{"yarn.io/gpu": 1, "none": 0}}, log: slog.New(slog.DiscardHandler)}
		if err := d.kinds(x.has); x.err == "" && err != nil || x.err != "" && (err == nil || !strings.Contains(err.Error(), x.err)) {
			t.Errorf("%q: %v, want %q", x.has, err, x.err)
		}
	}
}

// TestFinalURL: when it is over, the application's link does not lead to the master, which is gone.
func TestFinalURL(t *testing.T) {
	for _, url := range []string{"", "http://history/app"} {
		c := yarntest.New(yarntest.Options{})
		d := newDriver(t, c, func(c *Config) { c.Master.TrackingURL, c.FinalURL = "http://node1:4711/", url })
		if err := d.Start(drivertest.NewWorld(t.TempDir()).Env()); err != nil {
			t.Fatal(err)
		}
		stop(t, d)
		if err := d.Finish(t.Context(), pb.FinalApplicationStatusProto_APP_SUCCEEDED, "done"); err != nil {
			t.Fatal(err)
		}
		if got := c.Figures().Finished.GetTrackingUrl(); got != url {
			t.Errorf("unregistered with %q, want %q", got, url)
		}
		c.Close()
	}
}

// TestNeverStarted unregisters an application that could not begin at all.
func TestNeverStarted(t *testing.T) {
	c := yarntest.New(yarntest.Options{})
	defer c.Close()
	d := newDriver(t, c, nil)
	if err := d.Finish(t.Context(), pb.FinalApplicationStatusProto_APP_FAILED, "another graph"); err != nil || c.Figures().Finished.GetDiagnostics() != "another graph" {
		t.Errorf("unregistered: %v", err)
	}
}

func TestExclude(t *testing.T) {
	c, d, _, n := start(t, yarntest.Options{}, nil)
	d.Exclude([]string{"node1"})
	for c.Figures().Blacklist != 1 {
		time.Sleep(time.Millisecond)
	}
	d.Ask(3)
	for range 3 {
		where(t, c, next(t, "a grant", n.granted))
	}
	for _, k := range c.Running() {
		if !strings.HasPrefix(k.Node, "node2") {
			t.Errorf("%v runs on %s", k.ID, k.Node)
		}
	}
	stop(t, d)
	d.Close()
}

func TestSecretsOf(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, c token.Credentials) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, c.Append(nil), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	good := write("good", token.Credentials{Secrets: []token.Secret{{Name: SecretName, Value: []byte(`{"agent_id":"agent-7"}`)}}})
	if s, err := SecretsOf(good); err != nil || s.AgentID != "agent-7" {
		t.Errorf("got %+v, %v", s, err)
	}
	for name, c := range map[string]token.Credentials{"none": {}, "broken": {Secrets: []token.Secret{{Name: SecretName, Value: []byte("{")}}}} {
		if _, err := SecretsOf(write(name, c)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := SecretsOf(filepath.Join(dir, "absent")); err == nil {
		t.Error("absent: no error")
	}
}

// TestJudgeUsage tells of a container that used too much what it used, in a NodeManager's figures.
func TestJudgeUsage(t *testing.T) {
	reason, blame := judge(book.Done{ExitStatus: -104, Diagnostics: "[2026-11-30 12:00:00.000]Container [pid=1,containerID=container_1_0001_01_000002] is running 192937984B beyond the 'PHYSICAL' memory limit. " +
		"Current usage: 312.0 MB of 128 MB physical memory used; 1.9 GB of 268.8 MB virtual memory used. Killing container.\nDump of the process-tree for container_1"}, 128)
	for _, want := range []string{"312.0 MB of 128 MB of memory", "1.9 GB of 268.8 MB of virtual memory", "container has 128 MB", "agent.memory"} {
		if !strings.Contains(reason, want) {
			t.Errorf("%q: want %q in it", reason, want)
		}
	}
	if !blame || strings.Contains(reason, "Dump") {
		t.Errorf("%q, blame %v", reason, blame)
	}
}

func TestJudge(t *testing.T) {
	for status, want := range map[int]struct {
		text  string
		blame bool
	}{
		0: {"exit status 0", true}, 3: {"exit status 3", true}, 139: {"signal 11", true}, 137: {"raise agent.memory", true}, 126: {"noexec", true},
		-100: {"took its container back", false}, -103: {"vmem-check-enabled", true}, -106: {"ResourceManager", false}, -2: {"exit status -2", true},
	} {
		reason, blame := judge(book.Done{ExitStatus: status, Diagnostics: strings.Repeat("x", 5000)}, 64)
		if !strings.Contains(reason, want.text) || blame != want.blame || len(reason) > 1500 {
			t.Errorf("%d: %q (%d bytes), blame %v; want %q, %v", status, reason, len(reason), blame, want.text, want.blame)
		}
	}
}
