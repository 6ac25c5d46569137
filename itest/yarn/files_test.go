package yarn

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/hadoop/hconf"
	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
	"github.com/heddle-stream/heddle/internal/hadoop/hdfsfiles"
	"github.com/heddle-stream/heddle/internal/ship"
	"github.com/heddle-stream/heddle/itest/testbed"
)

// files is an HDFS, its users and the command.
type files struct {
	t      *testing.T
	bed    *testbed.Bed
	h      *testbed.Hadoop
	conf   *hconf.Conf
	super  *hdfs.FS // may do everything
	alice  *hdfs.FS
	heddle string
}

// TestHDFS runs jobs whose sources and sinks are in a real HDFS, and ships to it.
func TestHDFS(t *testing.T) {
	testbed.Group(t, "yarn")
	x := &files{t: t, bed: testbed.New(t)}
	// DataNodes report a block late enough for the next but one to be asked for meanwhile.
	x.h = testbed.StartHadoop(t, x.bed, testbed.HadoopOptions{OnlyHDFS: true, HDFS: map[string]string{"dfs.blocksize": "1048576", "dfs.blockreport.incremental.intervalMsec": "200"}})
	var err error
	if x.conf, err = hconf.Load(hconf.Options{Dir: x.h.ConfDir}); err != nil {
		t.Fatal(err)
	}
	x.super, x.alice = x.openAs("hdfs"), x.openAs(user)
	for dir, owner := range map[string]string{"/user/alice": user, "/secret": "hdfs", "/small": user} {
		if err := x.super.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := x.super.Chmod(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := x.super.Chown(dir, owner, owner); err != nil {
			t.Fatal(err)
		}
	}
	x.heddle = testbed.BuildHeddle(t, x.bed)
	t.Run("late", x.testLateReports)
	t.Run("count", x.testCount)
	t.Run("half", x.testNoHalfResult)
	t.Run("reread", x.testBrokenRead)
	t.Run("ship", x.testShip)
	t.Run("troubles", x.testTroubles)
}

func (x *files) openAs(name string) *hdfs.FS {
	x.t.Helper()
	f, err := hdfs.Open(hdfs.Config{NameNodes: []string{x.h.NameNode}, User: name})
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { _ = f.Close() })
	return f
}

func (x *files) put(t *testing.T, name, text string) {
	t.Helper()
	open := func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }
	if err := x.alice.MkdirAll(path.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := x.alice.Upload(t.Context(), name, 0o644, open, nil); err != nil {
		t.Fatal(err)
	}
}

// testLateReports writes a file of several blocks, whose NameNode has not heard of one when the next but one is asked for.
func (x *files) testLateReports(t *testing.T) {
	const name = "/small/late"
	text := strings.Repeat("0123456789abcdef", 5<<16)
	x.put(t, name, text)
	r, err := x.alice.OpenAt(t.Context(), name, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := io.ReadAll(r); err != nil || string(got) != text {
		t.Errorf("read %d bytes of %d, or others: %v", len(got), len(text), err)
	}
	if !strings.Contains(x.h.Daemon(testbed.NameNode).Output(), "NotReplicatedYetException") {
		t.Error("no block was refused: the test shows nothing")
	}
}

// run runs a job as alice and returns what it said and its exit code.
func (x *files) run(t *testing.T, job string, args ...string) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, x.heddle, append([]string{"run", x.bed.File(strings.ReplaceAll(t.Name(), "/", "-")+".yaml", job)}, args...)...)
	cmd.Env = append(os.Environ(), "HADOOP_CONF_DIR="+x.h.ConfDir, "HADOOP_USER_NAME="+user, "XDG_STATE_HOME="+x.bed.Dir("state"))
	out, err := cmd.CombinedOutput()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// text reads all visible files of a folder, sorted by lines, and the names of all files in it.
func (x *files) text(t *testing.T, dir string) (lines, names []string) {
	t.Helper()
	list, err := x.alice.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range list {
		names = append(names, path.Base(i.Path))
		data, err := x.alice.ReadFile(i.Path, 1<<26)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, strings.Split(strings.TrimRight(string(data), "\n"), "\n")...)
	}
	slices.Sort(lines)
	slices.Sort(names)
	return lines, names
}

