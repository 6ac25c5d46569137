// Package drivertest holds the rules that every appmaster.Driver keeps, as tests, and a driver with faults to test masters with.
package drivertest

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl"
	"github.com/heddle-stream/heddle/internal/ctl/pki"
)

// Subject is a driver under test. The functions play what happens outside of it.
type Subject struct {
	Driver appmaster.Driver
	// Up waits until an agent that was granted runs, or lets it run.
	Up func(id cluster.AgentID)
	// Crash ends an agent that is up by its own fault.
	Crash func(id cluster.AgentID)
}

// Test runs the suite. Make makes a driver that was not started; dir is the application's directory.
func Test(t *testing.T, make func(t *testing.T, dir string) Subject) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, w *World)
	}{
		{"a total is granted once", askTwice},
		{"an agent that was returned ends without blame", returned},
		{"an agent that crashed ends with blame", crashed},
		{"an agent that is lost is given up", lost},
		{"nothing outlives Stop", stopped},
		{"Stop keeps its time", hurried},
		{"a master that is far behind holds nobody up", slowMaster},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := NewWorld(t.TempDir())
			w.Subject = make(t, w.Dir)
			if err := w.Driver.Start(w.Env()); err != nil {
				t.Fatal(err)
			}
			c.run(t, w)
			w.finish(t)
		})
	}
}

// World is the master's side of a driver: it notes what it is told.
type World struct {
	Subject
	Dir string

	mu      sync.Mutex
	changed chan struct{} // closed and renewed at every change
	granted []cluster.AgentID
	exits   map[cluster.AgentID][]appmaster.AgentExit
	faults  []string
	stopped bool
	gate    chan struct{} // not nil: the master answers when it is closed
}

// NewWorld returns a World that was told nothing.
func NewWorld(dir string) *World {
	return &World{Dir: dir, changed: make(chan struct{}), exits: map[cluster.AgentID][]appmaster.AgentExit{}}
}

// Env is what the driver is started with.
func (w *World) Env() appmaster.DriverEnv {
	authority, err := pki.NewAuthority("app")
	if err != nil {
		panic(err)
	}
	return appmaster.DriverEnv{
		App: "app", AppDir: w.Dir, Logger: slog.New(slog.DiscardHandler),
		Secrets: func(id cluster.AgentID, c cluster.ContainerID) (ctl.AgentSecrets, error) {
			leaf, err := authority.Agent(pki.Name{App: "app", Agent: id})
			return ctl.AgentSecrets{
				App: "app", AgentID: id, ContainerID: string(c), MasterAddr: "127.0.0.1:1",
				Cert: string(leaf.Cert), Key: string(leaf.Key), CA: string(authority.CertPEM()), ExchangeKey: pki.NewExchangeKey(),
			}, err
		},
		Granted: func(id cluster.AgentID, _ cluster.ContainerID, _ string) {
			w.note(func() {
				if slices.Contains(w.granted, id) {
					w.fault("%s was granted twice", id)
				}
				w.granted = append(w.granted, id)
			})
		},
		Exited: func(e appmaster.AgentExit) {
			w.note(func() {
				if !slices.Contains(w.granted, e.Agent) {
					w.fault("%s ended before it was granted", e.Agent)
				}
				w.exits[e.Agent] = append(w.exits[e.Agent], e)
			})
		},
		Refused:  func(string) { w.note(func() {}) },
		Draining: func([]string) { w.note(func() {}) },
		Reclaim:  func([]cluster.AgentID, int) { w.note(func() {}) },
	}
}

// note applies what the driver says, once the gate is open.
func (w *World) note(f func()) {
	w.mu.Lock()
	gate := w.gate
	w.mu.Unlock()
	if gate != nil {
		<-gate
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		w.fault("the driver spoke after Stop had returned")
	}
	f()
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *World) fault(format string, args ...any) {
	w.faults = append(w.faults, fmt.Sprintf(format, args...))
}

// patience is how long anything may take on a busy machine.
const patience = 20 * time.Second

// Await waits until is holds. It is called with the World locked.
func (w *World) Await(t *testing.T, what string, is func() bool) {
	t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		w.mu.Lock()
		ok, changed := is(), w.changed
		w.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-late.C:
			t.Fatalf("waited in vain for %s: granted %v, exits %v", what, w.granted, w.exits)
		}
	}
}

