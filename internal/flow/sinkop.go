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

	failing   Failing  // the writer, or what is below it; nil: it is not
	delivered *Counter // the last mark before which all is delivered; nil: there was none
}

// Open implements Operator.
func (o *sinkOp[T]) Open(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = callError(o.node, "open", p)
		}
	}()
	w, err := openWriter(ctx, o.to, o.rt)
	if err != nil {
		return o.failed("open", err)
	}
	o.w, o.ctx = w, ctx
	if o.failing = failingOf(w); o.failing != nil {
		o.rt.SetTimer(o.rt.Now() + lookForFailures)
	}
	return nil
}

// lookForFailures is how often, in milliseconds, a writer is asked whether a delivery has failed.
const lookForFailures = 1000

func failingOf(w any) Failing {
	if inner, ok := w.(interface{ failing() Failing }); ok {
		return inner.failing()
	}
	f, _ := w.(Failing)
	return f
}

// Timer implements Operator.
func (o *sinkOp[T]) Timer(now int64) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = callError(o.node, "ask", p)
		}
	}()
	if err := o.failing.Failed(); err != nil {
		return o.failed("write to", err)
	}
	o.rt.SetTimer(now + lookForFailures)
	return nil
}

// Push implements Out.
func (o *sinkOp[T]) Push(b Batch[T]) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = callError(o.node, "write", p)
		}
	}()
	if err := o.w.Write(b); err != nil {
		return o.failed("write to", err)
	}
	return nil
}

// failed is the sink's own error: without its name, the chain's head would be taken for the one that failed.
func (o *sinkOp[T]) failed(what string, err error) error {
	return &OperatorError{o.node.Title(), fmt.Errorf("cannot %s %s of sink %s: %w", what, o.to.Describe(), o.node.at(), err)}
}

// Control implements Out: what was written is delivered before a barrier or the end passes.
func (o *sinkOp[T]) Control(c Control) (err error) {
	if c.Kind != Barrier && c.Kind != Mark && c.Kind != End {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = callError(o.node, "flush", p)
		}
	}()
	if err := o.w.Flush(o.ctx); err != nil {
		return o.failed("flush", err)
	}
	if c.Kind == Mark {
		if o.delivered == nil {
			o.delivered = o.rt.Counter(DeliveredMark)
		}
		o.delivered.Set(int64(c.ID))
	}
	if f, ok := o.w.(Finisher); ok && c.Kind == End {
		if err := f.Finish(o.ctx); err != nil {
			return o.failed("finish", err)
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
		return o.failed("close", err)
	}
	return nil
}