// testCount counts the words of files of several blocks, whose lines go across the blocks' ends, compressed ones and hidden ones among them.
func (x *files) testCount(t *testing.T) {
	want := map[string]int{}
	for f := range 3 {
		var text bytes.Buffer
		for i := 0; text.Len() < 2_500_000; i++ {
			word := fmt.Sprintf("word-%d", (i*7+f)%41)
			want[word]++
			fmt.Fprintln(&text, word)
		}
		x.put(t, fmt.Sprintf("/user/alice/in/%d.txt", f), text.String())
	}
	x.put(t, "/user/alice/in/_SUCCESS", "hidden\n")
	x.located(t, "hdfs:///user/alice/in/0.txt")
	job := `
name: count
source: { file: { path: "hdfs:///user/alice/in", format: text } }
steps:
  - key_by: line
  - window: { global: true, aggregate: { n: count() } }
sink: { file: { path: "hdfs://` + x.h.NameNode + `/user/alice/out", format: json } }
`
	if out, code := x.run(t, job, "--parallelism", "3"); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, out)
	}
	lines, names := x.text(t, "/user/alice/out")
	if strings.Join(names, " ") != "part-00000 part-00001 part-00002" {
		t.Errorf("the result's files: %q", names)
	}
	got := map[string]int{}
	for _, l := range lines {
		var c struct {
			Line string
			N    int
		}
		if err := json.Unmarshal([]byte(l), &c); err != nil {
			t.Fatalf("%q: %v", l, err)
		}
		got[c.Line] += c.N
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if out, code := x.run(t, job, "--parallelism", "3"); code == 0 || !strings.Contains(out, "it exists; remove it") {
		t.Errorf("over the result: exit code %d:\n%s", code, out)
	}
	again := strings.Replace(job, "format: json", "format: json, overwrite: true", 1)
	if out, code := x.run(t, again, "--parallelism", "3"); code != 0 {
		t.Errorf("with overwrite: exit code %d:\n%s", code, out)
	}
	if lines2, names2 := x.text(t, "/user/alice/out"); !slices.Equal(names2, names) || len(lines2) != len(lines) {
		t.Errorf("written anew: %q with %d lines", names2, len(lines2))
	}
}

// located wants a file of three blocks to be where the one DataNode is.
func (x *files) located(t *testing.T, uri string) {
	t.Helper()
	fsys, err := hdfsfiles.New(x.conf, hdfs.Config{User: user})
	if err != nil {
		t.Fatal(err)
	}
	found, err := fsys.Find(t.Context(), uri)
	if err != nil || len(found) != 1 {
		t.Fatalf("found %+v, %v", found, err)
	}
	const block, host = 1 << 20, "127.0.0.1"
	want := fmt.Sprintf("[{0 %d [%s]} {%d %d [%s]} {%d %d [%s]}]", block, host, block, 2*block, host, 2*block, found[0].Size, host)
	if got, err := fsys.Locate(t.Context(), uri); err != nil || fmt.Sprint(got) != want {
		t.Errorf("%s is kept at %v, %v, want %s", uri, got, err, want)
	}
}

