package kafkasink

import (
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/kafka/batch"
)

func TestTracesBecomeHeaders(t *testing.T) {
	m := &flow.Messages{Buf: []byte("onetwo"), Values: []flow.Span{{Off: 0, Len: 3}, {Off: 3, Len: 3}}}
	at := len(m.Buf)
	m.Buf = batch.AppendHeaders(m.Buf, []batch.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "traceparent", Value: []byte("old")}})
	m.Headers = []flow.Span{{}, {Off: int32(at), Len: int32(len(m.Buf) - at)}}
	m.Traces = []flow.MessageTrace{{Index: 1, Context: flow.TraceContext{Trace: [16]byte{0xab}, Span: [8]byte{1}, Flags: 1}}}
	if err := addTraces(m, flow.TraceContext{Trace: [16]byte{0xab}, Span: [8]byte{0xcd}, Flags: 1}); err != nil {
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

// sending counts how often it is done.
type sending struct{ done atomic.Int32 }

func (s *sending) Context() flow.TraceContext   { return flow.TraceContext{} }
func (s *sending) Done(attrs ...flow.TraceAttr) { s.done.Add(1) }

// TestDeliveriesAreTold tells that messages were delivered once the brokers have acknowledged them.
func TestDeliveriesAreTold(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(2), kfake.SeedTopics(4, "out"))
	mw, err := Topic("out").NewMessageWriter(t.Context(), newRuntime(c.ListenAddrs()[:1]))
	if err != nil {
		t.Fatal(err)
	}
	w := mw.(*writer)
	m := &flow.Messages{Buf: []byte("onetwothree"), Values: []flow.Span{{Off: 0, Len: 3}, {Off: 3, Len: 3}, {Off: 6, Len: 5}}}
	var sent [100]sending
	for i := range sent {
		if err := w.WriteFollowed(m, delivered(&sent[i], m.Len())); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil { // waits for the senders
		t.Fatal(err)
	}
	for i := range sent {
		if n := sent[i].done.Load(); n != 1 {
			t.Fatalf("delivery %d is done %d times, want once", i, n)
		}
	}
	if n := len(read(t, c, "out", 300)); n != 300 {
		t.Errorf("%d records, want 300", n)
	}
}
