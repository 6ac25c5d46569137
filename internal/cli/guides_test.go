package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/heddle-stream/heddle/conf"
)

var (
	// inCode is what a page shows as code: an indented block's line, a line of a fenced block, or a piece within a line.
	inCode = regexp.MustCompile("(?m)^ {4,}(.+)$|^```sh\n((?s:.*?))\n```|`([^`\n]+)`")
	called = regexp.MustCompile(`(?:^|[|;&] *|bin/)heddle +([a-z].*)`)
	made   = regexp.MustCompile(`^ *make ([a-z][a-z-]*)(?: |$)`)
	target = regexp.MustCompile(`(?m)^([a-z][a-z-]*):`)
	linked = regexp.MustCompile(`\]\(([\w./-]+)(?:#[^)]*)?\)`)
)

// guides are the pages for people, by path from the module's root.
func guides(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, p := range append(paths, "../../README.md", "../../CONTRIBUTING.md", "../../CHANGELOG.md", "../../ARCHITECTURE.md") {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		texts[p] = string(b)
	}
	return texts
}

// code returns the lines of a page that are code, without the comments behind them.
func code(page string) (lines []string) {
	for _, m := range inCode.FindAllStringSubmatch(page, -1) {
		for line := range strings.Lines(m[1] + m[2] + m[3]) {
			line, _, _ = strings.Cut(line, " #")
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// TestGuidesNameWhatThereIs: each verb, flag and option of a command in the guides exists, and so does each target of make and each page that is linked.
func TestGuidesNameWhatThereIs(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, m := range target.FindAllSubmatch(makefile, -1) {
		targets = append(targets, string(m[1]))
	}
	options, err := registry()
	if err != nil {
		t.Fatal(err)
	}
	commands := 0
	for path, page := range guides(t) {
		for _, line := range code(page) {
			if m := made.FindStringSubmatch(line); m != nil && !slices.Contains(targets, m[1]) {
				t.Errorf("%s: `%s`: make has no target %s", path, line, m[1])
			}
			if m := called.FindStringSubmatch(line); m != nil {
				commands++
				checkCall(t, path, strings.Fields(m[1]), options)
			}
		}
		for _, m := range linked.FindAllStringSubmatch(page, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", path, m[1])
			}
		}
	}
	if commands < 100 {
		t.Errorf("only %d commands were found in the guides", commands)
	}
}

// checkCall holds the words behind "heddle" against the command.
func checkCall(t *testing.T, path string, words []string, options *conf.Registry) {
	t.Helper()
	root := Command()
	cmd, _, err := root.Find(words)
	if err != nil || cmd == root && words[0] != "help" && words[0] != "completion" {
		t.Errorf("%s: heddle %s: no such verb", path, strings.Join(words, " "))
		return
	}
	for i, w := range words {
		w = strings.Trim(w, "[]`,.;:)…")
		name, _, _ := strings.Cut(w, "=")
		switch {
		case w == "--":
			return // what follows is the program's own
		case w == "-D" && i+1 < len(words):
			name, _, _ = strings.Cut(strings.Trim(words[i+1], "[]`,.;:)"), "=")
			if _, ok := options.Lookup(name); !ok {
				t.Errorf("%s: heddle %s: no option %s", path, strings.Join(words, " "), name)
			}
		case strings.HasPrefix(w, "--"):
			if !hasFlag(cmd, strings.TrimPrefix(name, "--")) {
				t.Errorf("%s: heddle %s: no flag %s", path, strings.Join(words, " "), name)
			}
		case len(w) == 2 && w[0] == '-' && w[1] != '-':
			if cmd.Flags().ShorthandLookup(w[1:]) == nil && cmd.InheritedFlags().ShorthandLookup(w[1:]) == nil {
				t.Errorf("%s: heddle %s: no flag %s", path, strings.Join(words, " "), w)
			}
		}
	}
}

func hasFlag(cmd *cobra.Command, name string) bool {
	return name == "help" || name == "version" || cmd.Flags().Lookup(name) != nil || cmd.InheritedFlags().Lookup(name) != nil || strings.HasPrefix(name, "env.")
}

// TestSecurityNamesTests: the tests that docs/security.md names for attacks are there.
func TestSecurityNamesTests(t *testing.T) {
	have := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		for _, m := range tested.FindAllStringSubmatch(string(b), -1) {
			have[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z]+)[/`]").FindAllStringSubmatch(guides(t)["../../docs/security.md"], -1)
	if len(named) < 50 {
		t.Errorf("it names %d tests", len(named))
	}
	for _, m := range named {
		if !have[m[1]] {
			t.Errorf("it names %s, which no test is called", m[1])
		}
	}
}

// tested is a test's or a fuzz target's head.
var tested = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
