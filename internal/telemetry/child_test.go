package telemetry

import (
	"context"
	"strings"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/telemetry/otlptest"
)

// kept is a spanExporter that decodes what it gets.
type kept struct {
	t     *testing.T
	spans []*tracepb.Span
}

func (k *kept) export(_ context.Context, b []byte) error {
	var s tracepb.ScopeSpans
	if err := proto.Unmarshal(b, &s); err != nil {
		k.t.Error(err)
	}
	if len(s.ProtoReflect().GetUnknown()) > 0 {
		k.t.Error("some of it is no span")
	}
	k.spans = append(k.spans, s.Spans...)
	return nil
}
func (k *kept) shutdown(context.Context) error { return nil }

// TestChildIsWhatTheSDKMakes holds the bytes that Child writes to the message that is made of the SDK's span.
func TestChildIsWhatTheSDKMakes(t *testing.T) {
	c := otlptest.Start(t)
	p := provider(t, Config{Settings: Settings{Endpoint: c.URL, Protocol: HTTP, Traces: true}, Service: "job"})
	defer closeNow(t, p, time.Minute)
	parent := flow.TraceContext{Trace: [16]byte{1}, Span: [8]byte{2}, Flags: 1}
	at := time.Unix(100, 5)
	st := Start{
		Parent: parent, Name: "hop \xff", Kind: Producer, At: at, Links: []flow.TraceContext{{Trace: [16]byte{3}, Span: [8]byte{4}, Flags: 1}, parent},
		Fixed: Fix(A("fixed", "yes"), A("fixed.number", -1)),
		Attrs: []flow.TraceAttr{A("s", "x"), A("empty", ""), A("bad", "a\xffb"), A("i", 300), A("i64", int64(-7)), A("f", 1.5), A("t", true), A("no", false),
			A("list", []string{"", "a", strings.Repeat("b", 300)}), A("none", []string{}), A("bad list", []string{"\xff"}), A("long", strings.Repeat("c", 1000))},
	}
	finish := func(s Span) {
		s.Set(A("later", "z"), A("n", 0))
		s.Event("came", at.Add(time.Second), A("k", "v"))
		s.Fail("it failed")
		s.End(at.Add(2 * time.Second))
		s.Set(A("too", "late"))
		s.End(at.Add(3 * time.Second))
	}
	k := &kept{t: t}
	p.queue.mu.Lock()
	p.queue.batch = 1 << 20 // nothing goes out by itself
	p.queue.mu.Unlock()
	finish(p.Child(st))
	finish(p.Start(st))
	p.Record(st, at.Add(-time.Hour))
	if err := k.export(t.Context(), p.queue.take().spans); err != nil || len(k.spans) != 3 {
		t.Fatalf("%d spans were kept: %v", len(k.spans), err)
	}
	got, want, short := k.spans[0], k.spans[1], k.spans[2]
	got.SpanId = want.SpanId
	if !proto.Equal(got, want) {
		t.Errorf("it is\n%v\nand not\n%v", got, want)
	}
	if short.EndTimeUnixNano != short.StartTimeUnixNano || len(short.Attributes) != 14 {
		t.Errorf("a span that ends before it begins is %v", short)
	}
}

// TestQueueInBatches: batches are full but for the last, none is lost, and what does not fit is counted.
func TestQueueInBatches(t *testing.T) {
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "10")
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "4")
	k := &kept{t: t}
	q := &queue{most: 10, batch: 4, full: make(chan struct{}, 1), exporter: k}
	message, err := proto.Marshal(&tracepb.Span{Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	for range 12 {
		q.put(message)
	}
	if got := q.dropped.Load(); got != 2 {
		t.Errorf("%d spans are dropped, want 2", got)
	}
	for _, want := range []int{4, 4, 2, 0} {
		b := q.take()
		if b.n != want {
			t.Errorf("a batch has %d spans, want %d", b.n, want)
		}
		_ = k.export(t.Context(), b.spans)
		q.done(b)
	}
	if len(k.spans) != 10 || q.waiting() != 0 {
		t.Errorf("%d spans came out and %d wait", len(k.spans), q.waiting())
	}
}

func BenchmarkChild(b *testing.B) {
	q := &queue{most: 1 << 40, batch: 512, full: make(chan struct{}, 1)}
	fixed := Fix(A("heddle.vertex", "map, filter"), A("heddle.subtask", 3))
	st := Start{Parent: flow.TraceContext{Trace: [16]byte{1}, Span: [8]byte{2}, Flags: 1}, Name: "exchange", At: time.Now(), Fixed: fixed}
	b.ReportAllocs()
	for b.Loop() {
		var c child
		c.begin(q, &st)
		c.end(st.At)
		if q.waiting() >= 512 {
			q.done(q.take())
		}
	}
}
