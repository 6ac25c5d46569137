package jobspec

import (
	"fmt"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/jobgraph"
)

// TestLongNames: a name of which every metric would be full is refused where it stands; the longest that are taken go through, with all that is made of them.
func TestLongNames(t *testing.T) {
	job := func(name, source, step, window, sink int) string {
		of := func(letter string, n int) string { return strings.Repeat(letter, n) }
		return fmt.Sprintf(`name: %s
sources:
  %s: { file: { path: in, format: { csv: { header: true, columns: [u, at] } } }, fields: { u: string, at: time }, event_time: at, on_error: { dead_letter: letters } }
steps:
  - filter: 'u != "x"'
    name: %s
    on_error: { dead_letter: letters }
  - key_by: u
  - window: { tumbling: 1m, aggregate: { n: count() }, late: letters }
    name: %s
sinks:
  %s: { from: %[4]s, discard: {} }
  letters: { discard: {} }
`, of("j", name), of("s", source), of("t", step), of("w", window), of("k", sink))
	}
	for _, tt := range []struct {
		text, place, says string
	}{
		{job(257, 1, 1, 1, 1), "job.yaml:1:7", "257 bytes"}, {job(1, 20_000, 1, 1, 1), "job.yaml:3:3", "20000 bytes"}, {job(1, 1, 225, 1, 1), "job.yaml:6:11", "at most 224"},
		{job(1, 1, 1, 225, 1), "job.yaml:10:11", "225 bytes"}, {job(1, 1, 1, 1, 225), "job.yaml:12:3", "225 bytes"}, {job(256, 224, 224, 224, 224), "", ""},
	} {
		j, err := Load("job.yaml", []byte(tt.text), Options{MaxParallelism: 128})
		if err == nil {
			_, err = jobgraph.Compile(j.Graph(), jobgraph.Options{})
		}
		if tt.says == "" {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tt.place) || !strings.Contains(err.Error(), tt.says) || len(err.Error()) > 2000 {
			t.Errorf("it says %.600v, want %q and %q", err, tt.place, tt.says)
		}
	}
}
