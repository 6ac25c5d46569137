package telemetry

import (
	"encoding/hex"

	"github.com/heddle-stream/heddle/internal/flow"
	"go.opentelemetry.io/otel/trace"
)

// traceparentLen is the length of a traceparent of version 0: 00-<32 hex>-<16 hex>-<2 hex>.
const traceparentLen = 55

// ParseTraceparent reads a header or variable traceparent, as W3C's Trace Context defines it. What a later version appends is ignored.
func ParseTraceparent(s string) (flow.TraceContext, bool) {
	var c flow.TraceContext
	if len(s) < traceparentLen || s[2] != '-' || s[35] != '-' || s[52] != '-' || s[:2] == "ff" {
		return c, false
	}
	if len(s) > traceparentLen && (s[:2] == "00" || s[traceparentLen] != '-') {
		return c, false
	}
	var version, flags [1]byte
	for _, part := range []struct {
		to   []byte
		text string
	}{{version[:], s[:2]}, {c.Trace[:], s[3:35]}, {c.Span[:], s[36:52]}, {flags[:], s[53:55]}} {
		for i := range len(part.text) {
			if b := part.text[i]; (b < '0' || b > '9') && (b < 'a' || b > 'f') {
				return flow.TraceContext{}, false
			}
		}
		if _, err := hex.Decode(part.to, []byte(part.text)); err != nil {
			return flow.TraceContext{}, false
		}
	}
	if c.Trace == [16]byte{} || c.Span == [8]byte{} {
		return flow.TraceContext{}, false
	}
	c.Flags = flags[0]
	return c, true
}

// AppendTraceparent appends c as a header traceparent.
func AppendTraceparent(b []byte, c flow.TraceContext) []byte {
	b = append(b, "00-"...)
	b = hex.AppendEncode(b, c.Trace[:])
	b = append(b, '-')
	b = hex.AppendEncode(b, c.Span[:])
	b = append(b, '-')
	return hex.AppendEncode(b, []byte{c.Flags})
}

// Traceparent is c as a header traceparent, "" for none.
func Traceparent(c flow.TraceContext) string {
	if c.Trace == [16]byte{} {
		return ""
	}
	return string(AppendTraceparent(nil, c))
}

func spanContext(c flow.TraceContext, remote bool) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: c.Trace, SpanID: c.Span, TraceFlags: trace.TraceFlags(c.Flags), Remote: remote})
}

func contextOf(s trace.SpanContext) flow.TraceContext {
	return flow.TraceContext{Trace: s.TraceID(), Span: s.SpanID(), Flags: byte(s.TraceFlags())}
}
