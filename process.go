package heddle

import (
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
)

// Processor is the functions of an operator on keyed records: what to do with a record and when a timer has come.
// One goroutine calls them. Those that are nil are not needed, save Process.
type Processor[K comparable, T, U any] = flow.Processor[K, T, U]

// ProcessContext is what the functions of a Processor may ask of its operator: key, times, timers; Emit puts out a record.
// It is an Env, so that counters, options and side outputs (Tag.Emit) are at hand.
type ProcessContext[K comparable, U any] = flow.ProcessContext[K, U]

// Timer is a moment that a function asked to be called at.
type Timer = flow.Timer

// States are where the setup function of an operator declares its states.
type States = flow.States

// Value is a state that holds one value for each key.
type Value[S any] = flow.Value[S]

// List is a state that holds a list for each key.
type List[S any] = flow.List[S]

// MapState is a state that holds a map for each key.
type MapState[MK comparable, MV any] = flow.Map[MK, MV]

// NewValue declares a Value. The name is what checkpoints know it by.
func NewValue[S any](s *States, name string) *Value[S] { return flow.NewValue[S](s, name) }

// NewList declares a List. The name is what checkpoints know it by.
func NewList[S any](s *States, name string) *List[S] { return flow.NewList[S](s, name) }

// NewMapState declares a MapState. The name is what checkpoints know it by.
func NewMapState[MK comparable, MV any](s *States, name string) *MapState[MK, MV] {
	return flow.NewMapState[MK, MV](s, name)
}

// InstantOf returns t as an Instant.
func InstantOf(t time.Time) Instant { return flow.InstantOf(t) }

// Process runs functions of the author's on keyed records, with state for each key and timers.
//
// setup is called once for each subtask, and once when the graph is built. It declares the states that its functions use and must
// do nothing else; connections are for Processor.Open. States are read and written for the key of the record or timer at hand:
//
//	visits := heddle.Process(byUser, func(s *heddle.States) heddle.Processor[string, Click, Visit] {
//		clicks := heddle.NewValue[int](s, "clicks")
//		return heddle.Processor[string, Click, Visit]{
//			Process: func(c *heddle.ProcessContext[string, Visit], click Click) error {
//				clicks.Set(clicks.Get() + 1)
//				…
func Process[K comparable, T, U any](in Keyed[K, T], setup func(*States) Processor[K, T, U]) Stream[U] {
	j := in.s.job
	if !j.needs(setup != nil, "Process", "its setup function") {
		setup = func(*States) (p Processor[K, T, U]) { return p }
	}
	policy, sides := new(flow.Policy), new(flow.Sides)
	p := flow.ProcessParams[K, T, U]{Key: in.key, Setup: setup, Policy: policy, Sides: sides, Codecs: j.codecs}
	return addKeyed[U](in, nodeSpec{kind: "process", policy: policy, sides: sides, new: flow.NewProcess(p)}, p.Check)
}

// KeyValue is a key with a result.
type KeyValue[K comparable, V any] struct {
	Key   K `json:"key"`
	Value V `json:"value"`
}

// Reduce combines all records of a key, one after the other, and puts out the result so far for each record.
// The first record is put out as it is. f must not modify its arguments. State is kept for ever: use windows where keys come and go.
func Reduce[K comparable, T any](in Keyed[K, T], f func(sofar, rec T) T) Stream[T] {
	in.s.job.needs(f != nil, "Reduce", "its function")
	p := flow.RollingParams[K, T, flow.One[T], T, T]{
		Key: in.key, Agg: Reducing(f), Join: func(_ K, v T) T { return v }, Codecs: in.s.job.codecs,
	}
	return addKeyed[T](in, nodeSpec{kind: "reduce", new: flow.NewRolling(p)}, p.Check)
}

// Running sums up all records of a key by agg, and puts out the result so far for each record. State is kept for ever.
func Running[K comparable, T, A, R any](in Keyed[K, T], agg Aggregator[T, A, R]) Stream[KeyValue[K, R]] {
	in.s.job.needs(agg != nil, "Running", "its aggregator")
	p := flow.RollingParams[K, T, A, R, KeyValue[K, R]]{
		Key: in.key, Agg: agg, Join: func(k K, v R) KeyValue[K, R] { return KeyValue[K, R]{k, v} }, Codecs: in.s.job.codecs,
	}
	return addKeyed[KeyValue[K, R]](in, nodeSpec{kind: "running", new: flow.NewRolling(p)}, p.Check)
}

// Dedupe passes on the first record of each key and leaves out the others, for as long as within after the first: by event time, or
// by the clock of the machine if the stream has no event times. With 0 it remembers keys for ever.
func Dedupe[K comparable, T any](in Keyed[K, T], within time.Duration) Stream[T] {
	j := in.s.job
	if within < 0 || within%time.Millisecond != 0 {
		j.errorf("cannot dedupe within %v: it is not a whole number of milliseconds", within)
	}
	p := flow.ProcessParams[K, T, T]{Key: in.key, Setup: flow.Deduper[K, T](within), Codecs: j.codecs}
	detail := "for ever"
	if within > 0 {
		detail = "within " + within.String()
	}
	return addKeyed[T](in, nodeSpec{kind: "dedupe", detail: detail, new: flow.NewProcess(p)}, p.Check)
}
