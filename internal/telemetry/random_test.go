package telemetry

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/heddle-stream/heddle/internal/flow"
)

// randomText is short, long, empty, or no UTF-8.
func randomText(r *rand.Rand) string {
	switch r.IntN(6) {
	case 0:
		return ""
	case 1:
		return strings.Repeat("x", r.IntN(20_000))
	case 2:
		return "bad \xff\xfe " + string(rune(r.IntN(0x10000)))
	}
	return "text " + string(rune(r.IntN(0x2000)))
}

// randomAttrs have keys of their own each: the SDK would keep the last of several.
func randomAttrs(r *rand.Rand, used *int) (attrs []flow.TraceAttr) {
	for range r.IntN(5) {
		*used++
		key := "k" + strings.Repeat("y", *used)
		var v any
		switch r.IntN(8) {
		case 0:
			v = randomText(r)
		case 1:
			v = r.Int() - math.MaxInt/2
		case 2:
			v = -r.Int64()
		case 3:
			v = []float64{0, r.NormFloat64(), math.Inf(1), math.MaxFloat64, math.Copysign(0, -1)}[r.IntN(5)]
		case 4:
			v = r.IntN(2) == 0
		case 5:
			list := make([]string, r.IntN(4))
			for i := range list {
				list[i] = randomText(r)
			}
			v = list
		case 6:
			v = struct{}{} // of no type that attributes have
		case 7:
			v = r.IntN(300)
		}
		attrs = append(attrs, A(key, v))
	}
	return attrs
}

// TestRandomSpans holds what trails write against what is made of the SDK's spans, for spans of all forms, one after the other in one trail, flushed now and
// then: no span is lost, none is spoiled by those around it.
func TestRandomSpans(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := keeping()
		trail := p.Trail()
		ctx := func() flow.TraceContext {
			c := flow.TraceContext{Flags: 1 | byte(r.IntN(2))<<1}
			for i := range c.Trace {
				c.Trace[i] = byte(1 + r.IntN(255))
			}
			copy(c.Span[:], c.Trace[5:])
			return c
		}
		var ids []flow.TraceContext
		var want []*tracepb.Span
		for range 1 + r.IntN(12) {
			used := 0
			st := Start{Parent: ctx(), At: time.Unix(r.Int64N(1<<31), r.Int64N(1e9)), Attrs: randomAttrs(r, &used)}
			if r.IntN(2) == 0 {
				st.Fixed = FixSpan(randomText(r)+"!", Producer, randomAttrs(r, &used)...)
			} else {
				st.Name, st.Kind, st.Fixed = randomText(r)+"!", Internal, Fix(randomAttrs(r, &used)...)
			}
			for range r.IntN(4) {
				st.Links = append(st.Links, ctx())
			}
			root, end := r.IntN(3) == 0, st.At.Add(time.Duration(r.Int64N(1e12)-1e11))
			if root && r.IntN(2) == 0 {
				st.Parent = flow.TraceContext{}
			}
			sdk := p.Start(st)
			numbers := randomNumbers(r, &used)
			if !root {
				st.Fixed = st.Fixed.With(numbers...)
			}
			var c flow.TraceContext
			if root {
				c = trail.Root(&st, end)
			} else {
				c = trail.Begin(&st)
				for range r.IntN(3) {
					more := randomAttrs(r, &used)
					trail.Set(more...)
					sdk.Set(more...)
				}
				for i, number := range numbers {
					if n, f := r.Int()-math.MaxInt/2, r.NormFloat64(); number.Float {
						trail.Float(i, f)
						sdk.Set(A(number.Key, f))
					} else {
						trail.Int(i, n)
						sdk.Set(A(number.Key, n))
					}
				}
				if r.IntN(3) == 0 {
					text := randomText(r)
					trail.Fail(text)
					sdk.Fail(text)
				}
				trail.Flush() // does nothing now
				trail.End(end)
				trail.Int(0, 1) // too late
			}
			if end.Before(st.At) {
				end = st.At
			}
			sdk.End(end)
			want = append(want, decoded(t, p.queue)...) // but the trail's, which wait in it
			ids = append(ids, c)
			if r.IntN(3) == 0 {
				trail.Flush()
				want, ids = compare(t, seed, p, want, ids)
			}
		}
		trail.Flush()
		compare(t, seed, p, want, ids)
	}
}

