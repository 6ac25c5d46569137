package hconf

import (
	"os"
	"path/filepath"
	"testing"
)

func TestResource(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("core-site.xml", "<configuration/>")
	write("more.xml", "<configuration><property><name>b</name><value>${env.X}</value></property></configuration>")
	write("own.xml", `<configuration xmlns:xi="http://www.w3.org/2001/XInclude"><property><name>a</name><value>1</value></property><xi:include href="more.xml"/></configuration>`)
	write("bad.xml", "<configuration>")
	c, err := Load(Options{Dir: dir, Env: func(name string) (string, bool) { return "of the environment", name == "X" }})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"own.xml", filepath.Join(dir, "own.xml")} {
		r, ok, err := c.Resource(name)
		if err != nil || !ok {
			t.Fatalf("%s: %v, %v", name, ok, err)
		}
		if a, _ := r.String("a"); a != "1" {
			t.Errorf("%s: a is %q", name, a)
		}
		if b, _ := r.String("b"); b != "of the environment" {
			t.Errorf("%s: b is %q", name, b)
		}
	}
	if _, ok, err := c.Resource("absent.xml"); ok || err != nil {
		t.Errorf("an absent file: %v, %v", ok, err)
	}
	if _, _, err := c.Resource("bad.xml"); err == nil {
		t.Error("a damaged file is read")
	}
	shipped, err := Read("shipped.xml", []byte("<configuration/>"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, err := shipped.Resource("own.xml"); ok || err != nil {
		t.Errorf("a file beside a configuration that has no folder: %v, %v", ok, err)
	}
}
