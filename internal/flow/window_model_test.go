package flow

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// windowModel is what windows mean, slow and obvious: every record in a list of every window it belongs to.
type windowModel struct {
	size, slide, offset, gap, lateness int64 // gap > 0: sessions
	wm                                 int64
	open                               []*modelWindow
	out                                []string
}

type modelWindow struct {
	key        string
	start, end int64
	sum        int64
	fired      bool
}

func (m *windowModel) emit(w *modelWindow) {
	w.fired = true
	m.out = append(m.out, fmt.Sprintf("%s [%d, %d) %d @%d", w.key, w.start, w.end, w.sum, w.end-1))
}

func (m *windowModel) record(e event, t int64) {
	var into []*modelWindow
	if m.gap > 0 {
		into = m.session(e, t)
	} else {
		into = m.windows(e, t)
	}
	if into == nil {
		m.out = append(m.out, fmt.Sprintf("late: %s %d @%d", e.Key, e.N, t))
	}
	for _, w := range into {
		w.sum += e.N
		if w.fired = w.end-1 <= m.wm; w.fired {
			m.emit(w)
		}
	}
}

// windows returns the windows of t that still accept records, empty but not nil if t is in none.
func (m *windowModel) windows(e event, t int64) []*modelWindow {
	into, any := []*modelWindow{}, false
	for start := t - m.size + 1; start <= t; start++ {
		if ((start-m.offset)%m.slide+m.slide)%m.slide != 0 {
			continue
		}
		any = true
		end := start + m.size
		if end-1+m.lateness <= m.wm {
			continue
		}
		i := slices.IndexFunc(m.open, func(w *modelWindow) bool { return w.key == e.Key && w.start == start })
		if i < 0 {
			i = len(m.open)
			m.open = append(m.open, &modelWindow{key: e.Key, start: start, end: end})
		}
		into = append(into, m.open[i])
	}
	if any && len(into) == 0 {
		return nil
	}
	return into
}

// session returns the session of t after merging what it touches.
func (m *windowModel) session(e event, t int64) []*modelWindow {
	s := &modelWindow{key: e.Key, start: t, end: t + m.gap}
	found := false
	m.open = slices.DeleteFunc(m.open, func(w *modelWindow) bool {
		if w.key != e.Key || w.end <= t || w.start >= t+m.gap {
			return false
		}
		found = true
		s.start, s.end, s.sum = min(s.start, w.start), max(s.end, w.end), s.sum+w.sum
		return true
	})
	if !found && s.end-1+m.lateness <= m.wm {
		return nil
	}
	m.open = append(m.open, s)
	return []*modelWindow{s}
}

func (m *windowModel) watermark(wm int64) {
	m.wm = wm
	for _, w := range m.open {
		if !w.fired && w.end-1 <= wm {
			m.emit(w)
		}
	}
	m.open = slices.DeleteFunc(m.open, func(w *modelWindow) bool { return w.end-1+m.lateness <= wm })
}

// Windows of any shape give what the model gives, step by step, but for the order of keys within one step.
func TestWindowsMatchModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &windowModel{wm: -1000, lateness: rapid.SampledFrom([]int64{0, 0, 1, 7, 30}).Draw(rt, "lateness")}
		spec := &WindowSpec{Lateness: time.Duration(m.lateness) * time.Millisecond}
		switch rapid.IntRange(0, 2).Draw(rt, "kind") {
		case 0:
			m.size = rapid.Int64Range(1, 20).Draw(rt, "size")
			m.slide = m.size
			spec.Kind = TumblingWindow
		case 1:
			m.size, m.slide = rapid.Int64Range(1, 20).Draw(rt, "size"), rapid.Int64Range(1, 20).Draw(rt, "slide")
			spec.Kind = SlidingWindow
		case 2:
			m.gap = rapid.Int64Range(1, 20).Draw(rt, "gap")
			spec.Kind = SessionWindow
		}
		if m.gap == 0 {
			m.offset = rapid.Int64Range(-20, 20).Draw(rt, "offset")
		}
		ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
		spec.Size, spec.Slide, spec.Gap, spec.Offset = ms(m.size), ms(m.slide), ms(m.gap), ms(m.offset)

		c := newWindowConversation(t, spec)
		step := func(what string, err error) {
			if err != nil {
				rt.Fatalf("%s: %v", what, err)
			}
			var got []string
			for line := range strings.Lines(c.take()) {
				if !strings.HasPrefix(line, "—") {
					got = append(got, strings.TrimSpace(line))
				}
			}
			want := m.out
			m.out = nil
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				rt.Fatalf("%v after %s:\ngot  %q\nwant %q", spec, what, got, want)
			}
		}
		_ = c.in.Control(Control{Kind: Watermark, Time: m.wm})
		c.take()
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			if rapid.IntRange(0, 3).Draw(rt, "what") == 0 {
				wm := max(m.wm, 0) + rapid.Int64Range(0, 15).Draw(rt, "wm")
				m.watermark(wm)
				step(fmt.Sprintf("watermark %d", wm), c.in.Control(Control{Kind: Watermark, Time: wm}))
				continue
			}
			e := event{rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "key"), rapid.Int64Range(1, 100).Draw(rt, "n")}
			at := max(m.wm, 0) + rapid.Int64Range(-40, 40).Draw(rt, "at")
			m.record(e, at)
			step(fmt.Sprintf("%v at %d", e, at), c.in.Push(Batch[event]{Recs: []event{e}, Times: []int64{at}}))
		}
		m.watermark(1 << 40)
		step("end", c.in.Control(Control{Kind: End}))
	})
}
