// Package standalone gets agents by people who start them, or by whatever starts processes on their hosts: a service manager, a
// cluster of containers. For each agent that is asked for it writes a file into join/ of the application's directory,
// which lets one process in: `heddle agent --join ADDR --secrets FILE`. What waits for long is written anew, since certificates end.
//
// The driver does not see the processes. It learns from the master what their sessions show (appmaster.Witness):
// a file is removed when an agent has joined with it; an agent that is lost is refused when it comes back, and then ends itself.
package standalone

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/internal/cluster"
)

// Config is what agents get. It must not change after New.
type Config struct {
	Files map[string]string // put into the secrets: name, and path of the file to be read for it
	Grace time.Duration     // how long an agent that is told to go may take to say goodbye; 0: 5 s
}

// Driver implements appmaster.Driver and appmaster.Witness.
type Driver struct {
	// Immutable after Start.
	cfg  Config
	env  appmaster.DriverEnv
	log  *slog.Logger
	wake chan struct{} // capacity 1: something was noted for the worker
	quit chan struct{} // closed by Stop: the worker ends
	done chan struct{} // closed when it has ended

	// Owned by the worker's goroutine.
	granted int
	before  int // agents that earlier attempts have granted

	// Guarded by mu.
	mu      sync.Mutex
	total   int // of the last Ask that raised it
	agents  map[cluster.AgentID]*ticket
	ended   []appmaster.AgentExit // to be reported by the worker, after it granted them
	stopped bool
	noted   bool // who has joined was written down as it is now
}

// ticket lets one agent in.
type ticket struct {
	path   string
	joined bool
	timer  *time.Timer // runs from Return until the agent counts as gone; nil: it was not returned
}

// New returns a driver.
func New(cfg Config) *Driver {
	if cfg.Grace == 0 {
		cfg.Grace = 5 * time.Second
	}
	return &Driver{
		cfg: cfg, agents: map[cluster.AgentID]*ticket{},
		wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
	}
}

// Dir is the name of the folder in the application's directory that holds the files for agents to join with.
const Dir = "join"

// Start implements appmaster.Driver.
func (d *Driver) Start(env appmaster.DriverEnv) error {
	d.env, d.log = env, env.Logger
	if err := os.MkdirAll(filepath.Join(env.AppDir, Dir), 0o700); err != nil {
		return fmt.Errorf("cannot make the directory of the agents' secrets: %w", err)
	}
	if err := d.recover(); err != nil {
		return err
	}
	go d.work()
	return nil
}

// Ask implements appmaster.Driver.
func (d *Driver) Ask(total int) {
	d.mu.Lock()
	if !d.stopped {
		d.total = max(d.total, total)
	}
	d.mu.Unlock()
	d.poke()
}

// Return implements appmaster.Driver. A lost agent is out of reach: it is as good as gone.
func (d *Driver) Return(id cluster.AgentID, lost bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.withdraw(id, lost)
}

// withdraw takes an agent's ticket back, and lets it have its grace if it has joined. d.mu is held.
func (d *Driver) withdraw(id cluster.AgentID, lost bool) {
	t := d.agents[id]
	switch {
	case t == nil:
	case !t.joined:
		d.end(id, "nobody joined as this agent", false)
	case lost:
		d.end(id, "it was lost and can't be reached; it ends by itself when it comes back", false)
	case t.timer == nil:
		t.timer = time.AfterFunc(d.cfg.Grace, func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.end(id, fmt.Sprintf("it did not say goodbye within %v", d.cfg.Grace), false)
		})
	}
}

// Joined implements appmaster.Witness.
func (d *Driver) Joined(id cluster.AgentID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t := d.agents[id]; t != nil {
		t.joined = true
		d.forgetSecrets(t)
		d.noted = false
		d.poke()
	}
}

// Parted implements appmaster.Witness.
func (d *Driver) Parted(id cluster.AgentID, reason string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t := d.agents[id]; t != nil {
		d.end(id, "it left: "+reason, t.timer == nil && !d.stopped)
	}
}

