package task

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/flow"
)

// Status is what a Step came to.
type Status uint8

const (
	Worked  Status = iota // there may be more to do at once
	Waiting               // nothing to do until Wake, or until NextTimer
	Ended                 // the input has ended and passed through the chain: call Finish
)

// Start opens the operators, consumers before producers, and requests the input. ctx ends with the task.
func (t *Task) Start(ctx context.Context) error {
	t.meter.begin()
	for i := len(t.ops) - 1; i >= 0; i-- {
		o := t.ops[i]
		o.opened = true
		t.current = o
		if err := o.op.Open(ctx); err != nil {
			return err
		}
		if t.cancelled.Load() {
			return ErrCancelled
		}
	}
	t.current = nil
	t.flushed = t.env.Clock()
	if err := t.openGates(); err != nil {
		return err
	}
	if t.env.OnRunning != nil {
		t.env.OnRunning()
	}
	return nil
}

// Step does one piece of work: due timers, and one segment or one poll.
func (t *Task) Step() (Status, error) {
	if t.cancelled.Load() {
		return Ended, ErrCancelled
	}
	now := t.env.Clock()
	t.stepped = now
	if err := t.fireTimers(now); err != nil {
		return Ended, err
	}
	if t.wantSplit.Load() {
		t.publishSplits()
	}
	status, err := t.advance()
	if err != nil || status == Ended {
		return status, err
	}
	if status == Worked {
		t.dirty = true
		if now.Sub(t.flushed) < t.env.FlushTimeout {
			return Worked, nil
		}
	}
	if err := t.flush(now); err != nil {
		return Ended, err
	}
	return status, nil
}

// advance polls the source, or handles the next item of any gate.
func (t *Task) advance() (Status, error) {
	if t.source != nil {
		return t.poll()
	}
	if t.openPorts == 0 && t.openChannels == 0 {
		return Ended, nil
	}
	for range t.inputs {
		in := t.inputs[t.nextInput]
		t.nextInput++
		if t.nextInput == len(t.inputs) {
			t.nextInput = 0
		}
		it, ok, err := in.gate.Next()
		if err != nil {
			return Ended, err
		}
		if !ok {
			continue
		}
		return Worked, t.take(in, it)
	}
	return Waiting, nil
}

// poll gives new splits to the source and lets it emit.
func (t *Task) poll() (Status, error) {
	t.current = t.ops[0]
	if t.pending.Swap(false) {
		t.mu.Lock()
		added, noMore := t.added, t.noMore
		t.added, t.noMore = nil, false
		t.mu.Unlock()
		if len(added) > 0 {
			if err := t.source.AddSplits(added); err != nil {
				return Ended, err
			}
		}
		if noMore {
			if err := t.source.NoMoreSplits(); err != nil {
				return Ended, err
			}
		}
	}
	if err := t.align(); err != nil {
		return Ended, err
	}
	status, err := t.source.Poll()
	t.dirty = true // it may have emitted before it said that there is no more
	if t.first && t.ops[0].Counter(RecordsOut).Load() > 0 {
		t.sawFirst()
	}
	if err != nil {
		return Ended, err
	}
	t.current = nil
	t.tellDelivered()
	switch status {
	case flow.SourceMore:
		return Worked, nil
	case flow.SourceWait:
		return Waiting, nil
	case flow.SourceEnd:
		t.publishSplits()
		for _, out := range t.ops[0].outs {
			if err := out.(flow.Controller).Control(flow.Control{Kind: flow.End}); err != nil {
				return Ended, err
			}
		}
		return Ended, nil
	}
	return Ended, fmt.Errorf("operator %s: unknown source status %d", t.ops[0].node.Title(), status)
}

// flush sends what operators and writers hold, producers first.
func (t *Task) flush(now time.Time) error {
	t.flushed = now
	if !t.dirty {
		return nil
	}
	t.dirty = false
	for _, o := range t.ops {
		if o.flusher != nil {
			t.current = o
			if err := o.flusher.Flush(); err != nil {
				return err
			}
		}
	}
	t.current = nil
	for _, w := range t.writers {
		if !w.Pending() {
			continue
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// timersMoved finds the earliest timer anew.
func (t *Task) timersMoved() {
	t.nextTimer = flow.MaxTime
	for _, o := range t.ops {
		t.nextTimer = min(t.nextTimer, o.timer)
	}
}

// NextTimer returns when Step has a timer to call, in milliseconds since the Unix epoch; flow.MaxTime: never.
func (t *Task) NextTimer() int64 { return t.nextTimer }

// fireTimers calls the operators whose timers are due, producers first.
func (t *Task) fireTimers(at time.Time) error {
	if t.nextTimer == flow.MaxTime {
		return nil
	}
	now := at.UnixMilli()
	if now < t.nextTimer {
		return nil
	}
	for _, o := range t.ops {
		if o.timer > now {
			continue
		}
		o.timer = flow.MaxTime
		t.current = o
		t.dirty = true
		if err := o.op.Timer(now); err != nil {
			return err
		}
	}
	t.current = nil
	t.timersMoved()
	return nil
}

// Finish closes the operators after Step said Ended, and returns when the consumers have taken everything.
func (t *Task) Finish(ctx context.Context) error {
	if err := t.flush(t.env.Clock()); err != nil {
		return err
	}
	for i, o := range t.outs {
		for ch, ended := range o.ended {
			if !ended {
				return cluster.Failure{Kind: cluster.Internal, Message: fmt.Sprintf("the end of the input did not reach channel %d of output %d of %s", ch, i, t.vertex.Name)}
			}
		}
	}
	if err := t.closeOperators(); err != nil {
		return err
	}
	if err := t.closeGates(); err != nil {
		return err
	}
	t.meter.enter(blocked)
	defer t.meter.leave()
	for i, o := range t.outs {
		if err := o.part.Finish(ctx); err != nil {
			return fmt.Errorf("cannot hand over output %d: %w", i, err)
		}
	}
	t.release(nil)
	t.meter.end()
	return nil
}

// Abort closes and gives back everything after an error or before an end. Consumers learn the cause.
func (t *Task) Abort(cause error) error {
	t.Cancel()
	err := t.closeOperators()
	t.release(cause)
	if t.meter.begun.Load() {
		t.meter.end()
	}
	return err
}

// closeOperators closes every operator that was opened, producers first, whatever the others do.
func (t *Task) closeOperators() error {
	var errs []error
	for _, o := range t.ops {
		if !o.opened {
			continue
		}
		o.opened = false
		if err := closeOperator(o); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func closeOperator(o *operator) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicFailure(p, "Close of "+o.place())
		}
	}()
	return o.op.Close()
}
