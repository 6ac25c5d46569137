package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/appmaster/plane"
	"github.com/spf13/cobra"
)

// appState is what is known of an application, running or ended.
type appState struct {
	ID       string              `json:"id"`
	Job      string              `json:"job"`
	State    string              `json:"state"` // as in the REST API; starting, unreachable, died
	Started  time.Time           `json:"started"`
	Ended    *time.Time          `json:"ended,omitempty"`
	Agents   int                 `json:"agents"`
	Web      string              `json:"web,omitempty"`
	Dir      string              `json:"dir,omitempty"` // on this host
	Cause    *appmaster.Cause    `json:"cause,omitempty"`
	Waiting  string              `json:"waiting,omitempty"`
	YARN     *yarnReport         `json:"yarn,omitempty"` // of an application there
	Snapshot *appmaster.Snapshot `json:"snapshot,omitempty"`
}

// stateOf finds out how an application is. With full, the whole snapshot of a running one is kept.
func stateOf(ctx context.Context, app appDir, full bool) appState {
	st := appState{ID: app.id, Dir: app.path, Started: app.started(), State: "died"}
	var result appmaster.Result
	if err := app.readJSON(resultFile, &result); err == nil {
		st.Job, st.State, st.Started, st.Ended, st.Cause = result.Job, result.State, result.Started, &result.Ended, result.Cause
		return st
	}
	if !app.alive() {
		return st
	}
	st.State = "starting"
	c, err := openClient(app)
	if err != nil {
		return st
	}
	defer c.close()
	if st.Web, err = c.address(); err != nil {
		return st
	}
	snap, err := c.snapshot(ctx)
	if err != nil {
		st.State = "unreachable"
		return st
	}
	st.Job, st.State, st.Started, st.Cause, st.Agents, st.Waiting = snap.Job, snap.State, snap.Started, snap.Cause, len(snap.Agents), snap.Waiting
	if full {
		st.Snapshot, st.Web = snap, c.dashboard()
	}
	return st
}

// clock is how moments are shown to people.
const clock = time.DateTime + " MST"

