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
	lines  int       // drawn last
	window time.Time // told of last
}

func (s *demoScreen) draw(out *terminal, v demo.View, snap *appmaster.Snapshot, r *running) {
	if out.tty {
		s.redraw(out, demoLines(out, v, snap, r))
		return
	}
	if v.Window.After(s.window) {
		s.window = v.Window
		fmt.Fprintln(out.w, demoLine(v, snap, r))
	}
}

// redraw writes lines over those drawn before.
func (s *demoScreen) redraw(out *terminal, lines []string) {
	var b strings.Builder
	if s.lines > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r\x1b[J", s.lines)
	}
	for _, line := range lines {
		b.WriteString(line + "\n")
	}
	fmt.Fprint(out.w, b.String())
	s.lines = len(lines)
}

// demoLine is the plain form.
func demoLine(v demo.View, snap *appmaster.Snapshot, r *running) string {
	var top []string
	for _, u := range v.Top[:min(3, len(v.Top))] {
		top = append(top, u.User+" "+number(u.Count))
	}
	f := r.progress.figures
	return fmt.Sprintf("window to %s: %s; %s produced, %s read (%s/s), %s counted, lag %s, event time %s",
		v.Window.UTC().Format(time.TimeOnly), strings.Join(top, ", "),
		number(v.Produced), number(f.in), number(int64(f.rate)), number(v.Counted), number(max(0, v.Produced-f.in)), f.lag())
}

func demoLines(out *terminal, v demo.View, snap *appmaster.Snapshot, r *running) []string {
	f := r.progress.figures
	tasks := 0
	for _, vertex := range snap.Vertices {
		tasks += vertex.Tasks["running"]
	}
	state := fmt.Sprintf("%s on %d agents, %d tasks; dashboard %s", snap.State, len(snap.Agents), tasks, r.client.dashboard())
	if snap.State == "canceling" || snap.State == "canceled" {
		state = "ended" // which is how the demo ends, not a cancellation
	} else if lag := f.lag(); lag != "" {
		state += "; event time " + lag
	}
	lines := []string{
		out.paint(bold, "heddle demo") + ": clicks per user, in windows of two seconds of event time",
		state,
		"",
		fmt.Sprintf("produced %s   read %s (%s/s)   counted %s   lag %s",
			number(v.Produced), number(f.in), number(int64(f.rate)), number(v.Counted), number(max(0, v.Produced-f.in))),
		"",
	}
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
