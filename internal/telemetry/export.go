package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// exporter sends spans by the SDK's OTLP client. They come as bytes of messages, so that the spans of Provider.Child and Record, which are
// most, need not take the way through the SDK's own span, nor each through a message of its own.
type exporter struct {
	client otlptrace.Client
	// The message of a batch, but for its spans, which the exporting goroutine puts into scope.
	batch []*tracepb.ResourceSpans
	scope *tracepb.ScopeSpans
}

func newExporter(ctx context.Context, client otlptrace.Client, res *resource.Resource, version string) (*exporter, error) {
	e := &exporter{client: client, scope: &tracepb.ScopeSpans{Scope: &commonpb.InstrumentationScope{Name: scope, Version: version}}}
	e.batch = []*tracepb.ResourceSpans{{
		Resource: &resourcepb.Resource{Attributes: keyValues(res.Attributes())}, SchemaUrl: res.SchemaURL(), ScopeSpans: []*tracepb.ScopeSpans{e.scope},
	}}
	return e, client.Start(ctx)
}

// export implements spanExporter. A message keeps fields that it does not know as they are, and is sent with them: so are the spans.
func (e *exporter) export(ctx context.Context, spans []byte) error {
	e.scope.ProtoReflect().SetUnknown(spans)
	err := e.client.UploadTraces(ctx, e.batch)
	e.scope.ProtoReflect().SetUnknown(nil)
	return err
}

// shutdown implements spanExporter.
func (e *exporter) shutdown(ctx context.Context) error { return e.client.Stop(ctx) }

// spanOf makes a message of a span of the SDK.
func spanOf(s sdktrace.ReadOnlySpan) *tracepb.Span {
	c, parent := s.SpanContext(), s.Parent()
	id, in := c.SpanID(), c.TraceID()
	out := &tracepb.Span{
		TraceId: in[:], SpanId: id[:], TraceState: c.TraceState().String(), Flags: spanFlags(c.TraceFlags(), parent.IsRemote()),
		Name: s.Name(), Kind: spanKind(s.SpanKind()), StartTimeUnixNano: uint64(s.StartTime().UnixNano()), EndTimeUnixNano: uint64(s.EndTime().UnixNano()),
		Attributes: keyValues(s.Attributes()), Status: spanStatus(s.Status()),
		DroppedAttributesCount: uint32(s.DroppedAttributes()), DroppedEventsCount: uint32(s.DroppedEvents()), DroppedLinksCount: uint32(s.DroppedLinks()),
	}
	if parent.HasSpanID() {
		p := parent.SpanID()
		out.ParentSpanId = p[:]
	}
	for _, l := range s.Links() {
		in, id := l.SpanContext.TraceID(), l.SpanContext.SpanID()
		out.Links = append(out.Links, &tracepb.Span_Link{
			TraceId: in[:], SpanId: id[:], Attributes: keyValues(l.Attributes), Flags: spanFlags(l.SpanContext.TraceFlags(), l.SpanContext.IsRemote()),
		})
	}
	for _, e := range s.Events() {
		out.Events = append(out.Events, &tracepb.Span_Event{Name: e.Name, TimeUnixNano: uint64(e.Time.UnixNano()), Attributes: keyValues(e.Attributes)})
	}
	return out
}

// spanFlags are the flags of OTLP: those of the trace, and whether the parent is known to be of another process.
func spanFlags(f trace.TraceFlags, remote bool) uint32 {
	flags := uint32(f) | uint32(tracepb.SpanFlags_SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK)
	if remote {
		flags |= uint32(tracepb.SpanFlags_SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK)
	}
	return flags
}

// spanKind is a kind in OTLP, which counts as OpenTelemetry's API does.
func spanKind(k trace.SpanKind) tracepb.Span_SpanKind {
	if k == trace.SpanKindUnspecified {
		k = trace.SpanKindInternal
	}
	return tracepb.Span_SpanKind(k)
}

func spanStatus(s sdktrace.Status) *tracepb.Status {
	switch s.Code {
	case codes.Error:
		return &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: s.Description}
	case codes.Ok:
		return &tracepb.Status{Code: tracepb.Status_STATUS_CODE_OK}
	}
	return nil
}

func keyValues(attrs []attribute.KeyValue) []*commonpb.KeyValue {
	if len(attrs) == 0 {
		return nil
	}
	out := make([]*commonpb.KeyValue, len(attrs))
	for i, a := range attrs {
		out[i] = keyValue(a)
	}
	return out
}

// keyValue makes an attribute's message by one allocation for the usual types.
func keyValue(a attribute.KeyValue) *commonpb.KeyValue {
	switch a.Value.Type() {
	case attribute.STRING:
		m := &struct {
			kv commonpb.KeyValue
			a  commonpb.AnyValue
			v  commonpb.AnyValue_StringValue
		}{}
		m.v.StringValue, m.a.Value = a.Value.AsString(), &m.v
		m.kv.Key, m.kv.Value = string(a.Key), &m.a
		return &m.kv
	case attribute.INT64:
		m := &struct {
			kv commonpb.KeyValue
			a  commonpb.AnyValue
			v  commonpb.AnyValue_IntValue
		}{}
		m.v.IntValue, m.a.Value = a.Value.AsInt64(), &m.v
		m.kv.Key, m.kv.Value = string(a.Key), &m.a
		return &m.kv
	case attribute.FLOAT64:
		m := &struct {
			kv commonpb.KeyValue
			a  commonpb.AnyValue
			v  commonpb.AnyValue_DoubleValue
		}{}
		m.v.DoubleValue, m.a.Value = a.Value.AsFloat64(), &m.v
		m.kv.Key, m.kv.Value = string(a.Key), &m.a
		return &m.kv
	case attribute.BOOL:
		return &commonpb.KeyValue{Key: string(a.Key), Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: a.Value.AsBool()}}}
	case attribute.STRINGSLICE:
		list := &commonpb.ArrayValue{}
		for _, s := range a.Value.AsStringSlice() {
			list.Values = append(list.Values, &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: s}})
		}
		return &commonpb.KeyValue{Key: string(a.Key), Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: list}}}
	}
	return &commonpb.KeyValue{Key: string(a.Key), Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: a.Value.String()}}}
}
