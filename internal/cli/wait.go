package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/internal/history"
)

// waitLocal waits for the end of an application of this host.
func (s *session) waitLocal(ctx context.Context, args []string) error {
	c, err := s.load()
	if err != nil {
		return err
	}
	app, err := s.appArg(args)
	if err != nil {
		return err
	}
	limit := c.Duration("timeout")
	if limit > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, limit)
		defer stop()
	}
	status := []string{"to see how it goes: " + s.env.Program + " status " + app.id}
	var last appmaster.Result
	for app.alive() {
		_ = app.readJSON(resultFile, &last) // not there yet, or not any more: then nothing changes
		select {
		case <-ctx.Done():
			return &exitError{exitTimeout, fmt.Errorf("the time limit of %s passed; %s still runs", limit, app.id), status}
		case <-s.env.Signals:
			return &exitError{exitTimeout, fmt.Errorf("interrupted; %s goes on", app.id), status}
		case <-time.After(20 * time.Millisecond):
		}
	}
	st := stateAtEnd(ctx, app, last)
	switch st.State {
	case "finished":
		_, err := fmt.Fprintf(s.env.Stdout, "%s\t%s\n", app.id, st.State)
		return err
	case "canceled":
		return &exitError{exitCancelled, errors.New("the job was cancelled"), nil}
	case stateGone:
		return precondition(fmt.Errorf("%s has ended, and its client removed its directory: it finished or was cancelled", app.id),
			"to know which, let reports be written (history.max-count), or keep the directory: "+s.env.Program+" run --keep")
	}
	err = fmt.Errorf("%s: %s", app.id, st.State)
	if st.Cause != nil {
		err = fmt.Errorf("%w: %s", err, printable(st.Cause.Message))
	}
	return failed(err, fmt.Sprintf("all logs: %s logs %s -n 0", s.env.Program, app.id))
}

// removalTime is within what a client removes the directory of an application that has ended.
const removalTime = 2 * time.Second

// stateGone is the state of an application that has ended and left nothing: it finished or was cancelled, since the directory of one that died or failed is kept.
const stateGone = "gone"

// stateAtEnd is the state of an application that was there a moment ago and has ended. A client that waits for it removes its directory then, and with it the
// result; that may have been seen before, or is in the application's report.
func stateAtEnd(ctx context.Context, app appDir, seen appmaster.Result) appState {
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		st := stateOf(ctx, app, false)
		if st.State != "died" {
			return st
		}
		if seen.State != "" {
			st.Job, st.State, st.Cause = seen.Job, seen.State, seen.Cause
			return st
		}
		_, err := os.Stat(app.path)
		if errors.Is(err, fs.ErrNotExist) {
			return reportedState(ctx, app, st)
		}
		if time.Since(begun) > removalTime {
			return st
		}
	}
}

// reportedState is the state by the report of an application whose directory was removed.
func reportedState(ctx context.Context, app appDir, st appState) appState {
	st.State = stateGone
	if r, err := readReport(ctx, history.Dir(filepath.Join(filepath.Dir(app.path), historyDir)), app.id); err == nil && r.Complete {
		st.Job, st.State = r.Job, r.State
		if r.Snapshot != nil {
			st.Cause = r.Snapshot.Cause
		}
	}
	return st
}

// killLocal kills the processes of an application of this host: its ApplicationMaster, whose agents end with it.
func (s *session) killLocal(ctx context.Context, args []string) error {
	app, err := s.appArg(args)
	if err != nil {
		return err
	}
	if !app.alive() {
		return precondition(fmt.Errorf("%s has ended already: %s", app.id, stateOf(ctx, app, false).State))
	}
	var addr appmaster.Addr
	if err := app.readJSON(addrFile, &addr); err != nil || addr.PID <= 1 {
		return precondition(fmt.Errorf("cannot kill %s: its ApplicationMaster is not up yet", app.id), s.env.Program+" cancel "+app.id)
	}
	if err := syscall.Kill(addr.PID, syscall.SIGKILL); err != nil {
		return failed(fmt.Errorf("cannot kill %s: %w", app.id, err))
	}
	for deadline := time.Now().Add(cancelWait); app.alive(); {
		if time.Now().After(deadline) {
			return &exitError{exitTimeout, fmt.Errorf("%s has not ended within %s", app.id, cancelWait), nil}
		}
		time.Sleep(20 * time.Millisecond)
	}
	_, err = fmt.Fprintf(s.env.Stdout, "%s\tkilled\n", app.id)
	return err
}
