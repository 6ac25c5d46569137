package flow

import (
	"context"
	"fmt"
)

// Env is what an author's function may ask of its operator. Every Runtime is one.
type Env interface {
	JobName() string
	Subtask() int
	Parallelism() int
	MaxParallelism() int
	Now() int64
	Counter(name string) *Counter
	Option(name string) (string, bool)
}

// Func is an author's operator with a life: one instance a subtask.
type Func[T, U any] interface {
	// Open is called before the first record. ctx ends with the task.
	Open(ctx context.Context, env Env) error
	// Apply emits what becomes of v: nothing, one record or many.
	Apply(v T, emit func(U)) error
	// Close is called once after Open, however the task ends.
	Close() error
}

// base is what the stateless operators share. Owned by the task's goroutine.
type base struct {
	node    *Node
	policy  *Policy
	sides   *SideOuts
	skipped *Counter

	time    int64 // of the record being applied
	timed   bool
	pushing bool  // the consumers run, not the author's function: a panic is theirs
	err     error // of a push within the author's function
}

func newBase(rt Runtime, p *Policy, s *Sides, outs []any) base {
	b := base{node: rt.Node(), policy: p, sides: NewSideOuts(s, outs)}
	if p != nil && p.OnError != Fail {
		b.skipped = rt.Counter("skipped records")
	}
	return b
}

// Open implements Operator.
func (b *base) Open(context.Context) error { return nil }

// Timer implements Operator.
func (b *base) Timer(int64) error { return nil }

// Close implements Operator.
func (b *base) Close() error { return nil }

// failed applies the policy to a record whose function returned err: nil means go on.
func (b *base) failed(err error, rec any) error {
	if b.policy == nil || b.policy.OnError == Fail {
		return recordError(b.node, err, rec)
	}
	b.skipped.Add(1)
	if b.policy.OnError == Skip {
		return nil
	}
	d := DeadRecord{Operator: b.node.Title(), Reason: err.Error(), Record: show(rec, 4<<10)}
	return EmitSideAt(b.sides, b.policy.Port, d, b.time, b.timed)
}

// sideEnv is the Env of an operator whose functions may use its side outputs.
type sideEnv struct {
	Runtime
	b *base
}

func (e sideEnv) sideBase() *base { return e.b }

// EmitFrom emits v into the side output tag of the operator that env is of, with the time of the record at hand.
// It is for use within the operator's function only. An error means that the task is failing.
func EmitFrom[U any](env Env, tag string, v U) error {
	e, ok := env.(interface{ sideBase() *base })
	if !ok {
		return fmt.Errorf("cannot emit into side output %q: this operator has none", tag)
	}
	b := e.sideBase()
	if b.err != nil {
		return b.err
	}
	b.pushing = true
	b.err = EmitSide(b.sides, tag, v, b.time, b.timed)
	b.pushing = false
	return b.err
}

// instance wraps a one-input operator whose input Out is in.
func instance(in any, op Operator) Instance { return Instance{Inputs: []any{in}, Op: op} }

// NewMap makes the factory of an operator that applies f to every record.
func NewMap[T, U any](f func(T) U) Factory {
	return func(rt Runtime, outs []any) (Instance, error) {
		out, err := outOf[U](outs[0])
		if err != nil {
			return Instance{}, err
		}
		op := &mapOp[T, U]{base: newBase(rt, nil, nil, outs), f: f, out: out, buf: make([]U, batchLen[U]())}
		return instance(Out[T](op), op), nil
	}
}

type mapOp[T, U any] struct {
	base
	f   func(T) U
	out Out[U]
	buf []U
}

// Push implements Out.
func (o *mapOp[T, U]) Push(b Batch[T]) error {
	for len(b.Recs) > 0 {
		n := min(len(b.Recs), len(o.buf))
		if err := o.apply(b.Recs[:n]); err != nil {
			return err
		}
		if err := o.out.Push(Batch[U]{Recs: o.buf[:n], Times: headTimes(b.Times, n)}); err != nil {
			return err
		}
		b = tail(b, n)
	}
	return nil
}

func (o *mapOp[T, U]) apply(recs []T) (err error) {
	i := 0
	defer func() {
		if p := recover(); p != nil {
			err = panicError(o.node, p, recs[i])
		}
	}()
	f, buf := o.f, o.buf[:len(recs)]
	for j := range recs {
		i = j // the deferred function sees i; j can stay in a register
		buf[j] = f(recs[j])
	}
	return nil
}

// Control implements Out.
func (o *mapOp[T, U]) Control(c Control) error { return o.out.Control(c) }

// NewFilter makes the factory of an operator that passes on the records for which keep returns true.
func NewFilter[T any](keep func(T) bool) Factory {
	return func(rt Runtime, outs []any) (Instance, error) {
		out, err := outOf[T](outs[0])
		if err != nil {
			return Instance{}, err
		}
		op := &filterOp[T]{base: newBase(rt, nil, nil, outs), keep: keep, out: out, recs: make([]T, batchLen[T]())}
		return instance(Out[T](op), op), nil
	}
}

type filterOp[T any] struct {
	base
	keep  func(T) bool
	out   Out[T]
	recs  []T
	times []int64
}

// Push implements Out.
func (o *filterOp[T]) Push(b Batch[T]) error {
	for len(b.Recs) > 0 {
		n := min(len(b.Recs), len(o.recs))
		kept, err := o.apply(b.Recs[:n], headTimes(b.Times, n))
		if err != nil {
			return err
		}
		if kept > 0 {
			if err := o.out.Push(Batch[T]{Recs: o.recs[:kept], Times: headTimes(o.timesIf(b.Times), kept)}); err != nil {
				return err
			}
		}
		b = tail(b, n)
	}
	return nil
}

// timesIf is the operator's buffer of times, where the input has any.
func (o *filterOp[T]) timesIf(in []int64) []int64 {
	if in == nil {
		return nil
	}
	return o.times
}

func (o *filterOp[T]) apply(recs []T, times []int64) (kept int, err error) {
	i := 0
	defer func() {
		if p := recover(); p != nil {
			err = panicError(o.node, p, recs[i])
		}
	}()
	if times != nil && o.times == nil {
		o.times = make([]int64, len(o.recs))
	}
	keep, buf := o.keep, o.recs
	n := 0
	for j := range recs {
		i = j // the deferred function sees i; j and n can stay in registers
		if !keep(recs[j]) {
			continue
		}
		buf[n] = recs[j]
		if times != nil {
			o.times[n] = times[j]
		}
		n++
	}
	return n, nil
}

// Control implements Out.
func (o *filterOp[T]) Control(c Control) error { return o.out.Control(c) }

// tail is what is left of b after its first n records.
func tail[T any](b Batch[T], n int) Batch[T] {
	b.Recs = b.Recs[n:]
	if b.Times != nil {
		b.Times = b.Times[n:]
	}
	return b
}

// headTimes is the first n of times, nil if there are none.
func headTimes(times []int64, n int) []int64 {
	if times == nil {
		return nil
	}
	return times[:n]
}
