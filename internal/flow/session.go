package flow

// sessionOp aggregates session windows: records of a key with less than the gap between them.
type sessionOp[K comparable, T, A, R any] struct {
	windowBase[K, T, A, R]
	gap, lateness int64
	keys          *keyTable[K] // a session holds its key's slot
	heads         []uint32     // [slot] the key's first session; noSession if there is none
	pool          []session[A]
	free          []uint32
	queue         sessionQueue
	seq           uint64
}

// session is one of a key's sessions, which are in a list in order of time and don't overlap.
type session[A any] struct {
	start, end int64 // end is the time of the last record plus the gap
	acc        A
	slot       uint32
	next       uint32
	fired      bool
	seq        uint64 // of its entry in the queue; others are void
}

const noSession = noSlot

func newSessionOp[K comparable, T, A, R any](b windowBase[K, T, A, R]) *sessionOp[K, T, A, R] {
	o := &sessionOp[K, T, A, R]{
		windowBase: b, gap: b.spec.Gap.Milliseconds(), lateness: b.spec.Lateness.Milliseconds(), keys: newKeyTable[K](),
	}
	o.table = o
	return o
}

// Push implements Out.
func (o *sessionOp[K, T, A, R]) Push(b Batch[T]) error {
	times, now, err := o.begin(&b)
	if err != nil {
		return err
	}
	if err := o.add(b.Recs, times, now); err != nil {
		return err
	}
	return o.finish()
}

