package ship

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// hello is a module with a program of two files in a folder of its own, and one beside it.
var hello = map[string]string{
	"go.mod":         "module example.com/hello\n\ngo 1.21\n",
	"cmd/hi/main.go": "package main\n\nfunc main() { println(greeting()) }\n",
	"cmd/hi/text.go": "package main\n\nvar text = \"hi\"\n\nfunc greeting() string { return text }\n",
	"cmd/other.go":   "package main\n\nfunc main() { println(\"other\") }\n",
	"cmd/another.go": "package main\n\nfunc main() { println(\"another\") }\n",
}

func module(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range hello {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// goBuild builds a program in the module as its user might have, and returns its path.
func goBuild(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "hi")
	cmd := exec.Command("go", append([]string{"build", "-o", out}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS="), env...)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}

func says(t *testing.T, e *Executable) string {
	t.Helper()
	out, err := exec.Command(e.Path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestPickExecutable(t *testing.T) {
	dir := module(t)
	flags := []string{"-ldflags", "-X main.text=hello"}
	static := goBuild(t, dir, nil, append(flags, "./cmd/hi")...)
	dynamic := goBuild(t, dir, nil, append(flags, "-buildmode=pie", "./cmd/hi")...)
	adHoc := goBuild(t, dir, nil, "-buildmode=pie", "cmd/other.go")
	elsewhere := t.TempDir()
	foreign := Platform{"linux", "arm64"}
	if Host() == foreign {
		foreign.Arch = "amd64"
	}
	for name, x := range map[string]struct {
		path, dir string
		platform  Platform
		built     bool
		says      string // "": it can't run here
	}{
		"static":                      {static, dir, Host(), false, "hello"},
		"dynamic":                     {dynamic, dir, Host(), true, "hello"},
		"dynamic, called elsewhere":   {dynamic, elsewhere, Host(), true, "hello"},
		"for another platform":        {static, dir, foreign, true, ""},
		"of a file beside other ones": {adHoc, dir, Host(), true, "other"},
	} {
		t.Run(name, func(t *testing.T) {
			var log []string
			e, err := PickExecutable(t.Context(), Pick{Path: x.path, Dir: x.dir, Platform: x.platform, Log: func(s string) { log = append(log, s) }})
			if err != nil {
				t.Fatal(err)
			}
			if (e.Source != "") != x.built || len(log) > 0 != x.built || (e.Path != x.path) != x.built || len(e.SHA256) != 64 {
				t.Errorf("got %+v; told %q", e, log)
			}
			if f, err := inspect(e.Path); err != nil || f.unfit(x.platform) != "" {
				t.Errorf("it is %+v, %v", f, err)
			}
			if x.says != "" && says(t, e) != x.says {
				t.Errorf("it says %q", says(t, e))
			}
			e.Close()
			if _, err := os.Stat(e.Path); (err != nil) != x.built {
				t.Errorf("after Close: %v", err)
			}
		})
	}
}

func TestPickExecutableRefuses(t *testing.T) {
	dir := module(t)
	dynamic := goBuild(t, dir, nil, "-buildmode=pie", "-tags=one,two", "./cmd/hi")
	trimmed := goBuild(t, dir, nil, "-buildmode=pie", "-trimpath", "./cmd/hi")
	script := filepath.Join(dir, "job.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	other := module(t)
	if err := os.WriteFile(filepath.Join(other, "go.mod"), []byte("module example.com/theirs\n\ngo 1.21\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	exact := "CGO_ENABLED=0 GOOS=" + Host().OS + " GOARCH=" + Host().Arch + " go build "
	for name, x := range map[string]struct {
		pick Pick
		want []string
	}{
		"no go command":  {Pick{Path: dynamic, Dir: dir, Go: filepath.Join(dir, "go")}, []string{"linked dynamically", "no go command", exact + "-tags=one,two -o hi example.com/hello/cmd/hi"}},
		"no source":      {Pick{Path: trimmed, Dir: t.TempDir()}, []string{"example.com/hello/cmd/hi is not in the working directory's module", exact + "-trimpath -o hi example.com/hello/cmd/hi"}},
		"other's source": {Pick{Path: trimmed, Dir: other}, []string{"is not in the working directory's module"}},
		"a script":       {Pick{Path: script, Dir: dir}, []string{"it is a script"}},
		"nothing there":  {Pick{Path: filepath.Join(dir, "none")}, []string{"none"}},
	} {
		t.Run(name, func(t *testing.T) {
			x.pick.Platform = Host()
			e, err := PickExecutable(t.Context(), x.pick)
			if err == nil {
				e.Close()
				t.Fatal("it was taken")
			}
			for _, w := range x.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("got %v\nwant %q in it", err, w)
				}
			}
		})
	}
	if err := os.WriteFile(filepath.Join(dir, "cmd/hi/text.go"), []byte("package main\n\nfunc greeting() string { return 1 }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := PickExecutable(t.Context(), Pick{Path: dynamic, Dir: dir, Platform: Host()}); err == nil || !strings.Contains(err.Error(), "text.go:3") {
		t.Errorf("source that does not compile: %v", err)
	}
}

func TestBuildPackage(t *testing.T) {
	dir := module(t)
	if !IsPackage(filepath.Join(dir, "cmd/hi")) || IsPackage(dir) || IsPackage(filepath.Join(dir, "go.mod")) || IsPackage(filepath.Join(dir, "none")) {
		t.Error("what is a package is not told from what is none")
	}
	e, err := BuildPackage(t.Context(), Pick{Dir: dir, Platform: Host()}, "./cmd/hi")
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if says(t, e) != "hi" {
		t.Errorf("it says %q", says(t, e))
	}
	if _, err := BuildPackage(t.Context(), Pick{Dir: dir, Platform: Host()}, "./cmd"); err == nil || !strings.Contains(err.Error(), "redeclared") {
		t.Errorf("of a folder with two programs: %v", err)
	}
}

func TestPlatform(t *testing.T) {
	for text, ok := range map[string]bool{"": true, "linux/arm64": true, "linux": false, "/": false, "linux/": false, "linux/arm/7": false} {
		p, err := ParsePlatform(text)
		if (err == nil) != ok || ok && text != "" && p.String() != text || text == "" && p.OS != "linux" {
			t.Errorf("%q: %v, %v", text, p, err)
		}
	}
}

// TestLocalBinary runs the command as YARN has bash do it.
func TestLocalBinary(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "heddle")
	if err := os.WriteFile(file, []byte("#!/bin/sh\necho $*\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := FindLocalBinary("local:"+file, os.Args[0])
	if err != nil || l.Path != file {
		t.Fatalf("got %+v, %v", l, err)
	}
	run := func() (string, error) {
		command := strings.ReplaceAll(l.Command(), "<LOG_DIR>", dir)
		out, err := exec.Command("bash", "-c", `exec /bin/bash -c "`+command+` one two"`).CombinedOutput()
		if log, lerr := os.ReadFile(dir + "/stderr"); lerr == nil {
			out = append(out, log...)
		}
		return string(out), err
	}
	if out, err := run(); err != nil || out != "one two\n" {
		t.Errorf("got %q, %v", out, err)
	}
	if err := os.WriteFile(file, []byte("#!/bin/sh\necho other\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := run(); err == nil || err.Error() != "exit status 3" || !strings.Contains(out, "install the same package on every node") {
		t.Errorf("another program: %q, %v", out, err)
	}
	if l, err := FindLocalBinary("local:/no/such/program", file); err != nil || l.Path != "/no/such/program" || len(l.SHA256) != 64 {
		t.Errorf("one that the client lacks: %+v, %v", l, err)
	}
	for _, bad := range []string{"/usr/bin/heddle", "local:heddle", "local:/a b", "local:/a'b", ""} {
		if _, err := FindLocalBinary(bad, file); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestParseExtras(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a#b", "c.csv", "d.zip"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	got, err := ParseExtras([]string{"a#b", "c.csv#lookup", "d.zip", ".#all", "hdfs://ns/x/y.tgz#z"})
	if err != nil {
		t.Fatal(err)
	}
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	want := []Extra{{Source: here + "/a#b", Link: "a#b"}, {Source: here + "/c.csv", Link: "lookup"}, {Source: here + "/d.zip", Link: "d.zip", Archive: true},
		{Source: here, Link: "all", Dir: true, Archive: true}, {Source: "hdfs://ns/x/y.tgz", Link: "z", Remote: true, Archive: true}}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %+v, want %+v", got[i], want[i])
		}
	}
	for bad, want := range map[string]string{"none": "no such file", "c.csv#": "no name", "c.csv#a/b": "no name", "c.csv#app": "another meaning", "c.csv#..": "no name", "s3://x/y": "neither a local path",
		"hdfs:///": "neither a local path", "c.csv#container_tokens": "another meaning"} {
		if _, err := ParseExtras([]string{bad}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", bad, err, want)
		}
	}
	if _, err := ParseExtras([]string{"c.csv", "d.zip#c.csv"}); err == nil || !strings.Contains(err.Error(), "called c.csv already") {
		t.Errorf("one name for two: %v", err)
	}
}
