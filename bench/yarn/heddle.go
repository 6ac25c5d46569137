package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const heddleName = "Heddle"

// result is one start.
type result struct {
	phases []phase                  // in their order
	first  time.Duration            // from the command to the first record out
	spent  map[string]time.Duration // processor time until then, by kind of process
	memory map[string]int64         // in use some seconds later, of the largest process of a kind; the client's peak
}

// phase is a part of a start and when it was over, since the command.
type phase struct {
	name string
	at   time.Duration
}

// The phases that are known of both.
const (
	submitted  = "submitted"
	amStarted  = "ApplicationMaster started"
	granted    = "agents granted"
	deployed   = "tasks deployed"
	firstOut   = "first record out"
	registered = "registered with YARN"
)

func (r result) String() string {
	var b strings.Builder
	for _, p := range r.phases {
		fmt.Fprintf(&b, "%s %.2f s; ", p.name, p.at.Seconds())
	}
	fmt.Fprintf(&b, "CPU %.2f s", (r.spent[client] + r.spent[master] + r.spent[agents]).Seconds())
	for _, kind := range []string{master, agents, client} {
		fmt.Fprintf(&b, "; %s %.0f MB", kind, float64(r.memory[kind])/1e6)
	}
	return b.String()
}

// The same job as StartJob's, but for what it does with a key's records: 4,000 records a second, brought together by key, one out for each. Both keep
// something of some thousand keys.
const heddleJob = `name: start
source: { generator: { rate: 4000, record: { n: n } } }
steps:
  - dedupe: { by: [n], within: 1s }
sink: { discard: {} }
`

// parallelism is that of both jobs, on two agents or TaskManagers of two slots each.
const parallelism = 4

// output collects what a process prints, and can be asked meanwhile.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// heddle starts a job by the command and ends it by a signal.
func (c *cluster) heddle(ctx context.Context, settle time.Duration) (r result, err error) {
	job := filepath.Join(c.dir, "start.yaml")
	if err := os.WriteFile(job, []byte(heddleJob), 0o644); err != nil {
		return r, err
	}
	var out output
	cmd := exec.CommandContext(ctx, c.exe, "run", job, "--target", "yarn", "--parallelism", strconv.Itoa(parallelism), "--agent.slots", "2", "--timings")
	cmd.Env, cmd.Stdout, cmd.Stderr = c.env(), &out, &out
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	w := c.watch()
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return r, err
	}
	w.follow(cmd.Process.Pid)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	running := func() bool { return strings.Contains(out.String(), ": running") }
	err = await(ctx, 5*time.Minute, running, ended)
	if err == nil {
		err = pause(ctx, settle+2*time.Second) // the first record comes at once
	}
	app, ok := appIn(out.String())
	if ok {
		r.memory = w.resident(app)
	}
	w.end()
	if err == nil {
		_ = cmd.Process.Signal(syscall.SIGINT)
		err = <-ended
		if exit, is := errors.AsType[*exec.ExitError](err); is && exit.ExitCode() == 6 {
			err = nil // cancelled
		}
	}
	if err != nil || !ok {
		return r, fmt.Errorf("%w: %s", err, out.String())
	}
	if err := r.read(out.String()); err != nil {
		return r, err
	}
	r.spent = w.spent(app, start.Add(r.first))
	return r, nil
}

// timing is a line of what --timings prints.
var timing = regexp.MustCompile(`(?m)^(\S.*?) +(\d+) ms +(\d+) ms$`)

// read takes the phases from what the command printed.
func (r *result) read(out string) error {
	for _, m := range timing.FindAllStringSubmatch(out, -1) {
		ms, err := strconv.Atoi(m[3])
		if err != nil {
			return err
		}
		at := time.Duration(ms) * time.Millisecond
		r.phases = append(r.phases, phase{m[1], at})
		if m[1] == firstOut {
			r.first = at
			return nil
		}
	}
	return fmt.Errorf("no first record in what the command says:\n%s", out)
}

// await waits until something is so, or a process ends.
func await(ctx context.Context, limit time.Duration, is func() bool, ended <-chan error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case err := <-ended:
			return fmt.Errorf("it ended too early: %w", err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
