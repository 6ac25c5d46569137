package flow

// NewWindow makes the factory of an operator that aggregates windows of keyed records.
func NewWindow[K comparable, T, A, R any](p WindowParams[K, T, A, R]) Factory {
	return func(rt Runtime, outs []any) (Instance, error) {
		base, err := newWindowBase(p, rt, outs)
		if err != nil {
			return Instance{}, err
		}
		if p.Spec.Kind == SessionWindow {
			op := newSessionOp(base)
			return instance(Out[T](op), op), nil
		}
		op := &windowOp[K, T, A, R]{windowBase: base, next: MinTime, newest: MinTime}
		if op.cut, err = newCutter(p.Spec); err != nil {
			return Instance{}, err
		}
		op.table = op
		return instance(Out[T](op), op), nil
	}
}

// windowOp aggregates windows of fixed bounds: tumbling, sliding, calendar, global.
type windowOp[K comparable, T, A, R any] struct {
	windowBase[K, T, A, R]
	cut    cutter
	panes  panes[K, A]
	last   *pane[K, A] // of the record before
	merged pane[K, A]  // scratch, to put a sliding window together
	next   int64       // windows that end before it have fired
	newest int64       // global: greatest event time seen
	timed  bool        // global: records have event times
}

// Push implements Out.
func (o *windowOp[K, T, A, R]) Push(b Batch[T]) error {
	times, now, err := o.begin(&b)
	if err != nil {
		return err
	}
	if o.spec.Kind == GlobalWindow {
		o.seen(b.Times)
	}
	if err := o.add(b.Recs, times, now); err != nil {
		return err
	}
	return o.finish()
}

// add aggregates records, all at time t where times is nil.
func (o *windowOp[K, T, A, R]) add(recs []T, times []int64, t int64) (err error) {
	i := 0
	defer func() {
		if o.pushing {
			return // not ours to judge
		}
		if p := recover(); p != nil {
			err = panicError(o.node, p, recs[i])
		}
	}()
	p := o.last
	for i = range recs {
		if times != nil {
			t = times[i]
		}
		if p == nil || t < p.start || t >= p.end {
			if p = o.paneAt(t); p == nil {
				if err := o.outside(recs[i], t); err != nil {
					return err
				}
				continue
			}
			o.last = p
		}
		k := o.key(recs[i])
		j, ok := p.index[k]
		if !ok {
			j = p.add(k, o.agg.Zero(), o.keepKey)
		}
		if acc := &p.accs[j]; o.keepAcc.fn == nil {
			*acc = o.agg.Add(*acc, recs[i])
		} else {
			o.keepAcc.replace(acc, o.agg.Add(*acc, recs[i]))
		}
		if p.late {
			if err := o.correct(p, p.keys[j]); err != nil {
				return err
			}
		}
	}
	return nil
}

// paneAt returns the pane of time t, nil if no window waits for it.
func (o *windowOp[K, T, A, R]) paneAt(t int64) *pane[K, A] {
	start, end, ok := o.cut.slice(t)
	if !ok {
		return nil
	}
	i, ok := o.panes.find(start)
	if ok {
		return o.panes.list[i]
	}
	first, last := o.cut.ends(start, end)
	if plus(last-1, o.cut.lateness) <= o.wm {
		return nil
	}
	p := o.panes.insert(i, start, end)
	p.first, p.last, p.late = first, last, o.isLate(first)
	return p
}

// isLate reports whether a window with that end has fired and may yet be corrected.
func (o *windowOp[K, T, A, R]) isLate(end int64) bool { return o.cut.lateness > 0 && end-1 <= o.wm }

// outside handles a record that no window takes: it is late, or lies in a gap between windows.
func (o *windowOp[K, T, A, R]) outside(rec T, t int64) error {
	if _, _, ok := o.cut.slice(t); !ok {
		return nil
	}
	return o.tooLate(rec, t)
}

// advance implements windowTable.
func (o *windowOp[K, T, A, R]) advance(wm int64) error {
	for {
		p, end := o.nextWindow()
		if p == nil || end-1 > wm {
			break
		}
		if err := o.fire(p, end); err != nil {
			return err
		}
		o.next = plus(end, 1)
		if end == MaxTime {
			break
		}
	}
	o.next = max(o.next, plus(wm, 2))
	o.drop(wm)
	return nil
}

