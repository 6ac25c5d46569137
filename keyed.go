package heddle

import "github.com/heddle-stream/heddle/internal/flow"

// Keyed is a stream in which all records of one key go to the same subtask, in order. Operators on it hold state by key.
// The key function is called more than once a record, must depend on the record alone and should be cheap.
type Keyed[K comparable, T any] struct {
	s   Stream[T] // partitioned by key
	key func(T) K
	one bool // there is only one key: parallelism 1
}

// KeyBy groups a stream by the key that key takes from each record.
//
// A key consists of integers, floats, bools, strings, time.Time, and arrays and structs of these. It belongs to one of
// MaxParallelism key groups by a hash that is the same in every process and version, and so to a subtask.
// Moments are one key if they are the same instant, whatever their time zone: a time.Time in a key comes back in UTC.
func KeyBy[T any, K comparable](s Stream[T], key func(T) K) Keyed[K, T] {
	s.job.needs(key != nil, "KeyBy", "its function")
	by, err := flow.NewKeyBy(key)
	if err != nil {
		s.job.errorf("cannot key by it: %w", err)
		return Keyed[K, T]{s: s, key: key}
	}
	return Keyed[K, T]{s: s.with(flow.Partitioning{Kind: flow.Hash, Impl: by}), key: key}
}

// All makes one group of all records, so that windows and state of the whole stream are possible.
// What works on it runs in a single subtask.
func All[T any](s Stream[T]) Keyed[struct{}, T] {
	k := KeyBy(s, func(T) struct{} { return struct{}{} })
	k.one = true
	return k
}

// addKeyed adds an operator with keyed input and main output U. check is its node's.
func addKeyed[U any, K comparable, T any](in Keyed[K, T], spec nodeSpec, check func() error) Stream[U] {
	spec.keyed = true
	s := addNode[U](in.s.job, spec, in.s.edges(0)...)
	s.op.node.Check = check
	if in.one {
		s.op.node.Parallelism = 1
	}
	return s
}
