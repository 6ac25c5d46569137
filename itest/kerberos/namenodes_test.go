package kerberos

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/hadoop/hconf"
	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
	"github.com/heddle-stream/heddle/itest/testbed"
)

// TestNameNodes runs a job that has nothing but delegation tokens in its containers: of the default file system, whose two NameNodes have one token and
// change places while the job writes there, and of another, where it reads and its own files are staged.
func TestNameNodes(t *testing.T) {
	testbed.Group(t, "kerberos-long")
	x := startCluster(t, testbed.KDCOptions{}, testbed.HadoopOptions{TwoNameNodes: true, SecondHDFS: true})
	x.folders(t)
	second, err := x.conf.HDFS(x.h.Second)
	if err != nil {
		t.Fatal(err)
	}
	super, alice := x.at(t, "hdfs", second), x.at(t, "alice", second)
	if err := errors.Join(super.MkdirAll("/user/alice", 0o755), super.Chown("/user/alice", "alice", "users")); err != nil {
		t.Fatal(err)
	}
	few := func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("one\ntwo\nthree\n")), nil }
	if _, err := alice.Upload(t.Context(), "/user/alice/few.txt", 0o600, few, nil); err != nil {
		t.Fatal(err)
	}
	job := x.bed.File("namenodes.yaml", `name: namenodes
sources:
  few: { file: { path: "`+x.h.Second+`/user/alice/few.txt", format: text } }
  many: { generator: { count: 6000, rate: 500, record: { line: string(n) } } }
steps:
  - union: [few, many]
sink: { file: { path: "hdfs:///user/alice/namenodes", format: text } }
`)
	cache := "FILE:" + x.bed.Dir("namenodes") + "/cc"
	x.kdc.Kinit(cache, x.kdc.KeytabOf("alice"), "alice")
	p := x.bed.Start(testbed.Spec{Name: "heddle", Path: testbed.BuildHeddle(t, x.bed), Env: append(x.kdc.Env(), "KRB5CCNAME="+cache, "HADOOP_CONF_DIR="+x.h.ConfDir, "HOME="+x.bed.Dir("home")),
		Args: []string{"run", job, "--target", "yarn", "--agents", "1", "--yarn.staging-dir", x.h.Second + "/user/alice/staging", "--yarn.file-systems", x.h.Second}})
	x.bed.Eventually("the job runs", 4*time.Minute, func() error {
		if out := p.Output(); !strings.Contains(out, "dashboard") && p.Running() {
			return errors.New(out)
		}
		return nil
	})
	active, standby := x.h.ActiveNameNode()
	x.h.Failover(active, standby)
	if code := p.Wait(4 * time.Minute); code != 0 {
		t.Fatalf("exit code %d:\n%s\n%s", code, p.Output(), x.logs())
	}
	def, err := x.conf.DefaultFS()
	if err != nil {
		t.Fatal(err)
	}
	f, lines := x.at(t, "alice", def), 0
	files, err := f.List("/user/alice/namenodes")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := f.ReadFile(file.Path, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		lines += strings.Count(string(data), "\n")
	}
	if lines != 6003 {
		t.Errorf("HDFS has %d records of 6003:\n%s", lines, p.Output())
	}
}

// at opens a file system as a user.
func (x *cluster) at(t *testing.T, user string, fsys hconf.FileSystem) *hdfs.FS {
	t.Helper()
	f, err := hdfs.Open(hdfs.Config{NameNodes: fsys.NameNodes, User: user, Security: hdfs.Security{Auth: x.byTicket(t, user)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}
