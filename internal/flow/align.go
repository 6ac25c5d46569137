package flow

import "time"

// Alignment says which splits of sources wait for each other in event time.
type Alignment struct {
	Group    string        // the subtasks of all sources of the job that have the same one wait for each other; "": a subtask's splits do
	MaxDrift time.Duration // how far one may be ahead of the slowest; 0: nobody waits
}

// String says it for plans: "at most 1m0s ahead of group orders".
func (a Alignment) String() string {
	switch {
	case a.MaxDrift <= 0:
		return ""
	case a.Group == "":
		return "splits at most " + a.MaxDrift.String() + " ahead of each other"
	}
	return "at most " + a.MaxDrift.String() + " ahead of group " + a.Group
}

// Alignment returns what the strategy says of it.
func (w Watermarks[T]) Alignment() Alignment { return Alignment{Group: w.Group, MaxDrift: w.MaxDrift} }

// Aligned is a SourceDriver whose splits may wait for those of other subtasks.
type Aligned interface {
	// AlignMark is how far the slowest split is, MaxTime if there is none to wait for: it is idle, has ended, or had no record. ok is
	// false while that is not known yet, since its splits are only about to be read, or there is no group. Any goroutine may call it.
	AlignMark() (mark int64, ok bool)
	// Align says how far the slowest subtask of the group is. The task's goroutine calls it.
	Align(least int64) error
}

// Aligning is a Runtime whose master tells the subtasks of a group about each other.
type Aligning interface {
	// HeldBack returns what is to be called when the subtask can't go on before it hears how far the group is; nil: nobody tells.
	HeldBack() func()
}

// ReaderMark is where one subtask of a group stands, as a master knows it.
type ReaderMark struct {
	Known bool  // it has said so
	Ended bool  // it has finished: nobody waits for it
	Mark  int64 // see Aligned
}

// LeastMark returns how far the slowest subtask of a group is, MaxTime if there is none to wait for. ok is false while one is still to say where it stands:
// then what was last told stands, so that nobody runs ahead of one that is only about to begin.
func LeastMark(readers []ReaderMark) (least int64, ok bool) {
	least = MaxTime
	for _, r := range readers {
		switch {
		case r.Ended:
		case !r.Known:
			return 0, false
		default:
			least = min(least, r.Mark)
		}
	}
	return least, true
}

// alignInterval is how many milliseconds there are between looks at which splits are too far ahead.
const alignInterval = 20

// firstRecords is how many milliseconds a subtask's splits have for their first records before it says where it stands: others wait for
// that, so as not to run ahead of splits that are only about to be read.
const firstRecords = 5000

// align looks which splits are too far ahead, and tells the reader.
func (o *sourceOp[T]) align(now int64) {
	o.alignAt = now + alignInterval
	tell := func(split string, wait bool) {
		o.resumed = o.resumed || !wait
		if o.pauser != nil {
			o.pauser.Pause(split, wait)
		}
	}
	if o.pauser != nil {
		o.waiting = o.splits.drifts(now, tell)
	} else {
		o.held = o.splits.driftsWhole(now, tell)
		o.waiting = o.held
	}
	if o.splits.heldBack {
		o.heldMs.Add(o.splits.lapse)
	}
	if !o.splits.grouped {
		return
	}
	mark := o.splits.slowest(now)
	o.mark.Store(mark)
	if !o.marked.Load() {
		if o.splits.silent(now) && now < o.openedAt+firstRecords {
			return
		}
		o.marked.Store(true)
		o.prompted = mark
		o.heldBack()
	}
	if o.splits.heldBack && mark != o.prompted {
		o.prompted = mark
		o.heldBack()
	}
}

// AlignMark implements Aligned.
func (o *sourceOp[T]) AlignMark() (int64, bool) { return o.mark.Load(), o.marked.Load() }

// Align implements Aligned.
func (o *sourceOp[T]) Align(least int64) error {
	if !o.splits.grouped || o.ended {
		return nil
	}
	o.splits.others, o.alignAt = least, MinTime
	return o.advance(o.rt.Now())
}

