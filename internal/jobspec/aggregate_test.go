package jobspec

import (
	"bytes"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/heddle-stream/heddle/internal/jobspec/row"
)

// every is an aggregator with all kinds, each on the same value.
func every() *aggregator {
	g := &aggregator{skip: 1}
	for k := countAll; k <= lastOf; k++ {
		g.kinds = append(g.kinds, k)
	}
	return g
}

// input is a row with a key and the value for each aggregate that has an argument.
func (g *aggregator) input(t testing.TB, x any) row.Row {
	values := []any{"key"}
	for _, k := range g.kinds {
		if k != countAll {
			values = append(values, x)
		}
	}
	return rowOf(t, values...)
}

func TestAggregates(t *testing.T) {
	g := every()
	for _, tt := range []struct {
		name   string
		values []any
		want   []any // count(), count, distinct, sum, avg, min, max, first, last
	}{
		{"none", nil, []any{0, 0, 0, nil, nil, nil, nil, nil, nil}},
		{"nulls", []any{nil, nil}, []any{2, 0, 0, nil, nil, nil, nil, nil, nil}},
		{"ints", []any{3, nil, 1, 3}, []any{4, 3, 2, 7, 7.0 / 3, 1, 3, 3, 3}},
		{"floats", []any{1.5, 2}, []any{2, 2, 2, 3.5, 1.75, 1.5, 2, 1.5, 2}},
		{"equal numbers", []any{1, 1.0}, []any{2, 2, 1, 2.0, 1.0, 1, 1, 1, 1.0}},
		{"overflow", []any{math.MaxInt64, 1}, []any{2, 2, 2, float64(math.MaxInt64) + 1, (float64(math.MaxInt64) + 1) / 2, 1, math.MaxInt64, math.MaxInt64, 1}},
		{"underflow", []any{math.MinInt64, -1, 0}, []any{3, 3, 3, float64(math.MinInt64) - 1, (float64(math.MinInt64) - 1) / 3, math.MinInt64, 0, math.MinInt64, 0}},
	} {
		acc := g.Zero()
		for _, x := range tt.values {
			acc = g.Add(acc, g.input(t, x))
		}
		if got, want := g.Result(acc), rowOf(t, tt.want...); got != want {
			t.Errorf("%s: got %s, want %s", tt.name, got, want)
		}
	}
}

func TestAggregateOrder(t *testing.T) {
	g := &aggregator{kinds: []aggKind{minOf, maxOf}}
	acc := g.Zero()
	for _, x := range []any{"b", "a", "c", true, 7, noon} {
		acc = g.Add(acc, rowOf(t, x, x))
	}
	if got, want := g.Result(acc), rowOf(t, true, noon); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestMergeIsAdd: records added to one accumulator or to two that are merged come to the same, through the codec as well.
func TestMergeIsAdd(t *testing.T) {
	g := every()
	codec, err := g.Codec(nil)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		// Multiples of 1/4 add up exactly in any order.
		gen := rapid.OneOf(rapid.Just[any](nil), rapid.Map(rapid.IntRange(-9, 9), func(i int) any { return i }),
			rapid.Map(rapid.IntRange(-9, 9), func(i int) any { return float64(i) / 4 }))
		values := rapid.SliceOf(gen).Draw(rt, "values")
		cut := rapid.IntRange(0, len(values)).Draw(rt, "cut")
		all, first, second := g.Zero(), g.Zero(), g.Zero()
		for i, x := range values {
			all = g.Add(all, g.input(t, x))
			if i < cut {
				first = g.Add(first, g.input(t, x))
			} else {
				second = g.Add(second, g.input(t, x))
			}
		}
		b, err := codec.Append(nil, &second)
		if err != nil {
			rt.Fatal(err)
		}
		var read *accumulator
		if err := codec.Decode(b, &read); err != nil {
			rt.Fatal(err)
		}
		if again, _ := codec.Append(nil, &read); !bytes.Equal(again, b) {
			rt.Fatalf("encoded as %x, read and encoded as %x", b, again)
		}
		for n := range b {
			if err := codec.Decode(b[:n], &read); err == nil {
				rt.Fatalf("the first %d of %d bytes are accepted", n, len(b))
			}
		}
		if err := codec.Decode(b, &read); err != nil {
			rt.Fatal(err)
		}
		merged := g.Merge(first, read)
		if got, want := g.Result(merged), g.Result(all); got != want {
			rt.Fatalf("%v cut at %d: merged %s, want %s", values, cut, got, want)
		}
		if again, _ := codec.Append(nil, &read); !bytes.Equal(again, b) {
			rt.Fatal("Merge changed what it merged from")
		}
	})
}

func FuzzAccumulator(f *testing.F) {
	g := every()
	acc := g.Add(g.Zero(), g.input(f, "x"))
	b, err := accumulatorCodec{g}.Append(nil, &acc)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(_ *testing.T, b []byte) {
		var acc *accumulator
		if err := (accumulatorCodec{g}).Decode(b, &acc); err == nil {
			_ = g.Result(acc)
		}
	})
}
