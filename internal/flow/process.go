package flow

import (
	"context"
	"fmt"
)

// Processor is the functions of an author's operator on keyed records. Those that are nil are not needed, save Process.
type Processor[K comparable, T, U any] struct {
	// Open is called before the first record. ctx ends with the task. States and timers can't be used in it.
	Open func(ctx context.Context, env Env) error
	// Process handles a record. What it emitted and changed before it returns an error stays.
	Process func(c *ProcessContext[K, U], rec T) error
	// OnTimer is called when a timer has come that was set for c.Key().
	OnTimer func(c *ProcessContext[K, U], t Timer) error
	// Close is called once after Open, however the task ends.
	Close func() error
}

// ProcessParams are what makes a process operator.
type ProcessParams[K comparable, T, U any] struct {
	Key    func(T) K
	Setup  func(*States) Processor[K, T, U] // called once for each instance, and once by Check
	Policy *Policy
	Sides  *Sides
	Codecs *Codecs
}

// Check returns what is wrong with the states that Setup declares.
func (p ProcessParams[K, T, U]) Check() error {
	if _, err := newStateCodec[K](p.Codecs); err != nil {
		return fmt.Errorf("its keys: %w", err)
	}
	s := newStates(&slotSet{current: outside}, p.Codecs)
	if p.Setup(s).Process == nil {
		return fmt.Errorf("its Processor has no Process")
	}
	if len(s.shared) > 0 {
		s.errs = append(s.errs, fmt.Errorf("state %q is shared, but no input is broadcast", s.shared[0].stateName()))
	}
	return s.err()
}

// NewProcess makes the factory of an operator that runs the author's functions on keyed records.
func NewProcess[K comparable, T, U any](p ProcessParams[K, T, U]) Factory {
	return func(rt Runtime, outs []any) (Instance, error) {
		core, err := newProcessCore[K, U](rt, outs, p.Policy, p.Sides, p.Codecs)
		if err != nil {
			return Instance{}, err
		}
		f := p.Setup(core.states)
		if err := core.states.err(); err != nil {
			return Instance{}, fmt.Errorf("operator %s: %w", core.node.at(), err)
		}
		core.processLife = processLife[K, U]{f.Open, f.OnTimer, f.Close}
		op := &processOp[K, T, U]{processIn[K, T, U]{core, normalKey(p.Key), f.Process}}
		return instance(Out[T](op), op), nil
	}
}

// processIn is an input of an operator on keys. key is nil where records of the input have none.
type processIn[K comparable, T, U any] struct {
	*processCore[K, U]
	key     func(T) K
	process func(*ProcessContext[K, U], T) error
}

// Push implements Out.
func (o *processIn[K, T, U]) Push(b Batch[T]) error {
	for from := 0; from < len(b.Recs); {
		next, bad, err := o.apply(b, from)
		if err != nil {
			return err
		}
		if bad != nil {
			if err := o.failed(bad, b.Recs[next]); err != nil {
				return err
			}
			next++
		}
		from = next
	}
	return o.flush()
}

// apply handles records from the from-th on, up to one that the author's function returns an error for: bad is that error, next its index.
// err is a panic, or the error of a consumer.
func (o *processIn[K, T, U]) apply(b Batch[T], from int) (next int, bad, err error) {
	i := from
	defer func() {
		if o.pushing {
			return // not ours to judge
		}
		if p := recover(); p != nil {
			err = panicError(o.node, p, b.Recs[i])
		}
	}()
	for ; i < len(b.Recs); i++ {
		o.at(b.Times, i)
		if o.key != nil {
			o.keys.enter(o.key(b.Recs[i]))
		}
		bad := o.process(&o.ctx, b.Recs[i])
		o.keys.leave()
		if o.err != nil {
			return i, nil, o.err
		}
		if bad != nil {
			return i, bad, nil
		}
	}
	return i, nil, nil
}

// processOp is a process operator with one input.
type processOp[K comparable, T, U any] struct{ processIn[K, T, U] }

// Control implements Out.
func (o *processOp[K, T, U]) Control(c Control) error { return o.control(c) }
