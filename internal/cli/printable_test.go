package cli

import (
	"bytes"
	"strings"
	"testing"
)

// TestPrintable: what names, records and servers say can neither move the cursor, nor ring, nor make lines that look like ours, nor turn text around.
func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"plain, ü, 日本": "plain, ü, 日本", "a\tb": "a    b", "\x1b[2J\x1b]0;x\a": "�[2J�]0;x�", "ok\rheddle: finished\n": "ok�heddle: finished�", "\u009b31m": "�31m",
		"txt.\u202eexe": "txt.�exe", "a\u2066b\u2028c": "a�b�c", "a\x7f\x00": "a��", "\xff": "�",
	} {
		if got := printable(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	for r := range rune(0x100) {
		if got := printable(string(r)); strings.ContainsFunc(got, func(c rune) bool { return c < ' ' || c >= 0x7f && c < 0xa0 }) {
			t.Errorf("%q becomes %q", r, got)
		}
	}
}

// TestStatusPrintable: an ApplicationMaster may be another user's program, and tell what it likes.
func TestStatusPrintable(t *testing.T) {
	var out bytes.Buffer
	s := &session{out: &terminal{w: &out}}
	s.env.Stdout = &out
	if err := s.printStatus(appState{ID: "application_1_0001", Job: "a\x1b[2J", State: "run\x1b[1mning", Waiting: "\x1b"}); err != nil || strings.Contains(out.String(), "\x1b") {
		t.Errorf("it draws: %q, %v", out.String(), err)
	}
}

// TestPlanPrintable: a step may be named by another program, and a name is no line of the plan's, nor draws.
func TestPlanPrintable(t *testing.T) {
	w := newWorld(t)
	job := w.file("job.yaml", "name: p\nsource: { generator: { count: 10, record: { n: n } } }\n"+
		"steps: [{ filter: n > 0, name: \"a\\n[9] × 9\\e[2J\" }]\nsink: { discard: {} }\n")
	for _, flag := range []string{"--agents=1", "--dot"} {
		in := w.start("plan", job, flag)
		in.expect(exitOK)
		out := in.stdout.String()
		if !strings.Contains(out, "[9] × 9") || strings.Contains(out, "\n[9]") || strings.Contains(out, "\x1b") {
			t.Errorf("plan %s draws:\n%q", flag, out)
		}
	}
}
