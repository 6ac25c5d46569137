package lastlines

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOf(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	frames := strings.Repeat("goroutine 9 [select]:\nmain.f()\n\t/src/f.go:3\n\n", 5000)
	for _, c := range []struct {
		text string
		n    int
		want []string
	}{
		{"", 2, nil},
		{"\n\n", 2, nil},
		{"a", 2, []string{"a"}},
		{"a\nb\n", 2, []string{"a", "b"}},
		{"a\nb\nc\n\n", 2, []string{"b", "c"}},
		{"\xffx\n", 2, []string{"?x"}},
		{"a\n" + strings.Repeat("y", 3000), 1, []string{strings.Repeat("y", 2000) + "…"}},
		{strings.Repeat("y", 9<<20) + "\nz\n", 2, []string{"z"}},
		{"up\npanic: no\n\ngoroutine 1 [running]:\n" + frames, 6, []string{"panic: no", "", "goroutine 1 [running]:", "…", "main.f()", "\t/src/f.go:3"}},
		{"up\nfatal error: all goroutines are asleep - deadlock!\n" + frames, 4, []string{
			"fatal error: all goroutines are asleep - deadlock!", "goroutine 9 [select]:", "…", "\t/src/f.go:3"}},
		{"runtime: out of memory\n" + frames, 2, []string{"main.f()", "\t/src/f.go:3"}},
		{"a\nb\npanic: near\nc", 3, []string{"b", "panic: near", "c"}},
		{"no panic: here\nb\nc\nd", 3, []string{"b", "c", "d"}},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := Of(path, c.n); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", c.want) {
			t.Errorf("the last %d lines of %.20q… are %q, want %q", c.n, c.text, got, c.want)
		}
	}
	if got := Of(path+"none", 2); got != nil {
		t.Errorf("the last lines of no file: %q", got)
	}
}

// What was cut is cut again as if it had been whole.
func TestCut(t *testing.T) {
	var lines []string
	for i := range 100 {
		lines = append(lines, fmt.Sprint(i))
	}
	lines[20] = "panic: twenty"
	got := Cut(Cut(lines, 20), 10)
	if want := "panic: twenty 21 22 23 24 … 96 97 98 99"; strings.Join(got, " ") != want {
		t.Errorf("cut to %q, want %q", got, want)
	}
	if got := Cut(lines[:5], 5); len(got) != 5 {
		t.Errorf("few lines are cut to %q", got)
	}
}