func randomNumbers(r *rand.Rand, used *int) (numbers []Number) {
	for range r.IntN(maxNumbers + 1) {
		*used++
		numbers = append(numbers, Number{strings.Repeat("z", *used), r.IntN(2) == 0})
	}
	return numbers
}

// decoded takes what waits in q.
func decoded(t *testing.T, q *queue) []*tracepb.Span {
	t.Helper()
	k := &kept{t: t}
	for k.take(q) > 0 {
	}
	return k.spans
}

// compare takes what was flushed and holds it against want, by the identities that were told.
func compare(t *testing.T, seed uint64, p *Provider, want []*tracepb.Span, ids []flow.TraceContext) ([]*tracepb.Span, []flow.TraceContext) {
	t.Helper()
	got := decoded(t, p.queue)
	if len(got) != len(want) {
		t.Fatalf("seed %d: %d spans were written, want %d", seed, len(got), len(want))
	}
	for i := range got {
		if string(got[i].TraceId) != string(ids[i].Trace[:]) || string(got[i].SpanId) != string(ids[i].Span[:]) || ids[i].Span == [8]byte{} {
			t.Fatalf("seed %d: span %d is not the one that it was told to be", seed, i)
		}
		got[i].SpanId, got[i].TraceId = want[i].SpanId, want[i].TraceId
		if !equalSpans(got[i], want[i]) {
			t.Fatalf("seed %d: span %d is\n%.1000v\nand not\n%.1000v", seed, i, got[i], want[i])
		}
	}
	return nil, nil
}

// equalSpans ignores the order of attributes: a trail has those that are fixed first.
func equalSpans(a, b *tracepb.Span) bool {
	byKey := map[string]proto.Message{}
	for _, kv := range a.Attributes {
		byKey[kv.Key] = kv
	}
	if len(byKey) != len(a.Attributes) || len(a.Attributes) != len(b.Attributes) {
		return false
	}
	for _, kv := range b.Attributes {
		if m := byKey[kv.Key]; m == nil || !proto.Equal(m, kv) {
			return false
		}
	}
	a, b = proto.Clone(a).(*tracepb.Span), proto.Clone(b).(*tracepb.Span)
	a.Attributes, b.Attributes = nil, nil
	return proto.Equal(a, b)
}

// TestSpanWithinSpan: a span that is begun while another is written, which should not be, costs that other's end, and no batch.
func TestSpanWithinSpan(t *testing.T) {
	p := keeping()
	trail := p.Trail()
	at := time.Unix(100, 0)
	outer := trail.Begin(&Start{Parent: flow.TraceContext{Trace: [16]byte{1}, Span: [8]byte{2}, Flags: 1}, Name: "outer", At: at})
	trail.Begin(&Start{Parent: outer, Name: "inner", At: at.Add(time.Second)})
	trail.End(at.Add(3 * time.Second))
	trail.End(at.Add(5 * time.Second)) // the outer one's: it has ended
	trail.Flush()
	spans := decoded(t, p.queue)
	if len(spans) != 2 || spans[0].Name != "outer" || spans[0].EndTimeUnixNano != uint64(at.Add(time.Second).UnixNano()) ||
		spans[1].Name != "inner" || spans[1].EndTimeUnixNano != uint64(at.Add(3*time.Second).UnixNano()) || string(spans[1].ParentSpanId) != string(spans[0].SpanId) {
		t.Errorf("the spans are %v", spans)
	}
}
