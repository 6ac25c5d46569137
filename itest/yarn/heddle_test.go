package yarn

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/itest/testbed"
	"github.com/heddle-stream/heddle/yarnclient"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// command is the heddle command on a cluster.
type command struct {
	*bench
	exe string
	n   int
}

// start starts the command; its output is both streams.
func (c *command) start(t *testing.T, args ...string) *testbed.Process {
	t.Helper()
	return c.startWith(t, nil, args...)
}

func (c *command) startWith(t *testing.T, env []string, args ...string) *testbed.Process {
	t.Helper()
	c.n++
	return c.bed.Start(testbed.Spec{Name: fmt.Sprintf("heddle-%d", c.n), Path: c.exe, Args: args,
		Env: append([]string{"HADOOP_CONF_DIR=" + c.h.ConfDir, "HADOOP_USER_NAME=" + user, "HEDDLE_TARGET=yarn", "HOME=" + c.bed.Dir("home")}, env...)})
}

// patience is how long a command may take on a busy machine.
const patience = 2 * time.Minute

// run runs the command to its end, wants an exit code and texts in its output, and returns that.
func (c *command) run(t *testing.T, code int, texts []string, args ...string) string {
	t.Helper()
	return c.ends(t, c.start(t, args...), code, texts...)
}

func (c *command) ends(t *testing.T, p *testbed.Process, code int, texts ...string) string {
	t.Helper()
	got := p.Wait(patience)
	out := p.Output()
	if got != code {
		t.Errorf("exit code %d, want %d:\n%s\n%s", got, code, out, c.logs())
	}
	for _, text := range texts {
		if !strings.Contains(out, text) {
			t.Errorf("want %q in\n%s", text, out)
		}
	}
	return out
}

// status is what `heddle status --json` says of an application.
type status struct {
	State    string
	Snapshot *struct {
		State    string
		Vertices []struct {
			Tasks       map[string]int
			Parallelism int
		}
		Agents []struct {
			ID, Host, State, Container string
			PID                        int
			Slots                      []struct{ Job string }
		}
	}
}

// running waits until every task of an application runs.
func (c *command) running(t *testing.T, app string) status {
	t.Helper()
	var s status
	c.bed.Eventually(app+" runs", patience, func() error {
		p := c.start(t, "status", app, "--json")
		if code := p.Wait(patience); code != 0 {
			return fmt.Errorf("status ends with %d: %s", code, p.Tail(5))
		}
		s = status{}
		if err := json.Unmarshal([]byte(p.Output()), &s); err != nil {
			return fmt.Errorf("%w in %s", err, p.Tail(5))
		}
		if s.Snapshot == nil {
			return fmt.Errorf("it is %s", s.State)
		}
		for _, v := range s.Snapshot.Vertices {
			if v.Tasks["running"] != v.Parallelism {
				return fmt.Errorf("tasks %v", v.Tasks)
			}
		}
		return nil
	})
	return s
}

// detached starts a job and returns its application.
func (c *command) detached(t *testing.T, args ...string) string {
	t.Helper()
	p := c.start(t, append([]string{"run", "--quiet", "--detach"}, args...)...)
	if code := p.Wait(patience); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, p.Output())
	}
	return strings.TrimSpace(p.Output())
}

// appOf is the application that a command shows.
func (c *command) appOf(t *testing.T, p *testbed.Process) string {
	t.Helper()
	app := ""
	c.bed.Eventually("the command names its application", patience, func() error {
		for _, word := range strings.Fields(p.Output()) {
			if app = strings.TrimSuffix(word, ":"); strings.HasPrefix(app, "application_") {
				return nil
			}
		}
		return fmt.Errorf("it says %q", p.Tail(3))
	})
	return app
}

// clean makes sure that no process and no file of an application is left.
func (c *command) clean(t *testing.T) {
	t.Helper()
	c.gone(t)
	c.bed.Eventually("no application's files are left in HDFS", patience, func() error {
		list, err := c.fs.List(c.fs.Home() + "/.heddle/apps")
		if err == nil && len(list) > 0 {
			err = fmt.Errorf("there is %s", list[0].Path)
		}
		return err
	})
}

