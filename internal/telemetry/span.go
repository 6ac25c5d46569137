package telemetry

import (
	"context"
	"fmt"
	"math"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/heddle-stream/heddle/internal/flow"
)

// Span is a span being recorded; the zero Span records nothing.
type Span struct {
	s     trace.Span // of the SDK
	child *Trail     // in place of it: the one span that it is for
}

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
	Name   string            // "": name and kind are those of Fixed
	Kind   trace.SpanKind
	At     time.Time // zero: now
	Links  []flow.TraceContext
	Attrs  []flow.TraceAttr
	Fixed  Fixed // attributes beside those
}

// Fixed is what many spans have in common: attributes, and perhaps name and kind. It is made once.
type Fixed struct{ *fixed }

type fixed struct {
	name    string
	kind    trace.SpanKind
	kvs     []attribute.KeyValue
	made    []byte // as a span's message has it
	numbers []Number
}

// Number is an attribute whose value each span has for itself.
type Number struct {
	Key   string
	Float bool
}

// append appends the attribute, of what Trail's Int or Float has entered.
func (n *Number) append(b []byte, v int64) []byte {
	if n.Float {
		return appendFloat(b, spanAttrs, n.Key, math.Float64frombits(uint64(v)))
	}
	return appendInt(b, spanAttrs, n.Key, v)
}

// Fix makes Fixed attributes.
func Fix(attrs ...flow.TraceAttr) Fixed {
	return Fixed{&fixed{kvs: attributes(attrs), made: appendAttrs(nil, spanAttrs, attrs)}}
}

// FixSpan makes a Fixed name, kind and attributes.
func FixSpan(name string, kind trace.SpanKind, attrs ...flow.TraceAttr) Fixed {
	return Fixed{&fixed{name: name, kind: kind, kvs: attributes(attrs), made: appendAttrs(appendName(nil, name, kind), spanAttrs, attrs)}}
}

// With is f with up to seven numbers, which the spans have that Trail's Begin begins: 0, where Trail's Int or Float does not say otherwise.
func (f Fixed) With(numbers ...Number) Fixed {
	if len(numbers) > maxNumbers {
		panic(fmt.Sprintf("telemetry: a span has room for %d numbers, not %d", maxNumbers, len(numbers)))
	}
	with := *f.fixed
	with.numbers = numbers
	return Fixed{&with}
}

// None reports whether nothing was fixed.
func (f Fixed) None() bool { return f.fixed == nil }

// Start begins a span. Where the parent, or else the sampler, says that it is not recorded, it is the zero Span.
func (p *Provider) Start(st Start) Span {
	if !p.Traces() || st.Parent.Trace != [16]byte{} && !st.Parent.Sampled() {
		return Span{}
	}
	if st.Fixed.None() {
		st.Fixed.fixed = new(fixed)
	}
	if st.Name == "" {
		st.Name, st.Kind = st.Fixed.name, st.Fixed.kind
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
	_, s := p.tracer.Start(ctx, readable(st.Name), opts...)
	if !s.IsRecording() {
		s.End()
		return Span{}
	}
	if len(st.Attrs) > 0 {
		s.SetAttributes(attributes(st.Attrs)...)
	}
	return Span{s: s}
}

// Recording reports whether the span is recorded.
func (s Span) Recording() bool { return s.s != nil || s.child != nil }

// Context names the span, zero if it is not recorded.
func (s Span) Context() flow.TraceContext {
	switch {
	case s.child != nil:
		return s.child.Context()
	case s.s != nil:
		return contextOf(s.s.SpanContext())
	}
	return flow.TraceContext{}
}

// Set adds attributes.
func (s Span) Set(attrs ...flow.TraceAttr) {
	switch {
	case s.child != nil:
		s.child.Set(attrs...)
	case s.s != nil:
		s.s.SetAttributes(attributes(attrs)...)
	}
}

// Event notes something that happened at a time.
func (s Span) Event(name string, at time.Time, attrs ...flow.TraceAttr) {
	switch {
	case s.child != nil:
		s.child.event(name, at, attrs)
	case s.s != nil:
		s.s.AddEvent(readable(name), trace.WithTimestamp(at), trace.WithAttributes(attributes(attrs)...))
	}
}

// Fail marks the span as failed by err, whose text must hold no key and no payload.
func (s Span) Fail(reason string) {
	switch {
	case s.child != nil:
		s.child.Fail(reason)
	case s.s != nil:
		s.s.SetStatus(codes.Error, readable(reason))
	}
}

// End ends the span at a time; zero: now.
func (s Span) End(at time.Time) {
	switch {
	case s.child != nil:
		s.child.End(at)
		s.child.Flush()
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
		if kv, ok := attributeOf(a); ok {
			out = append(out, kv)
		}
	}
	return out
}

func attributeOf(a flow.TraceAttr) (kv attribute.KeyValue, ok bool) {
	switch v := readableValue(a.Value).(type) {
	case string:
		return attribute.String(a.Key, v), true
	case int:
		return attribute.Int(a.Key, v), true
	case int64:
		return attribute.Int64(a.Key, v), true
	case float64:
		return attribute.Float64(a.Key, v), true
	case bool:
		return attribute.Bool(a.Key, v), true
	case []string:
		return attribute.StringSlice(a.Key, v), true
	}
	return kv, false
}
