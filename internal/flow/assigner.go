package flow

import "fmt"

// NewAssigner makes the factory of an operator that gives a stream event times and watermarks away from its source.
// The watermarks that come in end here, save the last one. w is read when an instance is made.
func NewAssigner[T any](w *Watermarks[T]) Factory {
	return func(rt Runtime, outs []any) (Instance, error) {
		out, err := outOf[T](outs[0])
		if err != nil {
			return Instance{}, err
		}
		op := &assigner[T]{base: newBase(rt, nil, nil, outs), rt: rt, out: out, marks: *w, told: MinTime, toldAt: MinTime}
		if op.marks.New == nil {
			return Instance{}, fmt.Errorf("operator %s: no watermark strategy", op.node.at())
		}
		op.gen = op.marks.New()
		op.seen = rt.Now()
		return instance(Out[T](op), op), nil
	}
}

// assigner is Owned by the task's goroutine.
type assigner[T any] struct {
	base
	rt    Runtime
	out   Out[T]
	marks Watermarks[T]
	gen   Generator[T]
	times []int64

	told   int64 // the last watermark emitted
	toldAt int64 // when
	seen   int64 // when the last record came
	idle   bool  // what was told
	ended  bool  // the last watermark went out
}

// Push implements Out.
func (o *assigner[T]) Push(b Batch[T]) error {
	now := o.rt.Now()
	o.seen = now
	if o.marks.Time != nil {
		times, err := fillTimes(o.times[:0], b.Recs, o.marks.Time, o.node)
		if err != nil {
			return err
		}
		o.times, b.Times = times, times
	}
	if b.Times == nil {
		return fmt.Errorf("operator %s: the stream has no event times: give Watermark a function that takes them from the records", o.node.at())
	}
	o.gen.Observe(b.Recs, b.Times)
	if o.idle {
		o.idle = false
		if err := o.out.Control(Control{Kind: Active}); err != nil {
			return err
		}
	}
	if err := o.out.Push(b); err != nil {
		return err
	}
	return o.Timer(now)
}

// Timer implements Operator: it emits what is due.
func (o *assigner[T]) Timer(now int64) error {
	if o.ended {
		return nil
	}
	next := MaxTime
	if limit := o.marks.Idle.Milliseconds(); limit > 0 && !o.idle {
		if next = o.seen + limit; now >= next {
			o.idle, next = true, MaxTime
			if err := o.out.Control(Control{Kind: Idle}); err != nil {
				return err
			}
		}
	}
	due := o.toldAt
	if due != MinTime {
		due += o.marks.interval()
	}
	if now < due {
		o.rt.SetTimer(min(next, due))
		return nil
	}
	if w := o.gen.Watermark(now); w > o.told && !o.idle {
		o.told, o.toldAt = w, now
		next = min(next, now+o.marks.interval())
		if err := o.out.Control(Control{Kind: Watermark, Time: w}); err != nil {
			return err
		}
	}
	o.rt.SetTimer(next)
	return nil
}

// Control implements Out.
func (o *assigner[T]) Control(c Control) error {
	switch c.Kind {
	case Watermark:
		if c.Time != MaxTime {
			return nil
		}
		o.ended = true
		o.rt.SetTimer(MaxTime)
	case Idle:
		if o.idle {
			return nil
		}
		o.idle = true
	case Active:
		if !o.idle {
			return nil
		}
		o.idle = false
	}
	return o.out.Control(c)
}