// up asks for n agents and waits until they run.
func (w *World) up(t *testing.T, n int) []cluster.AgentID {
	t.Helper()
	promptly(t, "Ask", func() { w.Driver.Ask(n) })
	w.Await(t, "grants", func() bool { return len(w.granted) >= n })
	ids := w.ids()
	for _, id := range ids {
		w.Up(id)
	}
	return ids
}

func (w *World) ids() []cluster.AgentID {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.granted)
}

func (w *World) exit(t *testing.T, id cluster.AgentID) appmaster.AgentExit {
	t.Helper()
	w.Await(t, "the end of "+string(id), func() bool { return len(w.exits[id]) > 0 })
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.exits[id][0]
}

// promptly fails the test if f waits.
func promptly(t *testing.T, what string, f func()) {
	t.Helper()
	began := time.Now()
	f()
	if took := time.Since(began); took > time.Second {
		t.Errorf("%s took %v: it must return at once", what, took)
	}
}

func (w *World) stop(ctx context.Context) {
	w.mu.Lock()
	done := w.stopped
	w.mu.Unlock()
	if done {
		return
	}
	w.Driver.Stop(ctx)
	w.mu.Lock()
	w.stopped = true
	w.mu.Unlock()
}

// finish stops the driver and checks what must hold in the end, whatever was done.
func (w *World) finish(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	w.stop(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range w.granted {
		if n := len(w.exits[id]); n != 1 {
			t.Errorf("%s ended %d times, want once", id, n)
		}
	}
	for _, f := range w.faults {
		t.Error(f)
	}
	err := filepath.WalkDir(w.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte("PRIVATE KEY")) {
			t.Errorf("%s still holds a private key", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func askTwice(t *testing.T, w *World) {
	w.up(t, 2)
	w.Driver.Ask(2)
	w.Driver.Ask(1) // less than there are: nothing to withdraw
	w.up(t, 3)
	if ids := w.ids(); len(ids) != 3 {
		t.Errorf("granted %v for a total of 3", ids)
	}
}

func returned(t *testing.T, w *World) {
	ids := w.up(t, 2)
	for _, id := range []cluster.AgentID{ids[0], ids[0], "nobody"} {
		promptly(t, "Return", func() { w.Driver.Return(id, false) })
	}
	if e := w.exit(t, ids[0]); e.Blame || e.Reason == "" {
		t.Errorf("exit %+v, want a reason and no blame", e)
	}
	w.Driver.Return(ids[0], false)
	w.Driver.Ask(2) // it is not replaced
	w.up(t, 3)
	if n := len(w.ids()); n != 3 {
		t.Errorf("%d agents were granted, want 3", n)
	}
}

func crashed(t *testing.T, w *World) {
	ids := w.up(t, 2)
	w.Crash(ids[1])
	if e := w.exit(t, ids[1]); !e.Blame || e.Reason == "" {
		t.Errorf("exit %+v, want a reason and blame", e)
	}
	w.Driver.Return(ids[1], false)
	w.Driver.Ask(2)
	if n := len(w.ids()); n != 2 {
		t.Errorf("%d agents were granted, want 2: the master decides on replacements", n)
	}
}

func lost(t *testing.T, w *World) {
	ids := w.up(t, 1)
	promptly(t, "Return", func() { w.Driver.Return(ids[0], true) })
	if e := w.exit(t, ids[0]); e.Blame {
		t.Errorf("exit %+v, want no blame: the master has blamed it already", e)
	}
}

func stopped(t *testing.T, w *World) {
	w.up(t, 3)
	w.Driver.Ask(5) // two are just about to start
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	w.stop(ctx)
	n := len(w.ids())
	w.Driver.Ask(9)
	w.Driver.Return("agent-1", false)
	if len(w.ids()) != n {
		t.Error("agents were granted after Stop")
	}
}

func hurried(t *testing.T, w *World) {
	w.up(t, 2)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	began := time.Now()
	w.stop(ctx)
	if took := time.Since(began); took > patience/2 {
		t.Errorf("Stop took %v though it had no time", took)
	}
}

// slowMaster keeps every report of the driver waiting while the master goes on calling it.
func slowMaster(t *testing.T, w *World) {
	gate := make(chan struct{})
	w.mu.Lock()
	w.gate = gate
	w.mu.Unlock()
	promptly(t, "Ask", func() { w.Driver.Ask(1) })
	promptly(t, "Ask", func() { w.Driver.Ask(3) })
	promptly(t, "Return", func() { w.Driver.Return("agent-1", false) })
	close(gate)
	w.Await(t, "grants", func() bool { return len(w.granted) == 3 })
}
