package flow

import (
	"context"
	"errors"
	"fmt"
)

// processLife is what the functions of an author's operator on keys have in common.
type processLife[K comparable, U any] struct {
	open    func(ctx context.Context, env Env) error
	onTimer func(c *ProcessContext[K, U], t Timer) error
	close   func() error
}

// processCore is what operators with keyed state and timers share. Owned by the task's goroutine.
type processCore[K comparable, U any] struct {
	base
	processLife[K, U]
	rt     Runtime
	out    Out[U]
	buf    *Buffer[U]
	keys   *keyTable[K]
	groups *keyGroups[K]
	states *States
	events *timers // by event time
	clock  *timers // by processing time
	ctx    ProcessContext[K, U]

	wm     int64
	lastWM int64 // the last watermark but MaxTime
	newest int64 // greatest event time seen; MinTime if none was
	ended  bool  // the input has ended: no more processing timers
}

func newProcessCore[K comparable, U any](rt Runtime, outs []any, p *Policy, s *Sides, cs *Codecs) (*processCore[K, U], error) {
	out, err := outOf[U](outs[0])
	if err != nil {
		return nil, err
	}
	groups, err := newKeyGroups[K](rt, cs)
	if err != nil {
		return nil, err
	}
	o := &processCore[K, U]{
		base: newBase(rt, p, s, outs), rt: rt, out: out, buf: NewBuffer(out), keys: newKeyTable[K](), groups: groups,
		wm: MinTime, lastWM: MinTime, newest: MinTime,
	}
	o.states = newStates(&o.keys.slotSet, cs)
	o.events, o.clock = newTimers(&o.keys.slotSet), newTimers(&o.keys.slotSet)
	o.ctx = ProcessContext[K, U]{Env: sideEnv{rt, &o.base}, op: o}
	return o, nil
}

// Open implements Operator.
func (o *processCore[K, U]) Open(ctx context.Context) (err error) {
	o.armClock()
	if o.open == nil {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = callError(o.node, "Open", p)
		}
	}()
	if err := o.open(ctx, sideEnv{o.rt, &o.base}); err != nil {
		return fmt.Errorf("cannot open operator %s: %w", o.node.at(), err)
	}
	return nil
}

// Close implements Operator.
func (o *processCore[K, U]) Close() (err error) {
	if o.close == nil {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = callError(o.node, "Close", p)
		}
	}()
	if err := o.close(); err != nil {
		return fmt.Errorf("cannot close operator %s: %w", o.node.at(), err)
	}
	return nil
}

// emit takes what the author's function emits.
func (o *processCore[K, U]) emit(u U, time int64, timed bool) {
	if o.err != nil {
		return // the task is failing; the function will be told by not being called again
	}
	o.pushing = true
	o.err = o.buf.Add(u, time, timed)
	o.pushing = false
}

func (o *processCore[K, U]) flush() error {
	if err := o.buf.Flush(); err != nil {
		return err
	}
	return o.sides.Flush()
}

// at prepares for record i of a batch.
func (o *processCore[K, U]) at(times []int64, i int) {
	if times == nil {
		o.timed = false
		return
	}
	o.time, o.timed = times[i], true
	o.newest = max(o.newest, times[i])
}

func (o *processCore[K, U]) setTimer(t *timers, at int64) {
	if o.onTimer == nil {
		panic("a timer is set, but its operator has no OnTimer to call when it comes")
	}
	if t.add(o.keys.write(), at) && t == o.clock {
		o.armClock()
	}
}

func (o *processCore[K, U]) deleteTimer(t *timers, at int64) {
	if o.keys.current < outside {
		t.remove(o.keys.current, at)
	}
}

// armClock asks for the first processing timer.
func (o *processCore[K, U]) armClock() {
	at, _ := o.clock.next()
	o.rt.SetTimer(at)
}

// advance fires the event timers that are due at wm, in order, and those which that sets.
func (o *processCore[K, U]) advance(wm int64) error {
	o.wm = max(o.wm, wm)
	if wm != MaxTime {
		o.lastWM = o.wm
	}
	for {
		slot, at, ok := o.events.pop(o.wm)
		if !ok {
			return nil
		}
		o.time, o.timed = at, true
		if err := o.fire(slot, Timer{At: Instant(at)}); err != nil {
			return err
		}
	}
}

// tick fires the processing timers that are due at now.
func (o *processCore[K, U]) tick(now int64) error {
	for {
		slot, at, ok := o.clock.pop(now)
		if !ok {
			return nil
		}
		o.time, o.timed = o.afterwards()
		if err := o.fire(slot, Timer{At: Instant(at), Processing: true}); err != nil {
			return err
		}
	}
}

