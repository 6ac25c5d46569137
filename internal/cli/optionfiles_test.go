package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/conf"
)

// TestOptionFiles: files that options name reach a process that has none of them, for itself alone, and what they name in turn too.
func TestOptionFiles(t *testing.T) {
	here := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(here, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ca, trust, keytab := put("ca.pem", "authority"), put("trust.jks", "store\x00\xff"), put("etl.keytab", "key")
	properties := put("client.properties", "security.protocol=SASL_SSL\nssl.truststore.location="+trust+"\nssl.keystore.location = /not/here.p12\n"+
		"sasl.jaas.config=com.sun.security.auth.module.Krb5LoginModule required keyTab=\""+keytab+"\" principal=\"etl@EXAMPLE\";\n")
	r, err := registry()
	if err != nil {
		t.Fatal(err)
	}
	c := conf.New(r)
	set := func(name, text string) {
		t.Helper()
		if err := c.Set(name, text, conf.FromFlag, "--"+name); err != nil {
			t.Fatal(err)
		}
	}
	set("kafka.properties", properties)
	set("kafka.tls.ca-file", ca)
	set("schema-registry.ca-file", "/on/every/host.pem")
	set("kafka.sasl.password", "secret")
	options, absent, err := settings(c, true)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(absent, []string{"/not/here.p12, which kafka.properties names,", "the file of schema-registry.ca-file"}) {
		t.Errorf("absent are %v", absent)
	}
	if near, _, err := settings(c, false); err != nil || len(near) != 1 {
		t.Errorf("to a process of this host go %d secrets (%v), want the password alone", len(near), err)
	}
	yaml := c.AppendYAML(nil)
	if strings.Contains(string(yaml), "authority") {
		t.Errorf("the configuration holds a file")
	}
	for _, name := range []string{ca, trust, keytab, properties} {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	there := t.TempDir()
	got, err := restoreConf(r, there, "conf.yaml", yaml, options)
	if err != nil {
		t.Fatal(err)
	}
	read := func(path string) string {
		t.Helper()
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if st.Mode().Perm() != 0o600 || !strings.HasPrefix(path, there) {
			t.Errorf("%s has mode %v", path, st.Mode())
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if text := read(got.Text("kafka.tls.ca-file")); text != "authority" {
		t.Errorf("the authorities are %q", text)
	}
	if path := got.Text("schema-registry.ca-file"); path != "/on/every/host.pem" {
		t.Errorf("what is on every host is looked for at %s", path)
	}
	text := read(got.Text("kafka.properties"))
	if strings.Contains(text, here) || !strings.Contains(text, "/not/here.p12") {
		t.Errorf("the properties are %s", text)
	}
	for re, want := range map[int]string{0: "store\x00\xff", 1: "key"} {
		m := inProperties[re].FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("the properties are %s", text)
		}
		if got := read(m[1]); got != want {
			t.Errorf("%s holds %q, want %q", m[1], got, want)
		}
	}
	if v, _ := got.Value("kafka.tls.ca-file"); !strings.Contains(v.Where, ca) {
		t.Errorf("its origin is %q", v.Where)
	}
	sec := agentSecrets(got, secrets{Options: options})
	if _, err := restoreConf(r, t.TempDir(), "conf.yaml", yaml, sec); err != nil || len(sec) != len(options) {
		t.Errorf("agents get %d of %d secrets (%v)", len(sec), len(options), err)
	}
}

func TestOptionFilesRefused(t *testing.T) {
	r, err := registry()
	if err != nil {
		t.Fatal(err)
	}
	big := filepath.Join(t.TempDir(), "big.jks")
	if err := os.WriteFile(big, make([]byte, maxOptionFiles+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{t.TempDir(): "cannot read the file of kafka.tls.truststore (", big: big + ", the file of kafka.tls.truststore"} {
		c := conf.New(r)
		if err := c.Set("kafka.tls.truststore", path, conf.FromFlag, "--kafka.tls.truststore"); err != nil {
			t.Fatal(err)
		}
		if _, _, err := settings(c, true); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
}

// TestRenameFiles: the name of one store may be the end of another's, and stand where no file is meant.
func TestRenameFiles(t *testing.T) {
	got := renameFiles("# store.p12\nssl.truststore.location=store.p12\nssl.truststore.password=store.p12\nssl.keystore.location: keystore.p12\n",
		map[string]string{"store.p12": "/there/0-store.p12", "keystore.p12": "/there/1-keystore.p12"})
	want := "# store.p12\nssl.truststore.location=/there/0-store.p12\nssl.truststore.password=store.p12\nssl.keystore.location: /there/1-keystore.p12\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestNeverBegan: what a source lacks before it can read anything is a precondition, whatever kind of lack it is.
func TestNeverBegan(t *testing.T) {
	for kind, want := range map[string]bool{"invalid": true, "not found": true, "denied": true, "internal": false, "unavailable": true} {
		result := &appmaster.Result{Cause: &appmaster.Cause{Kind: kind, Operator: "source"}}
		if got := neverBegan(result); got != want {
			t.Errorf("%s: got %v", kind, got)
		}
	}
}
