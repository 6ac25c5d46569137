package standalone

import (
	"os"
	"path/filepath"
	"strings"
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

// TestSecretsAnew writes secrets again that nobody has used, before their certificate ends.
func TestSecretsAnew(t *testing.T) {
	w := drivertest.NewWorld(t.TempDir())
	env := w.Env()
	env.SecretsLife = 100 * time.Millisecond
	d := New(Config{})
	if err := d.Start(env); err != nil {
		t.Fatal(err)
	}
	d.Ask(1)
	path := filepath.Join(w.Dir, Dir, "agent-1")
	first := await(t, path)
	for await(t, path).Cert == first.Cert {
		<-time.After(10 * time.Millisecond)
	}
	d.Joined("agent-1")
	d.inviteAgain()
	if _, err := os.Stat(path); err == nil {
		t.Error("they are written again for an agent that has joined")
	}
	d.Stop(t.Context())
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

// TestRecover starts a driver for another attempt of the master: it expects who has joined the one before, and nobody else.
func TestRecover(t *testing.T) {
	w := drivertest.NewWorld(t.TempDir())
	first := New(Config{Grace: 50 * time.Millisecond})
	if err := first.Start(w.Env()); err != nil {
		t.Fatal(err)
	}
	first.Ask(2)
	path := func(name string) string { return filepath.Join(w.Dir, Dir, name) }
	await(t, path("agent-1"))
	await(t, path("agent-2"))
	first.Joined("agent-1")
	for !strings.Contains(read(t, filepath.Join(w.Dir, joinedFile)), "agent-1") {
		<-time.After(10 * time.Millisecond)
	}
	// It dies: nothing is stopped. What the driver does after that, in this process, goes elsewhere.
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(w.Dir)); err != nil {
		t.Fatal(err)
	}
	first.Stop(t.Context())

	w2 := drivertest.NewWorld(dir)
	env := w2.Env()
	env.Attempt = 1
	recovered, granted := make(chan cluster.AgentID, 9), make(chan cluster.AgentID, 9)
	env.Recovered = func(id cluster.AgentID, _ cluster.ContainerID, _ string) { recovered <- id }
	env.Granted = func(id cluster.AgentID, _ cluster.ContainerID, _ string) { granted <- id }
	env.Exited = func(appmaster.AgentExit) {}
	second := New(Config{Grace: 50 * time.Millisecond})
	if err := second.Start(env); err != nil {
		t.Fatal(err)
	}
	if id := <-recovered; id != "agent-1" || len(recovered) > 0 {
		t.Errorf("recovered %s and %d more, want agent-1", id, len(recovered))
	}
	if _, err := os.Stat(filepath.Join(dir, Dir, "agent-2")); err == nil {
		t.Error("the file of the attempt before is still there")
	}
	second.Ask(1)
	if id := <-granted; id != "agent-3" {
		t.Errorf("granted %s, want agent-3: names are never used twice", id)
	}
	second.Stop(t.Context())
}

// TestNoted writes a name down as used before a file is of that name.
func TestNoted(t *testing.T) {
	w := drivertest.NewWorld(t.TempDir())
	env, noted := w.Env(), make(chan string, 9)
	secrets := env.Secrets
	env.Secrets = func(id cluster.AgentID, c cluster.ContainerID) (ctl.AgentSecrets, error) {
		noted <- read(t, filepath.Join(w.Dir, joinedFile))
		return secrets(id, c)
	}
	d := New(Config{})
	if err := d.Start(env); err != nil {
		t.Fatal(err)
	}
	d.Ask(2)
	for _, want := range []string{`"granted":1`, `"granted":2`} {
		if got := <-noted; !strings.Contains(got, want) {
			t.Errorf("noted %q before the file is written, want %s", got, want)
		}
	}
	d.Stop(t.Context())
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(data)
}
