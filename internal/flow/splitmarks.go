package flow

import "fmt"

// splitMarks merges the watermarks of the splits of one source subtask and finds its idleness.
// It is a pure machine: the time goes in, controls come out.
//
// What it last told: idle, or active with a watermark that never goes back. It is idle while no split is active:
// every split ended, silent for longer than Watermarks.Idle, or there is none.
type splitMarks[T any] struct {
	marks  Watermarks[T]
	splits map[string]*splitMark[T]
	active int // splits that are neither idle nor ended

	// How they wait for each other, and for others: see align.go.
	grouped  bool
	others   int64            // how far the slowest of the group is; MinTime: not heard yet
	basis    int64            // what nobody could be too far ahead of, at the last look; MaxTime: nothing
	looked   int64            // when splits were last looked at; MinTime: never
	lapse    int64            // from the look before to that
	heldBack bool             // every active split waits
	past     map[string]int64 // how long splits that have ended had waited

	eager    bool  // emit watermarks as soon as they rise, without regard to the interval
	told     int64 // the last watermark emitted
	toldAt   int64 // when, in processing time; MinTime: never
	toldIdle bool
	out      [2]Control // backs what is returned
}

type splitMark[T any] struct {
	gen  Generator[T] // nil without watermarks
	seen int64        // processing time of the last record, or when the split was added
	idle bool
	wait bool // it is too far ahead, and not read

	waited int64 // milliseconds, in all
}

func newSplitMarks[T any](w Watermarks[T]) splitMarks[T] {
	return splitMarks[T]{marks: w, splits: map[string]*splitMark[T]{}, told: MinTime, toldAt: MinTime,
		others: MinTime, basis: MaxTime, looked: MinTime}
}

// add makes a split take part, before anything of it is read.
func (m *splitMarks[T]) add(id string, now int64) {
	if m.splits[id] != nil {
		return
	}
	s := &splitMark[T]{seen: now}
	if m.marks.New != nil {
		s.gen = m.marks.New()
	}
	m.splits[id] = s
	m.active++
}

// end takes a split out: it holds nothing back any more.
func (m *splitMarks[T]) end(id string) {
	if s := m.splits[id]; s != nil {
		if !s.idle {
			m.active--
		}
		if s.waited > 0 {
			if m.past == nil {
				m.past = map[string]int64{}
			}
			m.past[id] = s.waited
		}
		delete(m.splits, id)
	}
}

// observe sees a batch of a split.
func (m *splitMarks[T]) observe(id string, b Batch[T], now int64) error {
	s := m.splits[id]
	if s == nil {
		return fmt.Errorf("reader emitted records of split %q, which it was not given or which has ended", id)
	}
	s.seen = now
	if s.idle {
		s.idle = false
		m.active++
	}
	if s.gen != nil {
		s.gen.Observe(b.Recs, b.Times)
	}
	return nil
}

// wake returns the control that must go out before records do: Active if the last told was Idle.
func (m *splitMarks[T]) wake() []Control {
	if !m.toldIdle || m.active == 0 {
		return nil
	}
	m.toldIdle = false
	m.out[0] = Control{Kind: Active}
	return m.out[:1]
}

// advance returns the controls that are due at now, and when to call again; MaxTime: not before something happens.
// The slice is valid until the next call.
func (m *splitMarks[T]) advance(now int64) ([]Control, int64) {
	next := m.expire(now)
	out := m.out[:0]
	if m.active == 0 {
		if !m.toldIdle {
			m.toldIdle = true
			out = append(out, Control{Kind: Idle})
		}
		return out, next
	}
	if m.toldIdle {
		m.toldIdle = false
		out = append(out, Control{Kind: Active})
	}
	if m.marks.New == nil {
		return out, next
	}
	due := MinTime
	if m.toldAt != MinTime && !m.eager {
		due = m.toldAt + m.marks.interval()
	}
	if now < due {
		return out, min(next, due)
	}
	if w := m.least(now); w > m.told {
		m.told, m.toldAt = w, now
		out = append(out, Control{Kind: Watermark, Time: w})
		next = min(next, now+m.marks.interval())
	}
	return out, next
}

// expire marks silent splits idle and returns when the next will be.
func (m *splitMarks[T]) expire(now int64) int64 {
	next := MaxTime
	limit := m.marks.Idle.Milliseconds()
	if limit <= 0 {
		return next
	}
	for _, s := range m.splits {
		switch {
		case s.idle:
		case s.wait:
			s.seen = now // its silence is ours
			next = min(next, now+limit)
		case now-s.seen >= limit:
			s.idle = true
			m.active--
		default:
			next = min(next, s.seen+limit)
		}
	}
	return next
}

// least is the watermark of the active splits together.
func (m *splitMarks[T]) least(now int64) int64 {
	w := MaxTime
	for _, s := range m.splits {
		if !s.idle {
			w = min(w, s.gen.Watermark(now))
		}
	}
	return w
}
