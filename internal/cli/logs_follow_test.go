package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// movedAside does what logs.Keep does to a log that has grown too long, of which two older ones are kept.
func movedAside(t *testing.T, file string) {
	t.Helper()
	_ = os.Rename(file+".1", file+".2") // there may be none
	data, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file+".1", data, 0o600)
	}
	if err == nil {
		err = os.Truncate(file, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestFollowMovedAside: who follows a log sees each line once, whenever the log is moved aside, and also where that cuts a line.
func TestFollowMovedAside(t *testing.T) {
	for name, steps := range map[string]string{
		"between two looks":       "write look aside write look write look",
		"what was not seen":       "write look write aside write look",
		"longer than before":      "write look aside write write write look",
		"twice between two looks": "write look write aside write aside write look",
		"in the midst of a line":  "write look half aside end look write look",
		"before the first line":   "look aside write look",
		"nothing after it":        "write look write aside look look write look",
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "log")
			log, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			defer log.Close()
			var out, want strings.Builder
			f, n := &followedLog{name: "agent-1", file: file}, 0
			f.begin(0)
			for step := range strings.FieldsSeq(steps) {
				switch step {
				case "write", "half":
					n++
					fmt.Fprintf(&want, "agent-1 line %d end\n", n)
					fmt.Fprintf(log, "line %d end\n"[:map[string]int{"write": 12, "half": 7}[step]], n)
				case "end":
					fmt.Fprint(log, " end\n")
				case "aside":
					movedAside(t, file)
				case "look":
					if err := f.copy(&terminal{w: &out}); err != nil {
						t.Fatal(err)
					}
				}
			}
			if out.String() != want.String() {
				t.Errorf("printed\n%swant\n%s", out.String(), want.String())
			}
		})
	}
}

// TestLastLinesMovedAside: the last lines of a log are counted through what was moved aside.
func TestLastLinesMovedAside(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"log.2": "a\nb\n", "log.1": "c\nd\n", "log": "e\nf\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for lines, want := range map[int]string{0: "abcdef", 1: "f", 2: "ef", 3: "def", 4: "cdef", 5: "bcdef", 9: "abcdef"} {
		var out strings.Builder
		f := &followedLog{name: "x", file: filepath.Join(dir, "log")}
		f.begin(lines)
		if err := f.copy(&terminal{w: &out}); err != nil {
			t.Fatal(err)
		}
		if got := strings.NewReplacer("x ", "", "\n", "").Replace(out.String()); got != want {
			t.Errorf("the last %d lines are %q, want %q", lines, got, want)
		}
	}
}
