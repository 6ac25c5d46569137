package jobspec

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// files returns the files that match, which must be some.
func files(t testing.TB, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	return names
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// golden compares with a file, or writes it with -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want := string(read(t, name)); got != want {
		t.Errorf("got\n%s\nwant, as in %s\n%s", got, name, want)
	}
}

// TestBadFiles holds the exact text of errors.
func TestBadFiles(t *testing.T) {
	for _, name := range files(t, "testdata/bad/*.yaml") {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".yaml"), func(t *testing.T) {
			_, err := Load(filepath.Base(name), read(t, name), Options{})
			if err == nil {
				t.Fatal("the file was accepted")
			}
			golden(t, strings.TrimSuffix(name, ".yaml")+".want", err.Error()+"\n")
		})
	}
}

func TestGoodFiles(t *testing.T) {
	for _, name := range files(t, "testdata/good/*.yaml") {
		if _, err := Load(filepath.Base(name), read(t, name), Options{}); err != nil {
			t.Errorf("%s is refused:\n%v", name, err)
		}
	}
}

func FuzzLoad(f *testing.F) {
	for _, pattern := range []string{"testdata/good/*.yaml", "testdata/bad/*.yaml"} {
		for _, name := range files(f, pattern) {
			f.Add(read(f, name))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		job, err := Load("fuzz.yaml", data, Options{Timezone: "UTC"})
		if (job == nil) == (err == nil) {
			t.Fatalf("got job %v and error %v", job, err)
		}
		if err != nil {
			_ = err.Error()
		}
	})
}
