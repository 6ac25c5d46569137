package heddle_test

import (
	"strings"
	"testing"

	"github.com/heddle-stream/heddle"
)

// TestJobName: a name is printed by many, and goes to clusters.
func TestJobName(t *testing.T) {
	for name, want := range map[string]string{
		"": "needs a name", "a\x1b[31mb": "control characters", "a\nb": "control characters", "a\u0085": "control characters", "clicks per user, ü": "",
		strings.Repeat("n", 256): "", strings.Repeat("n", 20_000): "20000 bytes",
	} {
		var text string
		if errs := heddle.NewJob(name).Graph().Errs; len(errs) > 0 {
			text = errs[0].Error()
		}
		if !strings.Contains(text, want) || want == "" && text != "" || strings.ContainsAny(text, "\x1b\n\u0085") || len(text) > 1000 {
			t.Errorf("name %.300q: mistake %q, want %q", name, text, want)
		}
	}
}
