package flow

import (
	"context"
	"fmt"
)

// funcOf is a Func without a life.
type funcOf[T, U any] func(v T, emit func(U)) error

func (f funcOf[T, U]) Open(context.Context, Env) error { return nil }
func (f funcOf[T, U]) Apply(v T, emit func(U)) error   { return f(v, emit) }
func (f funcOf[T, U]) Close() error                    { return nil }

// NewFlatMap makes the factory of an operator that calls f for every record; f emits what becomes of it.
// What was emitted before f returns an error stays emitted.
func NewFlatMap[T, U any](f func(v T, emit func(U)) error, p *Policy, s *Sides) Factory {
	return NewApply(func() Func[T, U] { return funcOf[T, U](f) }, p, s)
}

// NewApply makes the factory of an operator that runs the author's Funcs, one for each subtask.
func NewApply[T, U any](newFunc func() Func[T, U], p *Policy, s *Sides) Factory {
	return func(rt Runtime, outs []any) (Instance, error) {
		out, err := outOf[U](outs[0])
		if err != nil {
			return Instance{}, err
		}
		op := &applyOp[T, U]{base: newBase(rt, p, s, outs), rt: rt, f: newFunc(), buf: NewBuffer(out), out: out}
		if op.f == nil {
			return Instance{}, fmt.Errorf("operator %s: the function that makes its instances returned nil", op.node.at())
		}
		op.emit = op.add
		return instance(Out[T](op), op), nil
	}
}

// applyOp runs a Func. Owned by the task's goroutine.
type applyOp[T, U any] struct {
	base
	rt   Runtime
	f    Func[T, U]
	emit func(U) // add, made once
	buf  *Buffer[U]
	out  Out[U]
}

// Open implements Operator.
func (o *applyOp[T, U]) Open(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = callError(o.node, "Open", p)
		}
	}()
	if err := o.f.Open(ctx, sideEnv{o.rt, &o.base}); err != nil {
		return fmt.Errorf("cannot open operator %s: %w", o.node.at(), err)
	}
	return nil
}

// Close implements Operator.
func (o *applyOp[T, U]) Close() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = callError(o.node, "Close", p)
		}
	}()
	if err := o.f.Close(); err != nil {
		return fmt.Errorf("cannot close operator %s: %w", o.node.at(), err)
	}
	return nil
}

// shown is what errors show of a record: a function with a method ShowRecord knows better how to print it.
func (o *applyOp[T, U]) shown(rec T) any {
	if f, ok := any(o.f).(interface{ ShowRecord(rec T) string }); ok {
		return printed(f.ShowRecord(rec))
	}
	return rec
}

// Push implements Out.
func (o *applyOp[T, U]) Push(b Batch[T]) error {
	o.timed = b.Times != nil
	for from := 0; from < len(b.Recs); {
		next, bad, err := o.apply(b, from)
		if err != nil {
			return err
		}
		if bad != nil {
			if err := o.failed(bad, o.shown(b.Recs[next])); err != nil {
				return err
			}
			next++
		}
		from = next
	}
	if err := o.buf.Flush(); err != nil {
		return err
	}
	return o.sides.Flush()
}

// apply runs f on the records from the from-th on, up to one it returns an error for: bad is that error, next its index.
// err is a panic, or the error of a consumer.
func (o *applyOp[T, U]) apply(b Batch[T], from int) (next int, bad, err error) {
	i := from
	defer func() {
		if o.pushing {
			return // not ours to judge
		}
		if p := recover(); p != nil {
			err = panicError(o.node, p, o.shown(b.Recs[i]))
		}
	}()
	for ; i < len(b.Recs); i++ {
		if o.timed {
			o.time = b.Times[i]
		}
		bad := o.f.Apply(b.Recs[i], o.emit)
		if o.err != nil {
			return i, nil, o.err
		}
		if bad != nil {
			return i, bad, nil
		}
	}
	return i, nil, nil
}

// add is the emit of f.
func (o *applyOp[T, U]) add(u U) {
	if o.err != nil {
		return // the task is failing; f will be told by not being called again
	}
	o.pushing = true
	o.err = o.buf.Add(u, o.time, o.timed)
	o.pushing = false
}

// Control implements Out.
func (o *applyOp[T, U]) Control(c Control) error {
	if err := o.out.Control(c); err != nil {
		return err
	}
	return o.sides.Control(c)
}