// TestHeddle runs the command against a cluster whose daemons and containers have no rights beyond their own, and whose nodes count virtual memory. Its
// HDFS has two NameNodes, and there is another one.
func TestHeddle(t *testing.T) {
	x := newBench(t, testbed.HadoopOptions{Unprivileged: true, TwoNameNodes: true, SecondHDFS: true,
		YARN: map[string]string{
			"yarn.nodemanager.vmem-check-enabled": "true", "yarn.nm.liveness-monitor.expiry-interval-ms": "10000",
		},
		Scheduler: map[string]string{
			"maximum-am-resource-percent": "1.0", "root.queues": "default,tiny", "root.default.capacity": "95", "root.default.maximum-capacity": "100", "root.default.user-limit-factor": "10",
			"root.tiny.capacity": "5", "root.tiny.maximum-capacity": "100", "root.tiny.user-limit-factor": "100",
			"root.tiny.maximum-applications": "2", "root.tiny.maximum-am-resource-percent": "0.01",
		},
	})
	c := &command{bench: x, exe: testbed.BuildHeddle(t, x.bed)}
	t.Run("words", c.testWords)
	t.Run("agent", c.testAgent)
	t.Run("inside", c.testInside)
	t.Run("attempt", c.testAttempt)
	t.Run("history", c.testHistory)
	t.Run("client", c.testClient)
	t.Run("interrupt", c.testInterrupt)
	t.Run("timeout", c.testTimeout)
	t.Run("manager", c.testManager)
	t.Run("node", c.testNode)
	t.Run("refused", c.testRefused)
	t.Run("queue", c.testFullQueue)
	t.Run("space", c.testNoSpace)
	t.Run("systems", c.testSystems)
	t.Run("namenodes", c.testNameNodes)
	t.Run("safemode", c.testSafeMode)
}

// eight are the flags of a job on four agents of two slots, spread over the nodes.
var eight = []string{"--parallelism", "8", "--agent.slots", "2", "--slot.selection", "evenly-spread"}

// endless is a job that never ends.
func (c *command) endless() string {
	return c.bed.File("endless.yaml", `name: endless
source: { generator: { rate: 1000, record: { k: n % 10 } } }
steps:
  - key_by: k
  - window: { tumbling: 1s, time: processing, aggregate: { c: count() } }
sink: { discard: {} }
`)
}

// testWords counts the words of a topic of a real Kafka broker into HDFS, by four agents of two slots, two on each node.
func (c *command) testWords(t *testing.T) {
	k := testbed.StartKafka(t, c.bed)
	defer k.Kill()
	k.CreateTopic("lines", 8)
	want := map[string]int64{}
	var text strings.Builder
	for n := range 16000 {
		word := fmt.Sprintf("w%d", n*7%101)
		want[word] += 2
		want["and"]++
		fmt.Fprintf(&text, "%s and %s\n", word, word)
	}
	k.Produce("lines", text.String())
	job := c.bed.File("words.yaml", fmt.Sprintf(`name: words
source: { kafka: { topics: [lines], format: text, stop: latest } }
steps:
  - flat_map: { word: words(line) }
  - key_by: word
  - window: { global: true, aggregate: { count: count() } }
sink: { file: { path: "hdfs://%s/out", format: json } }
`, c.fs.Home()))
	p := c.start(t, append([]string{"run", job, "--timings", "--kafka.brokers", k.Bootstrap}, eight...)...)
	t.Log(c.ends(t, p, 0, "submitted to queue", "finished: words", "16,000 records in, 102 out", "uploaded", "accepted", "ApplicationMaster started", "agents granted", "first record out"))
	if got := c.counts(t, c.fs.Home()+"/out"); !maps.Equal(got, want) {
		t.Errorf("counted %d words, want %d", len(got), len(want))
	}
	c.clean(t)
	bin, err := c.fs.List(path.Join(c.fs.Home(), ".heddle/bin"))
	if err != nil || len(bin) != 1 {
		t.Errorf("programs in HDFS: %+v, %v; want one", bin, err)
	}
	c.spread(t, c.appOf(t, p), map[string]int{"127.0.0.2": 2, "127.0.0.3": 2})
}

// counts adds up the words that a job wrote.
func (c *command) counts(t *testing.T, dir string) map[string]int64 {
	t.Helper()
	got := map[string]int64{}
	for _, line := range c.lines(t, dir) {
		var w struct {
			Word  string
			Count int64
		}
		if err := json.Unmarshal([]byte(line), &w); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		got[w.Word] += w.Count
	}
	return got
}