func (s *session) listCommand() *cobra.Command {
	var all, asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List applications: of this host, or of a cluster", Args: exactArgs(0, ""),
		Long: "List the applications of this host that run; with --all also those that ended and whose directory was kept: of those that failed,\n" +
			"were started with --detach or run with --keep, the newest 10. With the target yarn, list the cluster's applications of Heddle.",
		Example: "  heddle list\n  heddle list --all --json\n  heddle list --target yarn",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := s.load()
			if err != nil {
				return err
			}
			if c.Text("target") == "yarn" {
				return s.listYARN(cmd.Context(), all, asJSON)
			}
			dir, err := s.stateDir(c)
			if err != nil {
				return err
			}
			apps, err := listApps(dir)
			if err != nil {
				return err
			}
			states := []appState{}
			for _, app := range apps {
				if all || app.alive() {
					states = append(states, stateOf(cmd.Context(), app, false))
				}
			}
			if asJSON {
				return s.out.json(states)
			}
			return s.printApps(states)
		},
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "also those that ended")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (s *session) printApps(states []appState) error {
	rows := make([][]string, 0, len(states))
	for _, st := range states {
		end := time.Now()
		if st.Ended != nil {
			end = *st.Ended
		}
		rows = append(rows, []string{st.ID, dash(st.Job), st.State, st.Started.Format(clock), end.Sub(st.Started).Round(time.Second).String()})
	}
	if len(rows) == 0 && s.out.tty {
		_, err := fmt.Fprintln(s.env.Stdout, "no applications")
		return err
	}
	return s.out.table([]string{"APPLICATION", "JOB", "STATE", "STARTED", "FOR"}, rows)
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func (s *session) statusCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "status [app]", Short: "Show how an application is doing", Args: maxArgs(1), ValidArgsFunction: s.completeApp(true),
		Long: "Show the state of an application: its vertices with their figures, its agents. Without an id: the newest that runs on this host;\n" +
			"with the target yarn your only one on the cluster, or the list of yours and others'.",
		Example: "  heddle status\n  heddle status heddle-1767225600-1a2b3c4d --json\n  heddle status application_1767225600000_0001",
		RunE: func(cmd *cobra.Command, args []string) error {
			id, ok, err := s.yarnArg(cmd.Context(), args)
			if errors.Is(err, errSeveral) {
				return s.listYARN(cmd.Context(), false, asJSON)
			}
			if err != nil {
				return err
			}
			if ok {
				return s.statusYARN(cmd.Context(), id, asJSON)
			}
			app, err := s.appArg(args)
			if err != nil {
				return err
			}
			st := stateOf(cmd.Context(), app, true)
			if asJSON {
				err = s.out.json(st)
			} else {
				err = s.printStatus(st)
			}
			if err == nil && st.State == "unreachable" {
				return unreachable(fmt.Errorf("the ApplicationMaster of %s does not answer", app.id), s.env.Program+" logs "+app.id)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (s *session) printStatus(st appState) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  %s, started %s\n", st.ID, dash(printable(st.Job)), s.out.paint(stateColour(st.State), printable(st.State)), st.Started.Format(clock))
	if st.Waiting != "" {
		fmt.Fprintf(&b, "waiting: %s\n", printable(st.Waiting))
	}
	if st.Snapshot != nil {
		alignmentLines(&b, st.Snapshot)
	}
	if st.Cause != nil {
		fmt.Fprintf(&b, "cause: %s\n", printable(st.Cause.Message))
	}
	if st.Snapshot == nil {
		fmt.Fprintf(&b, "directory %s\n", st.Dir)
	} else {
		fmt.Fprintf(&b, "dashboard %s\n", st.Web)
	}
	if _, err := fmt.Fprint(s.env.Stdout, b.String()); err != nil || st.Snapshot == nil {
		return err
	}
	return s.printSnapshot(st.Snapshot)
}

// alignmentLines tells where sources stand that wait for each other.
func alignmentLines(b *strings.Builder, snap *appmaster.Snapshot) {
	for _, g := range snap.Alignment {
		fmt.Fprintf(b, "alignment group %s: ", printable(g.Group))
		if g.Mark == nil {
			b.WriteString("there is nobody to wait for\n")
			continue
		}
		fmt.Fprintf(b, "%s, the slowest is %s; %s too far ahead and waiting\n", time.UnixMilli(*g.Mark).UTC().Format(time.RFC3339), printable(g.Slowest), plane.Count(g.Waiting, "split"))
	}
}

// printSnapshot prints the tables of vertices and agents.
func (s *session) printSnapshot(snap *appmaster.Snapshot) error {
	rows := make([][]string, 0, len(snap.Vertices))
	for _, v := range snap.Vertices {
		in, rate := recordsIn(v)
		rows = append(rows, []string{v.Name, fmt.Sprint(v.Parallelism), tasks(v.Tasks), number(in), number(v.RecordsOut), rate, share(v.Busy), share(v.Blocked)})
	}
	err := s.out.table([]string{"VERTEX", "TASKS", "STATE", "IN", "OUT", "RATE", "BUSY", "BLOCKED"}, rows)
	rows = nil
	for _, a := range snap.Agents {
		rows = append(rows, []string{a.ID, a.State, slotsUsed(a), fmt.Sprintf("%d MiB", a.RSS>>20), a.Exchange})
	}
	return errors.Join(err, s.out.table([]string{"AGENT", "STATE", "SLOTS", "MEMORY", "EXCHANGE"}, rows), s.out.table(containerHead, failedContainers(snap)))
}

// slotsUsed is how many of an agent's slots a job holds, of how many.
func slotsUsed(a appmaster.Agent) string {
	used := 0
	for _, slot := range a.Slots {
		if slot.Job != "" {
			used++
		}
	}
	return fmt.Sprintf("%d/%d", used, len(a.Slots))
}

// recordsIn is what a vertex has taken in, and its rate: a source has no input but what it reads.
func recordsIn(v appmaster.Vertex) (n int64, rate string) {
	for _, op := range v.Operators {
		if op.Kind == "source" {
			return op.Counters["records_out"], "-"
		}
	}
	return v.RecordsIn, number(int64(v.InRate)) + "/s"
}

func stateColour(state string) string {
	switch state {
	case "running", "finished":
		return green
	case "failed", "failing", "died", "unreachable":
		return red
	}
	return yellow
}

// tasks says how many tasks are in which state, in the order of progress.
func tasks(by map[string]int) string {
	var parts []string
	for _, state := range []string{"created", "scheduled", "deploying", "running", "canceling", "finished", "canceled", "failed"} {
		if n := by[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
		}
	}
	return strings.Join(parts, ", ")
}

func share(f float64) string { return fmt.Sprintf("%.0f%%", f*100) }

func (s *session) cancelCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "cancel [app]", Short: "Cancel the job of an application", Args: maxArgs(1), ValidArgsFunction: s.completeApp(false),
		Long: `Cancel the job of an application and wait until it has ended; --timeout bounds the wait (45 s if it is not set).
Without an id: the only application that runs. The directory of an application that --detach left to itself is kept,
for its logs and its result but without its secrets; that of one whose client still waits is removed, as with Ctrl-C.
An application on YARN whose ApplicationMaster can't be asked is killed.`,
		Example: "  heddle cancel\n  heddle cancel heddle-1767225600-1a2b3c4d\n  heddle cancel application_1767225600000_0001",
		RunE: func(cmd *cobra.Command, args []string) error {
			id, ok, err := s.yarnArg(cmd.Context(), args)
			if err != nil {
				return err
			}
			if ok {
				return s.cancelYARN(cmd.Context(), id, false)
			}
			return s.cancel(cmd.Context(), args)
		},
	}
	return cmd
}

