package jobspec

import (
	"testing"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/jobspec/row"
)

// clicks are 1024 messages of JSON with nine fields.
func clicks() *flow.Messages {
	m := &flow.Messages{}
	for range 1024 {
		const s = `{"id":12345678,"user":"user-4711","kind":"click","url":"/products/42?ref=mail","at":"2026-03-01T12:00:00Z","ip":"192.0.2.17","ms":31,"score":0.75,"tags":["a","b"]}`
		m.Values = append(m.Values, flow.Span{Off: int32(len(m.Buf)), Len: int32(len(s))})
		m.Buf = append(m.Buf, s...)
	}
	return m
}

func BenchmarkDecodeJSON(b *testing.B) {
	for name, s := range map[string]row.Schema{
		"all":   {Rest: true},
		"three": {Cols: []row.Column{{Name: "kind", Type: row.AnyType}, {Name: "url", Type: row.AnyType}, {Name: "user", Type: row.AnyType}}},
	} {
		b.Run(name, func(b *testing.B) {
			m, f := clicks(), row.NewJSON(s, nil)
			b.ReportAllocs()
			var rows []row.Row
			for b.Loop() {
				var err error
				if rows, err = f.Decode(rows[:0], m, 0); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*1024), "ns/record")
		})
	}
}

func BenchmarkExpression(b *testing.B) {
	for _, src := range []string{`s == "click"`, `i > 3 && f < 2.0`, `lower(s)`, `words(s)`} {
		b.Run(src, func(b *testing.B) {
			e, err := compileText(b, src)
			if err != nil {
				b.Fatal(err)
			}
			v, r := e.evaluator(testSchema), rowOf(b, "click on that", 5, 1.5, true, nil, nil, nil, nil)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := v.run(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAggregate(b *testing.B) {
	g := &aggregator{skip: 1, kinds: []aggKind{countAll, sumOf, maxOf}}
	r := rowOf(b, "user-4711", 31, "/products/42")
	acc := g.Zero()
	b.ReportAllocs()
	for b.Loop() {
		acc = g.Add(acc, r)
	}
}

func BenchmarkFlatMapWords(b *testing.B) {
	in := row.Schema{Cols: []row.Column{{Name: "s", Type: row.StringType}}}
	e, err := compileText(b, "words(s)")
	if err != nil {
		b.Fatal(err)
	}
	p := project(in, row.Schema{Cols: []row.Column{{Name: "word", Type: row.StringType}}}, map[string]*expression{"word": e}, nil)
	p.split = 0
	r, line := newProjector(p), rowOf(b, "the quick brown fox jumps over the lazy dog and away")
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		if err := r.Apply(line, func(row.Row) { n++ }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/word")
}
