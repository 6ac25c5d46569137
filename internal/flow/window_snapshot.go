package flow

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Names of the states of window operators.
const (
	windowState    = "#window"    // by key: the slice's start (8 bytes, little-endian), the accumulator
	sessionState   = "#session"   // by key: start and end (8 bytes each), 1 if it has fired or 0, the accumulator
	watermarkState = "#watermark" // of no key: the watermark (8 bytes)
	seenState      = "#seen"      // of no key, for a global window: the greatest event time (8 bytes)
)

var errMoved = errors.New("windows were cut differently when it was taken down; keep their size, slide, offset and zone, or give the operator a new UID")

// putMark hands put a time that belongs to no key.
func putMark(put func(StateEntry) error, state string, t int64) error {
	return put(StateEntry{State: state, Group: NoGroup, Value: binary.LittleEndian.AppendUint64(nil, uint64(t))})
}

// mark reads a time that putMark wrote.
func mark(b []byte) (int64, error) {
	if len(b) != 8 {
		return 0, errShort
	}
	return int64(binary.LittleEndian.Uint64(b)), nil
}

// cannotSnapshot and cannotRestore word the errors of both.
func (o *windowBase[K, T, A, R]) cannotSnapshot(err error) error {
	return fmt.Errorf("cannot take down windows of operator %s: %w", o.node.at(), err)
}

func (o *windowBase[K, T, A, R]) cannotRestore(err error) error {
	return fmt.Errorf("cannot restore windows of operator %s: %w", o.node.at(), err)
}

// restoreWatermark takes the least watermark of those the subtasks had: no window that was open counts as fired.
func (o *windowBase[K, T, A, R]) restoreWatermark(b []byte) error {
	wm, err := mark(b)
	if err != nil {
		return o.cannotRestore(err)
	}
	if o.spec.Processing {
		return nil // the clock has gone on
	}
	if !o.restored || wm < o.wm {
		o.wm, o.lastWM, o.restored = wm, min(wm, MaxTime-1), true
	}
	return nil
}

// Snapshot implements Stateful.
func (o *windowOp[K, T, A, R]) Snapshot(put func(StateEntry) error) error {
	if err := putMark(put, watermarkState, o.wm); err != nil {
		return err
	}
	if o.timed {
		if err := putMark(put, seenState, o.newest); err != nil {
			return err
		}
	}
	type place struct{ pane, at int32 }
	var all []place
	for i, p := range o.panes.list {
		for j := range p.keys {
			all = append(all, place{int32(i), int32(j)})
		}
	}
	var b []byte
	key := func(i int) *K { return &o.panes.list[all[i].pane].keys[all[i].at] }
	return o.groups.each(len(all), key, func(i, group int, encoded []byte) (err error) {
		p := o.panes.list[all[i].pane]
		b = binary.LittleEndian.AppendUint64(b[:0], uint64(p.start))
		if b, err = o.codec.Append(b, &p.accs[all[i].at]); err != nil {
			return o.cannotSnapshot(err)
		}
		return put(StateEntry{State: windowState, Group: group, Key: encoded, Value: b})
	})
}

// Restore implements Stateful.
func (o *windowOp[K, T, A, R]) Restore(e StateEntry) error {
	switch e.State {
	case watermarkState:
		return o.restoreWatermark(e.Value)
	case seenState:
		t, err := mark(e.Value)
		if err != nil {
			return o.cannotRestore(err)
		}
		o.newest, o.timed = max(o.newest, t), true
		return nil
	case windowState:
		if err := o.restoreKey(e); err != nil {
			return o.cannotRestore(err)
		}
		return nil
	}
	return unknownState(o.node, e)
}

func (o *windowOp[K, T, A, R]) restoreKey(e StateEntry) error {
	if len(e.Value) < 8 {
		return errShort
	}
	at, _ := mark(e.Value[:8])
	start, end, ok := o.cut.slice(at)
	if !ok || start != at {
		return errMoved
	}
	k, err := o.groups.decode(e.Key)
	if err != nil {
		return err
	}
	var acc A
	if err := o.codec.Decode(e.Value[8:], &acc); err != nil {
		return err
	}
	i, ok := o.panes.find(start)
	if !ok {
		p := o.panes.insert(i, start, end)
		p.first, p.last = o.cut.ends(start, end)
	}
	p := o.panes.list[i]
	if j, ok := p.index[k]; ok {
		p.accs[j] = acc
		return nil
	}
	p.add(k, acc, keeper[K]{})
	return nil
}

// Snapshot implements Stateful.
func (o *sessionOp[K, T, A, R]) Snapshot(put func(StateEntry) error) error {
	if err := putMark(put, watermarkState, o.wm); err != nil {
		return err
	}
	var b []byte
	slots := o.keys.live()
	key := func(i int) *K { return &o.keys.keys[slots[i]] }
	return o.groups.each(len(slots), key, func(i, group int, encoded []byte) (err error) {
		for at := o.heads[slots[i]]; at != noSession; at = o.pool[at].next {
			if b, err = o.appendSession(b[:0], &o.pool[at]); err != nil {
				return o.cannotSnapshot(err)
			}
			if err := put(StateEntry{State: sessionState, Group: group, Key: encoded, Value: b}); err != nil {
				return err
			}
		}
		return nil
	})
}

const sessionHead = 17 // bytes before the accumulator

func (o *sessionOp[K, T, A, R]) appendSession(b []byte, s *session[A]) ([]byte, error) {
	b = binary.LittleEndian.AppendUint64(b, uint64(s.start))
	b = binary.LittleEndian.AppendUint64(b, uint64(s.end))
	if s.fired {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	return o.codec.Append(b, &s.acc)
}

// Restore implements Stateful.
func (o *sessionOp[K, T, A, R]) Restore(e StateEntry) error {
	switch e.State {
	case watermarkState:
		return o.restoreWatermark(e.Value)
	case sessionState:
		if err := o.restoreKey(e); err != nil {
			return o.cannotRestore(err)
		}
		return nil
	}
	return unknownState(o.node, e)
}

func (o *sessionOp[K, T, A, R]) restoreKey(e StateEntry) error {
	if len(e.Value) < sessionHead {
		return errShort
	}
	k, err := o.groups.decode(e.Key)
	if err != nil {
		return err
	}
	var acc A
	if err := o.codec.Decode(e.Value[sessionHead:], &acc); err != nil {
		return err
	}
	start, _ := mark(e.Value[:8])
	end, _ := mark(e.Value[8:16])
	slot, known := o.keys.slots[k]
	if !known {
		slot = o.newKey(k)
	}
	prev := noSession
	for at := o.heads[slot]; at != noSession && o.pool[at].start < start; at = o.pool[at].next {
		prev = at
	}
	o.link(slot, prev, session[A]{start: start, end: end, acc: acc, fired: e.Value[16] == 1})
	return nil
}