// end notes that an agent is gone. d.mu is held.
func (d *Driver) end(id cluster.AgentID, reason string, blame bool) {
	t := d.agents[id]
	if t == nil {
		return
	}
	if t.timer != nil {
		t.timer.Stop()
	}
	d.forgetSecrets(t)
	delete(d.agents, id)
	d.noted = false
	d.ended = append(d.ended, appmaster.AgentExit{Agent: id, Reason: reason, Blame: blame})
	d.poke()
}

func (d *Driver) forgetSecrets(t *ticket) {
	if err := os.Remove(t.path); err != nil && !os.IsNotExist(err) {
		d.log.Warn("cannot remove an agent's secrets", "err", err)
	}
}

func (d *Driver) poke() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// Stop implements appmaster.Driver. Agents have been told to go by now; it waits for their goodbyes.
func (d *Driver) Stop(ctx context.Context) {
	d.mu.Lock()
	d.stopped = true
	for id := range d.agents {
		d.withdraw(id, false)
	}
	d.mu.Unlock()
	d.poke()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for d.left() > 0 && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	d.mu.Lock()
	for id := range d.agents {
		d.end(id, "it is left alone: it did not say goodbye in time", false)
	}
	d.mu.Unlock()
	close(d.quit)
	<-d.done
}

func (d *Driver) left() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.agents)
}

// work is the worker: it grants what was asked for, and reports what has ended.
func (d *Driver) work() {
	defer close(d.done)
	var again <-chan time.Time // nil: secrets are good for ever
	if d.env.SecretsLife > 0 {
		t := time.NewTicker(d.env.SecretsLife / 2)
		defer t.Stop()
		again = t.C
	}
	for {
		d.grant()
		d.report()
		d.note()
		select {
		case <-d.wake:
		case <-again:
			d.inviteAgain()
		case <-d.quit:
			d.report()
			d.note()
			return
		}
	}
}

func (d *Driver) grant() {
	for {
		d.mu.Lock()
		if d.stopped || d.granted >= d.total {
			d.mu.Unlock()
			return
		}
		d.granted++
		id := cluster.AgentID("agent-" + strconv.Itoa(d.before+d.granted))
		d.noted = false
		path := filepath.Join(d.env.AppDir, Dir, string(id))
		d.agents[id] = &ticket{path: path}
		d.mu.Unlock()
		d.env.Granted(id, cluster.ContainerID(id), "")
		d.note() // before anybody sees the name: it is used up then, also if we die now
		if err := d.invite(id, path); err != nil {
			d.mu.Lock()
			d.end(id, err.Error(), true)
			d.mu.Unlock()
		}
	}
}

// inviteAgain writes the secrets anew that nobody has joined with.
func (d *Driver) inviteAgain() {
	d.mu.Lock()
	open := map[cluster.AgentID]string{}
	for id, t := range d.agents {
		if !t.joined {
			open[id] = t.path
		}
	}
	d.mu.Unlock()
	for id, path := range open {
		if err := d.invite(id, path); err != nil {
			d.log.Warn("cannot write an agent's secrets anew: they end soon", "agent", id, "err", err)
		}
	}
}

// invite writes the secrets of an agent, unless it was returned meanwhile.
func (d *Driver) invite(id cluster.AgentID, path string) error {
	secrets, err := d.env.Secrets(id, cluster.ContainerID(id))
	if err != nil {
		return err
	}
	secrets.Files = map[string][]byte{}
	for name, from := range d.cfg.Files {
		if secrets.Files[name], err = os.ReadFile(from); err != nil {
			return fmt.Errorf("cannot read what agents get: %w", err)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if t := d.agents[id]; t == nil || t.joined {
		return nil
	}
	if err := secrets.Write(path); err != nil {
		return err
	}
	d.log.Info("an agent is wanted: start one with the job's program", "command", fmt.Sprintf("agent --join %s --secrets %s", secrets.MasterAddr, path))
	return nil
}

func (d *Driver) report() {
	d.mu.Lock()
	ended := d.ended
	d.ended = nil
	d.mu.Unlock()
	for _, exit := range ended {
		d.env.Exited(exit)
	}
}
