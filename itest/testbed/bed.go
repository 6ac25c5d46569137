package testbed

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Bed owns the services and folders of one test. Everything ends with the test.
type Bed struct {
	t      testing.TB
	dir    string
	reaper *reaper

	mu    sync.Mutex // guards procs
	procs []*Process
}

// New makes a bed. When the test ends its services are killed, last started first, and then whatever else they have started;
// if it failed, their logs are kept in out/itest of the module. A test that is killed leaves no process either.
func New(t testing.TB) *Bed {
	t.Helper()
	dir, err := os.MkdirTemp("", "heddle-itest-*")
	if err != nil {
		t.Fatal(err)
	}
	b := &Bed{t: t, dir: dir, reaper: startReaper(t, dir)}
	t.Cleanup(b.close)
	return b
}

// Dir makes and returns a folder of the bed.
func (b *Bed) Dir(name string) string {
	b.t.Helper()
	d := filepath.Join(b.dir, name)
	if err := os.MkdirAll(d, 0o700); err != nil {
		b.t.Fatal(err)
	}
	return d
}

// File writes a file of the bed and returns its path.
func (b *Bed) File(name, content string) string {
	b.t.Helper()
	p := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(content), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return p
}

// Read returns a file of the bed.
func (b *Bed) Read(name string) string {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(data)
}

func (b *Bed) close() {
	b.mu.Lock()
	procs := b.procs
	b.mu.Unlock()
	for i := len(procs) - 1; i >= 0; i-- {
		procs[i].Kill()
	}
	if b.t.Failed() {
		b.keepLogs()
	}
	if err := b.reaper.end(); err != nil {
		b.t.Errorf("cannot end what the test left: %v", err)
	}
	if err := os.RemoveAll(b.dir); err != nil {
		b.t.Errorf("cannot remove the test's folder: %v", err)
	}
}

func (b *Bed) keepLogs() {
	root, err := ModuleRoot()
	if err != nil {
		return
	}
	to := filepath.Join(root, "out", "itest", strings.ReplaceAll(b.t.Name(), "/", "_"))
	_ = filepath.WalkDir(b.dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !(strings.HasSuffix(p, ".log") || d.Name() == "log" || d.Name() == "result.json") {
			return nil
		}
		rel, _ := filepath.Rel(b.dir, p)
		data, err := os.ReadFile(p)
		if err == nil && os.MkdirAll(filepath.Dir(filepath.Join(to, rel)), 0o755) == nil {
			_ = os.WriteFile(filepath.Join(to, rel), data, 0o644)
		}
		return nil
	})
	b.t.Logf("logs kept in %s", to)
}

// ModuleRoot is the folder of go.mod above the working directory.
func ModuleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod above the working directory")
		}
		dir = up
	}
}

// Spec says how to start a process.
type Spec struct {
	Name string   // names its log file
	Path string   // program
	Args []string // without the program
	Env  []string // beside the test's own
	Dir  string   // working directory; "": the bed's
	// UID, unless 0, is the user and group to run as, with umask 027. It needs a test that runs as root.
	UID uint32
}

// Process is a started program, in a process group of its own.
type Process struct {
	Name string
	Log  string // path of its output, both streams

	bed  *Bed
	cmd  *exec.Cmd
	done chan struct{} // closed after the process has ended
	err  error         // of its end; read after done
}

// Start starts a program; it lives until it ends, is killed, or the test is over.
func (b *Bed) Start(s Spec) *Process {
	b.t.Helper()
	p := &Process{Name: s.Name, Log: filepath.Join(b.dir, s.Name+".log"), bed: b, done: make(chan struct{})}
	out, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		b.t.Fatal(err)
	}
	defer out.Close()
	p.cmd = exec.Command(s.Path, s.Args...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = s.Dir, out, out
	if p.cmd.Dir == "" {
		p.cmd.Dir = b.dir
	}
	p.cmd.Env = b.marked(s.Env...)
	unprivileged(p.cmd, s.UID)
	p.cmd.SysProcAttr.Setpgid = true
	if err := p.cmd.Start(); err != nil {
		b.t.Fatalf("cannot start %s: %v", s.Name, err)
	}
	go func() { p.err = p.cmd.Wait(); close(p.done) }()
	b.mu.Lock()
	b.procs = append(b.procs, p)
	b.mu.Unlock()
	return p
}

// unprivileged makes a command run as a user of no rights, with umask 027; as the test itself for 0.
func unprivileged(cmd *exec.Cmd, uid uint32) {
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if uid == 0 {
		return
	}
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: uid}
	cmd.Args = append([]string{"sh", "-c", `umask 027; exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
}

// Pid is the process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Kill sends SIGKILL to the whole process group and waits for the process.
func (p *Process) Kill() {
	_ = syscall.Kill(-p.Pid(), syscall.SIGKILL)
	<-p.done
}

// Signal sends sig to the process alone.
func (p *Process) Signal(sig syscall.Signal) { _ = p.cmd.Process.Signal(sig) }

// Wait waits until the process ends and returns its exit code; the test fails after the timeout.
func (p *Process) Wait(timeout time.Duration) int {
	p.bed.t.Helper()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(timeout):
		p.bed.t.Fatalf("%s has not ended after %v; its last lines:\n%s", p.Name, timeout, p.Tail(20))
		return -1
	}
}

// Running reports whether the process has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Output is all that the process wrote so far.
func (p *Process) Output() string {
	b, err := os.ReadFile(p.Log)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// Tail is the last lines of the process's output.
func (p *Process) Tail(lines int) string { return tail(p.Output(), lines) }

// Eventually calls ok every 50 ms until it returns nil; the test fails with its last error after the timeout.
func (b *Bed) Eventually(what string, timeout time.Duration, ok func() error) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ok()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			b.t.Fatalf("%s: not after %v: %v", what, timeout, err)
		case <-tick.C:
		}
	}
}

// Run runs a program to its end and returns what it printed on both streams.
func (b *Bed) Run(timeout time.Duration, path string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env = b.dir, b.marked()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("cannot run %s: %w\n%s", filepath.Base(path), err, tail(string(out), 15))
	}
	return string(out), nil
}
