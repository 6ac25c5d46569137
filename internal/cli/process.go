package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/heddle-stream/heddle/conf"
)

// File descriptors that the client hands to the ApplicationMaster.
const (
	lockFD  = 3 // the lock of the application's directory
	ownerFD = 4 // read end of a pipe whose other end the client holds; only when HEDDLE_ATTACHED is set
)

// released is what the client writes to the owner pipe when it leaves the application to itself.
// A pipe that ends without it means that the client died: the job is then cancelled.
const released = 'r'

// master is the ApplicationMaster as a child process of the client.
type master struct {
	cmd   *exec.Cmd
	owner *os.File      // write end of the owner pipe; nil when detached
	done  chan struct{} // closed when the process has ended
	err   error         // how; valid after done
}

// startMaster starts the ApplicationMaster of app: this program again, with the same arguments and more environment, in a process
// group of its own, so that Ctrl-C reaches the client alone.
func (s *session) startMaster(app appDir, lock *os.File, attached bool, environ []string) (*master, error) {
	log, err := os.OpenFile(app.file(logFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot create the log of the ApplicationMaster: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(s.env.Executable, s.env.Args...)
	cmd.Env = append(conf.ChildEnviron(s.env.Environ), "HEDDLE_ROLE=appmaster", "HEDDLE_APP_DIR="+app.path)
	cmd.Env = append(cmd.Env, environ...)
	cmd.Args[0] = s.env.Program
	cmd.Stdout, cmd.Stderr = log, log
	if attached {
		cmd.Stdout = s.env.Stdout // for what the job prints
		cmd.WaitDelay = time.Second
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.ExtraFiles = []*os.File{lock}
	m := &master{cmd: cmd, done: make(chan struct{})}
	if attached {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, fmt.Errorf("cannot make a pipe to the ApplicationMaster: %w", err)
		}
		defer r.Close()
		m.owner = w
		cmd.ExtraFiles = append(cmd.ExtraFiles, r)
		cmd.Env = append(cmd.Env, "HEDDLE_ATTACHED=1")
	}
	if err := cmd.Start(); err != nil {
		if m.owner != nil {
			m.owner.Close()
		}
		return nil, fmt.Errorf("cannot start the ApplicationMaster: %w", err)
	}
	go func() { // ends with the process; close waits for it
		m.err = cmd.Wait()
		close(m.done)
	}()
	return m, nil
}

// release leaves the ApplicationMaster to itself.
func (m *master) release() {
	if m.owner != nil {
		m.owner.Write([]byte{released})
		m.owner.Close()
		m.owner = nil
	}
}

// kill ends the process and everything in its group, and waits for it.
func (m *master) kill() {
	syscall.Kill(-m.cmd.Process.Pid, syscall.SIGKILL)
	<-m.done
}

// close gives the ApplicationMaster a moment to end by itself, then kills it.
func (m *master) close(grace time.Duration) {
	if m.owner != nil {
		m.owner.Close()
		m.owner = nil
	}
	select {
	case <-m.done:
	case <-time.After(grace):
	}
	m.kill()
}

// exit says how the process ended.
func (m *master) exit() string {
	if e, ok := errors.AsType[*exec.ExitError](m.err); ok {
		if status, ok := e.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return fmt.Sprintf("killed by signal %d (%s)", int(status.Signal()), status.Signal())
		}
		return fmt.Sprintf("exit code %d", e.ExitCode())
	}
	if m.err != nil {
		return m.err.Error()
	}
	return "exit code 0"
}

// inheritLock keeps the lock that the client handed over from the processes which this one starts,
// and holds it until this process ends.
func inheritLock() { syscall.CloseOnExec(lockFD) }

// watchDir calls lost when the application's directory is no longer what it was: without it, nobody can ask how the
// application is doing or cancel it. It returns when ctx ends.
func (a appDir) watchDir(ctx context.Context, lost func(error)) {
	was, err := os.Stat(a.file(lockFile))
	if err != nil {
		return // it is not locked, as where a cluster's ResourceManager has the client's part
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		is, err := os.Stat(a.file(lockFile))
		if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(was, is) {
			lost(fmt.Errorf("the application's directory %s was removed", a.path))
			return
		}
	}
}

// watchOwner calls lost when the client has gone without releasing this process.
// Its goroutine lives as long as the process: it waits for another process's death and holds nothing.
func watchOwner(lost func()) {
	syscall.CloseOnExec(ownerFD)
	pipe := os.NewFile(ownerFD, "owner")
	go func() {
		b, err := io.ReadAll(pipe)
		if err == nil && !bytes.Contains(b, []byte{released}) {
			lost()
		}
	}()
}
