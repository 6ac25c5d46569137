package cli

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
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
	for app.alive() {
		select {
		case <-ctx.Done():
			return &exitError{exitTimeout, fmt.Errorf("the time limit of %s passed; %s still runs", limit, app.id), status}
		case <-s.env.Signals:
			return &exitError{exitTimeout, fmt.Errorf("interrupted; %s goes on", app.id), status}
		case <-time.After(50 * time.Millisecond):
		}
	}
	st := stateOf(ctx, app, false)
	switch st.State {
	case "finished":
		_, err := fmt.Fprintf(s.env.Stdout, "%s\t%s\n", app.id, st.State)
		return err
	case "canceled":
		return &exitError{exitCancelled, errors.New("the job was cancelled"), nil}
	}
	err = fmt.Errorf("%s: %s", app.id, st.State)
	if st.Cause != nil {
		err = fmt.Errorf("%w: %s", err, printable(st.Cause.Message))
	}
	return failed(err, fmt.Sprintf("all logs: %s logs %s -n 0", s.env.Program, app.id))
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
