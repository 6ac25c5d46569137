package kerberos

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/hadoop/hconf"
	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
	"github.com/heddle-stream/heddle/internal/hadoop/identity"
	"github.com/heddle-stream/heddle/itest/testbed"
)

// TestZones reads and writes in encryption zones, whose keys a real key server opens, beside Hadoop's own tools, and runs a job whose program, input and
// output are in one, by containers that have nothing but tokens.
func TestZones(t *testing.T) {
	testbed.Group(t, "kerberos-long")
	x := startCluster(t, testbed.KDCOptions{}, testbed.HadoopOptions{DataTransfer: "privacy", KeyServer: true, HttpFS: true})
	x.folders(t)
	f := x.open(t, "alice")
	for _, dir := range []string{"zone", "shut"} {
		if err := f.MkdirAll("/user/alice/"+dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, key := range map[string]string{"zone": "k", "shut": "shut"} {
		x.hadoop(t, "hdfs", "org.apache.hadoop.crypto.key.KeyShell", "create", key, "-provider", x.h.KeyProvider)
		x.hadoop(t, "hdfs", "org.apache.hadoop.hdfs.tools.CryptoAdmin", "-createZone", "-keyName", key, "-path", "/user/alice/"+name)
	}
	t.Run("files", x.testZoneFiles)
	t.Run("shut", x.testShutZone)
	t.Run("job", x.testZoneJob)
	t.Run("http", x.testOverHTTP)
	t.Run("gateway's tokens", x.testGatewayTokens)
	t.Run("doctor", x.testDoctorHTTP)
	t.Run("no key server", func(t *testing.T) {
		x.h.Kill(testbed.KeyServer)
		_, err := x.open(t, "alice").ReadFile("/user/alice/zone/ours", 1<<30)
		if hdfs.TroubleOf(err) != hdfs.Sealed || !strings.Contains(err.Error(), "cannot have the key server (kms://http@localhost:") || !strings.Contains(hdfs.Advice(err, "alice"), "can be reached from here") {
			t.Errorf("%v", err)
		}
		x.testWithoutKeys(t)
	})
}

// hadoop runs one of Hadoop's tools and returns what it said.
func (x *cluster) hadoop(t *testing.T, user, class string, args ...string) string {
	t.Helper()
	out, err := x.h.Tool(user, class, args...)
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return out
}

// testZoneFiles lets Hadoop read what we write, and the other way round.
func (x *cluster) testZoneFiles(t *testing.T) {
	const shell = "org.apache.hadoop.fs.FsShell"
	f := x.open(t, "alice")
	secret := []byte("in clear, if you can read this. ")
	content := bytes.Repeat(append(secret, 1, 2, 3), 100_000)
	x.upload(t, "/user/alice/zone/ours", string(content))
	dir := x.bed.Dir("zones")
	x.hadoop(t, "alice", shell, "-get", "/user/alice/zone/ours", dir+"/got")
	if got, err := os.ReadFile(dir + "/got"); err != nil || !bytes.Equal(got, content) {
		t.Errorf("Hadoop reads %d bytes of %d: %v", len(got), len(content), err)
	}
	if raw := x.hadoop(t, "hdfs", shell, "-cat", "/.reserved/raw/user/alice/zone/ours"); len(raw) < len(content) || strings.Contains(raw, string(secret)) {
		t.Errorf("what is stored has %d bytes, in clear: %v", len(raw), strings.Contains(raw, string(secret)))
	}
	x.hadoop(t, "alice", shell, "-put", x.bed.File("zones/theirs", string(content)), "/user/alice/zone/theirs")
	if got, err := f.ReadFile("/user/alice/zone/theirs", 1<<30); err != nil || !bytes.Equal(got, content) {
		t.Errorf("we read %d bytes of %d: %v", len(got), len(content), err)
	}
	const at = 1_234_567
	r, err := f.OpenAt(t.Context(), "/user/alice/zone/theirs", at)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, content[at:]) {
		t.Errorf("from %d on we read %d bytes of %d: %v", at, len(got), len(content)-at, err)
	}
	w, err := f.Create("/user/alice/zone/.slow", 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for b := content; len(b) > 0; b = b[min(len(b), 77_777):] {
		if _, err := w.Write(b[:min(len(b), 77_777)]); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(t.Context(), "/user/alice/zone/slow", false); err != nil {
		t.Fatal(err)
	}
	x.hadoop(t, "alice", shell, "-get", "/user/alice/zone/slow", dir+"/slow")
	if got, err := os.ReadFile(dir + "/slow"); err != nil || !bytes.Equal(got, content) {
		t.Errorf("written by and by, Hadoop reads %d bytes of %d: %v", len(got), len(content), err)
	}
}

// testShutZone is a zone whose keys the key server does not open for us.
func (x *cluster) testShutZone(t *testing.T) {
	f := x.open(t, "alice")
	_, err := f.Upload(t.Context(), "/user/alice/shut/x", 0o600, func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("x")), nil }, nil)
	if hdfs.TroubleOf(err) != hdfs.Sealed || !strings.Contains(err.Error(), "is in an encryption zone of HDFS") || !strings.Contains(err.Error(), "DECRYPT_EEK") || !strings.Contains(hdfs.Advice(err, "alice"), "lets user alice open keys") {
		t.Errorf("%v; %s", err, hdfs.Advice(err, "alice"))
	}
	left, err := f.List("/user/alice/shut")
	if left = slices.DeleteFunc(left, func(i hdfs.Info) bool { return i.Dir }); err != nil || len(left) != 0 { // there is a folder for trash
		t.Errorf("left are %v, %v", left, err)
	}
}

// testZoneJob counts words in a zone.
func (x *cluster) testZoneJob(t *testing.T) {
	x.upload(t, "/user/alice/zone/words.txt", strings.Repeat("to be or not to be\n", 5000))
	exe := testbed.BuildProgram(t, x.bed, "./cmd/heddle", "heddle")
	cache := "KRB5CCNAME=FILE:" + filepath.Join(x.bed.Dir("zones"), "cc")
	x.kdc.Kinit(strings.TrimPrefix(cache, "KRB5CCNAME="), x.kdc.KeytabOf("alice"), "alice")
	job := x.bed.File("zones/words.yaml", strings.ReplaceAll(fmt.Sprintf(wordCount, "zone/out"), "alice/words.txt", "alice/zone/words.txt"))
	out, err := x.heddle(t, exe, []string{cache}, "run", job, "--target", "yarn", "--agents", "1", "--yarn.staging-dir", "/user/alice/zone/staging")
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, x.logs())
	}
	x.checkCounts(t, "/user/alice/zone/out", out)
	job = x.bed.File("zones/keytab.yaml", strings.ReplaceAll(fmt.Sprintf(wordCount, "zone/out2"), "alice/words.txt", "alice/zone/words.txt"))
	if out, err = x.heddle(t, exe, nil, "run", job, "--target", "yarn", "--agents", "1", "--kerberos.keytab", x.kdc.KeytabOf("alice")); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, x.logs())
	}
	x.checkCounts(t, "/user/alice/zone/out2", out)
}