// testNoHalfResult has a job fail in the middle: nothing of its result is left.
func (x *files) testNoHalfResult(t *testing.T) {
	out, code := x.run(t, `
name: half
source: { generator: { count: 100000, record: { n: n } }, parallelism: 1 }
steps:
  - set: { x: 1 % (n - 90000) }
sink: { file: { path: "hdfs:///user/alice/half/", format: json }, parallelism: 1 }
`)
	if code != 5 {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	if list, err := x.alice.List("/user/alice/half"); err != nil || len(list) != 0 {
		t.Errorf("left %+v, %v", list, err)
	}
}

// testBrokenRead loses the connection to the DataNode several times while a file is read: reading goes on where it was.
func (x *files) testBrokenRead(t *testing.T) {
	text := strings.Repeat("0123456789abcdef", 200_000)
	x.put(t, "/user/alice/big", text)
	var broke atomic.Int32
	f, err := hdfs.Open(hdfs.Config{NameNodes: []string{x.h.NameNode}, User: user, Dial: func(ctx context.Context, addr string) (net.Conn, error) {
		var d net.Dialer
		nc, err := d.DialContext(ctx, "tcp", addr)
		if err != nil || addr == x.h.NameNode || broke.Load() >= 3 {
			return nc, err
		}
		broke.Add(1)
		return &cutRead{nc, 700_000}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := f.OpenAt(t.Context(), "/user/alice/big", 5)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got, err := io.ReadAll(r)
	if err != nil || string(got) != text[5:] || broke.Load() != 3 {
		t.Errorf("read %d bytes of %d, %v; %d connections broke", len(got), len(text)-5, err, broke.Load())
	}
}

// cutRead is a connection that breaks after some bytes were read.
type cutRead struct {
	net.Conn
	left int
}

func (c *cutRead) Read(b []byte) (int, error) {
	if c.left <= 0 {
		c.Conn.Close()
	}
	n, err := c.Conn.Read(b)
	c.left -= n
	return n, err
}

// testShip stores an application and takes it away again.
func (x *files) testShip(t *testing.T) {
	store, f, err := ship.Open(ship.Options{Conf: x.conf, HDFS: hdfs.Config{User: user}})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	exe, err := ship.PickExecutable(t.Context(), ship.Pick{Path: x.heddle, Platform: ship.Host()})
	if err != nil {
		t.Fatal(err)
	}
	defer exe.Close()
	extras, err := ship.ParseExtras([]string{x.h.ConfDir + "#conf", "hdfs:///user/alice/big"})
	if err != nil {
		t.Fatal(err)
	}
	app := ship.Application{ID: "application_1_0001", Exe: exe, Files: map[string][]byte{"conf.yaml": []byte("x")}, Extra: extras}
	start := time.Now()
	staged, err := store.StageApplication(t.Context(), app, nil)
	if err != nil || staged.Reused {
		t.Fatalf("staged %+v, %v", staged, err)
	}
	t.Logf("staged %.1f MB in %v", float64(exe.Size)/1e6, time.Since(start).Round(time.Millisecond))
	for _, r := range staged.Resources {
		name := strings.TrimPrefix(r.URI, "hdfs://"+x.h.NameNode)
		if info, err := f.Stat(name); err != nil || info.Size != r.Size || !info.Modified.Equal(r.Modified) {
			t.Errorf("%s is %+v in HDFS, %v; NodeManagers are told %+v", name, info, err, r)
		}
	}
	app.ID = "application_1_0002"
	start = time.Now()
	second, err := store.StageApplication(t.Context(), app, nil)
	if err != nil || !second.Reused || second.Resources[0] != staged.Resources[0] {
		t.Errorf("staged %+v, %v", second, err)
	}
	t.Logf("staged again in %v", time.Since(start).Round(time.Millisecond))
	for _, text := range []string{"first", "second"} {
		if err := store.Publish(t.Context(), app.ID, "master", []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := f.ReadFile(second.Dir+"/master", 100); err != nil || string(got) != text {
			t.Errorf("published %q, %v", got, err)
		}
	}
	if err := store.RemoveApplication("application_1_0001"); err != nil {
		t.Error(err)
	}
	c := ship.Collection{Ended: func(app string) bool { return app != "application_1_0002" }, Now: time.Now().Add(time.Hour)}
	if out, err := store.GC(t.Context(), c); err != nil || len(out.Programs) != 0 || out.Kept != 1 {
		t.Errorf("with an application: %+v, %v", out, err)
	}
	c.Ended = func(string) bool { return true }
	if out, err := store.GC(t.Context(), c); err != nil || len(out.Programs) != 1 || len(out.Apps) != 1 {
		t.Errorf("without: %+v, %v", out, err)
	}
	for _, dir := range []string{"bin", "apps"} {
		if list, err := f.List("/user/alice/.heddle/" + dir); err != nil || len(list) != 0 {
			t.Errorf("left %+v, %v", list, err)
		}
	}
	bob, bobFS, err := ship.Open(ship.Options{Conf: x.conf, HDFS: hdfs.Config{User: "bob"}})
	if err != nil {
		t.Fatal(err)
	}
	defer bobFS.Close()
	if _, err := bob.StageApplication(t.Context(), app, nil); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "have an administrator make /user/bob") {
		t.Errorf("a user without a home: %v", err)
	}
}

// testTroubles has what goes wrong told by its cause, with path, NameNode and a fix.
func (x *files) testTroubles(t *testing.T) {
	job := func(in, out string) string {
		return fmt.Sprintf("name: trouble\nsource: { file: { path: %q, format: text } }\nsink: { file: { path: %q, format: text } }\n", in, out)
	}
	x.put(t, "/user/alice/few", "one\n")
	check := func(name, job string, want ...string) {
		t.Helper()
		out, code := x.run(t, job)
		if code == 0 || code == 4 {
			t.Errorf("%s: exit code %d", name, code)
		}
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("%s: want %q in\n%s", name, w, out)
			}
		}
	}
	nameNode := "NameNode " + x.h.NameNode
	check("no such file", job("hdfs:///user/alice/none", "hdfs:///user/alice/t1"), "none matches hdfs:///user/alice/none")
	check("no right to read", job("hdfs:///secret/x", "hdfs:///user/alice/t1"), "/secret/x", nameNode, "permission denied", "user alice needs the right")
	check("no right to write", job("hdfs:///user/alice/few", "hdfs:///secret/t1"), "/secret/t1", nameNode, "permission denied", "user alice needs the right")
	check("no such cluster", job("hdfs://127.0.0.1:1/x", "hdfs:///user/alice/t1"), "127.0.0.1:1", "fs.defaultFS")
	if out, err := x.h.Tool("hdfs", "org.apache.hadoop.hdfs.tools.DFSAdmin", "-setSpaceQuota", "1000", "/small"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	check("a quota", job("hdfs:///user/alice/few", "hdfs:///small/t1"), "/small/t1", nameNode, "a quota of HDFS is used up")
	if out, err := x.h.Tool("hdfs", "org.apache.hadoop.hdfs.tools.DFSAdmin", "-safemode", "enter"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	check("safe mode", job("hdfs:///user/alice/few", "hdfs:///user/alice/t2"), "/user/alice/t2", nameNode, "safe mode", "wait until it has left it")
}
