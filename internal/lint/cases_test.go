package lint

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestCasesExist checks that the tests named in docs/yarn-cases.md are there.
func TestCasesExist(t *testing.T) {
	const root = "../.."
	data, err := os.ReadFile(filepath.Join(root, "docs", "yarn-cases.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([a-z0-9/]+):(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(string(data), -1)
	if len(named) < 40 {
		t.Errorf("it names %d tests, want more", len(named))
	}
	sources := map[string]string{}
	for _, n := range named {
		dir, test := n[1], n[2]
		if sources[dir] == "" {
			files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(dir), "*_test.go"))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				text, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				sources[dir] += string(text)
			}
		}
		if !strings.Contains(sources[dir], "func "+test+"(") {
			t.Errorf("docs/yarn-cases.md names %s in %s, which is not there", test, dir)
		}
	}
}