// started is what an ApplicationMaster's log says of an agent.
var started = regexp.MustCompile(`starting an agent\W.*agent=\S+ host=([0-9.]+)`)

// spread makes sure that an application which is over had so many agents on each host, by the logs that YARN collected.
func (c *command) spread(t *testing.T, app string, want map[string]int) {
	t.Helper()
	c.bed.Eventually("the log of the ApplicationMaster is collected", patience, func() error {
		got := map[string]int{}
		for _, file := range c.collected(t, "/app-logs", app) {
			data, err := c.fs.ReadFile(file, 1<<24)
			if err != nil {
				return err
			}
			for _, m := range started.FindAllSubmatch(data, -1) {
				got[string(m[1])]++
			}
		}
		if !maps.Equal(got, want) {
			return fmt.Errorf("agents are on %v, want %v", got, want)
		}
		return nil
	})
}

// collected are the files of an application below a folder where YARN puts logs.
func (c *command) collected(t *testing.T, dir, app string) (files []string) {
	t.Helper()
	list, err := c.fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range list {
		switch {
		case i.Dir:
			files = append(files, c.collected(t, i.Path, app)...)
		case path.Base(dir) == app:
			files = append(files, i.Path)
		}
	}
	return files
}

// testAgent looks at a job that runs, and then kills one of its agents.
func (c *command) testAgent(t *testing.T) {
	app := c.detached(t, append([]string{c.endless(), "--env.GREETING=it's $5", "--yarn.log-include", "std.*", "--yarn.log-rolling", "std.*"}, eight...)...)
	s := c.running(t, app)
	for _, a := range s.Snapshot.Agents {
		if environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", a.PID)); err != nil || !strings.Contains(string(environ), "\x00GREETING=it's $5\x00") {
			t.Errorf("the environment of %s: %q, %v", a.ID, environ, err)
		}
	}
	c.bed.Eventually("the ApplicationMaster's address is in HDFS", patience, func() error {
		data, err := c.fs.ReadFile(path.Join(c.fs.Home(), ".heddle/apps", app, "appmaster.addr"), 1<<16)
		if err == nil && !strings.Contains(string(data), `"attempt":0`) {
			err = fmt.Errorf("it is %s", data)
		}
		return err
	})
	hosts := map[string]int{}
	for _, a := range s.Snapshot.Agents {
		hosts[a.Host]++
		for i, slot := range a.Slots {
			if slot.Job == "" {
				t.Errorf("slot %d of %s is free", i, a.ID)
			}
		}
	}
	if len(s.Snapshot.Agents) != 4 || len(hosts) != 2 || hosts["127.0.0.2"] != 2 {
		t.Errorf("agents are on %v, want two on each of two hosts", hosts)
	}
	c.run(t, 0, []string{app, "endless", "running", user}, "list")
	c.run(t, 0, []string{"8 running", "queue root.default", "agent-4"}, "status", app)
	c.run(t, 0, []string{"appmaster ", "agent-1 ", "registered with YARN"}, "logs", app, "-n", "0")
	waiting := c.start(t, "wait", app)
	c.appOf(t, waiting)
	testbed.Kill9(t, s.Snapshot.Agents[0].PID)
	// YARN knows why; its container's last words come along.
	c.ends(t, waiting, 5, "agent-1 was lost", "killed by signal 9", "agent.memory", "its container has 832 MB", "registered with the ApplicationMaster")
	c.run(t, 0, []string{app, "failed"}, "list", "--all")
	c.clean(t)
}

// testAttempt kills the ApplicationMaster: YARN starts another, which starts the job afresh, and the client follows and says so.
func (c *command) testAttempt(t *testing.T) {
	p := c.start(t, "run", c.endless())
	app := c.appOf(t, p)
	c.running(t, app)
	as, err := c.rm.Attempts(t.Context(), attemptOfName(t, app).App)
	if err != nil || len(as) != 1 {
		t.Fatalf("attempts %+v, %v", as, err)
	}
	masters := testbed.WithEnv("CONTAINER_ID=" + as[0].Container)
	if len(masters) == 0 {
		t.Fatal("there is no ApplicationMaster")
	}
	for _, pid := range masters {
		testbed.Kill9(t, pid)
	}
	c.bed.Eventually("the client tells of another attempt", patience, func() error {
		if !strings.Contains(p.Output(), "attempt 2 of its ApplicationMaster") {
			return fmt.Errorf("it says %s", p.Tail(3))
		}
		return nil
	})
	c.running(t, app)
	p.Interrupt()
	c.ends(t, p, 6, "cancelled")
	c.clean(t)
}

