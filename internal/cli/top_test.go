package cli

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
)

func topSnapshot(state string) *appmaster.Snapshot {
	now := time.UnixMilli(100_000)
	mark, end := int64(98_000), int64(1<<62)
	return &appmaster.Snapshot{App: "app-1", Job: "clicks\x1b[31m", State: state, Time: now, Since: now.Add(-time.Minute), Slots: appmaster.SlotCounts{Total: 4, Free: 1},
		Vertices: []appmaster.Vertex{{Name: "read", Parallelism: 2, Tasks: map[string]int{"running": 2}, OutRate: 1234, Busy: .5, Blocked: .25, Watermark: &mark}, {Name: "count", Watermark: &end}},
		Sources:  []appmaster.Source{{Splits: []appmaster.Split{{ID: "t-0", Position: 5, End: 7}, {ID: "t-1", Position: 5, End: 5000}, {ID: "t-2", Position: -1, End: -1}}}},
		Agents:   []appmaster.Agent{{ID: "agent-1", Host: "h1", State: "alive", RSS: 64 << 20, Slots: []appmaster.Slot{{Job: "app-1"}, {}}}}}
}

func TestTopLines(t *testing.T) {
	text := strings.Join(topLines(&terminal{width: 120}, topSnapshot("running")), "\n")
	for _, want := range []string{"running for 1m0s", "slots 3 of 4 used", "1,234/s", "██████▒▒▒···", "50%", "25%", "2s", "end", "4,995", "64 MiB", "1/2"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	hostile := topSnapshot("run\x1b[1m")
	hostile.App = "app\x1b[2J"
	text += strings.Join(topLines(&terminal{width: 120}, hostile), "\n")
	if strings.Contains(text, "\x1b") {
		t.Errorf("a name of the job's draws on the screen: %q", text)
	}
	if strings.Index(text, "t-1") > strings.Index(text, "t-0") || strings.Contains(text, "t-2") {
		t.Errorf("the splits are not those that are furthest behind, first:\n%s", text)
	}
}

// TestTopOfASource: a source has no input with a rate, so none is shown; 0/s would say that it stands still.
func TestTopOfASource(t *testing.T) {
	snap := topSnapshot("running")
	snap.Vertices = snap.Vertices[:1]
	snap.Vertices[0].Operators = []appmaster.Operator{{Kind: "source"}}
	if text := strings.Join(topLines(&terminal{width: 120}, snap), "\n"); strings.Contains(text, " 0/s") {
		t.Errorf("a rate of a source's input:\n%s", text)
	}
}

// TestTopNarrow: in a narrow terminal names are cut and columns left out, and no figure is cut in half.
func TestTopNarrow(t *testing.T) {
	snap := topSnapshot("running")
	snap.Vertices[0].Name = strings.Repeat("名前 → ", 100) + "end"
	snap.Agents[0].Host = strings.Repeat("host.", 50)
	for width, want := range map[int][]string{60: {"1,234/s", "50%", "25%", "2s", "alive", "64 MiB"}, 80: {"1,234/s", "2 running", "2s"}, 120: {"1,234/s", "██████▒▒▒···", "2s"}} {
		lines := topLines(&terminal{width: width, tty: true}, snap)
		for _, line := range lines {
			if n := columns(line); n >= width {
				t.Errorf("in %d columns a line takes %d: %s", width, n, line)
			}
		}
		for _, w := range want {
			if !strings.Contains(strings.Join(lines, "\n"), w) {
				t.Errorf("no %q in %d columns:\n%s", w, width, strings.Join(lines, "\n"))
			}
		}
	}
	if text := strings.Join(topLines(&terminal{width: 60}, snap), "\n"); !strings.Contains(text, snap.Vertices[0].Name) {
		t.Error("names are cut in a pipe too")
	}
}

// TestTop: it ends with the application, and gives one up that does not answer any more.
func TestTop(t *testing.T) {
	var out bytes.Buffer
	s := &session{env: Env{Program: "heddle"}, out: &terminal{w: &out, width: 100, height: 50}}
	states := []string{"running", "running", "finished"}
	err := s.top(t.Context(), "app-1", func(context.Context) (*appmaster.Snapshot, error) {
		next := states[0]
		states = states[1:]
		return topSnapshot(next), nil
	}, false, time.Microsecond)
	if err != nil || len(states) != 0 || !strings.Contains(out.String(), "finished") {
		t.Errorf("%v, with %q not shown; it shows\n%s", err, states, &out)
	}
	states = []string{"running"}
	out.Reset()
	err = s.top(t.Context(), "app-1", func(context.Context) (*appmaster.Snapshot, error) {
		if len(states) == 0 {
			return nil, precondition(&ended{"app-1", "failed", "no\x1b disk"})
		}
		states = nil
		return topSnapshot("running"), nil
	}, false, time.Microsecond)
	if text := out.String(); err != nil || !strings.Contains(text, "app-1 has ended: failed") || !strings.Contains(text, "cause: no") || strings.Contains(text, "no\x1b") {
		t.Errorf("of one that left between two looks: %v, it shows\n%s", err, text)
	}
	asked := 0
	err = s.top(t.Context(), "app-1", func(context.Context) (*appmaster.Snapshot, error) {
		asked++
		return nil, errors.New("refused")
	}, false, time.Microsecond)
	if e, ok := errors.AsType[*exitError](err); !ok || e.code != exitUnreachable || asked < 2 {
		t.Errorf("after %d questions: %v", asked, err)
	}
}
