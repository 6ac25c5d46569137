package cli

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/heddle-stream/heddle/appmaster/driver/standalone"
)

// TestStandalone starts the agents of a job by hand, from copies of their files alone.
func TestStandalone(t *testing.T) {
	w := newWorld(t)
	out := filepath.Join(w.dir, "out")
	run := w.start("run", w.wordJob(w.file("in.txt", text), out), "--target", "standalone", "--agents", "2", "--agent.slots", "1", "--parallelism", "2")
	var agents []*invocation
	for _, name := range []string{"agent-1", "agent-2"} {
		copied := filepath.Join(w.dir, name)
		w.eventually(name+" is wanted", func() bool {
			app, err := findApp(w.state, "")
			if err != nil {
				return false
			}
			data, err := os.ReadFile(filepath.Join(app.file(standalone.Dir), name))
			return err == nil && os.WriteFile(copied, data, 0o600) == nil
		})
		agents = append(agents, w.start("agent", "--secrets", copied))
	}
	run.expect(0, "start an agent for each file in", "finished: words in ")
	for _, a := range agents {
		a.expect(0)
	}
	if got := counted(t, out); !maps.Equal(got, words) {
		t.Errorf("counted %v, want %v", got, words)
	}
	w.start("agent", "--secrets", filepath.Join(w.dir, "agent-1"), "--agent.register-timeout", "100ms").expect(7)
	w.gone()
}

func TestAgentNeedsSecrets(t *testing.T) {
	w := newWorld(t)
	w.start("agent").expect(2, "--secrets FILE")
	w.start("agent", "--secrets", "nowhere").expect(3, "nowhere")
	open := w.file("open", "{}")
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	w.start("agent", "--secrets", open).expect(3, "others may have read it")
}
