package yarn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/hadoop/hconf"
	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
	"github.com/heddle-stream/heddle/internal/ship"
	"github.com/heddle-stream/heddle/itest/testbed"
	"github.com/heddle-stream/heddle/yarnclient"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

const user = "alice"

// bench is a cluster and clients of it, that a user of the test's has.
type bench struct {
	t    *testing.T
	bed  *testbed.Bed
	h    *testbed.Hadoop
	conf *hconf.Conf
	rm   *yarnclient.Client
	fs   *hdfs.FS
	exe  yarnclient.LocalResource // of testam
}

// newBench starts a cluster, makes the user's folder in HDFS and stores the test master there.
func newBench(t *testing.T, opt testbed.HadoopOptions) *bench {
	t.Helper()
	testbed.Group(t, "yarn")
	x := &bench{t: t, bed: testbed.New(t)}
	start := time.Now()
	x.h = testbed.StartHadoop(t, x.bed, opt)
	t.Logf("cluster ready after %v", time.Since(start).Round(10*time.Millisecond))
	var err error
	if x.conf, err = hconf.Load(hconf.Options{Dir: x.h.ConfDir, Need: []string{"core-site.xml", "yarn-site.xml"}}); err != nil {
		t.Fatal(err)
	}
	rms, err := x.conf.RMs()
	if err != nil {
		t.Fatal(err)
	}
	var bases []string
	for _, rm := range rms {
		bases = append(bases, "http://"+rm.Web)
	}
	if x.rm, err = yarnclient.New(yarnclient.Config{Bases: bases, Auth: yarnclient.UserName(user), Attempts: 30, PauseMax: time.Second}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.rm.Close)
	x.open(t)
	x.exe = x.store(t, "testam")
	return x
}

// open opens HDFS for the user, whose folder its owner makes.
func (x *bench) open(t *testing.T) {
	def, err := x.conf.DefaultFS()
	if err != nil {
		t.Fatal(err)
	}
	super, err := hdfs.Open(hdfs.Config{NameNodes: def.NameNodes, User: "hdfs"})
	if err != nil {
		t.Fatal(err)
	}
	defer super.Close()
	for _, dir := range []string{"/user/" + user, "/app-logs", "/tmp"} {
		if err := super.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := super.Chmod(dir, 0o777|fs.ModeSticky); err != nil {
			t.Fatal(err)
		}
	}
	if err := super.Chown("/user/"+user, user, user); err != nil {
		t.Fatal(err)
	}
	if x.fs, err = hdfs.Open(hdfs.Config{NameNodes: def.NameNodes, User: user}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.fs.Close() })
}

// store puts one of the test's programs into the user's folder.
func (x *bench) store(t *testing.T, name string) yarnclient.LocalResource {
	t.Helper()
	exe := testbed.BuildProgram(t, x.bed, "./itest/yarn/"+name, name)
	start := time.Now()
	info, err := x.fs.Upload(t.Context(), x.fs.Home()+"/"+name, 0o700, func() (io.ReadCloser, error) { return os.Open(exe) }, nil)
	if err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(exe)
	if err != nil || st.Size() != info.Size {
		t.Fatalf("HDFS has %d bytes of %v (%v)", info.Size, st, err)
	}
	t.Logf("stored %.1f MB in %v", float64(info.Size)/1e6, time.Since(start).Round(time.Millisecond))
	def, err := x.conf.DefaultFS()
	if err != nil {
		t.Fatal(err)
	}
	return yarnclient.LocalResource{Name: name, URI: def.URI + info.Path, Visibility: yarnclient.Private, Size: info.Size, Modified: info.Modified}
}

