package kerberos

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/itest/testbed"
)

// TestPlaces submits jobs that stage or write where HDFS is special: in an encryption zone, with erasure coding, under quotas that are used up.
func TestPlaces(t *testing.T) {
	testbed.Group(t, "kerberos-long")
	x := startCluster(t, testbed.KDCOptions{}, testbed.HadoopOptions{DataTransfer: "privacy"})
	x.words(t)
	f := x.open(t, "alice")
	for _, dir := range []string{"zone", "coded", "few", "small"} {
		if err := f.MkdirAll("/user/alice/"+dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	tool := func(class string, args ...string) {
		t.Helper()
		if out, err := x.h.Tool("hdfs", class, args...); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	// A key provider that is a file does for a NameNode of its own, which reads it at its start.
	provider := "jceks://file" + filepath.Join(x.bed.Dir("keys"), "keys.jceks")
	tool("org.apache.hadoop.crypto.key.KeyShell", "create", "k", "-provider", provider)
	x.h.Reconfigure(testbed.NameNode, "-Dhadoop.security.key.provider.path="+provider)
	tool("org.apache.hadoop.hdfs.tools.CryptoAdmin", "-createZone", "-keyName", "k", "-path", "/user/alice/zone")
	tool("org.apache.hadoop.hdfs.tools.ECAdmin", "-setPolicy", "-path", "/user/alice/coded", "-policy", "RS-6-3-1024k")
	tool("org.apache.hadoop.hdfs.tools.DFSAdmin", "-setQuota", "2", "/user/alice/few")
	tool("org.apache.hadoop.hdfs.tools.DFSAdmin", "-setSpaceQuota", "100m", "/user/alice/small")

	for dir, want := range map[string][2]any{"zone/a/b": {true, ""}, "coded": {false, "RS-6-3-1024k"}, "few": {false, ""}} {
		p, err := f.Place(t.Context(), "/user/alice/"+dir)
		if err != nil || p.Encrypted != want[0] || p.Coded != want[1] {
			t.Errorf("%s: %+v, %v", dir, p, err)
		}
	}
	exe := testbed.BuildProgram(t, x.bed, "./cmd/heddle", "heddle")
	cache := "KRB5CCNAME=FILE:" + filepath.Join(x.bed.Dir("places"), "cc")
	x.kdc.Kinit(strings.TrimPrefix(cache, "KRB5CCNAME="), x.kdc.KeytabOf("alice"), "alice")
	job := func(out string) string {
		return x.bed.File("places/"+strings.ReplaceAll(out, "/", "-")+".yaml", fmt.Sprintf(wordCount, out))
	}
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"sink in zone":    {[]string{job("zone/out")}, []string{"cannot write to hdfs:///user/alice/zone/out", "/user/alice/zone is in an encryption zone of HDFS", "its keys are in jceks://file", "which is no key server (KMS)", "use a path outside of the encryption zone"}},
		"staging in zone": {[]string{job("out"), "--yarn.staging-dir", "/user/alice/zone"}, []string{"cannot store the application's files in /user/alice/zone/alice", "set --yarn.staging-dir to another folder"}},
		"staging, names":  {[]string{job("out"), "--yarn.staging-dir", "/user/alice/few"}, []string{"the quota of /user/alice/few in HDFS is 2 files and folders, of which 1 are left, and 3 are needed"}},
		"sink, space":     {[]string{job("small/out")}, []string{"the quota of /user/alice/small in HDFS is 104857600 bytes with all replicas, of which 104857600 are left, and 134217728 must be free"}},
		"staging, bytes":  {[]string{job("out"), "--yarn.staging-dir", "/user/alice/small"}, []string{"134217728 must be free"}},
	} {
		out, err := x.heddle(t, exe, []string{cache}, append([]string{"run", "--target", "yarn"}, test.args...)...)
		if ee, ok := err.(*exec.ExitError); !ok || ee.ExitCode() != 3 {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		for _, w := range test.want {
			if !strings.Contains(out, w) {
				t.Errorf("%s says\n%s\nwant %q in it", name, out, w)
			}
		}
	}
	t.Run("coded", func(t *testing.T) {
		out, err := x.heddle(t, exe, []string{cache}, "run", job("coded/out"), "--target", "yarn", "--agents", "1", "--yarn.staging-dir", "/user/alice/coded")
		if err != nil {
			t.Fatalf("%v\n%s\n%s", err, out, x.logs())
		}
		x.checkCounts(t, "/user/alice/coded/out", out)
		says, err := x.h.Tool("alice", "org.apache.hadoop.fs.FsShell", "-stat", "%r %o", "/user/alice/coded/out/*")
		if err != nil || !strings.Contains(says, "1 134217728") {
			t.Errorf("the files' replicas and blocks are: %v\n%s", err, says)
		}
		data := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
		x.upload(t, "/user/alice/coded/large", string(data))
		if got, err := f.ReadFile("/user/alice/coded/large", 1<<30); err != nil || !bytes.Equal(got, data) {
			t.Errorf("read %d bytes of %d: %v", len(got), len(data), err)
		}
	})
}
