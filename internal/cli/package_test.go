package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPackage plans the job that is the program of a folder, and passes on how that went.
func TestPackage(t *testing.T) {
	const dir = "../../examples/wordcount"
	out := command(t, nil, nil, "plan", dir, "--parallelism", "3")
	if out.code != 0 || !strings.Contains(out.stderr, "building ../../examples/wordcount for ") || !strings.Contains(out.stdout, "job wordcount: ") || !strings.Contains(out.stdout, "× 3") {
		t.Errorf("plan: %+v", out)
	}
	if out := command(t, nil, nil, "plan", dir, "--json", "--dot"); out.code != 2 || strings.Count(out.stderr, "exclude each other") != 1 {
		t.Errorf("a program that ends with an error: %+v", out)
	}
	if out := command(t, nil, nil, "plan", t.TempDir()); out.code != 2 || !strings.Contains(out.stderr, "it has no Go program") {
		t.Errorf("a folder without a program: %+v", out)
	}
	if out := command(t, nil, nil, "plan", broken(t)); out.code != 2 || !strings.Contains(out.stderr, "main.go:3") {
		t.Errorf("a program that does not compile: %+v", out)
	}
	if out := command(t, nil, nil, "plan", "../../internal/lastlines"); out.code != 3 || !strings.Contains(out.stderr, "it is a library") {
		t.Errorf("a package that is no program: %+v", out)
	}
}

// broken is the folder of a program that does not compile.
func broken(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module broken\n\ngo 1.26\n", "main.go": "package main\n\nfunc main() { undefined() }\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestArgsWithout(t *testing.T) {
	s := &session{env: Env{Args: []string{"run", "--queue", "a", "a", "--quiet"}}}
	if got := s.argsWithout("a"); !slices.Equal(got, []string{"run", "--queue", "a", "--quiet"}) {
		t.Errorf("got %q", got)
	}
}
