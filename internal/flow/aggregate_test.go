package flow

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

// checkAggregator compares an aggregator with a model over records, added one by one, in merged halves,
// and with accumulators that were encoded and decoded.
func checkAggregator[A, R any](t *testing.T, name string, agg Aggregator[event, A, R], model func([]event) R) {
	t.Run(name, func(t *testing.T) {
		codec, err := accumulatorCodec(agg, nil)
		if err != nil {
			t.Fatal(err)
		}
		through := func(acc A) A {
			b, err := codec.Append(nil, &acc)
			if err != nil {
				t.Fatal(err)
			}
			var back A
			if err := codec.Decode(b, &back); err != nil {
				t.Fatal(err)
			}
			for n := range b {
				var bad A
				_ = codec.Decode(b[:n], &bad) // an error or not, but no panic
			}
			return back
		}
		add := func(acc A, recs []event) A {
			for _, r := range recs {
				acc = agg.Add(acc, r)
			}
			return acc
		}
		rapid.Check(t, func(rt *rapid.T) {
			recs := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) event {
				return event{rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(rt, "key"), rapid.Int64Range(-5, 20).Draw(rt, "n")}
			}), 0, 12).Draw(rt, "records")
			cut := rapid.IntRange(0, len(recs)).Draw(rt, "cut")
			want := fmt.Sprint(model(recs))
			left, right := add(agg.Zero(), recs[:cut]), add(agg.Zero(), recs[cut:])
			before := fmt.Sprint(agg.Result(right))
			for how, acc := range map[string]A{
				"one by one": add(agg.Zero(), recs),
				"merged":     agg.Merge(agg.Merge(agg.Zero(), left), right),
				"restored":   add(through(add(agg.Zero(), recs[:cut])), recs[cut:]),
			} {
				if got := fmt.Sprint(agg.Result(acc)); got != want {
					rt.Fatalf("%v %s: got %s, want %s", recs, how, got, want)
				}
			}
			if after := fmt.Sprint(agg.Result(right)); after != before {
				rt.Fatalf("merging changed what was merged in: got %s, was %s", after, before)
			}
		})
	})
}

func TestAggregators(t *testing.T) {
	n := func(e event) int64 { return e.N }
	ns := func(es []event) []int64 {
		out := []int64{}
		for _, e := range es {
			out = append(out, e.N)
		}
		return out
	}
	total := func(es []event) (sum int64) {
		for _, e := range es {
			sum += e.N
		}
		return sum
	}
	best := func(pick func([]int64) int64) func([]event) int64 {
		return func(es []event) int64 {
			if len(es) == 0 {
				return 0
			}
			return pick(ns(es))
		}
	}
	positive := func(es []event) []event {
		return slices.DeleteFunc(slices.Clone(es), func(e event) bool { return e.N <= 0 })
	}
	keys := func(es []event) int64 {
		seen := map[string]bool{}
		for _, e := range es {
			seen[e.Key] = true
		}
		return int64(len(seen))
	}
	checkAggregator(t, "count", Count[event](), func(es []event) int64 { return int64(len(es)) })
	checkAggregator(t, "sum", Sum(n), total)
	checkAggregator(t, "avg", Avg(n), func(es []event) float64 {
		if len(es) == 0 {
			return 0
		}
		return float64(total(es)) / float64(len(es))
	})
	checkAggregator(t, "min", Min(n), best(slices.Min[[]int64]))
	checkAggregator(t, "max", Max(n), best(slices.Max[[]int64]))
	checkAggregator(t, "first", First(n), best(func(s []int64) int64 { return s[0] }))
	checkAggregator(t, "last", Last(n), best(func(s []int64) int64 { return s[len(s)-1] }))
	checkAggregator(t, "distinct", Distinct(func(e event) string { return e.Key }), keys)
	checkAggregator(t, "collect", Collect(n), ns)
	checkAggregator(t, "top", Top(3, func(e event) event { return e }, func(a, b event) bool { return a.N < b.N }), func(es []event) []event {
		es = slices.Clone(es)
		slices.SortStableFunc(es, func(a, b event) int { return cmp.Compare(b.N, a.N) })
		return es[:min(3, len(es))]
	})
	checkAggregator(t, "reducing", Reducing(func(a, b event) event { return event{a.Key + b.Key, a.N + b.N} }), func(es []event) event {
		var r event
		for _, e := range es {
			r = event{r.Key + e.Key, r.N + e.N}
		}
		return r
	})
	checkAggregator(t, "where", Where(func(e event) bool { return e.N > 0 }, Sum(n)), func(es []event) int64 { return total(positive(es)) })
	checkAggregator(t, "then", Then(Count[event](), func(n int64) string { return strings.Repeat("x", int(n)) }), func(es []event) string { return strings.Repeat("x", len(es)) })
	checkAggregator(t, "combine", Combine(Sum(n), Combine(Distinct(func(e event) string { return e.Key }), Collect(n), func(d int64, ns []int64) string { return fmt.Sprint(d, ns) }),
		func(sum int64, rest string) string { return fmt.Sprint(sum, rest) }), func(es []event) string {
		return fmt.Sprint(total(es), fmt.Sprint(keys(es), ns(es)))
	})
}