// submit submits the test master, which runs a command in two containers.
func (x *bench) submit(t *testing.T, name, command string) yarnclient.NewApp {
	t.Helper()
	app, err := x.rm.NewApplication(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = x.rm.Submit(t.Context(), &yarnclient.Submission{
		ID: app.ID, Name: name, Type: "HEDDLE-TEST", Tags: []string{"itest", name}, Resource: yarnclient.Resource{MemoryMB: 128, VCores: 1}, MaxAttempts: 2,
		Command: "./testam 1><LOG_DIR>/stdout 2><LOG_DIR>/stderr", Resources: []yarnclient.LocalResource{x.exe},
		Env: map[string]string{"RM_ADDR": strings.Join(x.h.RMSched, ","), "COUNT": "2", "COMMAND": strings.ReplaceAll(command, "$", `\$`), "PATH": "/usr/bin:/bin"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return app
}

func attemptOf(app yarnclient.NewApp, n int32) yarnid.Attempt {
	return yarnid.Attempt{App: app.ID, Number: n}
}

// await waits until an application is in a state that will do.
func (x *bench) await(t *testing.T, app yarnclient.NewApp, what string, ok func(yarnclient.App) bool) yarnclient.App {
	t.Helper()
	var a yarnclient.App
	x.bed.Eventually(app.ID.String()+" "+what, 2*time.Minute, func() error {
		var err error
		if a, err = x.rm.App(t.Context(), app.ID); err != nil {
			return err
		}
		if !ok(a) {
			if a.Ended() {
				t.Fatalf("the application is %s: %s\n%s", a.State, a.Diagnostics, x.logs())
			}
			return fmt.Errorf("it is %s: %s", a.State, a.Diagnostics)
		}
		return nil
	})
	return a
}

// logs collects what containers wrote.
func (x *bench) logs() string {
	var b strings.Builder
	paths, _ := filepath.Glob(filepath.Join(filepath.Dir(x.h.ConfDir), "nm*", "logs", "application*", "container*", "std*"))
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err == nil && len(data) > 0 {
			fmt.Fprintf(&b, "== %s\n%s\n", p, data)
		}
	}
	return b.String()
}

// TestCluster proves the whole chain on one cluster, which takes a while to start.
func TestCluster(t *testing.T) {
	x := newBench(t, testbed.HadoopOptions{})
	t.Run("files", x.testFiles)
	t.Run("broken", x.testBrokenUpload)
	t.Run("store", x.testStore)
	t.Run("queries", x.testQueries)
	t.Run("run", x.testRun)
	t.Run("restart", x.testRestart)
	t.Run("kill", x.testKill)
	t.Run("refusals", x.testRefusals)
	t.Run("job", x.testJob)
	t.Run("command", x.testCommand)
}

// TestFailover kills the active one of two ResourceManagers while containers run: the other takes over, the master registers with it, and
// the client follows. Then a job of Heddle goes on while they change back.
func TestFailover(t *testing.T) {
	x := newBench(t, testbed.HadoopOptions{HA: true})
	first := x.h.Active()
	infos, errs := x.rm.Infos(t.Context())
	if errs[0] != nil || errs[1] != nil || infos[0].HAState == infos[1].HAState {
		t.Errorf("ResourceManagers: %+v, %v", infos, errs)
	}
	dir := x.bed.Dir("failover")
	app := x.submit(t, "failover", marker(dir))
	x.markers(t, dir)
	start := time.Now()
	x.h.Kill(first)
	if second := x.h.Active(); second == first {
		t.Fatalf("%s is active after it was killed", second)
	}
	t.Logf("the other ResourceManager is active after %v", time.Since(start).Round(10*time.Millisecond))
	x.await(t, app, "runs", func(a yarnclient.App) bool { return a.State == yarnclient.StateRunning && a.Containers == 3 })
	t.Logf("the master has registered with it and all containers are known after %v", time.Since(start).Round(10*time.Millisecond))
	x.letGo(t, dir)
	a := x.await(t, app, "is over", func(a yarnclient.App) bool { return a.State == yarnclient.StateFinished })
	as, err := x.rm.Attempts(t.Context(), app.ID)
	if a.FinalStatus != "SUCCEEDED" || err != nil || len(as) != 1 {
		t.Errorf("at the end: %+v; attempts %+v, %v", a, as, err)
	}
	x.gone(t)
	x.h.Start(first)
	x.bed.Eventually("the killed ResourceManager is a standby", patience, func() error {
		infos, _ := x.rm.Infos(t.Context())
		for _, i := range infos {
			if i.HAState == "STANDBY" {
				return nil
			}
		}
		return fmt.Errorf("ResourceManagers: %+v", infos)
	})
	c := &command{bench: x, exe: testbed.BuildHeddle(t, x.bed)}
	c.testManagerFailover(t)
}

func (x *bench) testFiles(t *testing.T) {
	name := x.fs.Home() + "/dir/file"
	if err := x.fs.MkdirAll(x.fs.Home()+"/dir", 0o700); err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("0123456789", 300000)
	open := func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }
	var done int64
	info, err := x.fs.Upload(t.Context(), name, 0o640, open, func(n int64) { done = n })
	if err != nil || info.Size != int64(len(text)) || done != info.Size || info.Owner != user || info.Mode != 0o640 {
		t.Fatalf("stored %+v, %v; told %d", info, err, done)
	}
	if again, err := x.fs.Stat(name); err != nil || again != info {
		t.Errorf("later it is %+v, %v; want %+v", again, err, info)
	}
	if got, err := x.fs.ReadFile(name, 1<<24); err != nil || string(got) != text {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
	if _, err := x.fs.Upload(t.Context(), name, 0o640, open, nil); !errors.Is(err, fs.ErrExist) {
		t.Errorf("stored over a file: %v", err)
	}
	if list, err := x.fs.List(x.fs.Home() + "/dir"); err != nil || len(list) != 1 || list[0].Path != name {
		t.Errorf("the folder holds %+v, %v; want the file alone", list, err)
	}
	if _, err := x.fs.Upload(t.Context(), "/forbidden/file", 0o640, open, nil); err == nil || !strings.Contains(err.Error(), "/forbidden/file") {
		t.Errorf("stored where the user may not: %v", err)
	}
	if err := x.fs.RemoveAll(x.fs.Home() + "/dir"); err != nil {
		t.Error(err)
	}
	if _, err := x.fs.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after removing: %v", err)
	}
}

// cut is a connection that breaks after some bytes were written.
type cut struct {
	net.Conn
	left int
}

func (c *cut) Write(b []byte) (int, error) {
	if c.left -= len(b); c.left < 0 {
		c.Conn.Close()
	}
	return c.Conn.Write(b)
}

// testBrokenUpload loses the connection to the DataNode twice, in the middle of a file, and then that to the NameNode. The file is written anew each
// time, and nothing but it is left.
func (x *bench) testBrokenUpload(t *testing.T) {
	def, err := x.conf.DefaultFS()
	if err != nil {
		t.Fatal(err)
	}
	var dials, cuts atomic.Int32
	f, err := hdfs.Open(hdfs.Config{NameNodes: def.NameNodes, User: user, Dial: func(ctx context.Context, addr string) (net.Conn, error) {
		var d net.Dialer
		nc, err := d.DialContext(ctx, "tcp", addr)
		data := addr != def.NameNodes[0]
		switch n := dials.Add(1); {
		case err != nil:
			return nil, err
		case data && cuts.Load() < 2:
			cuts.Add(1)
			return &cut{nc, 1 << 20}, nil
		case !data && cuts.Load() == 2 && n > 3:
			cuts.Add(1)
			return &cut{nc, 700}, nil
		}
		return nc, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dir := f.Home() + "/broken"
	if err := f.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("0123456789", 400000)
	opened := 0
	info, err := f.Upload(t.Context(), dir+"/file", 0o600, func() (io.ReadCloser, error) { opened++; return io.NopCloser(strings.NewReader(text)), nil }, nil)
	if err != nil || info.Size != int64(len(text)) {
		t.Fatalf("stored %+v, %v", info, err)
	}
	if opened < 3 || cuts.Load() != 3 {
		t.Errorf("written %d times, %d connections broken", opened, cuts.Load())
	}
	if got, err := x.fs.ReadFile(dir+"/file", 1<<24); err != nil || string(got) != text {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
	if list, err := x.fs.List(dir); err != nil || len(list) != 1 {
		t.Errorf("the folder holds %+v, %v", list, err)
	}
}

// testStore keeps a program once, whoever comes first, and refuses one that another may have planted.
func (x *bench) testStore(t *testing.T) {
	exe, err := ship.PickExecutable(t.Context(), ship.Pick{Path: testbed.BuildProgram(t, x.bed, "./itest/yarn/testam", "testam"), Platform: ship.Host()})
	if err != nil {
		t.Fatal(err)
	}
	defer exe.Close()
	store := &ship.Store{FS: x.fs, URI: "hdfs://" + x.h.NameNode, User: user, Root: x.fs.Home() + "/.stored"}
	type result struct {
		resource yarnclient.LocalResource
		reused   bool
		err      error
	}
	results := make(chan result, 8)
	for range cap(results) {
		go func() {
			r, reused, err := store.StoreBinary(t.Context(), exe, nil)
			results <- result{r, reused, err}
		}()
	}
	var first yarnclient.LocalResource
	stored := 0
	for range cap(results) {
		r := <-results
		if r.err != nil {
			t.Fatal(r.err)
		}
		if first.URI == "" {
			first = r.resource
		}
		if r.resource != first {
			t.Errorf("one got %+v, another %+v", first, r.resource)
		}
		if !r.reused {
			stored++
		}
	}
	dir := store.Root + "/bin"
	list, err := x.fs.List(dir)
	if err != nil || len(list) != 1 || stored != 1 {
		t.Errorf("the folder holds %+v, %v; %d stored it", list, err, stored)
	}
	if err := x.fs.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, _, err := store.StoreBinary(t.Context(), exe, nil); err == nil || !strings.Contains(err.Error(), "planted") {
		t.Errorf("a folder that all may write: %v", err)
	}
}

func (x *bench) testQueries(t *testing.T) {
	infos, errs := x.rm.Infos(t.Context())
	if errs[0] != nil || infos[0].HAState != "ACTIVE" || infos[0].Version != testbed.HadoopVersion {
		t.Errorf("cluster: %+v, %v", infos, errs)
	}
	nodes, err := x.rm.Nodes(t.Context())
	if err != nil || len(nodes) != len(x.h.Nodes) || nodes[0].State != "RUNNING" || nodes[0].Free.MemoryMB != 4096 {
		t.Errorf("nodes: %+v, %v", nodes, err)
	}
	qs, err := x.rm.Queues(t.Context())
	var names []string
	for _, q := range qs {
		names = append(names, q.Path)
	}
	if ls, err := x.rm.Labels(t.Context()); err != nil || len(ls) != 0 {
		t.Errorf("labels: %v, %v", ls, err)
	}
	if got := strings.Join(names, " "); err != nil || !strings.Contains(got, "root.default") || !strings.Contains(got, "root.alt") {
		t.Errorf("queues: %q, %v", got, err)
	}
}

// marker is a command that leaves a file in a folder, waits for another and ends.
func marker(dir string) string {
	return fmt.Sprintf("echo $HADOOP_TOKEN_FILE_LOCATION > %s/$CONTAINER_ID; cp $HADOOP_TOKEN_FILE_LOCATION %s/tokens; while [ ! -e %s/go ]; do sleep 0.1; done", dir, dir, dir)
}

func (x *bench) markers(t *testing.T, dir string) {
	t.Helper()
	x.bed.Eventually("two containers run", time.Minute, func() error {
		got, err := filepath.Glob(filepath.Join(dir, "container_*"))
		if err != nil || len(got) != 2 {
			return fmt.Errorf("%d run\n%s", len(got), x.logs())
		}
		return nil
	})
}

func (x *bench) letGo(t *testing.T, dir string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (x *bench) testRun(t *testing.T) {
	dir := x.bed.Dir("run")
	start := time.Now()
	app := x.submit(t, "run", marker(dir))
	x.markers(t, dir)
	t.Logf("containers run %v after submission", time.Since(start).Round(10*time.Millisecond))
	a := x.await(t, app, "runs", func(a yarnclient.App) bool { return a.State == yarnclient.StateRunning && a.Containers == 3 })
	if a.User != user || a.Queue != "default" && a.Queue != "root.default" || a.Type != "HEDDLE-TEST" || len(a.Tags) != 2 {
		t.Errorf("report: %+v", a)
	}
	tagged, err := x.rm.Apps(t.Context(), yarnclient.Filter{Tags: []string{"run"}, Types: []string{"HEDDLE-TEST"}, States: []string{"RUNNING"}})
	if err != nil || len(tagged) != 1 || tagged[0].ID != app.ID.String() {
		t.Errorf("by tag: %+v, %v", tagged, err)
	}
	as, err := x.rm.Attempts(t.Context(), app.ID)
	if err != nil || len(as) != 1 || as[0].Number != 1 {
		t.Fatalf("attempts: %+v, %v", as, err)
	}
	cs, err := x.rm.Containers(t.Context(), attemptOf(app, 1))
	if err != nil || len(cs) != 3 {
		t.Errorf("containers: %+v, %v", cs, err)
	}
	if am, err := yarnid.ParseContainer(as[0].Container); err != nil {
		t.Error(err)
	} else if log, err := x.rm.ContainerLog(t.Context(), as[0].Node, am, "stdout", 4096); err != nil || !strings.HasPrefix(log, "time=") || !strings.Contains(log, "msg=registered") {
		t.Errorf("the master's log: %q, %v", log, err)
	}
	if _, err := x.rm.Activities(t.Context(), app.ID); err != nil {
		t.Errorf("activities: %v", err)
	}
	if toks, err := os.ReadFile(filepath.Join(dir, "tokens")); err != nil || strings.Contains(string(toks), "YARN_AM_RM_TOKEN") {
		t.Errorf("a container got the master's token, or no file at all: %q, %v", toks, err)
	}
	x.letGo(t, dir)
	a = x.await(t, app, "is over", func(a yarnclient.App) bool { return a.State == yarnclient.StateFinished })
	if a.FinalStatus != "SUCCEEDED" || a.Diagnostics != "all containers have ended" {
		t.Errorf("at the end: %+v", a)
	}
	x.gone(t)
}

func (x *bench) gone(t *testing.T) {
	t.Helper()
	x.bed.Eventually("no container runs", 30*time.Second, func() error {
		if p := x.h.Containers(); len(p) > 0 {
			return fmt.Errorf("processes %v", p)
		}
		return nil
	})
}

// testRestart kills the ResourceManager while containers run. The master registers again and the application goes on.
func (x *bench) testRestart(t *testing.T) {
	dir := x.bed.Dir("restart")
	app := x.submit(t, "restart", marker(dir))
	x.markers(t, dir)
	x.h.Kill(testbed.ResourceManager)
	x.h.Start(testbed.ResourceManager)
	start := time.Now()
	x.h.WaitReady()
	t.Logf("the ResourceManager is back after %v", time.Since(start).Round(10*time.Millisecond))
	x.await(t, app, "runs", func(a yarnclient.App) bool { return a.State == yarnclient.StateRunning })
	x.letGo(t, dir)
	a := x.await(t, app, "is over", func(a yarnclient.App) bool { return a.State == yarnclient.StateFinished })
	as, err := x.rm.Attempts(t.Context(), app.ID)
	if a.FinalStatus != "SUCCEEDED" || err != nil || len(as) != 1 {
		t.Errorf("at the end: %+v; attempts %+v, %v", a, as, err)
	}
	x.gone(t)
}

func (x *bench) testKill(t *testing.T) {
	dir := x.bed.Dir("kill")
	app := x.submit(t, "kill", marker(dir))
	x.markers(t, dir)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := x.rm.Kill(ctx, app.ID, "killed by the test"); err != nil {
		t.Fatal(err)
	}
	a, err := x.rm.App(t.Context(), app.ID)
	if err != nil || a.State != yarnclient.StateKilled || !strings.Contains(a.Diagnostics, "killed by the test") {
		t.Errorf("after the kill: %+v, %v", a, err)
	}
	x.gone(t)
}

func (x *bench) testRefusals(t *testing.T) {
	app, err := x.rm.NewApplication(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := &yarnclient.Submission{ID: app.ID, Name: "big", Command: "true", Resource: yarnclient.Resource{MemoryMB: 1 << 20, VCores: 1}}
	if err := x.rm.Submit(t.Context(), s); err == nil || !strings.Contains(err.Error(), app.ID.String()) {
		t.Errorf("a container larger than the largest: %v", err)
	}
	s = &yarnclient.Submission{ID: app.ID, Name: "queue", Command: "true", Queue: "nowhere", Resource: yarnclient.Resource{MemoryMB: 64, VCores: 1}}
	if err := x.rm.Submit(t.Context(), s); err == nil {
		x.bed.Eventually("an application in no queue fails", time.Minute, func() error {
			a, err := x.rm.App(t.Context(), app.ID)
			if err != nil || a.State != yarnclient.StateFailed || !strings.Contains(a.Diagnostics, "nowhere") {
				return fmt.Errorf("%+v, %v", a, err)
			}
			return nil
		})
	}
	if _, err := x.rm.App(t.Context(), attemptOf(yarnclient.NewApp{}, 0).App); !yarnclient.IsUnknown(err) {
		t.Errorf("an application that is not: %v", err)
	}
}

// testJob runs a job of Heddle with agents in containers, and checks its result.
func (x *bench) testJob(t *testing.T) {
	exe := x.store(t, "testjob")
	out := x.bed.Dir("out")
	app, err := x.rm.NewApplication(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const lines = 200000
	start := time.Now()
	err = x.rm.Submit(t.Context(), &yarnclient.Submission{
		ID: app.ID, Name: "numbers", Type: "HEDDLE", Resource: yarnclient.Resource{MemoryMB: 256, VCores: 1}, MaxAttempts: 1,
		Command: "./testjob 1><LOG_DIR>/stdout 2><LOG_DIR>/stderr", Resources: []yarnclient.LocalResource{exe},
		Env: map[string]string{"RM_ADDR": strings.Join(x.h.RMSched, ","), "LINES": fmt.Sprint(lines), "OUT": out, "EXE": exe.URI, "EXE_SIZE": fmt.Sprint(exe.Size), "EXE_MODIFIED": fmt.Sprint(exe.Modified.UnixMilli())},
	})
	if err != nil {
		t.Fatal(err)
	}
	a := x.await(t, app, "is over", func(a yarnclient.App) bool { return a.State == yarnclient.StateFinished })
	if a.FinalStatus != "SUCCEEDED" || a.Diagnostics != "the job finished" {
		t.Fatalf("at the end: %+v\n%s", a, x.logs())
	}
	t.Logf("%d lines in %v from submission", lines, time.Since(start).Round(10*time.Millisecond))
	parts, err := filepath.Glob(filepath.Join(out, "part-*"))
	if err != nil || len(parts) != 4 {
		t.Fatalf("parts %v, %v", parts, err)
	}
	seen := map[string]bool{}
	for _, p := range parts {
		data, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range strings.Fields(string(data)) {
			if seen[l] {
				t.Fatalf("%s occurs twice", l)
			}
			seen[l] = true
		}
	}
	if len(seen) != lines || !seen["0"] || !seen[fmt.Sprint(lines-1)] {
		t.Errorf("%d different lines, want %d", len(seen), lines)
	}
	x.gone(t)
}
