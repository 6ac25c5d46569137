package telemetry

import (
	"context"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/heddle-stream/heddle/internal/flow"
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

// keeping returns a Provider whose spans wait until they are taken: nobody sends them.
func keeping() *Provider {
	q := &queue{most: 1 << 20, batch: 1 << 20}
	p := &Provider{spans: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(q)), queue: q, samplesAll: true}
	p.tracer = p.spans.Tracer(scope)
	return p
}

// TestChildIsWhatTheSDKMakes holds the bytes that Child writes to the message that is made of the SDK's span.
func TestChildIsWhatTheSDKMakes(t *testing.T) {
	p := keeping()
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

// TestRootIsWhatTheSDKMakes does the same for spans that begin a trace, or go on from one of somebody else, short and long ones.
func TestRootIsWhatTheSDKMakes(t *testing.T) {
	p := keeping()
	at := time.Unix(100, 5)
	for _, parent := range []flow.TraceContext{{}, {Trace: [16]byte{1}, Span: [8]byte{2}, Flags: 3}} {
		for _, long := range []int{0, 100, 20_000, 3_000_000} {
			k := &kept{t: t}
			st := Start{Parent: parent, At: at, Fixed: FixSpan("poll", Consumer, A("fixed", 7)), Attrs: []flow.TraceAttr{A("s", strings.Repeat("x", long))}}
			trail := p.Trail()
			got := trail.Root(&st, at.Add(time.Second))
			trail.Flush()
			sdk := p.Start(st)
			sdk.End(at.Add(time.Second))
			for b := p.queue.take(); b.n > 0; b = p.queue.take() { // long ones are batches of their own
				_ = k.export(t.Context(), b.spans)
			}
			if len(k.spans) != 2 {
				t.Fatalf("%d spans were kept, want 2", len(k.spans))
			}
			a, b := k.spans[0], k.spans[1]
			if string(a.TraceId) != string(got.Trace[:]) || string(a.SpanId) != string(got.Span[:]) || got.Flags != sdk.Context().Flags || !got.Sampled() ||
				parent.Sampled() && got.Trace != parent.Trace {
				t.Errorf("below %v the context is %v", parent, got)
			}
			a.TraceId, a.SpanId = b.TraceId, b.SpanId
			if !proto.Equal(a, b) {
				t.Errorf("below %v it is\n%.500v\nand not\n%.500v", parent, a, b)
			}
		}
	}
	trail := p.Trail()
	if c := trail.Root(&Start{Parent: flow.TraceContext{Trace: [16]byte{1}, Span: [8]byte{2}}, Name: "x"}, at); c.Sampled() {
		t.Error("a span of a trace that is not sampled was recorded")
	}
	if trail.Begin(&Start{Name: "x"}); trail.Recording() {
		t.Error("a span without a parent was recorded")
	}
}

// TestTrailOfNothing: without a provider a trail records nothing, as everything else does.
func TestTrailOfNothing(t *testing.T) {
	var p *Provider
	trail := p.Trail()
	sampled := flow.TraceContext{Trace: [16]byte{1}, Span: [8]byte{2}, Flags: 1}
	if trail.Root(&Start{Name: "x"}, time.Time{}).Sampled() || trail.Begin(&Start{Parent: sampled, Name: "x"}).Sampled() || trail.Recording() {
		t.Error("a span was recorded")
	}
	trail.Set(A("k", "v"))
	trail.Int("n", 1)
	trail.Float("f", 1)
	trail.Fail("why")
	trail.End(time.Time{})
	trail.Flush()
}

// TestTrailGoesOutTogether: spans that are put together are dropped together, and a batch is exceeded by none.
func TestTrailGoesOutTogether(t *testing.T) {
	q := &queue{most: 10, batch: 4, full: make(chan struct{}, 1)}
	trail := (&Provider{spans: sdktrace.NewTracerProvider(), queue: q}).Trail()
	put := func(spans int) {
		for range spans {
			trail.Record(&Start{Parent: flow.TraceContext{Trace: [16]byte{1}, Span: [8]byte{2}, Flags: 1}, Name: "x"}, time.Time{})
		}
		trail.Flush()
	}
	put(3)
	if q.ready(false) || !q.ready(true) {
		t.Error("three spans are a full batch of four")
	}
	put(3)
	if !q.ready(false) || len(q.full) != 1 {
		t.Error("nobody was woken for a batch that is as full as can be")
	}
	put(3)
	put(2)
	put(1)
	if got := q.dropped.Load(); got != 2 {
		t.Errorf("%d spans are dropped, want 2", got)
	}
	k := &kept{t: t}
	for _, want := range []int{3, 3, 4, 0} {
		b := q.take()
		if _ = k.export(t.Context(), b.spans); b.n != want {
			t.Errorf("a batch has %d spans, want %d", b.n, want)
		}
		q.done(b)
	}
	put(20) // more than the queue is for, but there is nothing else
	if b := q.take(); b.n != 20 || len(k.spans) != 10 {
		t.Errorf("20 spans came as %d, 10 as %d", b.n, len(k.spans))
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
		q.put(appendBytes(nil, scopeSpans, message), 1)
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

func BenchmarkTrail(b *testing.B) {
	q := &queue{most: 1 << 40, batch: queueBatch, full: make(chan struct{}, 1)}
	t := (&Provider{spans: sdktrace.NewTracerProvider(), queue: q}).Trail()
	st := Start{Parent: flow.TraceContext{Trace: [16]byte{1}, Span: [8]byte{2}, Flags: 1}, At: time.Now(),
		Fixed: FixSpan("exchange", Consumer, A("heddle.vertex", "map, filter"), A("heddle.subtask", 3))}
	b.ReportAllocs()
	for b.Loop() {
		t.Record(&st, st.At)
		t.Flush()
		if q.ready(false) {
			q.done(q.take())
		}
	}
}