// testWithoutKeys runs jobs while the key server is away: one that has nothing in a zone does without its token, one that writes into a zone is refused.
func (x *cluster) testWithoutKeys(t *testing.T) {
	exe := testbed.BuildProgram(t, x.bed, "./cmd/heddle", "heddle")
	for name, args := range map[string][]string{"ticket": nil, "keytab": {"--kerberos.keytab", x.kdc.KeytabOf("alice")}} {
		cache := "KRB5CCNAME=FILE:" + filepath.Join(x.bed.Dir("keyless"), name)
		x.kdc.Kinit(strings.TrimPrefix(cache, "KRB5CCNAME="), x.kdc.KeytabOf("alice"), "alice")
		job := x.bed.File("keyless/"+name+".yaml", fmt.Sprintf(wordCount, "keyless-"+name))
		out, err := x.heddle(t, exe, []string{cache}, append([]string{"run", job, "--target", "yarn", "--agents", "1"}, args...)...)
		if err != nil || !strings.Contains(out, "warning: cannot get a delegation token of the key server (kms://http@localhost:") || !strings.Contains(out, "nothing that the job names is in one") {
			t.Errorf("%s: %v\n%s\n%s", name, err, out, x.logs())
			continue
		}
		x.checkCounts(t, "/user/alice/keyless-"+name, out)
		job = x.bed.File("keyless/"+name+"-zone.yaml", fmt.Sprintf(wordCount, "zone/keyless"))
		out, err = x.heddle(t, exe, []string{cache}, append([]string{"run", job, "--target", "yarn", "--agents", "1"}, args...)...)
		if ee, ok := errors.AsType[*exec.ExitError](err); !ok || ee.ExitCode() != 3 || !strings.Contains(out, "hdfs:///user/alice/zone/keyless is in an encryption zone of HDFS: cannot get a delegation token") || !strings.Contains(out, "see that the key server (KMS) runs") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		if out, err = x.heddle(t, exe, []string{cache}, append([]string{"doctor", job, "--target", "yarn"}, args...)...); !strings.Contains(out, "token-keys") {
			t.Errorf("doctor: %v\n%s", err, out)
		}
	}
}

