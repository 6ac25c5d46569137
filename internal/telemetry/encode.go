package telemetry

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/otel/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/heddle-stream/heddle/internal/flow"
)

// Fields of OTLP's messages.
const (
	spanTrace, spanID, spanParent, spanName, spanKindField   = 1, 2, 4, 5, 6
	spanStart, spanEnd, spanAttrs, spanEvents, spanLinks     = 7, 8, 9, 11, 13
	spanStatusField, spanFlagsField                          = 15, 16
	eventTime, eventName, eventAttrs                         = 1, 2, 3
	linkTrace, linkSpan, linkFlags                           = 1, 2, 6
	statusMessage, statusCode                                = 2, 3
	keyField, valueField                                     = 1, 2
	stringValue, boolValue, intValue, doubleValue, listValue = 1, 2, 3, 4, 5
	listItem                                                 = 1
	scopeSpans                                               = 2 // of ScopeSpans
)

func appendBytes[T []byte | string](b []byte, field protowire.Number, v T) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(len(v)))
	return append(b, v...)
}

func appendNumber(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func appendFixed64(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), v)
}

func appendFixed32(b []byte, field protowire.Number, v uint32) []byte {
	return protowire.AppendFixed32(protowire.AppendTag(b, field, protowire.Fixed32Type), v)
}

// appendName appends a span's name and kind.
func appendName(b []byte, name string, kind trace.SpanKind) []byte {
	return appendNumber(appendBytes(b, spanName, readable(name)), spanKindField, uint64(spanKind(kind)))
}

// appendAttrs appends attributes as so many fields. What is of no type that attributes have is left out.
func appendAttrs(b []byte, field protowire.Number, attrs []flow.TraceAttr) []byte {
	for _, a := range attrs {
		a.Value = readableValue(a.Value)
		n := valueSize(a.Value)
		if n < 0 {
			continue
		}
		b = appendValue(appendKey(b, field, a.Key, n), a.Value)
	}
	return b
}

// appendKey appends an attribute but for the n bytes of its value.
func appendKey(b []byte, field protowire.Number, key string, n int) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(1+protowire.SizeBytes(len(key))+1+protowire.SizeBytes(n)))
	b = appendBytes(b, keyField, key)
	return protowire.AppendVarint(protowire.AppendTag(b, valueField, protowire.BytesType), uint64(n))
}

// appendInt appends an attribute, as does appendFloat.
func appendInt(b []byte, field protowire.Number, key string, v int64) []byte {
	return appendNumber(appendKey(b, field, key, 1+protowire.SizeVarint(uint64(v))), intValue, uint64(v))
}

func appendFloat(b []byte, field protowire.Number, key string, v float64) []byte {
	return appendFixed64(appendKey(b, field, key, 1+protowire.SizeFixed64()), doubleValue, math.Float64bits(v))
}

// readable is a text as a message may hold it: a collector refuses a whole batch for one that is no UTF-8.
func readable(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

func readableValue(v any) any {
	switch s := v.(type) {
	case string:
		if !utf8.ValidString(s) {
			return readable(s)
		}
	case []string:
		if slices.ContainsFunc(s, func(s string) bool { return !utf8.ValidString(s) }) {
			out := make([]string, len(s))
			for i := range s {
				out[i] = readable(s[i])
			}
			return out
		}
	}
	return v
}

// valueSize is how many bytes appendValue appends, less than 0 if it can't. The tags of all its fields take one byte.
func valueSize(v any) int {
	switch v := v.(type) {
	case string:
		return 1 + protowire.SizeBytes(len(v))
	case int:
		return 1 + protowire.SizeVarint(uint64(v))
	case int64:
		return 1 + protowire.SizeVarint(uint64(v))
	case float64:
		return 1 + protowire.SizeFixed64()
	case bool:
		return 2
	case []string:
		return 1 + protowire.SizeBytes(listSize(v))
	}
	return -1
}

func listSize(v []string) (n int) {
	for _, s := range v {
		n += 1 + protowire.SizeBytes(valueSize(s))
	}
	return n
}

// appendValue appends the content of an AnyValue.
func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return appendBytes(b, stringValue, v)
	case int:
		return appendNumber(b, intValue, uint64(v))
	case int64:
		return appendNumber(b, intValue, uint64(v))
	case float64:
		return appendFixed64(b, doubleValue, math.Float64bits(v))
	case bool:
		return appendNumber(b, boolValue, protowire.EncodeBool(v))
	case []string:
		b = protowire.AppendTag(b, listValue, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(listSize(v)))
		for _, s := range v {
			b = protowire.AppendTag(b, listItem, protowire.BytesType)
			b = appendValue(protowire.AppendVarint(b, uint64(valueSize(s))), s)
		}
	}
	return b
}

func appendLink(b []byte, l *flow.TraceContext) []byte {
	b = protowire.AppendTag(b, spanLinks, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(1+protowire.SizeBytes(len(l.Trace))+1+protowire.SizeBytes(len(l.Span))+1+protowire.SizeFixed32()))
	b = appendBytes(b, linkTrace, l.Trace[:])
	b = appendBytes(b, linkSpan, l.Span[:])
	return appendFixed32(b, linkFlags, spanFlags(trace.TraceFlags(l.Flags), true))
}

func appendEvent(b []byte, name string, at uint64, attrs []flow.TraceAttr) []byte {
	event := appendBytes(appendFixed64(nil, eventTime, at), eventName, readable(name))
	return appendBytes(b, spanEvents, appendAttrs(event, eventAttrs, attrs))
}

func appendFailed(b []byte, reason string) []byte {
	status := appendNumber(appendBytes(nil, statusMessage, readable(reason)), statusCode, uint64(tracepb.Status_STATUS_CODE_ERROR))
	return appendBytes(b, spanStatusField, status)
}
