package telemetry

import (
	"encoding/binary"
	"math/rand/v2"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/heddle-stream/heddle/internal/flow"
)

// child is a span that is made as it goes to the collector: at a third of the cost of the SDK's. Who has begun it owns it.
type child struct {
	queue   *queue
	context flow.TraceContext
	parent  [8]byte
	span    tracepb.Span
	ended   bool
}

// Child begins a span of a trace that was sampled, as far as this process is concerned, by Start or by another process of the
// application: no sampler is asked. Without a sampled parent it is the zero Span. One goroutine at a time may use it.
func (p *Provider) Child(st Start) Span {
	if !p.Traces() || !st.Parent.Sampled() {
		return Span{}
	}
	c := &child{queue: p.queue, context: st.Parent, parent: st.Parent.Span}
	for c.context.Span = [8]byte{}; c.context.Span == [8]byte{}; {
		binary.NativeEndian.PutUint64(c.context.Span[:], rand.Uint64())
	}
	if st.At.IsZero() {
		st.At = time.Now()
	}
	s := &c.span
	s.TraceId, s.SpanId, s.ParentSpanId, s.Flags = c.context.Trace[:], c.context.Span[:], c.parent[:], spanFlags(1, true)
	s.Name, s.Kind, s.StartTimeUnixNano = st.Name, spanKind(st.Kind), uint64(st.At.UnixNano())
	if n := len(st.Fixed.made) + len(st.Attrs); n > 0 {
		s.Attributes = append(make([]*commonpb.KeyValue, 0, n), st.Fixed.made...)
	}
	c.set(st.Attrs)
	for i := range st.Links {
		l := &st.Links[i]
		s.Links = append(s.Links, &tracepb.Span_Link{TraceId: l.Trace[:], SpanId: l.Span[:], Flags: spanFlags(1, true)})
	}
	return Span{child: c}
}

func (c *child) set(attrs []flow.TraceAttr) {
	for _, a := range attrs {
		if kv, ok := attributeOf(a); ok {
			c.span.Attributes = append(c.span.Attributes, keyValue(kv))
		}
	}
}

func (c *child) event(name string, at time.Time, attrs []flow.TraceAttr) {
	c.span.Events = append(c.span.Events, &tracepb.Span_Event{Name: name, TimeUnixNano: uint64(at.UnixNano()), Attributes: keyValues(attributes(attrs))})
}

func (c *child) end(at time.Time) {
	if c.ended {
		return
	}
	c.ended = true
	if at.IsZero() {
		at = time.Now()
	}
	c.span.EndTimeUnixNano = max(c.span.StartTimeUnixNano, uint64(at.UnixNano()))
	c.queue.put(ended{made: &c.span})
}
