package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/conf"
	"github.com/heddle-stream/heddle/yarnclient"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
	"github.com/spf13/cobra"
)

// onYARN is the application on YARN that the arguments of a verb name; ok is false if they name none.
func onYARN(args []string) (id yarnid.Application, ok bool) {
	if len(args) == 0 || !strings.HasPrefix(args[0], "application_") {
		return id, false
	}
	id, err := yarnid.ParseApplication(args[0])
	return id, err == nil
}

// withYARN opens the cluster for an application there.
func (s *session) withYARN(do func(*conf.Config, *hadoop) error) error {
	c, err := s.load()
	if err != nil {
		return err
	}
	h, err := s.openHadoop(c)
	if err != nil {
		return err
	}
	defer h.close()
	return do(c, h)
}

// yarnReport is what YARN says of an application.
type yarnReport struct {
	State       string   `json:"state"`
	Final       string   `json:"final_status"`
	Queue       string   `json:"queue"`
	User        string   `json:"user"`
	Tags        []string `json:"tags,omitempty"`
	Tracking    string   `json:"tracking_url,omitempty"`
	Diagnostics string   `json:"diagnostics,omitempty"`
	Containers  int      `json:"containers"`
	MemoryMB    int64    `json:"memory_mb"`
	VCores      int64    `json:"vcores"`
}

// yarnState is how an application is by YARN's report.
func yarnState(a yarnclient.App) appState {
	st := appState{ID: a.ID, Job: a.Name, Started: a.Started, Web: a.TrackingURL, YARN: &yarnReport{
		State: a.State, Final: a.FinalStatus, Queue: a.Queue, User: a.User, Tags: a.Tags, Tracking: a.TrackingURL, Diagnostics: a.Diagnostics,
		Containers: a.Containers, MemoryMB: a.MemoryMB, VCores: a.VCores,
	}}
	if a.Ended() {
		st.Ended = &a.Finished
	}
	switch {
	case a.State == yarnclient.StateFinished && a.FinalStatus == "SUCCEEDED":
		st.State = "finished"
	case a.State == yarnclient.StateFinished && a.FinalStatus == "KILLED":
		st.State = "canceled"
	case a.State == yarnclient.StateFinished:
		st.State = "failed"
	default:
		st.State = strings.ToLower(a.State)
	}
	if a.State == yarnclient.StateAccepted {
		st.Waiting = waitReason(a.Diagnostics)
	}
	return st
}

// listYARN lists the cluster's applications of Heddle, newest first.
func (s *session) listYARN(ctx context.Context, all, asJSON bool) error {
	return s.withYARN(func(_ *conf.Config, h *hadoop) error {
		f := yarnclient.Filter{Types: []string{appType}}
		if !all {
			f.States = []string{"NEW", "NEW_SAVING", "SUBMITTED", yarnclient.StateAccepted, yarnclient.StateRunning}
		}
		apps, err := h.rm.Apps(ctx, f)
		if err != nil {
			return yarnError(err)
		}
		slices.SortFunc(apps, func(a, b yarnclient.App) int {
			return cmp.Or(b.Started.Compare(a.Started), strings.Compare(b.ID, a.ID))
		})
		states := make([]appState, 0, len(apps))
		for _, a := range apps {
			states = append(states, yarnState(a))
		}
		if asJSON {
			return s.out.json(states)
		}
		return s.printYARNApps(states)
	})
}

func (s *session) printYARNApps(states []appState) error {
	rows := make([][]string, 0, len(states))
	for _, st := range states {
		end := time.Now()
		if st.Ended != nil {
			end = *st.Ended
		}
		rows = append(rows, []string{st.ID, dash(printable(st.Job)), st.State, printable(st.YARN.User), dash(printable(st.YARN.Queue)), fmt.Sprint(st.YARN.Containers), st.Started.Format(clock), end.Sub(st.Started).Round(time.Second).String()})
	}
	if len(rows) == 0 && s.out.tty {
		_, err := fmt.Fprintln(s.env.Stdout, "no applications of Heddle on this cluster")
		return err
	}
	return s.out.table([]string{"APPLICATION", "JOB", "STATE", "USER", "QUEUE", "CONTAINERS", "STARTED", "FOR"}, rows)
}

