package heddle

import (
	"cmp"

	"github.com/heddle-stream/heddle/internal/flow"
)

// Aggregator sums up records of type T in an accumulator of type A, from which it makes a result of type R.
// It may be implemented by the author of a job.
type Aggregator[T, A, R any] = flow.Aggregator[T, A, R]

// Number is what can be added up.
type Number = flow.Number

// Count counts records.
func Count[T any]() Aggregator[T, int64, int64] { return flow.Count[T]() }

// Sum adds up what of takes from each record.
func Sum[T any, N Number](of func(T) N) Aggregator[T, N, N] { return flow.Sum(of) }

// Avg is the arithmetic mean of what of takes from each record; 0 of none.
func Avg[T any, N Number](of func(T) N) Aggregator[T, flow.AvgAcc, float64] { return flow.Avg(of) }

// Min is the least of what of takes from each record; the zero value of none. A NaN is less than any number (as for cmp.Compare),
// so it is what comes out if there is one.
func Min[T any, V cmp.Ordered](of func(T) V) Aggregator[T, flow.One[V], V] { return flow.Min(of) }

// Max is the greatest of what of takes from each record; the zero value of none. A NaN is less than any number (as for cmp.Compare),
// so it comes out only if there is nothing else.
func Max[T any, V cmp.Ordered](of func(T) V) Aggregator[T, flow.One[V], V] { return flow.Max(of) }

// First is what of takes from the first record to arrive; of sliding windows, from their first slide that has any.
func First[T, V any](of func(T) V) Aggregator[T, flow.One[V], V] { return flow.First(of) }

// Last is what of takes from the last record to arrive; of sliding windows, from their last slide that has any.
func Last[T, V any](of func(T) V) Aggregator[T, flow.One[V], V] { return flow.Last(of) }

// Distinct counts how many different values of takes from records, exactly: it keeps them all. Values of type time.Time are the same if
// they are the same instant; all NaN count as one. A type that holds pointers is refused, since those are equal only by where they lead.
func Distinct[T any, V comparable](of func(T) V) Aggregator[T, *flow.Set[V], int64] {
	return flow.Distinct(of)
}

// Collect gathers what of takes from each record, in order of arrival.
func Collect[T, V any](of func(T) V) Aggregator[T, []V, []V] { return flow.Collect(of) }

// Top keeps the n greatest of what of takes from each record, by less, the greatest first. Of equals, the earlier comes first.
func Top[T, V any](n int, of func(T) V, less func(a, b V) bool) Aggregator[T, []V, []V] {
	return flow.Top(n, of, less)
}

// Reducing combines records pairwise: f(f(r1, r2), r3) and so on. f must be associative where windows slide or are sessions.
// f must not modify its arguments.
func Reducing[T any](f func(a, b T) T) Aggregator[T, flow.One[T], T] { return flow.Reducing(f) }

// Where lets only records through to agg for which keep is true.
func Where[T, A, R any](keep func(T) bool, agg Aggregator[T, A, R]) Aggregator[T, A, R] {
	return flow.Where(keep, agg)
}

// Then makes something else of the result of agg.
func Then[T, A, R, S any](agg Aggregator[T, A, R], f func(R) S) Aggregator[T, A, S] {
	return flow.Then(agg, f)
}

// Combine runs two aggregators over the same records and joins their results. Combine again for more.
func Combine[T, A1, R1, A2, R2, R any](a Aggregator[T, A1, R1], b Aggregator[T, A2, R2], join func(R1, R2) R) Aggregator[T, flow.Two[A1, A2], R] {
	return flow.Combine(a, b, join)
}
