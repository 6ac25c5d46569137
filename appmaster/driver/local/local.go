// Package local starts agents as child processes of the ApplicationMaster, on the same machine:
// the same program with the same arguments, in the role of an agent.
//
// Each agent has a directory of its own, agents/<n> in the application's, with its secrets (only while it runs) and its log. Its working
// directory is the master's, so that relative paths mean the same everywhere. An agent is never started anew. On Linux, agents die
// with the master, however that ends.
package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl"
	"github.com/heddle-stream/heddle/internal/lastlines"
)

// Config is how agents are started. It must not change after New.
type Config struct {
	Executable string        // "": this program's
	Args       []string      // without the program's name
	Env        []string      // "NAME=value", to which the role's variables are added
	Stdout     *os.File      // of the agents, for what a job prints; nil: their logs
	Grace      time.Duration // from SIGTERM to SIGKILL; 0: 5 s
}

// Driver implements appmaster.Driver.
type Driver struct {
	// Immutable after Start.
	cfg Config
	env appmaster.DriverEnv
	log *slog.Logger
	wg  sync.WaitGroup // one goroutine an agent

	// Guarded by mu.
	mu      sync.Mutex
	started int                          // agents so far
	agents  map[cluster.AgentID]*process // those that run
	stopped bool
}

// process is an agent that runs or is about to.
type process struct {
	stop   context.CancelFunc // SIGTERM, and SIGKILL after the grace
	wanted bool               // it was told to stop; guarded by Driver.mu
	proc   *os.Process        // nil until it is started; guarded by Driver.mu
}

// New returns a driver.
func New(cfg Config) (*Driver, error) {
	if cfg.Executable == "" {
		exe, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("cannot find this program: %w", err)
		}
		cfg.Executable = exe
	}
	if cfg.Grace == 0 {
		cfg.Grace = 5 * time.Second
	}
	return &Driver{cfg: cfg, agents: map[cluster.AgentID]*process{}}, nil
}

// Start implements appmaster.Driver.
func (d *Driver) Start(env appmaster.DriverEnv) error {
	d.env, d.log = env, env.Logger
	if err := os.MkdirAll(filepath.Join(env.AppDir, "agents"), 0o700); err != nil {
		return fmt.Errorf("cannot make the agents' directory: %w", err)
	}
	return nil
}

// Ask implements appmaster.Driver. What was asked for is granted at once.
func (d *Driver) Ask(total int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.started < total && !d.stopped {
		d.started++
		n := d.started
		ctx, cancel := context.WithCancel(context.Background())
		p := &process{stop: cancel}
		d.agents[agentID(n)] = p
		d.wg.Go(func() {
			defer cancel()
			d.run(ctx, n, p)
		})
	}
}

func agentID(n int) cluster.AgentID { return cluster.AgentID("agent-" + strconv.Itoa(n)) }

// Return implements appmaster.Driver.
func (d *Driver) Return(id cluster.AgentID, lost bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.agents[id]
	if p == nil {
		return
	}
	p.wanted = true
	if lost && p.proc != nil {
		_ = p.proc.Kill()
	}
	p.stop()
}

// Stop implements appmaster.Driver.
func (d *Driver) Stop(ctx context.Context) {
	d.mu.Lock()
	d.stopped = true
	for _, p := range d.agents {
		p.wanted = true
		p.stop()
	}
	d.mu.Unlock()
	// When ctx ends first, its goroutine kills; if it does not, AfterFunc's stop keeps it from running.
	unhook := context.AfterFunc(ctx, d.killAll)
	d.wg.Wait()
	unhook()
}

func (d *Driver) killAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.agents {
		if p.proc != nil {
			_ = p.proc.Kill()
		}
	}
}

// run is the goroutine of agent n, from its grant to its end.
func (d *Driver) run(ctx context.Context, n int, p *process) {
	// The kernel's parent-death signal goes by the thread that made the child: it must live as long as the child.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	id := agentID(n)
	d.env.Granted(id, cluster.ContainerID(id), "localhost")
	dir := filepath.Join(d.env.AppDir, "agents", strconv.Itoa(n))
	err := d.execute(ctx, id, dir, p)
	d.mu.Lock()
	wanted := p.wanted
	delete(d.agents, id)
	d.mu.Unlock()
	d.env.Exited(appmaster.AgentExit{Agent: id, Reason: describe(err), Blame: !wanted, LastLogs: lastlines.Of(filepath.Join(dir, LogFile), lastLines), Status: status(err)})
}

// LogFile is the name of an agent's log in its directory.
const LogFile = "log"

// lastLines is how many of an agent's last lines are reported.
const lastLines = 20

func (d *Driver) execute(ctx context.Context, id cluster.AgentID, dir string, p *process) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("cannot make the agent's directory: %w", err)
	}
	secrets, err := d.env.Secrets(id, cluster.ContainerID(id))
	if err != nil {
		return err
	}
	path := filepath.Join(dir, ctl.SecretsFile)
	if err := secrets.Write(path); err != nil {
		return err
	}
	defer os.Remove(path)
	log, err := os.OpenFile(filepath.Join(dir, LogFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("cannot open the agent's log: %w", err)
	}
	defer log.Close()
	cmd := d.command(ctx, id, dir)
	cmd.Stdout, cmd.Stderr = log, log
	if d.cfg.Stdout != nil {
		cmd.Stdout = d.cfg.Stdout
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cannot start %s: %w", d.cfg.Executable, err)
	}
	d.mu.Lock()
	p.proc = cmd.Process
	d.mu.Unlock()
	d.log.Debug("started an agent", "agent", id, "pid", cmd.Process.Pid)
	return cmd.Wait()
}

func (d *Driver) command(ctx context.Context, id cluster.AgentID, dir string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, d.cfg.Executable, d.cfg.Args...)
	cmd.Args[0] = os.Args[0] // what people see in a list of processes
	cmd.Env = append(append([]string(nil), d.cfg.Env...),
		"HEDDLE_ROLE=agent", "HEDDLE_APP_DIR="+d.env.AppDir, "HEDDLE_AGENT_DIR="+dir, "HEDDLE_AGENT_ID="+string(id))
	cmd.Env = append(cmd.Env, d.env.Environ...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = d.cfg.Grace
	cmd.SysProcAttr = dieWithParent()
	return cmd
}

// status is a process's exit status, as shells have it; nil if it did not start.
func status(err error) *int {
	code := 0
	if err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			return nil
		}
		code = exit.ExitCode()
		if w, ok := exit.Sys().(syscall.WaitStatus); ok && w.Signaled() {
			code = 128 + int(w.Signal())
		}
	}
	return &code
}

// describe says how a process ended.
func describe(err error) string {
	exit, ok := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return "it ended (exit status 0)"
	case !ok:
		return err.Error()
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return fmt.Sprintf("killed by signal %d (%s)", int(status.Signal()), status.Signal())
	}
	return fmt.Sprintf("exit status %d", exit.ExitCode())
}