// cancelWait is for how long a cancellation is waited for: longer than tasks that don't stop are, which is 30 s, and agents
// that don't go.
const cancelWait = 45 * time.Second

func (s *session) cancel(ctx context.Context, args []string) error {
	c, err := s.load()
	if err != nil {
		return err
	}
	app, err := s.appArg(args)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		if err := s.onlyOne(filepath.Dir(app.path)); err != nil {
			return err
		}
	}
	if !app.alive() {
		return precondition(fmt.Errorf("%s has ended already: %s", app.id, stateOf(ctx, app, false).State))
	}
	limit := c.Duration("timeout")
	if limit == 0 {
		limit = cancelWait
	}
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	if err := s.askToCancel(ctx, app); err != nil {
		return err
	}
	var last appmaster.Result
	for app.alive() {
		_ = app.readJSON(resultFile, &last) // not there yet, or not any more: then nothing changes
		select {
		case <-ctx.Done():
			return &exitError{exitTimeout, fmt.Errorf("%s has not ended within %s", app.id, limit), []string{"to see how it goes: " + s.env.Program + " status " + app.id}}
		case <-s.env.Signals:
			return &exitError{exitCancelled, errors.New("interrupted; the cancellation goes on"), nil}
		case <-time.After(20 * time.Millisecond):
		}
	}
	state := stateAtEnd(ctx, app, last).State
	if state == stateGone {
		state = "canceled"
	}
	_, err = fmt.Fprintf(s.env.Stdout, "%s\t%s\n", app.id, state)
	return err
}

// askToCancel tells the ApplicationMaster, unless its application is over and it is about to end.
func (s *session) askToCancel(ctx context.Context, app appDir) error {
	rest, err := openClient(app)
	if err == nil {
		defer rest.close()
		if err = rest.cancel(ctx); err != nil {
			err = unreachable(err, s.env.Program+" logs "+app.id)
		}
	}
	if _, over := os.Stat(app.file(resultFile)); over == nil {
		return nil
	}
	return err
}

// onlyOne refuses to guess which of several running applications is meant.
func (s *session) onlyOne(stateDir string) error {
	apps, err := listApps(stateDir)
	if err != nil {
		return err
	}
	n := 0
	for _, a := range apps {
		if a.alive() {
			n++
		}
	}
	if n > 1 {
		return usage(fmt.Errorf("%d applications run on this host: say which", n), "`"+s.env.Program+" list` shows them")
	}
	return nil
}
