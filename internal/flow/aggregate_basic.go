package flow

import "cmp"

// Number is what can be added up.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// Count counts records.
func Count[T any]() Aggregator[T, int64, int64] { return countAgg[T]{} }

type countAgg[T any] struct{}

func (countAgg[T]) Zero() int64                  { return 0 }
func (countAgg[T]) Add(acc int64, _ T) int64     { return acc + 1 }
func (countAgg[T]) Merge(into, from int64) int64 { return into + from }
func (countAgg[T]) Result(acc int64) int64       { return acc }

// Sum adds up what of takes from each record.
func Sum[T any, N Number](of func(T) N) Aggregator[T, N, N] { return sumAgg[T, N]{of} }

type sumAgg[T any, N Number] struct{ of func(T) N }

func (s sumAgg[T, N]) Zero() N              { return 0 }
func (s sumAgg[T, N]) Add(acc N, rec T) N   { return acc + s.of(rec) }
func (s sumAgg[T, N]) Merge(into, from N) N { return into + from }
func (s sumAgg[T, N]) Result(acc N) N       { return acc }

// AvgAcc is the accumulator of Avg.
type AvgAcc struct {
	Sum float64
	N   int64
}

// Avg is the arithmetic mean of what of takes from each record; 0 of none.
func Avg[T any, N Number](of func(T) N) Aggregator[T, AvgAcc, float64] { return avgAgg[T, N]{of} }

type avgAgg[T any, N Number] struct{ of func(T) N }

func (a avgAgg[T, N]) Zero() AvgAcc { return AvgAcc{} }
func (a avgAgg[T, N]) Add(acc AvgAcc, rec T) AvgAcc {
	return AvgAcc{acc.Sum + float64(a.of(rec)), acc.N + 1}
}
func (a avgAgg[T, N]) Merge(into, from AvgAcc) AvgAcc {
	return AvgAcc{into.Sum + from.Sum, into.N + from.N}
}
func (a avgAgg[T, N]) Result(acc AvgAcc) float64 {
	if acc.N == 0 {
		return 0
	}
	return acc.Sum / float64(acc.N)
}

// One is an accumulator that holds one value, or none.
type One[V any] struct {
	V   V
	Has bool
}

// pick keeps one value: the later one where better says so.
type pickAgg[T, V any] struct {
	of     func(T) V
	better func(have, other V) bool
}

func (p pickAgg[T, V]) Zero() One[V] { return One[V]{} }
func (p pickAgg[T, V]) Add(acc One[V], rec T) One[V] {
	return p.Merge(acc, One[V]{p.of(rec), true})
}
func (p pickAgg[T, V]) Merge(into, from One[V]) One[V] {
	if from.Has && (!into.Has || p.better(into.V, from.V)) {
		return from
	}
	return into
}
func (p pickAgg[T, V]) Result(acc One[V]) V { return acc.V }

// Min is the least of what of takes from each record; the zero value of none. NaN is less than any number, as for cmp.Compare,
// so the least of records with a NaN among them is NaN, in whatever order they come.
func Min[T any, V cmp.Ordered](of func(T) V) Aggregator[T, One[V], V] {
	return pickAgg[T, V]{of, func(have, other V) bool { return cmp.Less(other, have) }}
}

// Max is the greatest of what of takes from each record; the zero value of none. NaN is less than any number, as for cmp.Compare,
// so it is the greatest only where there is no number.
func Max[T any, V cmp.Ordered](of func(T) V) Aggregator[T, One[V], V] {
	return pickAgg[T, V]{of, func(have, other V) bool { return cmp.Less(have, other) }}
}

// First is what of takes from the first record.
func First[T, V any](of func(T) V) Aggregator[T, One[V], V] { return firstAgg[T, V]{of} }

type firstAgg[T, V any] struct{ of func(T) V }

func (f firstAgg[T, V]) Zero() One[V] { return One[V]{} }
func (f firstAgg[T, V]) Add(acc One[V], rec T) One[V] {
	if acc.Has {
		return acc
	}
	return One[V]{f.of(rec), true}
}
func (f firstAgg[T, V]) Merge(into, from One[V]) One[V] {
	if into.Has {
		return into
	}
	return from
}
func (f firstAgg[T, V]) Result(acc One[V]) V { return acc.V }

// Last is what of takes from the last record.
func Last[T, V any](of func(T) V) Aggregator[T, One[V], V] {
	return pickAgg[T, V]{of, func(_, _ V) bool { return true }}
}

// Reducing combines records pairwise by f.
func Reducing[T any](f func(a, b T) T) Aggregator[T, One[T], T] { return reducingAgg[T]{f} }

type reducingAgg[T any] struct{ f func(a, b T) T }

func (r reducingAgg[T]) Zero() One[T] { return One[T]{} }
func (r reducingAgg[T]) Add(acc One[T], rec T) One[T] {
	if !acc.Has {
		return One[T]{rec, true}
	}
	acc.V = r.f(acc.V, rec)
	return acc
}
func (r reducingAgg[T]) Merge(into, from One[T]) One[T] {
	if !from.Has {
		return into
	}
	return r.Add(into, from.V)
}
func (r reducingAgg[T]) Result(acc One[T]) T { return acc.V }
