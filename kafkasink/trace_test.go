package kafkasink

import (
	"testing"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/kafka/batch"
)

func TestTracesBecomeHeaders(t *testing.T) {
	m := &flow.Messages{Buf: []byte("onetwo"), Values: []flow.Span{{Off: 0, Len: 3}, {Off: 3, Len: 3}}}
	at := len(m.Buf)
	m.Buf = batch.AppendHeaders(m.Buf, []batch.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "traceparent", Value: []byte("old")}})
	m.Headers = []flow.Span{{}, {Off: int32(at), Len: int32(len(m.Buf) - at)}}
	m.Traces = []flow.MessageTrace{{Index: 1, Context: flow.TraceContext{Trace: [16]byte{0xab}, Span: [8]byte{0xcd}, Flags: 1}}}
	if err := addTraces(m); err != nil {
		t.Fatal(err)
	}
	got, err := batch.Headers(nil, m.At(m.Headers[1]))
	if err != nil {
		t.Fatal(err)
	}
	want := "00-ab000000000000000000000000000000-cd00000000000000-01"
	if len(got) != 2 || got[0].Key != "a" || got[1].Key != "traceparent" || string(got[1].Value) != want {
		t.Errorf("headers are %q, want a and traceparent %s", got, want)
	}
	if m.Headers[0].Len != 0 || string(m.Value(1)) != "two" {
		t.Errorf("the other message has headers %q, the value is %q", m.At(m.Headers[0]), m.Value(1))
	}
}