// The order in which records come must not matter, even for floats that no order of Go's has.
func TestMinMaxOfNaN(t *testing.T) {
	nan, same := math.NaN(), func(f float64) float64 { return f }
	for _, in := range [][]float64{{nan, 1, 2}, {2, nan, 1}, {2, 1, nan}, {nan, nan, 1, 2}} {
		lo, hi := Min(same), Max(same)
		a, b := lo.Zero(), hi.Zero()
		for _, f := range in {
			a, b = lo.Add(a, f), hi.Add(b, f)
		}
		if got := lo.Result(a); !math.IsNaN(got) {
			t.Errorf("least of %v is %v, want NaN", in, got)
		}
		if got := hi.Result(b); got != 2 {
			t.Errorf("greatest of %v is %v, want 2", in, got)
		}
	}
	only := Max(same)
	if got := only.Result(only.Add(only.Zero(), nan)); !math.IsNaN(got) {
		t.Errorf("greatest of NaN alone is %v, want NaN", got)
	}
}

// segmentEvents gives each record its strings from memory that is overwritten after the call, as a segment's may be.
type segmentEvents struct{ mem []byte }

func (s *segmentEvents) push(t *testing.T, in Out[event], words ...string) {
	t.Helper()
	for i, w := range words {
		s.mem = append(s.mem[:0], w...)
		b := Batch[event]{Recs: []event{{unsafe.String(&s.mem[0], len(w)), int64(i)}}, Times: []int64{int64(i)}}
		if err := in.Push(b); err != nil {
			t.Fatal(err)
		}
		for i := range s.mem {
			s.mem[i] = '!'
		}
	}
}

// What operators keep of records is theirs: keys, accumulators, state.
func TestKeptStateOutlivesSegments(t *testing.T) {
	word := func(e event) string { return e.Key }
	show := func(w Windowed[string, string]) string { return w.Key + ": " + w.Value }
	all := Combine(Collect(word), Combine(Top(9, word, func(a, b string) bool { return a < b }), Combine(Distinct(word), Combine(First(word), Last(word),
		func(f, l string) string { return f + l }), func(_ int64, s string) string { return s }), func(top []string, s string) string { return fmt.Sprint(top, s) }),
		func(list []string, s string) string { return fmt.Sprint(list, s) })
	for _, spec := range []WindowSpec{{Kind: GlobalWindow}, {Kind: SessionWindow, Gap: 1e9}, {Kind: SlidingWindow, Size: 2e9, Slide: 1e9}} {
		t.Run(spec.String(), func(t *testing.T) {
			f := NewWindow(WindowParams[string, event, Two[[]string, Two[[]string, Two[*Set[string], Two[One[string], One[string]]]]], string]{
				Spec: &spec, Key: word, Agg: all, Sides: lateSides()})
			c := newConversation(t, f, show)
			(&segmentEvents{}).push(t, c.in, "ab", "cd", "ab", "ef")
			got := c.endRecords(t)
			for _, want := range []string{"ab: [ab ab][ab ab]abab", "cd: [cd][cd]cdcd", "ef: [ef][ef]efef"} {
				if !strings.Contains(got, want) {
					t.Errorf("got %q, want %q in it", got, want)
				}
			}
		})
	}
	t.Run("process", func(t *testing.T) {
		f := processOf(nil, func(s *States) Processor[string, event, string] {
			v, l, m := NewValue[event](s, "v"), NewList[string](s, "l"), NewMapState[string, string](s, "m")
			return Processor[string, event, string]{
				Process: func(c *ProcessContext[string, string], e event) error {
					v.Set(e)
					l.Add(e.Key)
					m.Set(e.Key, e.Key)
					c.SetEventTimer(1 << 40)
					return nil
				},
				OnTimer: func(c *ProcessContext[string, string], _ Timer) error {
					w, _ := m.Get(c.Key())
					c.Emit(c.Key() + v.Get().Key + fmt.Sprint(l.Get()) + w)
					return nil
				},
			}
		})
		c := newConversation(t, f, showString)
		(&segmentEvents{}).push(t, c.in, "ab", "cd", "ab")
		if got, want := c.endRecords(t), "abab[ab ab]ab cdcd[cd]cd"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
	t.Run("rolling", func(t *testing.T) {
		f := NewRolling(RollingParams[string, event, []string, []string, string]{Key: word, Agg: Collect(word), Join: func(k string, v []string) string { return fmt.Sprint(k, v) }})
		c := newConversation(t, f, showString)
		(&segmentEvents{}).push(t, c.in, "ab", "cd", "ab")
		if got, want := c.endRecords(t), "ab[ab] cd[cd] ab[ab ab]"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// endRecords ends the input and returns the records that came out, times left out.
func (c *conversation) endRecords(t *testing.T) string {
	t.Helper()
	if err := c.say("end"); err != nil {
		t.Fatal(err)
	}
	return strings.Join(records(c.take(), false), " ")
}
