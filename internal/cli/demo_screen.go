package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/internal/demo"
)

// demoScreen shows the state of the demo: a block that is drawn anew on a terminal, a line a window in a pipe.
type demoScreen struct {
	redrawn
	window time.Time // told of last
}

func (s *demoScreen) draw(out *terminal, v demo.View, snap *appmaster.Snapshot, r *running) {
	if out.tty {
		r.progress.clear()
		out.measure()
		s.redraw(out, demoLines(out, v, snap, r))
		return
	}
	if v.Window.After(s.window) {
		s.window = v.Window
		fmt.Fprintln(out.w, demoLine(v, snap, r))
	}
}

// demoFigures are the figures of a moment. What was counted has been read, though the agents report what they
// have read only now and then; what was read has been produced, save the few events that close the last windows.
func demoFigures(v demo.View, r *running) []string {
	f := r.progress.figures
	read := min(max(f.in, v.Counted), v.Produced)
	return []string{
		number(v.Produced) + " produced",
		fmt.Sprintf("%s read (%s/s)", number(read), number(int64(f.rate))),
		number(v.Counted) + " counted",
		"lag " + number(max(0, v.Produced-read)),
	}
}

// demoLine is the plain form.
func demoLine(v demo.View, snap *appmaster.Snapshot, r *running) string {
	var top []string
	for _, u := range v.Top[:min(3, len(v.Top))] {
		top = append(top, u.User+" "+number(u.Count))
	}
	parts := demoFigures(v, r)
	if lag := r.progress.figures.lag(); lag != "" {
		parts = append(parts, "event time "+lag)
	}
	return fmt.Sprintf("window to %s: %s; %s", v.Window.UTC().Format(time.TimeOnly), strings.Join(top, ", "), strings.Join(parts, ", "))
}

func demoLines(out *terminal, v demo.View, snap *appmaster.Snapshot, r *running) []string {
	lines := []string{out.paint(bold, "heddle demo") + ": clicks per user, in windows of two seconds of event time"}
	if snap.State == "canceling" || snap.State == "canceled" {
		lines = append(lines, "ended") // which is how the demo ends, not a cancellation
	} else {
		tasks := 0
		for _, vertex := range snap.Vertices {
			tasks += vertex.Tasks["running"]
		}
		state := []string{fmt.Sprintf("%s on %d agents, %d tasks", snap.State, len(snap.Agents), tasks)}
		if lag := r.progress.figures.lag(); lag != "" {
			state = append(state, "event time "+lag)
		}
		lines = append(lines, fill(state, "; ", out.width-1)...)
		lines = append(lines, "dashboard "+r.client.dashboard())
	}
	lines = append(lines, "")
	lines = append(lines, fill(demoFigures(v, r), "   ", out.width-1)...)
	lines = append(lines, "")
	if len(v.Top) == 0 {
		return append(lines, out.paint(dim, "waiting for the first window to close"))
	}
	most := max(1, v.Top[0].Count)
	rows := make([][]string, 0, len(v.Top))
	for _, u := range v.Top {
		most = max(most, u.Count)
	}
	for _, u := range v.Top {
		rows = append(rows, []string{u.User, number(u.Total), number(u.Count), strings.Repeat("▇", int(u.Count*30/most))})
	}
	return append(lines, out.tableLines([]string{"USER", "CLICKS", "TO " + v.Window.UTC().Format(time.TimeOnly), ""}, rows)...)
}
