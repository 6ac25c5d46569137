package task

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/heddle-stream/heddle/internal/flow"
)

// recorder keeps controls as text: "w5", "idle", "active", "end".
type recorder struct{ got []string }

func (r *recorder) Control(c flow.Control) error {
	switch c.Kind {
	case flow.Watermark:
		r.got = append(r.got, fmt.Sprint("w", c.Time))
	default:
		r.got = append(r.got, c.Kind.String())
	}
	return nil
}

func TestValve(t *testing.T) {
	for _, tt := range []struct {
		name     string
		channels int
		in       string // channel:control
		want     string
	}{
		{"least of all", 2, "0:w5 1:w3 1:w9", "w3 w5"},
		{"one channel", 1, "0:w5 0:idle 0:active 0:w6 0:end", "w5 idle active w6 end"},
		{"never back", 1, "0:w5 0:w3 0:w5", "w5"},
		{"nothing before all spoke", 3, "0:w5 1:w3", ""},
		{"idle does not hold back", 2, "0:w5 1:idle", "w5"},
		{"idle when all are", 2, "0:idle 1:idle", "idle"},
		{"greatest when the last becomes idle", 2, "0:w5 1:w3 0:idle 1:idle", "w3 w5 idle"},
		{"not when it was ahead", 2, "0:w5 1:w3 1:idle 0:w6 0:idle", "w3 w5 w6 idle"},
		{"active again", 2, "0:idle 1:idle 1:active", "idle active"},
		{"watermark implies active", 1, "0:idle 0:w4", "idle active w4"},
		{"behind takes no part", 2, "0:w5 1:idle 1:active 1:w3 0:w6", "w5 w6"},
		{"behind until it caught up", 2, "0:w5 1:idle 1:active 1:w3 0:w6 1:w7 0:w9", "w5 w6 w7"},
		{"ended does not hold back", 2, "0:w5 1:end 0:w6", "w5 w6"},
		{"end when all ended", 3, "0:end 1:end 1:end 2:end", "end"},
		{"idle and ended", 2, "0:end 1:idle", "idle"},
		{"ended at the end of time does not carry an idle one there", 2, "1:w100 0:w999 0:end 1:idle 1:w200", "w100 idle active w200"},
		{"the end of time waits for an idle one", 2, "0:idle 1:w9223372036854775807 1:end 0:active 0:w9223372036854775807 0:end", "idle active w9223372036854775807 end"},
		{"an idle one that just ends", 2, "0:idle 1:w9223372036854775807 1:end 0:end", "idle w9223372036854775807 end"},
		{"end of time", 2, "0:w999 0:end 1:w999 1:end", "w999 end"},
		{"end after idle", 2, "0:idle 1:w7 1:end 0:end", "w7 idle end"},
		{"nothing after the end", 2, "0:w1 0:end 0:w5 1:w3", "w3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &recorder{}
			v := newValve(r, tt.channels)
			for _, step := range strings.Fields(tt.in) {
				ch, what, _ := strings.Cut(step, ":")
				if err := v.control(int(ch[0]-'0'), parse(t, what)); err != nil {
					t.Fatal(err)
				}
			}
			if got := strings.Join(r.got, " "); got != tt.want {
				t.Errorf("after %s the port got %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

func parse(t *testing.T, what string) flow.Control {
	t.Helper()
	switch what {
	case "idle":
		return flow.Control{Kind: flow.Idle}
	case "active":
		return flow.Control{Kind: flow.Active}
	case "end":
		return flow.Control{Kind: flow.End}
	}
	c := flow.Control{Kind: flow.Watermark}
	if _, err := fmt.Sscanf(what, "w%d", &c.Time); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestValveRefusesBarriers(t *testing.T) {
	if err := newValve(&recorder{}, 1).control(0, flow.Control{Kind: flow.Barrier}); err == nil {
		t.Error("a barrier passed a valve that does not align any")
	}
}

// TestValveMarks: a mark passes when it, or a later one, has come on every channel that has not ended, idle ones included.
func TestValveMarks(t *testing.T) {
	r := &recorder{}
	v := newValve(r, 3)
	for _, step := range []struct {
		ch   int
		c    flow.Control
		want uint64 // the last mark passed on
	}{
		{0, flow.Control{Kind: flow.Mark, ID: 10}, 0},
		{1, flow.Control{Kind: flow.Mark, ID: 12}, 0},
		{2, flow.Control{Kind: flow.Idle}, 0},
		{2, flow.Control{Kind: flow.Mark, ID: 11}, 10},
		{0, flow.Control{Kind: flow.Mark, ID: 20}, 11},
		{2, flow.Control{Kind: flow.End}, 12},
		{1, flow.Control{Kind: flow.Mark, ID: 20}, 20},
		{1, flow.Control{Kind: flow.End}, 20},
		{0, flow.Control{Kind: flow.Mark, ID: 30}, 30},
		{0, flow.Control{Kind: flow.End}, 30},
	} {
		if err := v.control(step.ch, step.c); err != nil {
			t.Fatal(err)
		}
		if v.mark != step.want {
			t.Errorf("after %v of channel %d mark %d has passed, want %d", step.c, step.ch, v.mark, step.want)
		}
	}
}

// TestValveKeepsItsPromises checks on random controls what operators rely on.
func TestValveKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(t, "channels")
		r := &recorder{}
		v := newValve(r, n)
		idle, ended, mark := make([]bool, n), make([]bool, n), make([]int64, n)
		for i := range mark {
			mark[i] = flow.MinTime
		}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			ch := rapid.IntRange(0, n-1).Draw(t, "channel")
			c := flow.Control{Kind: rapid.SampledFrom([]flow.ControlKind{flow.Watermark, flow.Watermark, flow.Watermark, flow.Idle, flow.Active, flow.End}).Draw(t, "kind")}
			if c.Kind == flow.End && rapid.IntRange(0, 3).Draw(t, "rarely") > 0 {
				c.Kind = flow.Watermark
			}
			if c.Kind == flow.Watermark {
				c.Time = int64(rapid.IntRange(0, 20).Draw(t, "time"))
			}
			if !ended[ch] {
				switch c.Kind {
				case flow.Watermark:
					idle[ch], mark[ch] = false, max(mark[ch], c.Time)
				case flow.Idle:
					idle[ch] = true
				case flow.Active:
					idle[ch] = false
				case flow.End:
					ended[ch] = true
				}
			}
			was := v.last
			if err := v.control(ch, c); err != nil {
				t.Fatal(err)
			}
			// The watermark never goes back, and never passes a channel that is active and up with it.
			if v.last < was {
				t.Fatalf("watermark went from %d back to %d", was, v.last)
			}
			least, active, open := flow.MaxTime, 0, 0
			for i := range n {
				if !ended[i] {
					open++
				}
				if !ended[i] && !idle[i] {
					active++
					if mark[i] >= was {
						least = min(least, mark[i])
					}
				}
			}
			if active > 0 && least != flow.MaxTime && v.last != max(was, least) {
				t.Fatalf("watermark is %d, the least of the active channels that caught up is %d", v.last, least)
			}
			if v.idle != (open > 0 && active == 0) && !(v.idle && open == 0) {
				t.Fatalf("port idle %v with %d channels open and %d active", v.idle, open, active)
			}
			if v.ended != (open == 0) {
				t.Fatalf("port ended %v with %d channels open", v.ended, open)
			}
		}
		ends := 0
		for i, s := range r.got {
			if s == "end" {
				ends++
				if i != len(r.got)-1 {
					t.Fatalf("something follows the end: %v", r.got)
				}
			}
		}
		if ends > 1 {
			t.Fatalf("%d ends", ends)
		}
	})
}
