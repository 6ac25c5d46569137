package flow

import "slices"

// TraceContext names a span of a trace, as the header traceparent of W3C's Trace Context does.
type TraceContext struct {
	Trace [16]byte // zero: the record is only timed
	Span  [8]byte
	Flags byte
}

// TraceSampled is the flag of a trace that is recorded.
const TraceSampled byte = 1

// Sampled reports whether spans are recorded.
func (c TraceContext) Sampled() bool { return c.Flags&TraceSampled != 0 && c.Trace != [16]byte{} }

// TraceAttr is something to know of a span. Never a key or a payload.
type TraceAttr struct {
	Key   string
	Value any // string, int64 or bool
}

// Arrival is a record that a source read and that is to be followed.
type Arrival struct {
	Index  int          // within the batch
	Parent TraceContext // that came with it, or zero
	Split  string
	Attrs  []TraceAttr
}

// Follower is what a task does about records that are followed. The task's goroutine calls it.
type Follower interface {
	// Due chooses one of the next n records that a source read, if it is time for one; now is the processing time. It is asked with
	// the first batch at or after again; MinTime: with the next one.
	Due(n int, now int64) (index int, ok bool, again int64)
	// Drawn chooses the first of the next n records that a source read which belongs to the share of all that is followed, if any of them does. It is
	// asked with each batch for which Due is, and after one that was chosen for those behind it.
	Drawn(n int) (index int, ok bool)
	// Admit says whether a record that came with a sampled trace, or was drawn, may be followed: their rate is bounded.
	Admit() bool
	// Read begins the spans of a record that a source read and returns the context of what follows from it.
	Read(a Arrival) TraceContext
	// Arrive begins the span of the i-th record that Marks told of.
	Arrive(i int) TraceContext
	// Fire begins a span that follows from others, such as a window's result.
	Fire(name string, links []TraceContext) TraceContext
	// Done ends what Read, Arrive or Fire began.
	Done(err error)
	// Recording says whether spans are recorded, so that it is of use to look for the traces that records come with.
	Recording() bool
	// Attr adds to the span that is open.
	Attr(attrs ...TraceAttr)
	// Send begins the span of a delivery of the record being followed, which goes on beside it; nil if nothing is recorded.
	Send(name string, attrs ...TraceAttr) Delivery
	// Wrote notes that the record just being followed is the index-th of the open segment of channel ch of edge out.
	Wrote(out, ch, index int, c TraceContext)
	// Full reports whether the open segment of channel ch of edge out has as many followed records as it can tell of.
	Full(out, ch int) bool
}

// Delivery is what is to be known of a record that is on its way to somewhere outside.
type Delivery interface {
	Context() TraceContext
	// Done ends it. Any goroutine may call it, once.
	Done(attrs ...TraceAttr)
}

// Tracer follows chosen records through the chain of one task. A nil Tracer follows none, at the cost of a comparison a
// batch. A record that is followed travels through the chain in a batch of its own, and all that is written meanwhile follows from it.
// The task's goroutine owns it.
type Tracer struct {
	f       Follower // immutable
	active  bool
	current TraceContext
	asked   int64 // when f was last asked, and when it is to be again
	due     int64

	picked   []Arrival // those that are due or drawn, where no message came with any: the room for them
	arrived  []Arrival // that the messages of the batch came with
	messages *Messages // that the records of the batch are of, one for one; nil: not known
	marks    []int     // indexes of followed records in the segment that is being read, in order
}

// NewTracer returns a Tracer that tells f.
func NewTracer(f Follower) *Tracer { return &Tracer{f: f, due: MinTime} }

// Traced is a Runtime that has a Tracer.
type Traced interface{ Tracer() *Tracer }

// TracerOf returns the Tracer of rt, or nil.
func TracerOf(rt Runtime) *Tracer {
	if r, ok := rt.(readerRuntime); ok {
		rt = r.Runtime
	}
	if t, ok := rt.(Traced); ok {
		return t.Tracer()
	}
	return nil
}

// Current returns the context of the record that is being followed just now.
func (t *Tracer) Current() (c TraceContext, ok bool) {
	if t == nil || !t.active {
		return TraceContext{}, false
	}
	return t.current, true
}

// Recording reports whether spans are recorded.
func (t *Tracer) Recording() bool { return t != nil && t.f.Recording() }

// Active reports whether a record is being followed just now.
func (t *Tracer) Active() bool { return t != nil && t.active }

// Attr adds to the span of the record that is being followed.
func (t *Tracer) Attr(attrs ...TraceAttr) {
	if t.Active() {
		t.f.Attr(attrs...)
	}
}

// Send begins a delivery of the record that is being followed. It is nil if nobody is to know of it.
func (t *Tracer) Send(name string, attrs ...TraceAttr) Delivery {
	if !t.Active() {
		return nil
	}
	return t.f.Send(name, attrs...)
}

// Marks says which records of the segment that is read next are followed, in order; the task calls it, with none after the segment.
func (t *Tracer) Marks(indexes []int) { t.marks = indexes }

func (t *Tracer) begin(c TraceContext) { t.active, t.current = true, c }

func (t *Tracer) end(err error) error {
	t.active = false
	t.f.Done(err)
	return err
}