// aligned adds to what the reader says of its splits how long they have waited.
func (o *sourceOp[T]) aligned(list []SplitStatus) []SplitStatus {
	out := make([]SplitStatus, len(list))
	for i, s := range list {
		if m := o.splits.splits[s.ID]; m != nil {
			s.Paused, s.PausedFor = m.wait, time.Duration(m.waited)*time.Millisecond
		} else {
			s.PausedFor = time.Duration(o.splits.past[s.ID]) * time.Millisecond
		}
		out[i] = s
	}
	return out
}

// drifts tells which splits have come too far ahead of the slowest to be read, and which not any more. Those of which no time is known,
// are idle or have ended, take no part; a split goes on when it is well within what is allowed. It reports whether any waits.
func (m *splitMarks[T]) drifts(now int64, tell func(split string, wait bool)) (waiting bool) {
	m.count(now)
	limit, least := m.marks.MaxDrift.Milliseconds(), m.base(now)
	m.heldBack = m.active > 0
	for id, s := range m.splits {
		m.turn(id, s, s.gen.Watermark(now), least, limit, tell)
		waiting = waiting || s.wait
		m.heldBack = m.heldBack && (s.wait || s.idle)
	}
	return waiting
}

// driftsWhole is drifts for a reader that can't leave a split alone: all wait once even the slowest is too far ahead of the group.
func (m *splitMarks[T]) driftsWhole(now int64, tell func(split string, wait bool)) (waiting bool) {
	m.count(now)
	limit, least, slowest := m.marks.MaxDrift.Milliseconds(), m.base(now), m.slowest(now)
	if slowest == MaxTime {
		slowest = MinTime // none to judge by
	}
	for id, s := range m.splits {
		m.turn(id, s, slowest, least, limit, tell)
		waiting = waiting || s.wait
	}
	m.heldBack = waiting
	return waiting
}

// beyond reports whether a split that is read has come so far that it is time for a look, whenever that would be.
func (m *splitMarks[T]) beyond(id string, now int64) bool {
	s := m.splits[id]
	if s == nil || s.wait {
		return false
	}
	w := s.gen.Watermark(now)
	return w != MinTime && (m.basis == MaxTime || ahead(w, m.basis, m.marks.MaxDrift.Milliseconds()))
}

// turn decides whether a split at w waits.
func (m *splitMarks[T]) turn(id string, s *splitMark[T], w, least, limit int64, tell func(split string, wait bool)) {
	switch {
	case w == MinTime || s.wait && !ahead(w, least, limit-limit/4):
		if s.wait {
			s.wait = false
			tell(id, false)
		}
	case !s.wait && ahead(w, least, limit):
		s.wait = true
		tell(id, true)
	}
}

// base is what nobody may be too far ahead of: the slowest split here, and of the group. Until the group is heard of, it stands where the
// first record was.
func (m *splitMarks[T]) base(now int64) int64 {
	least := m.slowest(now)
	if m.grouped {
		if m.others == MinTime && least != MaxTime {
			m.others = least
		}
		if m.others != MinTime {
			least = min(least, m.others)
		}
	}
	m.basis = least
	return least
}

// slowest is the watermark of the slowest split that holds others back, MaxTime if there is none.
func (m *splitMarks[T]) slowest(now int64) int64 {
	least := MaxTime
	for _, s := range m.splits {
		if s.idle {
			continue
		}
		if w := s.gen.Watermark(now); w != MinTime {
			least = min(least, w)
		}
	}
	return least
}

// silent reports whether an active split had no record yet.
func (m *splitMarks[T]) silent(now int64) bool {
	for _, s := range m.splits {
		if !s.idle && s.gen.Watermark(now) == MinTime {
			return true
		}
	}
	return false
}

// count adds the time since the last look to what splits have waited.
func (m *splitMarks[T]) count(now int64) {
	m.lapse = 0
	if m.looked != MinTime {
		m.lapse = max(0, now-m.looked)
	}
	m.looked = now
	for _, s := range m.splits {
		if s.wait {
			s.waited += m.lapse
		}
	}
}

// ahead reports whether w > least + limit, without overflow.
func ahead(w, least, limit int64) bool {
	return w > least && uint64(w)-uint64(least) > uint64(limit)
}
