package flow

import (
	"context"
	"fmt"
)

// NewSource makes the factory of a source operator. w, p and s are read when an instance is made, so that they may be set after the node is.
func NewSource[T any](in Input[T], w *Watermarks[T], p *Policy, s *Sides) Factory {
	return func(rt Runtime, outs []any) (Instance, error) {
		out, err := outOf[T](outs[0])
		if err != nil {
			return Instance{}, err
		}
		op := &sourceOp[T]{rt: rt, node: rt.Node(), in: in, out: out, marks: *w, policy: p, sides: NewSideOuts(s, outs), marksAt: MaxTime, readerAt: MaxTime}
		op.splits = newSplitMarks(op.marks)
		op.emit = op.take
		return Instance{Op: op, Source: op}, nil
	}
}

// sourceOp drives the Reader of one subtask.
type sourceOp[T any] struct {
	// Immutable after Open.
	rt     Runtime
	node   *Node
	in     Input[T]
	marks  Watermarks[T]
	policy *Policy

	// Owned by the task's goroutine.
	out    Out[T]
	sides  *SideOuts
	reader Reader[T]
	tracer *Tracer
	emit   Emit[T] // take, made once
	times  []int64
	splits splitMarks[T]
	ended  bool
	below  error // what an operator after this one failed by: not the reader's error, though it comes back through it

	marker  marker
	pauser  Pauser // nil: splits don't wait for each other
	alignAt int64  // when to look next whether they must
	waiting bool   // some do

	marksAt, readerAt int64 // when watermarks and the reader want a timer
}

// readerRuntime is what a reader sees of the task: it shares the operator's timer with the watermarks.
type readerRuntime struct {
	Runtime
	at  *int64
	set func()
}

// SetTimer asks for a poll at or soon after at.
func (r readerRuntime) SetTimer(at int64) {
	*r.at = at
	r.set()
}

func (o *sourceOp[T]) setTimer() { o.rt.SetTimer(min(o.marksAt, o.readerAt)) }

// Open implements Operator.
func (o *sourceOp[T]) Open(ctx context.Context) error {
	env := ReaderEnv{Runtime: readerRuntime{o.rt, &o.readerAt, o.setTimer}, Times: o.marks.Enabled() && o.marks.Time == nil}
	env.Dead = func(d DeadRecord, time int64, timed bool) error {
		return EmitSideAt(o.sides, o.policy.Port, d, time, timed)
	}
	o.tracer = TracerOf(o.rt)
	r, substitute, err := openReader(ctx, o.in, o.rt, env)
	if err != nil {
		return fmt.Errorf("cannot open source %s: %w", o.node.at(), err)
	}
	o.reader = r
	o.marker = newMarker(o.node, innermost(r), o.rt.Now())
	if p, ok := r.(Pauser); ok && o.marks.Enabled() && o.marks.MaxDrift > 0 {
		o.pauser = p
	}
	if s, ok := r.(Steered); ok && substitute {
		o.splits.eager = true
		s.Steer(o.steer)
	}
	return nil
}

// Close implements Operator.
func (o *sourceOp[T]) Close() error {
	if o.reader == nil {
		return nil
	}
	if err := o.reader.Close(); err != nil {
		return fmt.Errorf("cannot close source %s: %w", o.node.at(), err)
	}
	return nil
}

// AddSplits implements SourceDriver. A split holds the watermark back from here on, not from its first record.
func (o *sourceOp[T]) AddSplits(splits []Split) error {
	now := o.rt.Now()
	for _, s := range splits {
		o.splits.add(s.ID, now)
	}
	if err := o.advance(now); err != nil {
		return err
	}
	return o.reader.AddSplits(splits)
}

// NoMoreSplits implements SourceDriver.
func (o *sourceOp[T]) NoMoreSplits() error { return o.reader.NoMoreSplits() }

// Splits implements SourceDriver.
func (o *sourceOp[T]) Splits() []SplitStatus {
	if o.reader == nil {
		return nil
	}
	return o.reader.Splits()
}

// Poll implements SourceDriver.
func (o *sourceOp[T]) Poll() (SourceStatus, error) {
	if o.ended {
		return SourceEnd, nil
	}
	st, err := o.reader.Poll(o.emit)
	if o.below != nil {
		return st, o.below
	}
	if err != nil {
		return st, fmt.Errorf("source %s: %w", o.node.at(), err)
	}
	if err := o.sides.Flush(); err != nil {
		return st, err
	}
	if st == SourceEnd {
		o.ended = true
		o.rt.SetTimer(MaxTime)
		cs := []Control{{Kind: Watermark, Time: MaxTime}}
		if o.marker.every > 0 {
			cs = append(cs, o.marker.mark(o.rt.Now()))
		}
		return st, o.tell(cs)
	}
	return st, o.advance(o.rt.Now())
}

// Timer implements Operator.
func (o *sourceOp[T]) Timer(now int64) error {
	if o.ended {
		return nil
	}
	if now >= o.readerAt {
		o.readerAt = MaxTime
	}
	return o.advance(now)
}

// take is what the reader emits by.
func (o *sourceOp[T]) take(split string, b Batch[T], ended bool) error {
	if len(b.Recs) > 0 {
		if err := o.push(split, b); err != nil {
			return err
		}
	}
	if ended {
		o.splits.end(split)
	}
	return nil
}

func (o *sourceOp[T]) push(split string, b Batch[T]) error {
	now := o.rt.Now()
	if !o.marks.Enabled() {
		b.Times = nil
	} else {
		if o.marks.Time != nil {
			times, err := fillTimes(o.times[:0], b.Recs, o.marks.Time, o.node)
			if err != nil {
				return err
			}
			o.times, b.Times = times, times
		}
		if b.Times == nil {
			return fmt.Errorf("%s gives no event times: give Watermark a function that takes them from the records", o.in.Describe())
		}
	}
	if err := o.splits.observe(split, b, now); err != nil {
		return err
	}
	if err := o.tell(o.splits.wake()); err != nil {
		return err
	}
	o.below = pushRead(o.tracer, o.out, split, b, now)
	return o.below
}

// alignInterval is how many milliseconds there are between looks at which splits are too far ahead.
const alignInterval = 20

// advance emits what is due of watermarks and idleness, and sets the timer for what will be.
func (o *sourceOp[T]) advance(now int64) error {
	cs, next := o.splits.advance(now)
	if o.pauser != nil && now >= o.alignAt {
		o.waiting = o.splits.drifts(now, o.pauser.Pause)
		o.alignAt = now + alignInterval
	}
	if o.waiting {
		next = min(next, o.alignAt)
	}
	if o.marker.every > 0 {
		if now >= o.marker.due {
			cs = append(cs, o.marker.mark(now))
		}
		next = min(next, o.marker.due)
	}
	o.marksAt = next
	o.setTimer()
	return o.tell(cs)
}

func (o *sourceOp[T]) tell(cs []Control) error {
	for _, c := range cs {
		if err := o.out.Control(c); err != nil {
			return err
		}
		if err := o.sides.Control(c); err != nil {
			return err
		}
	}
	return nil
}
