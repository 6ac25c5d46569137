package telemetry

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
)

// Trail writes spans, one after the other, as the bytes that go to the collector, at a fraction of the cost of the SDK's. Those that have
// ended wait in it for Flush. One goroutine at a time may use it.
type Trail struct {
	p     *Provider // immutable; without traces: nothing is recorded
	spans []byte    // as the message of a scope has them
	n     int       // of them that have ended

	// The span that is being written, from at on.
	open    bool
	at      int
	start   int64
	context flow.TraceContext
}

// Trail returns a Trail without spans.
func (p *Provider) Trail() *Trail { return &Trail{p: p} }

// Begin begins a span of a trace that was sampled, as far as this process is concerned, by Provider.Start, by Root, or by another process of the
// application: no sampler is asked. Without a sampled parent nothing is recorded, and the context is zero. A span that is still being written ends.
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

// begin writes the beginning of a span; c is its context but for the span itself. One that is open is ended: half of it would spoil a whole batch.
func (t *Trail) begin(st *Start, c flow.TraceContext) {
	t.End(st.At)
	binary.NativeEndian.PutUint64(c.Span[:], randomID())
	if st.At.IsZero() {
		st.At = time.Now()
	}
	t.open, t.at, t.start, t.context = true, len(t.spans), st.At.UnixNano(), c
	b := appendHead(t.spans, &c, &st.Parent, t.start)
	if st.Name != "" {
		b = appendName(b, st.Name, st.Kind)
	}
	b = append(b, st.Fixed.made...)
	b = appendAttrs(b, spanAttrs, st.Attrs)
	for i := range st.Links {
		b = appendLink(b, &st.Links[i])
	}
	t.spans = b
}

// Recording reports whether a span is being written.
func (t *Trail) Recording() bool { return t.open }

// Context names the span that was begun last, if it is recorded.
func (t *Trail) Context() flow.TraceContext { return t.context }

// Set adds attributes to the span that is being written.
func (t *Trail) Set(attrs ...flow.TraceAttr) {
	if t.open {
		t.spans = appendAttrs(t.spans, spanAttrs, attrs)
	}
}

// Int adds an attribute to the span that is being written.
func (t *Trail) Int(key string, v int) {
	if t.open {
		t.spans = appendInt(t.spans, spanAttrs, key, int64(v))
	}
}

// Float adds an attribute to the span that is being written.
func (t *Trail) Float(key string, v float64) {
	if t.open {
		t.spans = appendFloat(t.spans, spanAttrs, key, v)
	}
}

// event notes something that happened at a time.
func (t *Trail) event(name string, at time.Time, attrs []flow.TraceAttr) {
	if t.open {
		t.spans = appendEvent(t.spans, name, uint64(at.UnixNano()), attrs)
	}
}

// Fail marks the span that is being written as failed; the reason must hold no key and no payload.
func (t *Trail) Fail(reason string) {
	if t.open {
		t.spans = appendFailed(t.spans, reason)
	}
}

// End ends the span that is being written at a time; zero: now.
func (t *Trail) End(at time.Time) {
	if !t.open {
		return
	}
	if at.IsZero() {
		at = time.Now()
	}
	putEnd(t.spans[t.at:], max(t.start, at.UnixNano()))
	t.spans = frame(t.spans, t.at)
	t.open = false
	t.n++
}

// Flush hands over the spans that have ended, to be sent or else dropped and counted; it waits for nobody. While a span is being
// written it does nothing.
func (t *Trail) Flush() {
	if t.open || t.n == 0 {
		return
	}
	t.p.queue.put(t.spans, t.n)
	t.spans, t.n = t.spans[:0], 0
}

// trailRoom is enough for most spans.
const trailRoom = 432

// Child begins a span as Trail's Begin does, which somebody else may own. Without a sampled parent it is the zero Span.
func (p *Provider) Child(st Start) Span {
	if !p.Traces() || !st.Parent.Sampled() {
		return Span{}
	}
	t := new(struct {
		Trail
		room [trailRoom]byte
	})
	t.p, t.spans = p, t.room[:0]
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
