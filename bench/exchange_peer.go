package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// peer is another process of this program, in one of the roles.
type peer struct {
	// Immutable.
	cmd  *exec.Cmd
	in   io.WriteCloser
	pipe *os.File // its standard output
	out  *json.Decoder
	done chan struct{} // closed once the process has ended

	ended error // how: read after done
}

// The processes as people know them.
var roleNames = map[string]string{
	roleConsumer: "the consumers' process", roleRaw: "the process that reads raw", roleLatency: "the process that receives",
	roleTraced: "the consumers' process", roleCollector: "the collector's process",
}

// peerPatience is how long a process may take to end once it was told to, and a measurement beyond the time that it measures.
const peerPatience = time.Minute

// deathShows is how long it may take until the system says that a process is dead whose connections have ended.
const deathShows = 5 * time.Second

// bounded returns a context for a measurement of d. Whatever the measurement waits for ends with it, and end gives the reason: a process that
// died, a producer that failed, or that all of it takes much too long.
func bounded(ctx context.Context, d time.Duration) (_ context.Context, end context.CancelCauseFunc) {
	limit := d + peerPatience
	ctx, stop := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it is not done after %v: one of its processes is stuck", limit))
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, func(cause error) {
		cancel(cause)
		stop()
	}
}

// reason is why ctx has ended, if it has, else err.
func reason(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && err != nil {
		return cause
	}
	return err
}

// startPeer starts exe, or this program, in a role that reads cfg first. If it dies before close, that is what end is told; if ctx ends, it is killed.
func startPeer(ctx context.Context, end context.CancelCauseFunc, exe, role string, cfg any) (*peer, error) {
	if exe == "" {
		var err error
		if exe, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	pipe, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer out.Close()
	p := &peer{cmd: exec.CommandContext(ctx, exe), pipe: pipe, out: json.NewDecoder(pipe), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), RoleEnv+"="+role)
	p.cmd.Stdout, p.cmd.Stderr = out, os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		pipe.Close()
		return nil, err
	}
	go func() { // ends with the process: close waits for it
		defer close(p.done)
		p.ended = fmt.Errorf("%s (pid %d) ended before it was done", roleNames[role], p.cmd.Process.Pid)
		if err := p.cmd.Wait(); err != nil {
			p.ended = fmt.Errorf("%s (pid %d) died: %w", roleNames[role], p.cmd.Process.Pid, err)
			end(p.ended)
		}
	}()
	if err := json.NewEncoder(p.in).Encode(cfg); err != nil {
		p.close()
		return nil, reason(ctx, err)
	}
	return p, nil
}

// orDeath is end for failures that the process's death may have caused: connections tell of it a little before the system does, and then the death
// is the reason.
func (p *peer) orDeath(end context.CancelCauseFunc) context.CancelCauseFunc {
	return func(cause error) {
		select {
		case <-p.done:
		case <-time.After(deathShows):
		}
		end(cause)
	}
}

// close ends the process by closing its input, or, if it does not heed that, by killing it, and waits for it.
func (p *peer) close() {
	p.in.Close()
	select {
	case <-p.done:
	case <-time.After(peerPatience):
		p.cmd.Process.Kill()
		<-p.done
	}
	p.pipe.Close()
}

// marks samples both processes.
func (p *peer) marks(ctx context.Context) (own, theirs mark, err error) {
	if err := p.ask(ctx); err != nil {
		return own, theirs, err
	}
	own = sample()
	err = p.read(ctx, &theirs)
	return own, theirs, err
}

// end reads what the peer has counted in all.
func (p *peer) end(ctx context.Context) (m mark, err error) {
	for err == nil && !m.Ended {
		err = p.read(ctx, &m)
	}
	return m, err
}

func (p *peer) read(ctx context.Context, m *mark) error {
	if err := p.hear(ctx, m); err != nil {
		return err
	}
	if m.Err != "" {
		return errors.New(m.Err)
	}
	return nil
}

// ask has the peer answer.
func (p *peer) ask(ctx context.Context) error {
	if _, err := io.WriteString(p.in, "\n"); err != nil {
		return p.lost(ctx)
	}
	return nil
}

// hear reads one answer, until ctx ends.
func (p *peer) hear(ctx context.Context, v any) error {
	stop := context.AfterFunc(ctx, func() { p.pipe.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	err := p.out.Decode(v)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, os.ErrDeadlineExceeded) {
		return p.lost(ctx)
	}
	return err
}

// lost is why the peer can't be spoken to.
func (p *peer) lost(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-p.done: // its pipes may have ended a little before it did
		return p.ended
	}
}
