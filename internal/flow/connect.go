package flow

import (
	"context"
	"errors"
	"fmt"
)

// CoProcessor is the functions of an author's operator with two inputs. Those that are nil are not needed, save First and Second.
type CoProcessor[K comparable, A, B, U any] struct {
	// Open is called before the first record. ctx ends with the task. States and timers can't be used in it.
	Open func(ctx context.Context, env Env) error
	// First handles a record of the first input.
	First func(c *ProcessContext[K, U], rec A) error
	// Second handles a record of the second input.
	Second func(c *ProcessContext[K, U], rec B) error
	// OnTimer is called when a timer has come that was set for c.Key().
	OnTimer func(c *ProcessContext[K, U], t Timer) error
	// Close is called once after Open, however the task ends.
	Close func() error
}

// ConnectParams are what makes an operator with two inputs. A key that is nil means that the records of that input have none.
type ConnectParams[K comparable, A, B, U any] struct {
	First     func(A) K
	Second    func(B) K
	Broadcast bool // every subtask gets all of the second input, which alone may change shared state
	Setup     func(*States) CoProcessor[K, A, B, U]
	Policy    *Policy
	Sides     *Sides
	Codecs    *Codecs
}

// Check returns what is wrong with the states that Setup declares.
func (p ConnectParams[K, A, B, U]) Check() error {
	if _, err := newStateCodec[K](p.Codecs); err != nil {
		return fmt.Errorf("its keys: %w", err)
	}
	s := newStates(p.slots(&slotSet{current: outside}), p.Codecs)
	if f := p.Setup(s); f.First == nil || f.Second == nil {
		return errors.New("its CoProcessor has no First or no Second")
	}
	if len(s.shared) > 0 && !p.Broadcast {
		s.errs = append(s.errs, fmt.Errorf("state %q is shared, but no input is broadcast", s.shared[0].stateName()))
	}
	return s.err()
}

// slots are where keyed state is found, nil if there can't be any.
func (p ConnectParams[K, A, B, U]) slots(at *slotSet) *slotSet {
	if p.First == nil && p.Second == nil {
		return nil
	}
	return at
}

// NewConnect makes the factory of an operator with two inputs.
func NewConnect[K comparable, A, B, U any](p ConnectParams[K, A, B, U]) Factory {
	return func(rt Runtime, outs []any) (Instance, error) {
		core, err := newProcessCore[K, U](rt, outs, p.Policy, p.Sides, p.Codecs)
		if err != nil {
			return Instance{}, err
		}
		core.states.at = p.slots(core.states.at)
		f := p.Setup(core.states)
		if err := core.states.err(); err != nil {
			return Instance{}, fmt.Errorf("operator %s: %w", core.node.at(), err)
		}
		core.processLife = processLife[K, U]{f.Open, f.OnTimer, f.Close}
		op := &connectOp[K, U]{processCore: core, ports: newPorts()}
		first := &connectIn[K, A, U]{processIn[K, A, U]{core, normalKey(p.First), f.First}, op, 0, p.Broadcast}
		second := &connectIn[K, B, U]{processIn[K, B, U]{core, normalKey(p.Second), f.Second}, op, 1, false}
		return Instance{Inputs: []any{Out[A](first), Out[B](second)}, Op: op}, nil
	}
}

// connectOp is an operator with two inputs.
type connectOp[K comparable, U any] struct {
	*processCore[K, U]
	ports ports
}

// connectIn is one of its inputs.
type connectIn[K comparable, T, U any] struct {
	processIn[K, T, U]
	op       *connectOp[K, U]
	port     int
	readOnly bool // its records may not change shared state
}

// Push implements Out.
func (o *connectIn[K, T, U]) Push(b Batch[T]) error {
	o.states.readOnly = o.readOnly
	defer func() { o.states.readOnly = true }() // nor may timers
	return o.processIn.Push(b)
}

// Control implements Out.
func (o *connectIn[K, T, U]) Control(c Control) error {
	for _, c := range o.op.ports.take(o.port, c) {
		if err := o.control(c); err != nil {
			return err
		}
	}
	return nil
}