// testClient kills the client: the application goes on, and can be cancelled.
func (c *command) testClient(t *testing.T) {
	p := c.start(t, "run", c.endless())
	app := c.appOf(t, p)
	c.running(t, app)
	p.Kill()
	c.running(t, app)
	c.run(t, 0, []string{app, "canceled"}, "cancel", app)
	c.run(t, 6, []string{"cancelled"}, "wait", app)
	c.clean(t)
}

func (c *command) testInterrupt(t *testing.T) {
	p := c.start(t, "run", c.endless(), "--timings")
	c.running(t, c.appOf(t, p))
	p.Interrupt()
	c.ends(t, p, 6, "cancelled", "agents granted", "agents started", "agents registered", "tasks deployed")
	c.clean(t)
	detaching := c.start(t, "run", c.endless(), "--on-signal", "detach")
	app := c.appOf(t, detaching)
	c.running(t, app)
	detaching.Interrupt()
	c.ends(t, detaching, 4, "goes on", "heddle status "+app)
	c.run(t, 0, []string{app, "killed"}, "kill", app)
	c.clean(t)
}

func (c *command) testTimeout(t *testing.T) {
	p := c.start(t, "run", c.endless(), "--timeout", "2s")
	app := c.appOf(t, p)
	c.ends(t, p, 4, "still runs", "heddle status "+app)
	c.run(t, 0, []string{app}, "kill", app)
	c.run(t, 6, nil, "wait", app)
	c.clean(t)
}

// testManager kills the ResourceManager while a job runs, and starts it again: the job goes on, and its client too.
func (c *command) testManager(t *testing.T) {
	p := c.start(t, "run", c.endless())
	app := c.appOf(t, p)
	before := c.running(t, app)
	c.h.Kill(testbed.ResourceManager)
	c.h.Start(testbed.ResourceManager)
	c.h.WaitReady()
	after := c.running(t, app)
	if before.Snapshot.Agents[0].PID != after.Snapshot.Agents[0].PID {
		t.Errorf("the agent was process %d and is %d", before.Snapshot.Agents[0].PID, after.Snapshot.Agents[0].PID)
	}
	p.Interrupt()
	c.ends(t, p, 6, "cancelled")
	c.clean(t)
}

// testManagerFailover kills the active ResourceManager while a job runs: the other takes over, the job goes on, and its client too.
func (c *command) testManagerFailover(t *testing.T) {
	p := c.start(t, "run", c.endless())
	app := c.appOf(t, p)
	before := c.running(t, app)
	active := c.h.Active()
	c.h.Kill(active)
	if now := c.h.Active(); now == active {
		t.Fatalf("%s is active after it was killed", now)
	}
	after := c.running(t, app)
	if before.Snapshot.Agents[0].PID != after.Snapshot.Agents[0].PID {
		t.Errorf("the agent was process %d and is %d", before.Snapshot.Agents[0].PID, after.Snapshot.Agents[0].PID)
	}
	p.Interrupt()
	c.ends(t, p, 6, "cancelled")
	c.clean(t)
}

// testNode kills a NodeManager: YARN takes its containers for lost, and the job fails with that.
func (c *command) testNode(t *testing.T) {
	p := c.start(t, append([]string{"run", c.endless()}, eight...)...)
	app := c.appOf(t, p)
	c.running(t, app)
	as, err := c.rm.Attempts(t.Context(), attemptOfName(t, app).App)
	if err != nil || len(as) != 1 {
		t.Fatalf("attempts %+v, %v", as, err)
	}
	other := "nm1"
	if strings.HasPrefix(as[0].NodeID, "127.0.0.2") {
		other = "nm2"
	}
	c.h.Kill(other)
	c.ends(t, p, 5, "lost its node")
	c.h.Start(other)
	c.h.WaitReady()
	c.clean(t)
}

