package flow

import (
	"context"
	"fmt"
	"sync/atomic"
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

	marker   marker
	aligns   bool   // splits may have to wait for others
	pauser   Pauser // nil: they can only wait all together
	alignAt  int64  // when to look next whether they must
	waiting  bool   // some do
	held     bool   // all do, and the reader is not polled
	resumed  bool   // some do not any more, and the reader was not polled since
	heldBack func() // says that the subtask waits for what others will say
	openedAt int64
	prompted int64 // where it stood when it last said so
	heldMs   *Counter

	// Read by all.
	mark   atomic.Int64 // see AlignMark
	marked atomic.Bool

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
	o.openAlignment(r)
	if s, ok := r.(Steered); ok && substitute {
		o.splits.eager = true
		s.Steer(o.steer)
	}
	return nil
}

// openAlignment finds out whether, and how, splits wait for others.
func (o *sourceOp[T]) openAlignment(r Reader[T]) {
	if !o.marks.Enabled() || o.marks.MaxDrift <= 0 {
		return
	}
	if a, ok := o.rt.(Aligning); ok && o.marks.Group != "" {
		o.heldBack = a.HeldBack()
		o.splits.grouped = o.heldBack != nil
	}
	o.pauser = pauserOf(r)
	o.aligns = o.pauser != nil || o.splits.grouped
	o.heldMs = o.rt.Counter(HeldBackTime)
	o.prompted, o.openedAt = MinTime, o.rt.Now()
}

// HeldBackTime is the counter of a source for the milliseconds in which none of a subtask's splits was read since all were too far ahead of others.
const HeldBackTime = "held back ms"

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
	list := o.reader.Splits()
	if o.aligns {
		list = o.aligned(list)
	}
	return list
}

// Poll implements SourceDriver.
func (o *sourceOp[T]) Poll() (SourceStatus, error) {
	if o.ended {
		return SourceEnd, nil
	}
	if o.held {
		if err := o.advance(o.rt.Now()); err != nil || o.held {
			return SourceWait, err
		}
	}
	o.resumed = false
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
		if o.splits.grouped {
			o.mark.Store(MaxTime)
			o.marked.Store(true)
			o.heldBack() // others may wait for it
		}
		o.rt.SetTimer(MaxTime)
		cs := []Control{{Kind: Watermark, Time: MaxTime}}
		if o.marker.every > 0 {
			cs = append(cs, o.marker.mark(o.rt.Now()))
		}
		return st, o.tell(cs)
	}
	if err := o.advance(o.rt.Now()); err != nil {
		return st, err
	}
	if o.resumed {
		st = SourceMore
	}
	return st, nil
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
	if o.aligns && o.splits.beyond(split, now) {
		o.alignAt = MinTime
	}
	if err := o.tell(o.splits.wake()); err != nil {
		return err
	}
	o.below = pushRead(o.tracer, o.out, split, b, now)
	return o.below
}

// advance emits what is due of watermarks and idleness, and sets the timer for what will be.
func (o *sourceOp[T]) advance(now int64) error {
	cs, next := o.splits.advance(now)
	if o.aligns && now >= o.alignAt {
		o.align(now)
	}
	if o.waiting || o.splits.grouped && !o.marked.Load() {
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
