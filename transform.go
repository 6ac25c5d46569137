package heddle

import "github.com/heddle-stream/heddle/internal/flow"

// Env is what a function may ask of its operator: its place in the job, counters, options.
type Env = flow.Env

// Counter counts and is shown with the operator's figures.
type Counter = flow.Counter

// Func is an operator's function with a life of its own, for what needs a connection or keeps something between records.
// There is one instance for each subtask and one goroutine calls it.
type Func[T, U any] = flow.Func[T, U]

// Map applies f to every record.
func Map[T, U any](s Stream[T], f func(T) U) Stream[U] {
	s.job.needs(f != nil, "Map", "its function")
	return addNode[U](s.job, nodeSpec{kind: "map", new: flow.NewMap(f)}, s.edges(0)...)
}

// Filter keeps the records for which keep returns true.
func Filter[T any](s Stream[T], keep func(T) bool) Stream[T] {
	s.job.needs(keep != nil, "Filter", "its function")
	return addNode[T](s.job, nodeSpec{kind: "filter", new: flow.NewFilter(keep)}, s.edges(0)...)
}

// FlatMap calls f for every record; f emits what becomes of it: nothing, one record or many.
func FlatMap[T, U any](s Stream[T], f func(v T, emit func(U))) Stream[U] {
	s.job.needs(f != nil, "FlatMap", "its function")
	return TryFlatMap(s, func(v T, emit func(U)) error { f(v, emit); return nil }).kind("flatmap")
}

// TryMap is Map with a function that may fail; see Stream.OnError.
func TryMap[T, U any](s Stream[T], f func(T) (U, error)) Stream[U] {
	s.job.needs(f != nil, "TryMap", "its function")
	return TryFlatMap(s, func(v T, emit func(U)) error {
		u, err := f(v)
		if err == nil {
			emit(u)
		}
		return err
	}).kind("map")
}

// TryFilter is Filter with a function that may fail; see Stream.OnError.
func TryFilter[T any](s Stream[T], keep func(T) (bool, error)) Stream[T] {
	s.job.needs(keep != nil, "TryFilter", "its function")
	return TryFlatMap(s, func(v T, emit func(T)) error {
		ok, err := keep(v)
		if err == nil && ok {
			emit(v)
		}
		return err
	}).kind("filter")
}

// TryFlatMap is FlatMap with a function that may fail; see Stream.OnError. What f emitted before it failed stays emitted.
func TryFlatMap[T, U any](s Stream[T], f func(v T, emit func(U)) error) Stream[U] {
	s.job.needs(f != nil, "TryFlatMap", "its function")
	p, sides := new(flow.Policy), new(flow.Sides)
	return addNode[U](s.job, nodeSpec{kind: "flatmap", policy: p, sides: sides, new: flow.NewFlatMap(f, p, sides)}, s.edges(0)...)
}

// Apply runs functions that have a life: newFunc makes the one of each subtask. They may use side outputs (Tag.Emit), counters
// and options. It serves as a map, a filter or a flat map.
func Apply[T, U any](s Stream[T], newFunc func() Func[T, U]) Stream[U] {
	s.job.needs(newFunc != nil, "Apply", "the function that makes its functions")
	p, sides := new(flow.Policy), new(flow.Sides)
	return addNode[U](s.job, nodeSpec{kind: "apply", policy: p, sides: sides, new: flow.NewApply(newFunc, p, sides)}, s.edges(0)...)
}

// kind renames the kind of operator just made.
func (s Stream[T]) kind(k string) Stream[T] {
	s.op.node.Kind = k
	return s
}