// testOverHTTP speaks WebHDFS with the NameNode, and HttpFS, with files within a zone and out of it, and runs jobs by either, whose containers have nothing but
// tokens.
func (x *cluster) testOverHTTP(t *testing.T) {
	x.upload(t, "/user/alice/words.txt", strings.Repeat("to be or not to be\n", 5000))
	exe := testbed.BuildProgram(t, x.bed, "./cmd/heddle", "heddle")
	cache := "KRB5CCNAME=FILE:" + filepath.Join(x.bed.Dir("http"), "cc")
	x.kdc.Kinit(strings.TrimPrefix(cache, "KRB5CCNAME="), x.kdc.KeytabOf("alice"), "alice")
	for name, uri := range map[string]string{"webhdfs": identity.NameNodesWeb, "httpfs": x.h.HttpFS} {
		t.Run(name, func(t *testing.T) {
			for _, dir := range []string{"/user/alice/plain-" + name, "/user/alice/zone/" + name} {
				t.Run(filepath.Base(filepath.Dir(dir)), func(t *testing.T) { x.filesOverHTTP(t, uri, dir) })
			}
			job := x.bed.File("http/"+name+".yaml", fmt.Sprintf(wordCount, "out-"+name))
			out, err := x.heddle(t, exe, []string{cache}, "run", job, "--target", "yarn", "--agents", "1", "--hdfs.http-uri", uri)
			if err != nil {
				t.Fatalf("%v\n%s\n%s", err, out, x.logs())
			}
			x.checkCounts(t, "/user/alice/out-"+name, out)
		})
	}
}

// openOverHTTP opens the file system as alice by the web services of uri, with the configuration in a folder.
func (x *cluster) openOverHTTP(t *testing.T, confDir, uri string) *hdfs.FS {
	t.Helper()
	c, err := hconf.Load(hconf.Options{Dir: confDir, Also: map[string]string{identity.KeyWebURI: uri}})
	if err != nil {
		t.Fatal(err)
	}
	id, err := identity.Open(identity.Config{Conf: c, Env: env(x.kdc.Env()...), Keytab: x.kdc.KeytabOf("alice")})
	if err != nil {
		t.Fatal(err)
	}
	return x.openAs(t, id)
}

// filesOverHTTP writes, looks at and reads files.
func (x *cluster) filesOverHTTP(t *testing.T, uri, dir string) {
	f := x.openOverHTTP(t, x.h.ConfDir, uri)
	if err := f.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	content := bytes.Repeat([]byte("0123456789abcdef\n"), 1_200_000) // more than a request carries
	name := dir + "/a b+c%d?e"
	info, err := f.Upload(t.Context(), name, 0o600, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }, nil)
	if err != nil || info.Size != int64(len(content)) || info.Owner != "alice" || info.Mode != 0o600 {
		t.Fatalf("%+v, %v", info, err)
	}
	for who, g := range map[string]*hdfs.FS{"over HTTP": f, "by RPC": x.open(t, "alice")} {
		if got, err := g.ReadFile(name, 1<<30); err != nil || !bytes.Equal(got, content) {
			t.Errorf("read %d bytes of %d %s: %v", len(got), len(content), who, err)
		}
	}
	w, err := f.Create(dir+"/.tmp", 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, text := range []string{"one ", "two"} {
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(t.Context(), name, false); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a file is put in the place of another: %v", err)
	}
	if err := f.Rename(t.Context(), dir+"/.tmp", name, true); err != nil {
		t.Error(err)
	}
	if got, err := f.ReadFile(name, 100); err != nil || string(got) != "one two" {
		t.Errorf("read %q, %v", got, err)
	}
	if p, err := f.Place(t.Context(), dir+"/x/y"); err != nil || p.Dir != dir || p.Encrypted != strings.Contains(dir, "/zone/") || p.Takes(1, 1) != nil {
		t.Errorf("%+v, %v", p, err)
	}
	found, err := f.Glob(dir + "/*")
	if err != nil || len(found) != 1 || found[0].Path != name {
		t.Errorf("found %+v, %v", found, err)
	}
	if err := errors.Join(f.CheckAccess(t.Context(), name, hdfs.AccessRead), f.Chmod(dir, 0o750), f.RemoveAll(name), f.RemoveAll(name)); err != nil {
		t.Error(err)
	}
	if _, err := f.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was removed: %v", err)
	}
	if _, err := f.List("/user/bob"); hdfs.TroubleOf(err) != hdfs.Denied {
		t.Errorf("bob's folder: %v", err)
	}
}
