package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/heddle-stream/heddle/internal/flow"
)

// Span is a span being recorded; the zero Span records nothing.
type Span struct{ s trace.Span }

// Kinds of spans.
const (
	Internal = trace.SpanKindInternal
	Producer = trace.SpanKindProducer
	Consumer = trace.SpanKindConsumer
	Client   = trace.SpanKindClient
	Server   = trace.SpanKindServer
)

// Start is how a span begins.
type Start struct {
	Parent flow.TraceContext // zero: the span begins a trace
	Name   string
	Kind   trace.SpanKind
	At     time.Time // zero: now
	Links  []flow.TraceContext
	Attrs  []flow.TraceAttr
	Fixed  Fixed // attributes beside those
}

// Fixed are attributes that many spans have: they are made once.
type Fixed struct{ kvs []attribute.KeyValue }

// Fix makes Fixed attributes.
func Fix(attrs ...flow.TraceAttr) Fixed { return Fixed{attributes(attrs)} }

// Start begins a span. Where the parent, or else the sampler, says that it is not recorded, it is the zero Span.
func (p *Provider) Start(st Start) Span {
	if !p.Traces() || st.Parent.Trace != [16]byte{} && !st.Parent.Sampled() {
		return Span{}
	}
	ctx := context.Background()
	if st.Parent.Trace != [16]byte{} {
		ctx = trace.ContextWithSpanContext(ctx, spanContext(st.Parent, true))
	}
	opts := make([]trace.SpanStartOption, 0, 4)
	opts = append(opts, trace.WithSpanKind(st.Kind))
	if len(st.Fixed.kvs) > 0 {
		opts = append(opts, trace.WithAttributes(st.Fixed.kvs...))
	}
	if !st.At.IsZero() {
		opts = append(opts, trace.WithTimestamp(st.At))
	}
	if len(st.Links) > 0 {
		links := make([]trace.Link, len(st.Links))
		for i, l := range st.Links {
			links[i] = trace.Link{SpanContext: spanContext(l, true)}
		}
		opts = append(opts, trace.WithLinks(links...))
	}
	_, s := p.tracer.Start(ctx, st.Name, opts...)
	if !s.IsRecording() {
		s.End()
		return Span{}
	}
	if len(st.Attrs) > 0 {
		s.SetAttributes(attributes(st.Attrs)...)
	}
	return Span{s}
}

// Recording reports whether the span is recorded.
func (s Span) Recording() bool { return s.s != nil }

// Context names the span, zero if it is not recorded.
func (s Span) Context() flow.TraceContext {
	if s.s == nil {
		return flow.TraceContext{}
	}
	return contextOf(s.s.SpanContext())
}

// Set adds attributes.
func (s Span) Set(attrs ...flow.TraceAttr) {
	if s.s != nil {
		s.s.SetAttributes(attributes(attrs)...)
	}
}

// Event notes something that happened at a time.
func (s Span) Event(name string, at time.Time, attrs ...flow.TraceAttr) {
	if s.s != nil {
		s.s.AddEvent(name, trace.WithTimestamp(at), trace.WithAttributes(attributes(attrs)...))
	}
}

// Fail marks the span as failed by err, whose text must hold no key and no payload.
func (s Span) Fail(reason string) {
	if s.s != nil {
		s.s.SetStatus(codes.Error, reason)
	}
}

// End ends the span at a time; zero: now.
func (s Span) End(at time.Time) {
	switch {
	case s.s == nil:
	case at.IsZero():
		s.s.End()
	default:
		s.s.End(trace.WithTimestamp(at))
	}
}

// A makes an attribute.
func A(key string, value any) flow.TraceAttr { return flow.TraceAttr{Key: key, Value: value} }

func attributes(attrs []flow.TraceAttr) []attribute.KeyValue {
	out := make([]attribute.KeyValue, 0, len(attrs))
	for _, a := range attrs {
		switch v := a.Value.(type) {
		case string:
			out = append(out, attribute.String(a.Key, v))
		case int:
			out = append(out, attribute.Int(a.Key, v))
		case int64:
			out = append(out, attribute.Int64(a.Key, v))
		case float64:
			out = append(out, attribute.Float64(a.Key, v))
		case bool:
			out = append(out, attribute.Bool(a.Key, v))
		case []string:
			out = append(out, attribute.StringSlice(a.Key, v))
		}
	}
	return out
}
