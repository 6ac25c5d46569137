package cli

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/appmaster/driver/standalone"
)

// killMaster ends the ApplicationMaster that listens, as kill -9 does.
func (w *world) killMaster() {
	w.t.Helper()
	app, err := findApp(w.state, "")
	if err != nil {
		w.t.Fatal(err)
	}
	var at appmaster.Addr
	if err := app.readJSON(appmaster.AddrFile, &at); err != nil {
		w.t.Fatal(err)
	}
	if err := syscall.Kill(at.PID, syscall.SIGKILL); err != nil {
		w.t.Fatal(err)
	}
}

// TestMasterDies kills the ApplicationMaster: another one runs the job, from its beginning.
func TestMasterDies(t *testing.T) {
	w := newWorld(t)
	run := w.start("run", w.endless(), "--appmaster.attempts", "2")
	w.eventually("the job runs", func() bool { return strings.Contains(run.stderr.String(), "running for") })
	w.killMaster()
	w.eventually("another attempt", func() bool { return strings.Contains(run.stderr.String(), "attempt 2 of 2 begins") })
	w.eventually("it listens", func() bool {
		app, err := findApp(w.state, "")
		var at appmaster.Addr
		return err == nil && app.readJSON(appmaster.AddrFile, &at) == nil && at.Attempt == 1
	})
	w.killMaster()
	run.expect(5, "the ApplicationMaster died: killed by signal 9")
}

// TestMasterStops stops the ApplicationMaster without ending it: its client kills it, and another one runs the job.
func TestMasterStops(t *testing.T) {
	w := newWorld(t)
	run := w.start("run", w.endless(), "--appmaster.attempts", "2", "--agent.heartbeat-interval", "300ms", "--agent.heartbeat-timeout", "1s")
	app, _ := w.running()
	signalMaster(t, app, syscall.SIGSTOP)
	w.eventually("another attempt", func() bool {
		return strings.Contains(run.stderr.String(), "the ApplicationMaster was silent and is killed; attempt 2 of 2 begins")
	})
	w.eventually("the job runs again", func() bool {
		snap := stateOf(t.Context(), app, true).Snapshot
		return snap != nil && snap.MasterAttempt == 1 && snap.State == "running"
	})
	run.signals <- os.Interrupt
	run.expect(6, "cancelled")
	w.gone()
}

// joinAs starts an agent by hand with the file of that name, once it is there.
func (w *world) joinAs(name string) *invocation {
	w.t.Helper()
	copied := filepath.Join(w.dir, name)
	w.eventually(name+" is wanted", func() bool {
		app, err := findApp(w.state, "")
		if err != nil {
			return false
		}
		data, err := os.ReadFile(filepath.Join(app.file(standalone.Dir), name))
		return err == nil && os.WriteFile(copied, data, 0o600) == nil
	})
	return w.start("agent", "--secrets", copied)
}

// TestTakeOver kills the ApplicationMaster of an agent that was started by hand, in the middle of its job: the next attempt
// takes the agent over, which stops what it ran and runs the job from its beginning.
func TestTakeOver(t *testing.T) {
	w := newWorld(t)
	run := w.start("run", w.endless(), "--target", "standalone", "--agents", "1", "--agent.slots", "1", "--appmaster.attempts", "2")
	agent := w.joinAs("agent-1")
	w.running()
	w.killMaster()
	w.eventually("another attempt", func() bool { return strings.Contains(run.stderr.String(), "attempt 2 of 2 begins") })
	var snap *appmaster.Snapshot
	w.eventually("the job runs again", func() bool {
		app, err := findApp(w.state, "")
		if err != nil {
			return false
		}
		snap = stateOf(t.Context(), app, true).Snapshot
		return snap != nil && snap.MasterAttempt == 1 && snap.State == "running" && snap.Vertices[0].Tasks["running"] == 1
	})
	// On a slow host the attempt may have wanted another agent before this one came back.
	if a := snap.Agents; len(a) == 0 || a[0].ID != "agent-1" || !a[0].Former {
		t.Errorf("agents %+v, want agent-1 of the attempt before", a)
	}
	run.signals <- os.Interrupt
	run.expect(6, "cancelled")
	agent.expect(0)
	w.gone()
}

// TestStaleFile shows that a file to join an attempt that is over lets nobody in.
func TestStaleFile(t *testing.T) {
	w := newWorld(t)
	out := filepath.Join(w.dir, "out")
	run := w.start("run", w.wordJob(w.file("in.txt", text), out), "--target", "standalone", "--agents", "1", "--agent.slots", "1", "--appmaster.attempts", "2")
	w.eventually("agent-1 is wanted", func() bool {
		app, err := findApp(w.state, "")
		if err != nil {
			return false
		}
		data, err := os.ReadFile(filepath.Join(app.file(standalone.Dir), "agent-1"))
		return err == nil && os.WriteFile(filepath.Join(w.dir, "stale"), data, 0o600) == nil
	})
	w.killMaster()
	agent := w.joinAs("agent-2") // of the second attempt, once it is wanted
	w.start("agent", "--secrets", filepath.Join(w.dir, "stale"), "--agent.register-timeout", "200ms").wait(limit)
	run.expect(0, "attempt 2 of 2 begins", "finished: words in ")
	agent.expect(0)
	if got := counted(t, out); !maps.Equal(got, words) {
		t.Errorf("counted %v, want %v", got, words)
	}
	w.gone()
}
