package telemetry

import (
	"context"
	"errors"
	"log/slog"
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

// take decodes the oldest batch, and holds how many spans it says it has against that.
func (k *kept) take(q *queue) (n int) {
	b := q.take()
	defer q.done(b)
	had := len(k.spans)
	_ = k.export(context.Background(), messages(&b))
	if got := len(k.spans) - had; got != b.n {
		k.t.Errorf("%d spans are counted as %d", got, b.n)
	}
	return b.n
}

// messages is what a batch comes to.
func messages(b *spool) (all []byte) {
	r := spoolReader{spool: b}
	for part, n := r.next(nil, batchBytes); n > 0; part, n = r.next(nil, batchBytes) {
		all = append(all, part...)
	}
	return all
}

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
	if k.take(p.queue); len(k.spans) != 3 {
		t.Fatalf("%d spans were kept", len(k.spans))
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
			k.take(p.queue)
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
	trail.Int(0, 1)
	trail.Float(1, 1)
	trail.Cut(nil, nil)
	trail.Fail("why")
	trail.End(time.Time{})
	trail.Flush()
}

// TestCut: parts are spans below the one that is cut, each with a span of its own, and one that takes no time is none.
func TestCut(t *testing.T) {
	p := keeping()
	at := func(s int) time.Time { return time.Unix(100+int64(s), 0) }
	var parts Parts
	for i := range parts {
		parts[i] = FixSpan(PhaseNames[i], Internal, A("n", i))
	}
	trail := p.Trail()
	parent := flow.TraceContext{Trace: [16]byte{1}, Span: [8]byte{2}, Flags: 1}
	hop := trail.Begin(&Start{Parent: parent, At: at(0), Fixed: FixSpan("hop", Consumer).With(Number{Key: "bytes"}, Number{"offset", true})})
	trail.Int(0, -5)
	trail.Float(1, 0.25)
	trail.Set(A("set", true))
	trail.Cut(&parts, &[Phases + 1]time.Time{at(0), at(1), at(1), at(3), at(2), at(5), at(9)})
	trail.Cut(&parts, nil) // has no span
	after := trail.Record(&Start{Parent: hop, Name: "after", At: at(9)}, at(10))
	trail.Flush()
	k := &kept{t: t}
	if n := k.take(p.queue); n != 7 {
		t.Fatalf("%d spans, want 7: %v", n, k.spans)
	}
	ids := map[string]bool{}
	for i, want := range []struct {
		name     string
		from, to int
		parent   flow.TraceContext
	}{{"hop", 0, 9, parent}, {"fill", 0, 1, hop}, {"send_queue", 1, 3, hop}, {"wire", 3, 3, hop}, {"receive_queue", 2, 5, hop}, {"alignment", 5, 9, hop}, {"after", 9, 10, hop}} {
		s := k.spans[i]
		ids[string(s.SpanId)] = true
		if s.Name != want.name || s.StartTimeUnixNano != uint64(at(want.from).UnixNano()) || s.EndTimeUnixNano != uint64(at(want.to).UnixNano()) ||
			string(s.ParentSpanId) != string(want.parent.Span[:]) || string(s.TraceId) != string(parent.Trace[:]) {
			t.Errorf("span %d is %v, want %v", i, s, want)
		}
	}
	if len(ids) != 7 || !ids[string(hop.Span[:])] || !ids[string(after.Span[:])] {
		t.Errorf("the spans are named %v", ids)
	}
	if a := k.spans[0].Attributes; len(a) != 3 || a[0].Value.GetIntValue() != -5 || a[1].Value.GetDoubleValue() != 0.25 || !a[2].Value.GetBoolValue() {
		t.Errorf("the attributes are %v", a)
	}
}

// choosy is a spanExporter that fails by turns.
type choosy struct {
	sizes  []int
	failed bool
}

func (c *choosy) export(_ context.Context, b []byte) error {
	c.sizes = append(c.sizes, len(b))
	if c.failed = !c.failed; c.failed {
		return errors.New("busy")
	}
	return nil
}
func (c *choosy) shutdown(context.Context) error { return nil }

// TestLargeBatch: a batch goes out in requests of at most a MiB, but for a span that is larger by itself, and what each comes to is counted.
func TestLargeBatch(t *testing.T) {
	for _, giveUp := range []bool{false, true} {
		c := &choosy{}
		q := &queue{most: 100, batch: 100, full: make(chan struct{}, 1), exporter: c, timeout: time.Second, log: slog.New(slog.DiscardHandler)}
		trail := (&Provider{spans: sdktrace.NewTracerProvider(), queue: q}).Trail()
		for _, kb := range []int{400, 400, 400, 3000, 1, 700, 400} {
			trail.Record(&Start{Parent: flow.TraceContext{Trace: [16]byte{1}, Span: [8]byte{2}, Flags: 1}, Name: strings.Repeat("x", kb<<10)}, time.Time{})
		}
		trail.Flush()
		taken := q.export(t.Context(), q.take(), giveUp)
		for i, size := range c.sizes {
			if size > batchBytes && i != 2 {
				t.Errorf("request %d has %d bytes", i, size)
			}
		}
		// 400 400 | 400 | 3000 | 1 700 | 400: the first, third and fifth fail
		requests, exported, failed := 5, int64(1+2), int64(2+1+1)
		if giveUp {
			requests, exported, failed = 1, 0, 7
		}
		if len(c.sizes) != requests || q.exported.Load() != exported || q.failed.Load() != failed || taken {
			t.Errorf("giving up %v: requests of %v bytes, %d spans exported, %d failed", giveUp, c.sizes, q.exported.Load(), q.failed.Load())
		}
	}
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
		if n := k.take(q); n != want {
			t.Errorf("a batch has %d spans, want %d", n, want)
		}
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
	framed := appendBytes(nil, scopeSpans, message)
	for range 12 {
		q.put(&spool{records: []record{{whole: true, more: uint32(len(framed))}}, more: framed, n: 1})
	}
	if got := q.dropped.Load(); got != 2 {
		t.Errorf("%d spans are dropped, want 2", got)
	}
	for _, want := range []int{4, 4, 2, 0} {
		if n := k.take(q); n != want {
			t.Errorf("a batch has %d spans, want %d", n, want)
		}
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

// BenchmarkMessages measures what Trails leave to the exporting goroutine, a span.
func BenchmarkMessages(b *testing.B) {
	at := time.Now()
	hop := FixSpan("exchange", Consumer, A("heddle.vertex", "map, filter"), A("heddle.subtask", 3)).With(Number{Key: "heddle.segment.bytes"}, Number{Key: "heddle.backlog"})
	var parts Parts
	var times [Phases + 1]time.Time
	for p := range Phases {
		parts[p] = FixSpan("wait for credit", Internal, A("heddle.phase", PhaseNames[p]))
		times[p+1] = at.Add(time.Duration(p) * time.Millisecond)
	}
	times[0] = at
	q := &queue{most: 1 << 40, batch: 1 << 30, full: make(chan struct{}, 1)}
	t := (&Provider{spans: sdktrace.NewTracerProvider(), queue: q}).Trail()
	for range 200 {
		t.Begin(&Start{Parent: flow.TraceContext{Trace: [16]byte{1}, Span: [8]byte{2}, Flags: 1}, At: at, Fixed: hop})
		t.Int(0, 1<<15)
		t.Cut(&parts, &times)
		t.Flush()
	}
	batch := q.take()
	var buf []byte
	b.ReportAllocs()
	for n := 0; n < b.N; n += batch.n {
		r := spoolReader{spool: &batch}
		buf, _ = r.next(buf, 1<<30)
	}
}
