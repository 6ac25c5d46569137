package flow

import (
	"context"
	"fmt"
	"reflect"
)

// Substituter is a Runtime that puts another connector in the place of a source's or sink's own: how a job is tested
// without the outside world.
type Substituter interface {
	// Substitute returns the Reader[T] of a source, the SinkWriter[T] of a sink or Nowhere{}, or nil for the job's own.
	Substitute() any
}

// Nowhere takes the place of a sink whose records nobody wants.
type Nowhere struct{}

type nowhere[T any] struct{}

func (nowhere[T]) Write(Batch[T]) error        { return nil }
func (nowhere[T]) Flush(context.Context) error { return nil }
func (nowhere[T]) Close() error                { return nil }

// Steered is a substitute Reader that can also emit watermarks and idleness of its own, beside those that
// the stream's strategy finds. It gets the function for that before it is polled.
type Steered interface {
	Steer(func(Control) error)
}

// openReader makes the reader of a source, or takes its substitute.
func openReader[T any](ctx context.Context, in Input[T], rt Runtime, env ReaderEnv) (r Reader[T], substitute bool, err error) {
	s, ok := substituteOf(rt)
	if !ok {
		r, err = in.NewReader(ctx, env)
		return r, false, err
	}
	if r, ok = s.(Reader[T]); !ok {
		return nil, true, fmt.Errorf("its records are of type %s, which %T does not give", reflect.TypeFor[T](), s)
	}
	return r, true, nil
}

// openWriter makes the writer of a sink, or takes its substitute.
func openWriter[T any](ctx context.Context, to Output[T], rt Runtime) (SinkWriter[T], error) {
	s, ok := substituteOf(rt)
	if !ok {
		return to.NewWriter(ctx, rt)
	}
	if s == (Nowhere{}) {
		return nowhere[T]{}, nil
	}
	w, ok := s.(SinkWriter[T])
	if !ok {
		return nil, fmt.Errorf("its records are of type %s, which %T does not take", reflect.TypeFor[T](), s)
	}
	return w, nil
}

func substituteOf(rt Runtime) (any, bool) {
	if s, ok := rt.(Substituter); ok {
		if c := s.Substitute(); c != nil {
			return c, true
		}
	}
	return nil, false
}

// steer emits a control that a substitute reader asks for, in keeping with what the strategy has told.
func (o *sourceOp[T]) steer(c Control) error {
	m := &o.splits
	switch {
	case c.Kind == Watermark && c.Time > m.told:
		if err := o.tell(m.wake()); err != nil {
			return err
		}
		m.told, m.toldAt = c.Time, o.rt.Now()
		return o.tell([]Control{c})
	case c.Kind == Idle && !m.toldIdle:
		for _, s := range m.splits {
			s.idle = true
		}
		m.active, m.toldIdle = 0, true
		return o.tell([]Control{c})
	}
	return nil
}
