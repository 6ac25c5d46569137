package kerberos

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
	"github.com/heddle-stream/heddle/internal/hadoop/identity"
	"github.com/heddle-stream/heddle/itest/testbed"
)

// TestTLS is a cluster whose web services speak HTTPS only, by certificates of a private authority in a JKS store, and ApplicationMasters by those of the
// ResourceManager, where data is encrypted and RPC sealed.
func TestTLS(t *testing.T) {
	x := newCluster(t, testbed.KDCOptions{}, testbed.HadoopOptions{
		Core: map[string]string{"hadoop.rpc.protection": "privacy"},
		HDFS: map[string]string{"dfs.encrypt.data.transfer": "true", "dfs.encrypt.data.transfer.cipher.suites": "AES/CTR/NoPadding"},
		YARN: map[string]string{"yarn.resourcemanager.application-https.policy": "STRICT"},
		TLS:  true, MutualTLS: true, DataTransfer: "privacy",
	})
	x.words(t)
	exe := testbed.BuildProgram(t, x.bed, "./cmd/heddle", "heddle")
	cache := "FILE:" + filepath.Join(x.bed.Dir("tls"), "cc")
	x.kdc.Kinit(cache, x.kdc.KeytabOf("alice"), "alice")
	job := x.bed.File("tls/words.yaml", strings.ReplaceAll(wordCount, "%s", "out-tls"))
	t.Run("job", func(t *testing.T) {
		out, err := x.heddle(t, exe, []string{"KRB5CCNAME=" + cache}, "run", job, "--target", "yarn", "--agents", "1", "--yarn.client", "rest")
		if err != nil {
			t.Fatalf("%v\n%s\n%s", err, out, x.logs())
		}
		x.checkCounts(t, "/user/alice/out-tls", out)
		if out, err = x.heddle(t, exe, []string{"KRB5CCNAME=" + cache}, "list", "--target", "yarn", "--all", "--yarn.client", "rest"); err != nil || !strings.Contains(out, "words") {
			t.Errorf("list: %v\n%s", err, out)
		}
	})
	t.Run("https", func(t *testing.T) { x.testMasterHTTPS(t, exe) })
	t.Run("doctor", x.testDoctorProtection)
	t.Run("webhdfs", x.testWebHDFSOverTLS)
	t.Run("untrusted", func(t *testing.T) {
		conf, other := x.otherConf(t, "untrusted"), filepath.Join(x.bed.Dir("tls"), "other.jks")
		testbed.NewAuthority(t, "another").TrustJKS(other)
		x.bed.File("untrusted/ssl-client.xml", "<configuration><property><name>ssl.client.truststore.location</name><value>"+other+"</value></property></configuration>")
		for mode, want := range map[string][]string{
			"rest": {"cannot speak TLS with 127.0.0.1:", "unknown authority", other, "ssl.client.truststore.location of", "untrusted/ssl-client.xml", "have the certificate of the server's authority put in there"},
			"auto": {"asking the ResourceManager by RPC, since its web service can't be used: cannot speak TLS with 127.0.0.1:", other},
		} {
			out, err := x.heddle(t, exe, []string{"KRB5CCNAME=" + cache, "HADOOP_CONF_DIR=" + conf}, "list", "--target", "yarn", "--yarn.client", mode)
			if ee, failed := err.(*exec.ExitError); failed != (mode == "rest") || failed && ee.ExitCode() != 7 {
				t.Errorf("%s: %v\n%s", mode, err, out)
			}
			for _, w := range want {
				if !strings.Contains(out, w) {
					t.Errorf("%s says\n%s\nwant %q in it", mode, out, w)
				}
			}
		}
	})
}

// otherConf copies the cluster's configuration into another folder.
func (x *cluster) otherConf(t *testing.T, name string) string {
	t.Helper()
	for _, f := range []string{"core-site.xml", "hdfs-site.xml", "yarn-site.xml"} {
		b, err := os.ReadFile(filepath.Join(x.h.ConfDir, f))
		if err != nil {
			t.Fatal(err)
		}
		x.bed.File(name+"/"+f, string(b))
	}
	return x.bed.Dir(name)
}

// open connects to HDFS as the configuration says, as a user with a keytab.
func (x *cluster) open(t *testing.T, user string) *hdfs.FS {
	t.Helper()
	return x.openAs(t, x.identity(t, user))
}

// openAs opens the cluster's file system as id, for the length of the test.
func (x *cluster) openAs(t *testing.T, id *identity.Identity) *hdfs.FS {
	t.Helper()
	how, err := id.HDFS()
	if err != nil {
		t.Fatal(err)
	}
	how.NameNodes = []string{x.h.NameNode}
	f, err := hdfs.Open(how)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// words makes what wordCount reads, if no other test has.
func (x *cluster) words(t *testing.T) {
	t.Helper()
	if _, err := x.open(t, "hdfs").Stat("/user/alice/words.txt"); err == nil {
		return
	}
	x.folders(t)
	x.upload(t, "/user/alice/words.txt", strings.Repeat("to be or not to be\n", 5000))
}

// upload stores a file as alice.
func (x *cluster) upload(t *testing.T, name, text string) {
	t.Helper()
	if _, err := x.open(t, "alice").Upload(t.Context(), name, 0o600, func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }, nil); err != nil {
		t.Fatal(err)
	}
}
