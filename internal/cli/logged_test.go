package cli

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLogsHoldNoRecords: whatever goes wrong at a record, the cause that its owner is told shows it, and no log does, at any level.
func TestLogsHoldNoRecords(t *testing.T) {
	const record = `{"user":"topsecret","n":0}`
	for name, c := range map[string]struct {
		source, steps string
		code          int
	}{
		"a message that can't be read":   {source: "{ user: string, n: time }", code: 5},
		"an expression that fails":       {source: "{ user: string, n: int }", steps: "steps: [{ set: { q: int(user) } }]", code: 5},
		"a key that fails":               {source: "{ user: string, n: int }", steps: "steps: [{ key_by: { k: int(user) } }, { window: { global: true, aggregate: { c: count() } } }]", code: 5},
		"messages that are left out":     {source: "{ user: string, n: time }, on_error: skip", code: 0},
		"messages that are dead letters": {source: "{ user: string, n: time }, on_error: { dead_letter: bad }", code: 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			sinks := "sinks: { out: { from: source, file: { path: " + w.dir + "/out, format: json } }, bad: { file: { path: " + w.dir + "/bad, format: json } } }"
			if !strings.Contains(c.source, "dead_letter") {
				sinks = "sink: { file: { path: " + w.dir + "/out, format: json } }"
			}
			job := w.file("job.yaml", fmt.Sprintf("name: secrets\nsource: { file: { path: %q, format: json }, fields: %s }\n%s\n%s\n",
				w.file("in.json", record+"\n"), c.source, c.steps, sinks))
			in := w.start("run", job, "--keep", "--log.level", "debug")
			in.expect(c.code)
			if c.code != 0 && !strings.Contains(in.stderr.String(), "topsecret") {
				t.Errorf("the owner is not shown the record: %s", &in.stderr)
			}
			looked := 0
			err := filepath.WalkDir(w.state, func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() || filepath.Base(path) != "log" && !strings.HasSuffix(path, ".log") {
					return err
				}
				data, err := os.ReadFile(path)
				looked++
				for line := range strings.Lines(string(data)) {
					if strings.Contains(line, "topsecret") {
						t.Errorf("%s shows a record: %s", filepath.Base(path), line)
					}
				}
				if c.code != 0 && filepath.Base(path) == "appmaster.log" && !strings.Contains(string(data), "failed at a record") {
					t.Errorf("the log does not tell that and where the task failed:\n%s", data)
				}
				return err
			})
			if err != nil || looked < 2 {
				t.Errorf("looked at %d logs, %v", looked, err)
			}
		})
	}
}
