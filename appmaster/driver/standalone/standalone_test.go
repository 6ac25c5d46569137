package standalone

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/appmaster/driver/drivertest"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var _ interface {
	appmaster.Driver
	appmaster.Witness
} = (*Driver)(nil)

// await polls for an agent's file.
func await(t *testing.T, path string) ctl.AgentSecrets {
	t.Helper()
	for range 1000 {
		if s, err := ctl.ReadSecrets(path); err == nil {
			return s
		}
		<-time.After(10 * time.Millisecond)
	}
	t.Fatalf("%s does not come", path)
	return ctl.AgentSecrets{}
}

func TestConformance(t *testing.T) {
	drivertest.Test(t, func(t *testing.T, dir string) drivertest.Subject {
		d := New(Config{Grace: 50 * time.Millisecond})
		return drivertest.Subject{
			Driver: d,
			Up: func(id cluster.AgentID) {
				path := filepath.Join(dir, Dir, string(id))
				d.mu.Lock()
				known := d.agents[id] != nil && !d.agents[id].joined
				d.mu.Unlock()
				if known {
					await(t, path)
					d.Joined(id)
				}
			},
			Crash: func(id cluster.AgentID) { d.Parted(id, "told to end by a signal") },
		}
	})
}

// TestFiles lets an agent in that does not see the application's directory.
func TestFiles(t *testing.T) {
	w := drivertest.NewWorld(t.TempDir())
	job := filepath.Join(w.Dir, "job.yaml")
	if err := os.WriteFile(job, []byte("name: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := New(Config{Files: map[string]string{"job.yaml": job}})
	if err := d.Start(w.Env()); err != nil {
		t.Fatal(err)
	}
	d.Ask(1)
	path := filepath.Join(w.Dir, Dir, "agent-1")
	if s := await(t, path); s.AgentID != "agent-1" || string(s.Files["job.yaml"]) != "name: x\n" {
		t.Errorf("secrets of %s with files %v", s.AgentID, s.Files)
	}
	d.Stop(t.Context())
	if _, err := os.Stat(path); err == nil {
		t.Error("the file is still there after Stop")
	}
}

// TestMissingFile is an agent's failure, with its reason.
func TestMissingFile(t *testing.T) {
	w := drivertest.NewWorld(t.TempDir())
	env, exits := w.Env(), make(chan appmaster.AgentExit, 9)
	env.Exited = func(e appmaster.AgentExit) { exits <- e }
	d := New(Config{Files: map[string]string{"job.yaml": filepath.Join(w.Dir, "nowhere")}})
	if err := d.Start(env); err != nil {
		t.Fatal(err)
	}
	d.Ask(1)
	if e := <-exits; !e.Blame || e.Agent != "agent-1" {
		t.Errorf("exit %+v", e)
	}
	d.Stop(t.Context())
}
