package flow

import (
	"context"
	"fmt"
)

// NewSink makes the factory of a sink operator.
func NewSink[T any](to Output[T]) Factory {
	return func(rt Runtime, outs []any) (Instance, error) {
		op := &sinkOp[T]{base: newBase(rt, nil, nil, outs), rt: rt, to: to}
		return instance(Out[T](op), op), nil
	}
}

// sinkOp drives the SinkWriter of one subtask. Owned by the task's goroutine.
type sinkOp[T any] struct {
	base
	rt  Runtime
	to  Output[T]
	w   SinkWriter[T]
	ctx context.Context // of the task, from Open: bounds Flush
}

// Open implements Operator.
func (o *sinkOp[T]) Open(ctx context.Context) error {
	w, err := openWriter(ctx, o.to, o.rt)
	if err != nil {
		return fmt.Errorf("cannot open sink %s: %w", o.node.at(), err)
	}
	o.w, o.ctx = w, ctx
	return nil
}

// Push implements Out.
func (o *sinkOp[T]) Push(b Batch[T]) error {
	if err := o.w.Write(b); err != nil {
		return fmt.Errorf("cannot write to %s of sink %s: %w", o.to.Describe(), o.node.at(), err)
	}
	return nil
}

// Control implements Out: what was written is delivered before a barrier or the end passes.
func (o *sinkOp[T]) Control(c Control) error {
	if c.Kind != Barrier && c.Kind != End {
		return nil
	}
	if err := o.w.Flush(o.ctx); err != nil {
		return fmt.Errorf("cannot flush %s of sink %s: %w", o.to.Describe(), o.node.at(), err)
	}
	if f, ok := o.w.(Finisher); ok && c.Kind == End {
		if err := f.Finish(o.ctx); err != nil {
			return fmt.Errorf("cannot finish %s of sink %s: %w", o.to.Describe(), o.node.at(), err)
		}
	}
	return nil
}

// Close implements Operator.
func (o *sinkOp[T]) Close() error {
	if o.w == nil {
		return nil
	}
	if err := o.w.Close(); err != nil {
		return fmt.Errorf("cannot close %s of sink %s: %w", o.to.Describe(), o.node.at(), err)
	}
	return nil
}