// drop removes the panes that no window needs any more.
func (o *windowOp[K, T, A, R]) drop(wm int64) {
	n := 0
	for _, p := range o.panes.list {
		if plus(p.last-1, o.cut.lateness) <= wm {
			n++
			continue
		}
		p.late = o.isLate(p.first)
	}
	if n > 0 {
		o.panes.dropFirst(n)
		o.last = nil
	}
}

// nextWindow returns the first window that has yet to fire and holds records: its end, and its first pane.
func (o *windowOp[K, T, A, R]) nextWindow() (*pane[K, A], int64) {
	for _, p := range o.panes.list {
		end := p.first
		if o.next > end {
			if o.cut.kind != SlidingWindow {
				continue
			}
			end = o.cut.endFrom(o.next)
		}
		if end <= p.last {
			return p, end
		}
	}
	return nil, MaxTime
}

// due implements windowTable.
func (o *windowOp[K, T, A, R]) due() int64 {
	due := int64(never)
	if p, end := o.nextWindow(); p != nil {
		due = end - 1
	}
	return due
}

// opened implements windowTable: what was restored may have fired.
func (o *windowOp[K, T, A, R]) opened() {
	if !o.restored || o.wm == MinTime {
		return
	}
	o.next = plus(o.wm, 2)
	for _, p := range o.panes.list {
		p.late = o.isLate(p.first)
	}
}

// fire puts out the results of the window that ends at end; p is its first pane.
func (o *windowOp[K, T, A, R]) fire(p *pane[K, A], end int64) error {
	start := o.cut.begin(p.start, end)
	if o.cut.kind == SlidingWindow {
		p = o.merge(p, end)
	}
	for j, k := range p.keys {
		if err := o.put(k, start, end, p.accs[j]); err != nil {
			return err
		}
	}
	o.merged.reset()
	return nil
}

// merge returns the accumulators of the window that ends at end and begins with pane p.
func (o *windowOp[K, T, A, R]) merge(first *pane[K, A], end int64) *pane[K, A] {
	i, _ := o.panes.find(first.start)
	ps := o.panes.list[i:]
	n := 1
	for n < len(ps) && ps[n].first <= end {
		n++
	}
	if n == 1 {
		return first
	}
	m := &o.merged
	if m.index == nil {
		m.index = make(map[K]uint32)
	}
	for _, p := range ps[:n] {
		for j, k := range p.keys {
			at, ok := m.index[k]
			if !ok {
				at = m.add(k, o.agg.Zero(), keeper[K]{})
			}
			m.accs[at] = o.agg.Merge(m.accs[at], p.accs[j])
		}
	}
	return m
}

// correct puts out a new result of k for each window that holds p, has fired and still accepts late records.
func (o *windowOp[K, T, A, R]) correct(p *pane[K, A], k K) error {
	for end := p.first; end <= p.last && end-1 <= o.wm; end = plus(end, o.cut.slide) {
		if plus(end-1, o.cut.lateness) > o.wm {
			if err := o.refire(p, k, end); err != nil {
				return err
			}
		}
		if o.cut.kind != SlidingWindow || end == MaxTime {
			break
		}
	}
	return nil
}

// refire puts out k's result of the window that ends at end and holds p.
func (o *windowOp[K, T, A, R]) refire(p *pane[K, A], k K, end int64) error {
	if o.cut.kind != SlidingWindow {
		return o.put(k, p.start, end, p.accs[p.index[k]])
	}
	acc, start, found := o.agg.Zero(), p.start, false
	for _, p := range o.panes.list {
		if p.first > end || p.last < end {
			continue
		}
		if !found {
			start, found = p.start, true
		}
		if j, ok := p.index[k]; ok {
			acc = o.agg.Merge(acc, p.accs[j])
		}
	}
	return o.put(k, o.cut.begin(start, end), end, acc)
}

// put emits a result. That of a global window has no end to be timed by: it gets the time of the newest record,
// or just after the watermark where that is later.
func (o *windowOp[K, T, A, R]) put(k K, start, end int64, acc A) error {
	if o.cut.kind != GlobalWindow {
		return o.emit(k, start, end, acc, end-1, true)
	}
	return o.emit(k, start, end, acc, max(o.newest, plus(o.lastWM, 1)), o.timed)
}

// seen takes note of the event times of records for a global window.
func (o *windowOp[K, T, A, R]) seen(times []int64) {
	for _, t := range times {
		o.newest, o.timed = max(o.newest, t), true
	}
}
