package conf

import (
	"bytes"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the generated files")

func TestGeneratedFilesAreCurrent(t *testing.T) {
	r, err := NewRegistry(builtin...)
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string][]byte{
		"heddle.yaml":              r.AppendDefaultFile(nil),
		"../docs/configuration.md": r.AppendReference(nil),
	} {
		if *update {
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the registry generates (%v); run go test ./conf -update", file, err)
		}
	}
}

// The default file with every line uncommented must read back as nothing but defaults.
func TestDefaultFileHoldsDefaults(t *testing.T) {
	r, err := NewRegistry(builtin...)
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`(?m)^#([a-z].*: )`).ReplaceAllString(string(r.AppendDefaultFile(nil)), "$1")
	c := New(r)
	if err := c.SetYAML("heddle.yaml", []byte(text)); err != nil {
		t.Fatalf("cannot read the default file: %v", err)
	}
	for _, v := range c.Values() {
		if v.Text != v.Option.Default || v.Layer != FromFile {
			t.Errorf("%s = %q from %s, want the default %q from the file", v.Option.Name, v.Text, v.Layer, v.Option.Default)
		}
	}
}

func TestEveryOptionIsDocumented(t *testing.T) {
	r, err := NewRegistry(builtin...)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range r.Options() {
		if !strings.HasSuffix(o.Doc, ".") {
			t.Errorf("option %s: doc %q is not a sentence", o.Name, o.Doc)
		}
		if o.section() == "" {
			t.Errorf("option %s has no section", o.Name)
		}
	}
}
