package yarn

import (
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
	"github.com/heddle-stream/heddle/itest/testbed"
)

// second opens the other HDFS of the cluster for the user, whose folder its owner makes.
func (c *command) second(t *testing.T) *hdfs.FS {
	t.Helper()
	found, err := c.conf.HDFS(c.h.Second)
	if err != nil {
		t.Fatal(err)
	}
	open := func(name string) *hdfs.FS {
		f, err := hdfs.Open(hdfs.Config{NameNodes: found.NameNodes, User: name})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	super := open("hdfs")
	if err := super.MkdirAll("/user/"+user, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := super.Chown("/user/"+user, user, user); err != nil {
		t.Fatal(err)
	}
	return open(user)
}

// numbers stores a file of so many lines.
func numbers(t *testing.T, f *hdfs.FS, name string, n int) {
	t.Helper()
	var text strings.Builder
	for i := range n {
		fmt.Fprintln(&text, i)
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text.String())), nil }
	if _, err := f.Upload(t.Context(), name, 0o600, open, nil); err != nil {
		t.Fatal(err)
	}
}

// testSystems runs jobs that read one HDFS and write the other, neither knows which is the default one. The files of the first are staged on the one that is not.
func (c *command) testSystems(t *testing.T) {
	other := c.second(t)
	numbers(t, other, other.Home()+"/numbers", 3000)
	job := func(from, to string) string {
		return c.bed.File("systems.yaml", fmt.Sprintf(`name: systems
source: { file: { path: %q, format: text } }
steps:
  - dedupe: { by: [line], within: 1h }
sink: { file: { path: %q, format: text } }
`, from, to))
	}
	staging := c.h.Second + other.Home() + "/staging"
	c.run(t, 0, []string{"finished: systems", "3,000 records in, 3,000 out"}, "run", job(c.h.Second+other.Home()+"/numbers", "hdfs://"+c.fs.Home()+"/there"),
		"--yarn.staging-dir", staging, "--yarn.file-systems", c.h.Second, "--parallelism", "2")
	c.clean(t)
	bin, err := other.List(other.Home() + "/staging/" + user + "/bin")
	if err != nil || len(bin) != 1 {
		t.Errorf("programs on the other file system: %+v, %v; want one", bin, err)
	}
	c.bed.Eventually("no application's files are left on the other file system", patience, func() error {
		list, err := other.List(other.Home() + "/staging/" + user + "/apps")
		if err == nil && len(list) > 0 {
			err = fmt.Errorf("there is %s", list[0].Path)
		}
		return err
	})
	c.run(t, 0, []string{"finished: systems", "3,000 records in, 3,000 out"}, "run", job(c.h.HDFS+c.fs.Home()+"/there", c.h.Second+other.Home()+"/back"), "--parallelism", "2")
	if lines := linesOf(t, other, other.Home()+"/back"); len(lines) != 3000 {
		t.Errorf("there and back: %d lines, want 3000", len(lines))
	}
	c.clean(t)
}

// testNameNodes makes the other NameNode of a pair active while a job writes, in an administrator's manner and by the first's death.
// After the first, the NameNode that is listed first is a standby for whoever submits.
func (c *command) testNameNodes(t *testing.T) {
	const records = 4000
	job := func(name string) string {
		return c.bed.File(name+".yaml", fmt.Sprintf(`name: %s
source: { generator: { count: %d, rate: 500, record: { n: string(n) } } }
sink: { file: { path: "hdfs://%s/%s", format: text } }
`, name, records, c.fs.Home(), name))
	}
	check := func(p *testbed.Process, name string) {
		t.Helper()
		c.ends(t, p, 0, "finished: "+name)
		if got := c.lines(t, c.fs.Home()+"/"+name); len(got) != records {
			t.Errorf("%s has %d lines, want %d", name, len(got), records)
		}
		c.clean(t)
	}
	active, standby := c.h.ActiveNameNode()
	if active != testbed.NameNode {
		t.Errorf("%s is active at first", active)
	}
	p := c.start(t, "run", job("handed-over"))
	c.running(t, c.appOf(t, p))
	c.h.Failover(active, standby)
	check(p, "handed-over")

	p = c.start(t, "run", job("bereft")) // the standby is listed first
	c.running(t, c.appOf(t, p))
	c.h.Kill(standby)
	c.h.Activate(active)
	check(p, "bereft")
	c.h.Start(standby)
	c.h.WaitReady()
}

// full waits until HDFS has no room for a file, or has.
func (c *command) full(t *testing.T, want bool) {
	t.Helper()
	n := 0
	c.bed.Eventually(fmt.Sprintf("HDFS is full: %v", want), patience, func() error {
		n++
		name := fmt.Sprintf("%s/probe-%v-%d", c.fs.Home(), want, n)
		_, err := c.fs.Upload(t.Context(), name, 0o600, func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("x")), nil }, nil)
		if is := hdfs.TroubleOf(err) == hdfs.NoSpace; is != want || !want && err != nil {
			return fmt.Errorf("storing a file: %v", err)
		}
		return c.fs.RemoveAll(name)
	})
}

// testNoSpace submits where a quota is used up, and then where the only DataNode is full.
func (c *command) testNoSpace(t *testing.T) {
	small := c.fs.Home() + "/small"
	if err := c.fs.MkdirAll(small, fs.FileMode(0o700)); err != nil {
		t.Fatal(err)
	}
	if out, err := c.h.Tool("hdfs", "org.apache.hadoop.hdfs.tools.DFSAdmin", "-setSpaceQuota", "1000", small); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	c.run(t, 3, []string{small, "a quota of HDFS is used up"}, "run", c.endless(), "--yarn.staging-dir", small)
	c.h.Kill(testbed.DataNode)
	c.h.Start(testbed.DataNode, "dfs.datanode.du.reserved=1000000000000000")
	c.full(t, true)
	c.run(t, 3, []string{"no DataNode took the block", "dfsadmin -report"}, "run", c.endless())
	c.h.Kill(testbed.DataNode)
	c.h.Start(testbed.DataNode)
	c.full(t, false)
	c.clean(t)
}

// testFullQueue fills a queue that has room for one ApplicationMaster and for two applications: the second waits, and is told why; the third is refused.
func (c *command) testFullQueue(t *testing.T) {
	first := c.detached(t, c.endless(), "--queue", "tiny")
	c.running(t, first)
	p := c.start(t, "run", c.endless(), "--queue", "tiny", "--timeout", "4s")
	second := c.appOf(t, p)
	c.ends(t, p, 4, "AM resource limit exceeded", "still waits", "heddle explain "+second)
	c.run(t, 0, []string{"root.tiny", "ApplicationMaster"}, "explain", second)
	c.run(t, 3, []string{"already has 2 applications", "heddle queues"}, "run", c.endless(), "--queue", "tiny")
	for _, app := range []string{second, first} {
		c.run(t, 0, []string{app}, "kill", app)
	}
	c.clean(t)
}