// statusYARN shows how an application on YARN is doing: what its ApplicationMaster says, if that can be asked, and YARN's report.
func (s *session) statusYARN(ctx context.Context, id yarnid.Application, asJSON bool) error {
	return s.withYARN(func(_ *conf.Config, h *hadoop) error {
		a, err := h.app(ctx, id)
		if err != nil {
			return yarnError(err)
		}
		st := yarnState(a)
		var silent error
		if a.State == yarnclient.StateRunning {
			f := newFollower(h, id, "")
			defer f.close()
			f.address(ctx, a)
			snap, err := f.snapshot(ctx)
			if silent = err; err == nil {
				st.State, st.Cause, st.Agents, st.Waiting, st.Snapshot = snap.State, snap.Cause, len(snap.Agents), snap.Waiting, snap
			}
		}
		if asJSON {
			err = s.out.json(st)
		} else {
			err = s.printYARNStatus(st)
		}
		if err == nil && silent != nil {
			return s.masterSaidNothing(h, id, silent)
		}
		return err
	})
}

// masterSaidNothing tells why there is no word of an ApplicationMaster beside YARN's report: it does not answer, or it does, and refuses.
func (s *session) masterSaidNothing(h *hadoop, id yarnid.Application, err error) error {
	if e, ok := errors.AsType[*answerError](err); ok {
		switch e.code {
		case http.StatusUnauthorized: // it was asked directly, as the proxy can't be reached
			_, err := fmt.Fprintln(s.env.Stderr, "heddle: the job's own figures are to be had through the ResourceManager's web proxy alone, which can't be reached from here")
			return err
		case http.StatusForbidden:
			return precondition(fmt.Errorf("the ApplicationMaster of %s does not let %s see the job: %w", id, h.user, e), allowView)
		}
	}
	return h.silentMaster(id, err)
}

// silentMaster says that an ApplicationMaster did not answer, and what YARN makes of it.
func (h *hadoop) silentMaster(id yarnid.Application, err error) error {
	hints := []string{"its log: heddle logs " + id.String()}
	if limit := h.masterExpiry(); limit > 0 {
		hints = append([]string{fmt.Sprintf("YARN gives it up if it hears nothing of it for %s (yarn.am.liveness-monitor.expiry-interval-ms); to end it now: heddle kill %s", limit, id)}, hints...)
	}
	return unreachable(fmt.Errorf("YARN says that %s runs, but its ApplicationMaster does not answer: %w", id, err), hints...)
}

func (s *session) printYARNStatus(st appState) error {
	y := st.YARN
	lines := []string{fmt.Sprintf("%s  %s  %s, started %s", st.ID, dash(printable(st.Job)), s.out.paint(stateColour(st.State), st.State), st.Started.Format(clock)),
		fmt.Sprintf("user %s, queue %s, %d containers with %d MB and %d cores", printable(y.User), dash(printable(y.Queue)), y.Containers, y.MemoryMB, y.VCores)}
	if st.Waiting != "" {
		lines = append(lines, "waiting: "+printable(st.Waiting))
	}
	switch {
	case st.Cause != nil:
		lines = append(lines, "cause: "+printable(st.Cause.Message))
	case y.Diagnostics != "" && st.Waiting == "" && st.Ended != nil:
		lines = append(lines, "YARN says: "+printable(y.Diagnostics))
	}
	switch {
	case y.Tracking == "" || y.Tracking == "N/A":
	case st.Ended != nil:
		lines = append(lines, "YARN's page "+y.Tracking)
	default:
		lines = append(lines, "dashboard "+y.Tracking)
	}
	if st.Snapshot != nil {
		if text := tokensLine(st.Snapshot); text != "" {
			lines = append(lines, text)
		}
	}
	if _, err := fmt.Fprintln(s.env.Stdout, strings.Join(lines, "\n")); err != nil || st.Snapshot == nil {
		return err
	}
	return s.printSnapshot(st.Snapshot)
}

