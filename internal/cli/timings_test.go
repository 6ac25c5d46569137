package cli

import (
	"strings"
	"testing"
	"time"
)

// TestTimingsOrder: clocks that differ make no phase end before the one ahead of it.
func TestTimingsOrder(t *testing.T) {
	start := time.UnixMilli(1000)
	x := &timings{start: start}
	x.markAt("submitted", start.Add(100*time.Millisecond))
	x.markAt("first record out", start.Add(517*time.Millisecond))
	x.markAt("job ended", start.Add(500*time.Millisecond))
	x.markAt("told", start.Add(600*time.Millisecond))
	var b strings.Builder
	x.print(&b)
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	for i, want := range []string{"submitted 100 ms 100 ms", "first record out 417 ms 517 ms", "job ended 0 ms 517 ms", "told 83 ms 600 ms"} {
		if got := strings.Join(strings.Fields(lines[i]), " "); got != want {
			t.Errorf("line %d is %q, want %q", i, got, want)
		}
	}
}