// picks returns the records to be followed of the next n that a source read, in order.
func (t *Tracer) picks(split string, n int, now int64) []Arrival {
	picks, own := t.arrived, t.arrived == nil
	if t.arrived = nil; own {
		picks = t.picked[:0]
	}
	picks = slices.DeleteFunc(picks, func(a Arrival) bool { return a.Index >= n || !t.f.Admit() })
	if t.resting(now) {
		return t.of(split, picks)
	}
	i, ok, again := t.f.Due(n, now)
	t.asked, t.due = now, again
	before := len(picks)
	if ok {
		picks = t.pick(picks, i)
	}
	for from := 0; ; from = i + 1 {
		if i, ok = t.f.Drawn(n - from); !ok {
			break
		}
		if i += from; t.f.Admit() {
			picks = t.pick(picks, i)
		}
	}
	if len(picks) > before {
		slices.SortFunc(picks, func(a, b Arrival) int { return a.Index - b.Index })
		if own {
			t.picked = picks
		}
	}
	return t.of(split, picks)
}

// pick adds record i of the batch to picks, if it is not among them.
func (t *Tracer) pick(picks []Arrival, i int) []Arrival {
	if slices.ContainsFunc(picks, func(a Arrival) bool { return a.Index == i }) {
		return picks
	}
	a := Arrival{Index: i}
	if t.messages != nil {
		a.Attrs = describeMessage(t.messages, i)
	}
	return append(picks, a)
}

// resting reports whether no record is due yet. A clock that was set back ends it.
func (t *Tracer) resting(now int64) bool { return now < t.due && now >= t.asked }

// of says which split picks are of.
func (t *Tracer) of(split string, picks []Arrival) []Arrival {
	for i := range picks {
		picks[i].Split = split
	}
	return picks
}

// at is the record of b with index i, as a batch.
func at[T any](b Batch[T], i int) Batch[T] {
	one := Batch[T]{Recs: b.Recs[i : i+1 : i+1]}
	if b.Times != nil {
		one.Times = b.Times[i : i+1]
	}
	return one
}

// between is the records of b from i on that come before j.
func between[T any](b Batch[T], i, j int) Batch[T] {
	part := Batch[T]{Recs: b.Recs[i:j:j]}
	if b.Times != nil {
		part.Times = b.Times[i:j]
	}
	return part
}

// pushRead pushes what a source read, with records to be followed in batches of their own.
func pushRead[T any](t *Tracer, out Out[T], split string, b Batch[T], now int64) error {
	if t == nil || t.resting(now) && t.arrived == nil {
		return out.Push(b)
	}
	picks := t.picks(split, len(b.Recs), now)
	if len(picks) == 0 {
		return out.Push(b)
	}
	done := 0
	for _, p := range picks {
		if p.Index > done {
			if err := out.Push(between(b, done, p.Index)); err != nil {
				return err
			}
		}
		t.begin(t.f.Read(p))
		if err := t.end(out.Push(at(b, p.Index))); err != nil {
			return err
		}
		done = p.Index + 1
	}
	if done == len(b.Recs) {
		return nil
	}
	return out.Push(between(b, done, len(b.Recs)))
}

// pushMarked pushes records from index first of a segment on, with those that are followed in batches of their own.
func pushMarked[T any](t *Tracer, out Out[T], first int, b Batch[T]) error {
	done := 0
	for i, m := range t.marks {
		k := m - first
		if k < done || k >= len(b.Recs) {
			continue
		}
		if k > done {
			if err := out.Push(between(b, done, k)); err != nil {
				return err
			}
		}
		t.begin(t.f.Arrive(i))
		if err := t.end(out.Push(at(b, k))); err != nil {
			return err
		}
		done = k + 1
	}
	if done == len(b.Recs) {
		return nil
	}
	return out.Push(between(b, done, len(b.Recs)))
}

// maxFollowed bounds how many records are followed that an operator makes of one.
const maxFollowed = 4

// pushFollowed writes the records that follow from the one being followed: the first few with marks.
func (w *writer[T]) pushFollowed(b Batch[T]) error {
	n := min(len(b.Recs), maxFollowed)
	for i := range n {
		one := at(b, i)
		switch w.cfg.Part.Kind {
		case Broadcast:
			for ch := range w.cfg.Channels {
				if err := w.enc.followed(ch, one); err != nil {
					return err
				}
			}
			continue
		case Hash, Custom:
			if w.cfg.Channels > 1 || w.choose != nil {
				var ch [1]uint16
				if err := w.channels(one.Recs, ch[:]); err != nil {
					return err
				}
				if err := w.enc.followed(int(ch[0]), one); err != nil {
					return err
				}
				continue
			}
		case Rebalance, Rescale:
			if err := w.enc.followed(w.next, one); err != nil {
				return err
			}
			continue
		}
		if err := w.enc.followed(0, one); err != nil {
			return err
		}
	}
	if n == len(b.Recs) {
		return nil
	}
	return w.push(between(b, n, len(b.Recs)))
}

// full reports whether the open segment of ch is to be put before a record that is followed.
func (c *WriterConfig) full(ch int) bool { return c.Tracer != nil && c.Tracer.f.Full(c.Edge, ch) }

// wrote marks the record that is about to be put at index of the open segment of ch.
func (c *WriterConfig) wrote(ch, index int) {
	if cur, ok := c.Tracer.Current(); ok {
		c.Tracer.f.Wrote(c.Edge, ch, index, cur)
	}
}