// testRefused are submissions that can't go well: each ends soon, with a text that helps.
func (c *command) testRefused(t *testing.T) {
	empty := c.bed.Dir("empty")
	elsewhere := c.bed.Dir("elsewhere")
	for _, name := range []string{"core-site.xml", "hdfs-site.xml", "yarn-site.xml"} {
		data, err := os.ReadFile(filepath.Join(c.h.ConfDir, name))
		if err != nil {
			t.Fatal(err)
		}
		text := strings.NewReplacer(c.h.RMWeb[0], fmt.Sprintf("127.0.0.1:%d", testbed.FreePort(t))).Replace(string(data))
		if err := os.WriteFile(filepath.Join(elsewhere, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	job := c.endless()
	for name, x := range map[string]struct {
		env   []string
		args  []string
		code  int
		texts []string
	}{
		"queue":  {nil, []string{"--queue", "nowhere"}, 3, []string{"nowhere", "queue"}},
		"agent":  {nil, []string{"--agent.memory", "64GiB"}, 3, []string{"65536 MB", "4096 MB", "--agent.memory"}},
		"master": {nil, []string{"--appmaster.cpu", "64"}, 3, []string{"64 cores", "--appmaster.cpu"}},
		"label":  {nil, []string{"--yarn.node-label", "gold"}, 3, []string{"label", "--yarn.node-label"}},
		"right":  {nil, []string{"--yarn.staging-dir", "/"}, 3, []string{"ermission", "yarn.staging-dir"}},
		"rm":     {[]string{"HADOOP_CONF_DIR=" + elsewhere}, []string{"--yarn.client", "rest"}, 7, []string{"ResourceManager"}},
		"conf":   {[]string{"HADOOP_CONF_DIR=" + empty}, nil, 3, []string{"core-site.xml", "HADOOP_CONF_DIR"}},
		"none":   {[]string{"HADOOP_CONF_DIR=" + empty + "/none"}, nil, 3, []string{"none", "HADOOP_CONF_DIR"}},
	} {
		start := time.Now()
		p := c.startWith(t, x.env, append([]string{"run", job}, x.args...)...)
		out := c.ends(t, p, x.code, x.texts...)
		t.Logf("%s, after %v: %s", name, time.Since(start).Round(10*time.Millisecond), out)
	}
	c.clean(t)
}

// testSafeMode submits while HDFS can't be written.
func (c *command) testSafeMode(t *testing.T) {
	if out, err := c.h.Tool("hdfs", "org.apache.hadoop.hdfs.tools.DFSAdmin", "-safemode", "enter"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	c.run(t, 3, []string{"safe mode"}, "run", c.endless())
	if out, err := c.h.Tool("hdfs", "org.apache.hadoop.hdfs.tools.DFSAdmin", "-safemode", "leave"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestRounds submits and kills again and again, at different moments of an application's life. Nothing is left behind.
func TestRounds(t *testing.T) {
	testbed.Group(t, "yarn-long")
	t.Setenv("ITEST", "yarn")
	x := newBench(t, testbed.HadoopOptions{Unprivileged: true})
	c := &command{bench: x, exe: testbed.BuildHeddle(t, x.bed)}
	job := c.endless()
	for i := range 50 {
		app := c.detached(t, job)
		time.Sleep(time.Duration(i%10) * 300 * time.Millisecond) // the moment of the kill is what differs
		c.run(t, 0, []string{app}, []string{"kill", "cancel"}[i%2], app)
	}
	c.clean(t)
	apps, err := c.rm.Apps(t.Context(), yarnclient.Filter{States: []string{"ACCEPTED", "RUNNING"}})
	if err != nil || len(apps) != 0 {
		t.Errorf("applications that run: %+v, %v", apps, err)
	}
	if list, err := c.fs.List(c.fs.Home() + "/.heddle"); err != nil || len(list) != 2 {
		t.Errorf("staging holds %+v, %v", list, err)
	}
}

func attemptOfName(t *testing.T, app string) yarnid.Attempt {
	t.Helper()
	id, err := yarnid.ParseApplication(app)
	if err != nil {
		t.Fatal(err)
	}
	return yarnid.Attempt{App: id, Number: 1}
}