// add aggregates records, all at time t where times is nil.
func (o *sessionOp[K, T, A, R]) add(recs []T, times []int64, t int64) (err error) {
	i := 0
	defer func() {
		if o.pushing {
			return // not ours to judge
		}
		if p := recover(); p != nil {
			err = panicError(o.node, p, recs[i])
		}
	}()
	for i = range recs {
		if times != nil {
			t = times[i]
		}
		id, ok := o.sessionAt(o.key(recs[i]), t)
		if !ok {
			if err := o.tooLate(recs[i], t); err != nil {
				return err
			}
			continue
		}
		s := &o.pool[id]
		o.keepAcc.replace(&s.acc, o.agg.Add(s.acc, recs[i]))
		if s.fired {
			if s.end-1 > o.wm { // it grew beyond the watermark: it fires again when it ends
				s.fired = false
				o.enqueue(id)
				continue
			}
			if err := o.emitSession(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// sessionAt returns the session of k that takes a record of time t, after merging those which that connects. False: too late.
func (o *sessionOp[K, T, A, R]) sessionAt(k K, t int64) (uint32, bool) {
	end := plus(t, o.gap)
	slot, known := o.keys.slots[k]
	prev := noSession
	if known {
		at := o.heads[slot]
		for at != noSession && o.pool[at].end <= t {
			prev, at = at, o.pool[at].next
		}
		if at != noSession && o.pool[at].start < end {
			s := &o.pool[at]
			s.start = min(s.start, t)
			if end > s.end {
				s.end = end
				o.absorb(at)
			}
			return at, true
		}
	}
	if plus(end-1, o.lateness) <= o.wm {
		return 0, false
	}
	if !known {
		slot = o.newKey(k)
	}
	id := o.link(slot, prev, session[A]{start: t, end: end, acc: o.agg.Zero(), fired: end-1 <= o.wm})
	return id, true
}

// newKey gives a key without sessions a slot.
func (o *sessionOp[K, T, A, R]) newKey(k K) uint32 {
	slot := o.keys.insert(k)
	o.heads = grown(o.heads, slot, noSession)
	o.heads[slot] = noSession
	return slot
}

// absorb merges into session at the ones after it that it has grown to overlap.
func (o *sessionOp[K, T, A, R]) absorb(at uint32) {
	s := &o.pool[at]
	for s.next != noSession && o.pool[s.next].start < s.end {
		n := &o.pool[s.next]
		o.keepAcc.replace(&s.acc, o.agg.Merge(s.acc, n.acc))
		s.end = max(s.end, n.end)
		s.fired = s.fired || n.fired
		o.keys.letGo(n.slot)
		o.free = append(o.free, s.next)
		s.next = n.next
		*n = session[A]{}
	}
}

// link puts a session of slot after prev.
func (o *sessionOp[K, T, A, R]) link(slot, prev uint32, s session[A]) uint32 {
	var id uint32
	if n := len(o.free); n > 0 {
		id, o.free = o.free[n-1], o.free[:n-1]
	} else {
		id = uint32(len(o.pool))
		o.pool = append(o.pool, session[A]{})
	}
	link := &o.heads[slot]
	if prev != noSession {
		link = &o.pool[prev].next
	}
	s.slot, s.next = slot, *link
	o.pool[id] = s
	*link = id
	o.keys.hold(slot)
	o.enqueue(id)
	return id
}

// enqueue gives a session a new entry in the queue.
func (o *sessionOp[K, T, A, R]) enqueue(id uint32) {
	o.seq++
	o.pool[id].seq = o.seq
	o.queue.push(sessionDue{o.deadline(&o.pool[id]), o.seq, id})
}

// deadline is the watermark at which something happens to s: it fires, or is dropped.
func (o *sessionOp[K, T, A, R]) deadline(s *session[A]) int64 {
	if s.fired {
		return plus(s.end-1, o.lateness)
	}
	return s.end - 1
}

// advance implements windowTable.
func (o *sessionOp[K, T, A, R]) advance(wm int64) error {
	for len(o.queue) > 0 && o.queue[0].at <= wm {
		id := o.queue[0].id
		s := &o.pool[id]
		switch at := o.deadline(s); {
		case s.seq != o.queue[0].seq: // void
			o.queue.pop()
		case at > o.queue[0].at: // it grew
			o.queue.setFirst(at)
		case !s.fired:
			if err := o.emitSession(s); err != nil {
				return err
			}
			s.fired = true
			o.queue.setFirst(o.deadline(s))
		default:
			o.queue.pop()
			o.unlink(id)
			o.free = append(o.free, id)
		}
	}
	return nil
}

// due implements windowTable. The first deadline may be out of date, which costs a timer in vain.
func (o *sessionOp[K, T, A, R]) due() int64 {
	if len(o.queue) == 0 {
		return never
	}
	return o.queue[0].at
}

// opened implements windowTable.
func (o *sessionOp[K, T, A, R]) opened() {}

// unlink takes a session out of its key's list, and frees the key with its last one.
func (o *sessionOp[K, T, A, R]) unlink(id uint32) {
	s := &o.pool[id]
	link := &o.heads[s.slot]
	for *link != id {
		link = &o.pool[*link].next
	}
	*link = s.next
	o.keys.letGo(s.slot)
	if !o.keys.used(s.slot) {
		o.keys.release(s.slot)
	}
	*s = session[A]{}
}

func (o *sessionOp[K, T, A, R]) emitSession(s *session[A]) error {
	return o.emit(o.keys.keys[s.slot], s.start, s.end, s.acc, s.end-1, true)
}

// grown returns s long enough to have an element i; new ones are fill.
func grown[S any](s []S, i uint32, fill S) []S {
	for uint32(len(s)) <= i {
		s = append(s, fill)
	}
	return s
}

// sessionQueue is a heap of sessions by deadline. A session that grows is not moved: its entry is corrected when it comes first.
type sessionQueue []sessionDue

type sessionDue struct {
	at  int64 // no later than the session's deadline
	seq uint64
	id  uint32
}

func (a sessionDue) less(b sessionDue) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq }

func (q *sessionQueue) push(e sessionDue) {
	*q = append(*q, e)
	h, i := *q, len(*q)-1
	for i > 0 {
		up := (i - 1) / 2
		if !h[i].less(h[up]) {
			return
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

// pop removes the first entry.
func (q *sessionQueue) pop() {
	h, n := *q, len(*q)-1
	h[0] = h[n]
	*q = h[:n]
	q.sink()
}

// setFirst changes the deadline of the first entry to a later one.
func (q sessionQueue) setFirst(at int64) {
	q[0].at = at
	q.sink()
}

func (q sessionQueue) sink() {
	for i := 0; ; {
		c := 2*i + 1
		if c >= len(q) {
			return
		}
		if c+1 < len(q) && q[c+1].less(q[c]) {
			c++
		}
		if !q[c].less(q[i]) {
			return
		}
		q[i], q[c] = q[c], q[i]
		i = c
	}
}
