package telemetry

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
)

// child is a span that is written as it goes to the collector: at a fraction of the cost of the SDK's. Who has begun it owns it.
type child struct {
	queue   *queue
	context flow.TraceContext
	start   int64
	ended   bool
	message []byte // the span's, but for its end; begins in room
	room    [432]byte
}

// Child begins a span of a trace that was sampled, as far as this process is concerned, by Start or by another process of the
// application: no sampler is asked. Without a sampled parent it is the zero Span. One goroutine at a time may use it.
func (p *Provider) Child(st Start) Span {
	if !p.Traces() || !st.Parent.Sampled() {
		return Span{}
	}
	c := new(child)
	c.begin(p.queue, &st)
	return Span{child: c}
}

// recorded are children that Record has done with.
var recorded = sync.Pool{New: func() any { return new(child) }}

// Record makes a span as Child does, which has ended already, and returns its context.
func (p *Provider) Record(st Start, end time.Time) flow.TraceContext {
	if !p.Traces() || !st.Parent.Sampled() {
		return flow.TraceContext{}
	}
	c := recorded.Get().(*child)
	c.begin(p.queue, &st)
	c.end(end)
	context := c.context
	recorded.Put(c)
	return context
}

func (c *child) begin(q *queue, st *Start) {
	c.queue, c.context, c.ended = q, st.Parent, false
	for c.context.Span = [8]byte{}; c.context.Span == [8]byte{}; {
		binary.NativeEndian.PutUint64(c.context.Span[:], rand.Uint64())
	}
	if st.At.IsZero() {
		st.At = time.Now()
	}
	c.start = st.At.UnixNano()
	b := appendBytes(c.room[:0], spanTrace, c.context.Trace[:])
	b = appendBytes(b, spanID, c.context.Span[:])
	b = appendBytes(b, spanParent, st.Parent.Span[:])
	b = appendFixed32(b, spanFlagsField, spanFlags(1, true))
	b = appendBytes(b, spanName, readable(st.Name))
	b = appendNumber(b, spanKindField, uint64(spanKind(st.Kind)))
	b = appendFixed64(b, spanStart, uint64(c.start))
	b = append(b, st.Fixed.made...)
	b = appendAttrs(b, spanAttrs, st.Attrs)
	for i := range st.Links {
		b = appendLink(b, &st.Links[i])
	}
	c.message = b
}

func (c *child) set(attrs []flow.TraceAttr) {
	if !c.ended {
		c.message = appendAttrs(c.message, spanAttrs, attrs)
	}
}

func (c *child) event(name string, at time.Time, attrs []flow.TraceAttr) {
	if !c.ended {
		c.message = appendEvent(c.message, name, uint64(at.UnixNano()), attrs)
	}
}

func (c *child) fail(reason string) {
	if !c.ended {
		c.message = appendFailed(c.message, reason)
	}
}

func (c *child) end(at time.Time) {
	if c.ended {
		return
	}
	c.ended = true
	if at.IsZero() {
		at = time.Now()
	}
	c.queue.put(appendFixed64(c.message, spanEnd, uint64(max(c.start, at.UnixNano()))))
	c.message = nil
}