// cancelYARN asks the ApplicationMaster to cancel the job, or YARN to end the application if that can't be asked or hard is set, and waits for the end.
func (s *session) cancelYARN(ctx context.Context, id yarnid.Application, hard bool) error {
	return s.withYARN(func(c *conf.Config, h *hadoop) error {
		a, err := h.app(ctx, id)
		if err != nil {
			return yarnError(err)
		}
		if a.Ended() {
			return precondition(fmt.Errorf("%s has ended already: %s", id, yarnState(a).State))
		}
		limit := cmp.Or(c.Duration("timeout"), cancelWait)
		ctx, stop := context.WithTimeout(ctx, limit)
		defer stop()
		f := newFollower(h, id, "")
		defer f.close()
		if !hard && a.State == yarnclient.StateRunning {
			f.address(ctx, a)
			err = f.cancel(ctx)
		} else {
			err = h.rm.Kill(ctx, id, "killed by "+h.user)
		}
		if err != nil && ctx.Err() == nil {
			return h.mayNot(a, err)
		}
		if a, err = s.awaitYARN(ctx, h, id); err != nil {
			return err
		}
		if a.State != yarnclient.StateFinished && a.User == h.user {
			if store, f, err := h.openStore(); err == nil { // its master could not
				err = errors.Join(store.RemoveApplication(id.String()), f.Close())
				if err != nil {
					fmt.Fprintf(s.env.Stderr, "heddle: warning: cannot remove the application's files from HDFS: %v\n", err)
				}
			}
		}
		_, err = fmt.Fprintf(s.env.Stdout, "%s\t%s\n", id, yarnState(a).State)
		return err
	})
}

// awaitYARN waits until an application is over.
func (s *session) awaitYARN(ctx context.Context, h *hadoop, id yarnid.Application) (yarnclient.App, error) {
	for {
		a, err := h.rm.App(ctx, id)
		if err == nil && a.Ended() {
			return a, nil
		}
		if err != nil && ctx.Err() == nil {
			return a, yarnError(err)
		}
		select {
		case <-ctx.Done():
			return a, &exitError{exitTimeout, fmt.Errorf("%s has not ended yet", id), []string{"to see how it goes: " + s.env.Program + " status " + id.String()}}
		case <-s.env.Signals:
			return a, &exitError{exitCancelled, errors.New("interrupted; the cancellation goes on"), nil}
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// killCommand ends an application at once.
func (s *session) killCommand() *cobra.Command {
	return &cobra.Command{
		Use: "kill app", Short: "End an application at once, without waiting for its tasks", Args: exactArgs(1, "the id of an application"), ValidArgsFunction: s.completeApp(false),
		Long: `End an application at once: YARN kills its containers; on this host, its processes are killed. Tasks get no time to finish
what they do. To let them, use cancel.`,
		Example: "  heddle kill application_1767225600000_0001",
		RunE: func(cmd *cobra.Command, args []string) error {
			if id, ok := onYARN(args); ok {
				return s.cancelYARN(cmd.Context(), id, true)
			}
			return s.killLocal(cmd.Context(), args)
		},
	}
}

// waitCommand waits for the end of an application.
func (s *session) waitCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use: "wait [app]", Short: "Wait until an application ends", Args: maxArgs(1), ValidArgsFunction: s.completeApp(false),
		Long: `Wait until an application ends, showing how it goes, and end as its run would have: with the same exit codes. An interrupt ends the
wait, not the application; so does --timeout. Without an id: the newest that runs on this host; with the target yarn, your only one on
the cluster.`,
		Example: "  heddle wait application_1767225600000_0001\n  heddle wait --timeout 1h application_1767225600000_0001 && echo done",
		RunE: func(cmd *cobra.Command, args []string) error {
			id, ok, err := s.yarnArg(cmd.Context(), args)
			if err != nil {
				return err
			}
			if ok {
				return s.waitYARN(cmd.Context(), id, f)
			}
			return s.waitLocal(cmd.Context(), args)
		},
	}
	cmd.Flags().BoolVar(&f.json, "json", false, "print the result as JSON when the job has ended (of an application on YARN)")
	cmd.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "print nothing but errors")
	return cmd
}

func (s *session) waitYARN(ctx context.Context, id yarnid.Application, f runFlags) error {
	return s.withYARN(func(c *conf.Config, h *hadoop) error {
		a, err := h.app(ctx, id)
		if err != nil {
			return yarnError(err)
		}
		s.onSignal = "detach"
		r := &yarnRun{s: s, h: h, id: id, flags: f, progress: newProgress(s, a.Name, id.String(), f.quiet, nil)}
		return r.attend(ctx, newFollower(h, id, "").attach(), c.Duration("timeout"))
	})
}
