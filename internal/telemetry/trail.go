package telemetry

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
)

// Trail notes spans, one after the other, at a fraction of the cost of the SDK's: what they come to as messages is made when they are sent. Those that
// have ended wait in it for Flush. One goroutine at a time may use it.
type Trail struct {
	p       *Provider // immutable; without traces: nothing is recorded
	spool   spool     // its last record, if open, is of the span that is being recorded
	open    bool
	context flow.TraceContext
}

// Trail returns a Trail without spans.
func (p *Provider) Trail() *Trail { return &Trail{p: p} }

// Begin begins a span of a trace that was sampled, as far as this process is concerned, by Provider.Start, by Root, or by another process of the
// application: no sampler is asked. Without a sampled parent nothing is recorded, and the context is zero. A span that is still being recorded ends.
func (t *Trail) Begin(st *Start) flow.TraceContext {
	if !t.p.Traces() || !st.Parent.Sampled() {
		return flow.TraceContext{}
	}
	t.begin(st, st.Parent)
	return t.context
}

// Record is Begin and End.
func (t *Trail) Record(st *Start, end time.Time) flow.TraceContext {
	c := t.Begin(st)
	t.End(end)
	return c
}

// Root is Record for a span that may begin a trace, or goes on from one of somebody else: the sampler decides.
func (t *Trail) Root(st *Start, end time.Time) flow.TraceContext {
	if !t.p.Traces() || st.Parent.Trace != [16]byte{} && !st.Parent.Sampled() {
		return flow.TraceContext{}
	}
	if !t.p.samplesAll {
		s := t.p.Start(*st)
		s.End(end)
		return s.Context()
	}
	c := st.Parent
	if c.Trace == [16]byte{} {
		c.Flags = flow.TraceSampled
		binary.NativeEndian.PutUint64(c.Trace[:8], randomID())
		binary.NativeEndian.PutUint64(c.Trace[8:], randomID())
	}
	t.begin(st, c)
	t.End(end)
	return t.context
}

// randomID is never 0, which names nothing.
func randomID() (id uint64) {
	for id == 0 {
		id = rand.Uint64()
	}
	return id
}

func newSpanID() (id [8]byte) {
	binary.NativeEndian.PutUint64(id[:], randomID())
	return id
}

// begin begins a span; c is its context but for the span itself. One that is open is ended.
func (t *Trail) begin(st *Start, c flow.TraceContext) {
	t.End(st.At)
	c.Span = newSpanID()
	if st.At.IsZero() {
		st.At = time.Now()
	}
	t.open, t.context = true, c
	t.spool.records = append(t.spool.records, record{
		trace: c.Trace, span: c.Span, flags: c.Flags, parent: st.Parent.Span, root: st.Parent.Trace == [16]byte{}, start: st.At.UnixNano(), fixed: st.Fixed.fixed,
	})
	if st.Name == "" && len(st.Attrs) == 0 && len(st.Links) == 0 {
		return
	}
	b := t.spool.more
	if st.Name != "" {
		b = appendName(b, st.Name, st.Kind)
	}
	b = appendAttrs(b, spanAttrs, st.Attrs)
	for i := range st.Links {
		b = appendLink(b, &st.Links[i])
	}
	t.wrote(b)
}

// last is the record of the span that was begun last.
func (t *Trail) last() *record { return &t.spool.records[len(t.spool.records)-1] }

// wrote enters what was appended to the bytes of the span that is being recorded.
func (t *Trail) wrote(b []byte) {
	t.last().more += uint32(len(b) - len(t.spool.more))
	t.spool.more = b
}

// Recording reports whether a span is being recorded.
func (t *Trail) Recording() bool { return t.open }

// Context names the span that was begun last, if it is recorded.
func (t *Trail) Context() flow.TraceContext { return t.context }

// Set adds attributes to the span that is being recorded.
func (t *Trail) Set(attrs ...flow.TraceAttr) {
	if t.open {
		t.wrote(appendAttrs(t.spool.more, spanAttrs, attrs))
	}
}

// Int enters the i-th number of the span that is being recorded: see Fixed.With.
func (t *Trail) Int(i int, v int) {
	if t.open {
		t.last().numbers[i] = int64(v)
	}
}

// Float enters the i-th number of the span that is being recorded: see Fixed.With.
func (t *Trail) Float(i int, v float64) {
	if t.open {
		t.last().numbers[i] = int64(math.Float64bits(v))
	}
}

// Cut ends the span that is being recorded and cuts it into parts, which are spans below it. Part p is from at[p] to at[p+1], so that at[0] is where the span
// begins, and the last where it ends. A part that takes no time is none.
func (t *Trail) Cut(parts *Parts, at *[Phases + 1]time.Time) {
	if !t.open {
		return
	}
	r := t.last()
	r.parts = parts
	for i := range r.cuts {
		r.cuts[i] = at[i+1].UnixNano()
	}
	t.End(at[Phases])
}

// event notes something that happened at a time.
func (t *Trail) event(name string, at time.Time, attrs []flow.TraceAttr) {
	if t.open {
		t.wrote(appendEvent(t.spool.more, name, uint64(at.UnixNano()), attrs))
	}
}

// Fail marks the span that is being recorded as failed; the reason must hold no key and no payload.
func (t *Trail) Fail(reason string) {
	if t.open {
		t.wrote(appendFailed(t.spool.more, reason))
	}
}

// End ends the span that is being recorded at a time; zero: now.
func (t *Trail) End(at time.Time) {
	if !t.open {
		return
	}
	if at.IsZero() {
		at = time.Now()
	}
	r := t.last()
	r.end = max(r.start, at.UnixNano())
	t.open = false
	t.spool.n += r.spans()
}

// Flush hands over the spans that have ended, to be sent or else dropped and counted; it waits for nobody. While a span is being
// recorded it does nothing.
func (t *Trail) Flush() {
	if t.open || t.spool.n == 0 {
		return
	}
	t.p.queue.put(&t.spool)
	t.spool.reset()
}

// trailRoom is enough for what most spans have of their own.
const trailRoom = 256

// Child begins a span as Trail's Begin does, which somebody else may own. Without a sampled parent it is the zero Span.
func (p *Provider) Child(st Start) Span {
	if !p.Traces() || !st.Parent.Sampled() {
		return Span{}
	}
	t := new(struct {
		Trail
		record [1]record
		room   [trailRoom]byte
	})
	t.p, t.spool.records, t.spool.more = p, t.record[:0], t.room[:0]
	t.Begin(&st)
	return Span{child: &t.Trail}
}

// trails are of Record, which is done with them.
var trails = sync.Pool{New: func() any { return new(Trail) }}

// Record makes a span as Child does, which has ended already, and returns its context.
func (p *Provider) Record(st Start, end time.Time) flow.TraceContext {
	if !p.Traces() || !st.Parent.Sampled() {
		return flow.TraceContext{}
	}
	t := trails.Get().(*Trail)
	t.p = p
	c := t.Record(&st, end)
	t.Flush()
	t.p = nil
	trails.Put(t)
	return c
}
