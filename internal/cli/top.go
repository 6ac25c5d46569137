package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/conf"
	"github.com/spf13/cobra"
)

func (s *session) topCommand() *cobra.Command {
	var once bool
	every := time.Second
	cmd := &cobra.Command{
		Use: "top [app]", Short: "Watch an application in the terminal", Args: maxArgs(1), ValidArgsFunction: s.completeApp(false),
		Long: `Watch how an application does: its vertices with their rates and how busy and how blocked they are, its slowest splits and its
agents, drawn anew every second until the application has ended or Ctrl-C. Without an id: the newest that runs here; with the target yarn,
your only one on the cluster.
In a pipe, or with --once, the state is printed once.`,
		Example: "  heddle top\n  heddle top heddle-1767225600-1a2b3c4d --every 5s\n  heddle top --once\n  heddle top application_1767225600000_0001",
		RunE: func(cmd *cobra.Command, args []string) error {
			if every < 100*time.Millisecond {
				return usage(fmt.Errorf("--every %s is less than 100ms", every))
			}
			once := once || !s.out.tty
			id, ok, err := s.yarnArg(cmd.Context(), args)
			if err != nil {
				return err
			}
			if ok {
				return s.withYARN(func(_ *conf.Config, h *hadoop) error {
					f := newFollower(h, id, "")
					defer f.close()
					return s.top(cmd.Context(), id.String(), f.seen, once, every)
				})
			}
			app, err := s.appArg(args)
			if err != nil {
				return err
			}
			if !app.alive() {
				return precondition(fmt.Errorf("%s has ended already: %s", app.id, stateOf(cmd.Context(), app, false).State), s.env.Program+" history "+app.id)
			}
			client, err := openClient(app)
			if err != nil {
				return err
			}
			defer client.close()
			return s.top(cmd.Context(), app.id, func(ctx context.Context) (*appmaster.Snapshot, error) {
				snap, err := client.snapshot(ctx)
				if err != nil && !app.alive() {
					err = s.over(ctx, app)
				}
				return snap, err
			}, once, every)
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "print the state once")
	cmd.Flags().DurationVar(&every, "every", every, "how often to look")
	return cmd
}

// seen is a snapshot, or why there is none: from where the application stands at YARN, while it does not run.
func (f *follower) seen(ctx context.Context) (*appmaster.Snapshot, error) {
	s := f.look(ctx)
	if s.snap == nil && !f.running { // it was not asked before YARN said that it runs
		switch {
		case s.report == nil:
			return nil, s.reportEr
		case s.report.Ended():
			return nil, precondition(&ended{f.id.String(), yarnState(*s.report).State, ""}, "heddle status "+f.id.String())
		}
		if f.h.hidden(*s.report) {
			return nil, f.h.hiddenError(*s.report)
		}
		return nil, fmt.Errorf("%w: its state at YARN is %s; %s", errNotYet, s.report.State, waitReason(s.report.Diagnostics))
	}
	if s.report != nil && f.h.hidden(*s.report) {
		return nil, f.h.hiddenError(*s.report)
	}
	if s.snap == nil && s.snapErr == nil {
		s.snap, s.snapErr = f.snapshot(ctx)
	}
	return s.snap, s.snapErr
}

// errNotYet is of an application that waits for its ApplicationMaster.
var errNotYet = errors.New("does not run yet")

// ended is the error of who asks an application that is over.
type ended struct{ app, state, cause string }

func (e *ended) Error() string { return e.app + " has ended: " + e.state }

// over says that an application of this host is over, and how it went.
func (s *session) over(ctx context.Context, app appDir) error {
	st := stateOf(ctx, app, false)
	e := &ended{app: app.id, state: st.State}
	if st.Cause != nil {
		e.cause = st.Cause.Message
	}
	return precondition(e, s.env.Program+" history "+app.id)
}

// isExit reports whether an error says with which code to exit.
func isExit(err error) bool {
	_, ok := errors.AsType[*exitError](err)
	return ok
}

// topPatience is how many answers in a row may be missing until the application counts as gone.
const topPatience = 5

// top draws what look sees until the application is over. It may leave before it is seen to be, so the last picture stays with a line that tells.
func (s *session) top(ctx context.Context, app string, look func(context.Context) (*appmaster.Snapshot, error), once bool, every time.Duration) error {
	var view redrawn
	var lines []string
	missed, heard := 0, time.Now()
	for {
		snap, err := look(ctx)
		switch {
		case err == nil:
			missed, heard = 0, time.Now()
			s.out.measure()
			lines = topLines(s.out, snap)
			if once {
				_, err := fmt.Fprintln(s.out.w, strings.Join(lines, "\n"))
				return err
			}
			view.redraw(s.out, lines)
			if isFinal(snap.State) {
				return nil
			}
		case ctx.Err() != nil:
			return nil
		case isExit(err):
			if e, ok := errors.AsType[*ended](err); ok && lines != nil {
				view.redraw(s.out, append(endedLines(s.out, e), lines...))
				return nil
			}
			return err
		case errors.Is(err, errNotYet) && !once:
			missed = 0
			view.redraw(s.out, []string{app + " " + printable(err.Error())})
		case denied(err):
			return precondition(fmt.Errorf("the ApplicationMaster of %s does not let you see the job: %w", app, err), allowView)
		case once || missed == topPatience:
			return unreachable(fmt.Errorf("the ApplicationMaster of %s does not answer: %w", app, err), s.env.Program+" status "+app)
		default:
			missed++
			silent := s.out.paint(red, fmt.Sprintf("no answer for %s: ", time.Since(heard).Round(time.Second))) + printable(err.Error())
			view.redraw(s.out, append([]string{silent}, lines...))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.env.Signals:
			return nil
		case <-time.After(every):
		}
	}
}

// endedLines say how an application that was watched went.
func endedLines(out *terminal, e *ended) []string {
	lines := []string{e.app + " has ended: " + out.paint(stateColour(e.state), printable(e.state)) + "; this is what was seen of it last"}
	if e.cause != "" {
		lines = append(lines, out.paint(red, "cause: ")+printable(e.cause))
	}
	return lines
}

// topSplits is how many splits are shown: those that are furthest behind.
const topSplits = 8

// agentCount is so many agents in words.
func agentCount(n int) string {
	if n == 1 {
		return "1 agent"
	}
	return fmt.Sprintf("%d agents", n)
}

// topLines are the lines that show a snapshot.
func topLines(out *terminal, snap *appmaster.Snapshot) []string {
	state := []string{
		out.paint(bold, printable(snap.Job)), printable(snap.App), out.paint(stateColour(snap.State), printable(snap.State)) + " for " + snap.Time.Sub(snap.Since).Round(time.Second).String(),
		fmt.Sprintf("slots %d of %d used", snap.Slots.Total-snap.Slots.Free, snap.Slots.Total), agentCount(len(snap.Agents)),
	}
	lines := fill(state, "   ", out.width-1)
	if snap.Waiting != "" {
		lines = append(lines, out.paint(yellow, "waiting: ")+printable(snap.Waiting))
	}
	if snap.Cause != nil {
		lines = append(lines, out.paint(red, "cause: ")+printable(snap.Cause.Message))
	}
	if text := tokensLine(snap); tokensSoon(snap) {
		lines = append(lines, out.paint(red, text))
	} else if text != "" {
		lines = append(lines, text)
	}
	var rows [][]string
	for _, v := range snap.Vertices {
		_, in := recordsIn(v)
		rows = append(rows, []string{v.Name, tasks(v.Tasks), in, number(int64(v.OutRate)) + "/s", loadBar(v.Busy, v.Blocked), share(v.Busy), share(v.Blocked), behind(snap.Time, v.Watermark)})
	}
	lines = append(append(lines, ""), out.tableLines(out.narrow([]string{"VERTEX", "TASKS", "IN", "OUT", "LOAD", "BUSY", "BLOCKED", "BEHIND"}, rows, 4, 1))...)
	if rows := splitRows(snap); len(rows) > 0 {
		lines = append(append(lines, ""), out.tableLines(out.narrow([]string{"SPLIT", "READER", "POSITION", "TO READ"}, rows))...)
	}
	rows = nil
	for _, a := range snap.Agents {
		rows = append(rows, []string{a.ID, dash(a.Host), a.State, slotsUsed(a), fmt.Sprintf("%d MiB", a.RSS>>20), fmt.Sprintf("%d/%d", a.SegmentsUse, a.Segments)})
	}
	return append(append(lines, ""), out.tableLines(out.narrow([]string{"AGENT", "HOST", "STATE", "SLOTS", "MEMORY", "SEGMENTS"}, rows, 1, 5))...)
}

// leastName is how much of the names in the first column of a table stays, however narrow the terminal is.
const leastName = 16

// narrow makes a table fit a terminal: names are cut, and then the columns spare are left out, in their order. A figure is whole or not there: half of one is another.
func (t *terminal) narrow(head []string, rows [][]string, spare ...int) ([]string, [][]string) {
	if !t.tty {
		return head, rows
	}
	all := append([][]string{head}, rows...)
	for i, row := range all {
		all[i] = clean(row)
	}
	over := func() int {
		sum := 1 - 2
		for i := range all[0] {
			most := 0
			for _, row := range all {
				most = max(most, utf8.RuneCountInString(row[i]))
			}
			sum += most + 2
		}
		return sum - t.width
	}
	names := func(most int) {
		for _, row := range all {
			if name := []rune(row[0]); len(name) > most {
				row[0] = string(name[:most-1]) + "…"
			}
		}
	}
	longest := 0
	for _, row := range all {
		longest = max(longest, utf8.RuneCountInString(row[0]))
	}
	if n := over(); n > 0 {
		names(max(leastName, longest-n))
	}
	for k := 0; k < len(spare) && over() > 0; k++ {
		for i := range all {
			all[i] = slices.Delete(all[i], spare[k], spare[k]+1)
		}
		for j := k + 1; j < len(spare); j++ {
			if spare[j] > spare[k] {
				spare[j]--
			}
		}
	}
	return all[0], all[1:]
}

// loadBar draws the shares of time: busy, blocked, idle.
func loadBar(busy, blocked float64) string {
	const width = 12
	b := min(width, int(busy*width+.5))
	l := min(width-b, int(blocked*width+.5))
	return strings.Repeat("█", b) + strings.Repeat("▒", l) + strings.Repeat("·", width-b-l)
}

// behind is how far a watermark is behind a moment.
func behind(now time.Time, watermark *int64) string {
	if watermark == nil {
		return "-"
	}
	d := now.Sub(time.UnixMilli(*watermark))
	if d < -100*365*24*time.Hour {
		return "end"
	}
	return max(0, d).Round(time.Millisecond * 100).String()
}

// splitRows are the splits with most to read.
func splitRows(snap *appmaster.Snapshot) [][]string {
	var splits []appmaster.Split
	for _, src := range snap.Sources {
		for _, p := range src.Splits {
			if p.End >= 0 && p.Position >= 0 {
				splits = append(splits, p)
			}
		}
	}
	slices.SortStableFunc(splits, func(a, b appmaster.Split) int { return int((b.End - b.Position) - (a.End - a.Position)) })
	var rows [][]string
	for _, p := range splits[:min(topSplits, len(splits))] {
		rows = append(rows, []string{p.ID, fmt.Sprint(p.Subtask), number(p.Position), number(max(0, p.End-p.Position))})
	}
	return rows
}