// afterwards is the event time of what is made by a processing timer: that of the newest record, or just after the
// watermark where that is later. There is none where the stream has none.
func (o *processCore[K, U]) afterwards() (int64, bool) {
	return max(o.newest, plus(o.lastWM, 1)), o.newest > MinTime
}

// firedTimer is what an error shows of a timer.
type firedTimer[K comparable] struct {
	Key   K
	Timer Timer
}

// fire calls the author's function for a timer.
func (o *processCore[K, U]) fire(slot uint32, t Timer) error {
	o.keys.enterSlot(slot)
	shown := firedTimer[K]{o.keys.key, t}
	bad, err := o.callTimer(t, shown)
	o.keys.letGo(slot)
	o.keys.leave()
	switch {
	case err != nil:
		return err
	case o.err != nil:
		return o.err
	case bad != nil:
		return o.failed(bad, shown)
	}
	return nil
}

func (o *processCore[K, U]) callTimer(t Timer, shown firedTimer[K]) (bad, err error) {
	defer func() {
		if o.pushing {
			return // not ours to judge
		}
		if p := recover(); p != nil {
			err = panicError(o.node, p, shown)
		}
	}()
	return o.onTimer(&o.ctx, t), nil
}

// Timer implements Operator.
func (o *processCore[K, U]) Timer(now int64) error {
	if err := o.tick(now); err != nil {
		return err
	}
	o.armClock()
	return o.flush()
}

// control handles a control of the input, or of all inputs together.
func (o *processCore[K, U]) control(c Control) error {
	switch {
	case c.Kind == End, c.Kind == Watermark && c.Time == MaxTime:
		if err := o.finish(); err != nil {
			return err
		}
	case c.Kind == Watermark:
		if err := o.advance(c.Time); err != nil {
			return err
		}
	}
	if err := o.flush(); err != nil {
		return err
	}
	if err := o.out.Control(c); err != nil {
		return err
	}
	return o.sides.Control(c)
}

// finish fires every timer that is set.
func (o *processCore[K, U]) finish() error {
	o.ended = true
	if err := o.advance(MaxTime); err != nil {
		return err
	}
	if err := o.tick(MaxTime); err != nil {
		return err
	}
	o.armClock()
	return o.advance(MaxTime)
}

// Snapshot implements Stateful.
func (o *processCore[K, U]) Snapshot(put func(StateEntry) error) error {
	var b []byte
	var err error
	for _, s := range o.states.shared {
		e := StateEntry{State: s.stateName(), Group: NoGroup}
		if b, err = s.snapshot(b, func(v []byte) error { e.Value = v; return put(e) }); err != nil {
			return fmt.Errorf("cannot take down state %q of operator %s: %w", s.stateName(), o.node.at(), err)
		}
	}
	slots := o.keys.live()
	timers := []*slotTimers{o.events.bySlot(eventTimers), o.clock.bySlot(clockTimers)}
	key := func(i int) *K { return &o.keys.keys[slots[i]] }
	return o.groups.each(len(slots), key, func(i, group int, encoded []byte) error {
		e := StateEntry{Group: group, Key: encoded}
		each := func(v []byte) error { e.Value = v; return put(e) }
		for _, s := range o.states.keyed {
			e.State = s.stateName()
			if b, err = s.snapshot(slots[i], b, each); err != nil {
				return fmt.Errorf("cannot take down state %q of operator %s: %w", e.State, o.node.at(), err)
			}
		}
		for _, t := range timers {
			e.State = t.name
			if b, err = t.snapshot(slots[i], b, each); err != nil {
				return err
			}
		}
		return nil
	})
}

// Restore implements Stateful.
func (o *processCore[K, U]) Restore(e StateEntry) error {
	if err := o.restore(e); err != nil {
		if errors.Is(err, errNoState) {
			return unknownState(o.node, e)
		}
		return fmt.Errorf("cannot restore state %q of operator %s: %w", e.State, o.node.at(), err)
	}
	return nil
}

var errNoState = errors.New("no such state")

func (o *processCore[K, U]) restore(e StateEntry) error {
	if e.Group == NoGroup {
		for _, s := range o.states.shared {
			if s.stateName() == e.State {
				return s.restore(e.Value)
			}
		}
		return errNoState
	}
	k, err := o.groups.decode(e.Key)
	if err != nil {
		return err
	}
	slot := o.keys.slotOf(k)
	switch e.State {
	case eventTimers:
		return o.events.restore(slot, e.Value)
	case clockTimers:
		return o.clock.restore(slot, e.Value)
	}
	for _, s := range o.states.keyed {
		if s.stateName() == e.State {
			return s.restore(slot, e.Value)
		}
	}
	return errNoState
}
