package flow

import (
	"encoding/binary"
	"errors"
	"slices"
)

// timers are the timers of an operator in one time domain, each for a slot of its key table and a time.
// Setting the same timer twice sets it once. They fire in order of time, then of being set.
type timers struct {
	at   *slotSet
	set  map[timerKey]uint64 // sequence number of each that is set
	heap []timerEntry        // least first; an entry whose number isn't the one in set is void
	seq  uint64
}

type timerKey struct {
	time int64
	slot uint32
}

type timerEntry struct {
	time int64
	seq  uint64
	slot uint32
}

func newTimers(at *slotSet) *timers { return &timers{at: at, set: make(map[timerKey]uint64)} }

// add sets a timer; it reports whether that is now the first to fire.
func (t *timers) add(slot uint32, time int64) bool {
	k := timerKey{time, slot}
	if _, ok := t.set[k]; ok {
		return false
	}
	t.at.hold(slot)
	t.seq++
	t.set[k] = t.seq
	t.push(timerEntry{time, t.seq, slot})
	return t.heap[0].seq == t.seq
}

// remove unsets a timer.
func (t *timers) remove(slot uint32, time int64) {
	k := timerKey{time, slot}
	if _, ok := t.set[k]; ok {
		delete(t.set, k)
		t.at.letGo(slot)
	}
}

// next returns the time of the first timer, MaxTime and false if there is none.
func (t *timers) next() (int64, bool) {
	for len(t.heap) > 0 {
		e := t.heap[0]
		if t.set[timerKey{e.time, e.slot}] == e.seq {
			return e.time, true
		}
		t.drop()
	}
	return MaxTime, false
}

// pop takes the first timer out if it is due at now. Its slot stays held: the caller lets it go.
func (t *timers) pop(now int64) (slot uint32, time int64, ok bool) {
	if time, ok = t.next(); !ok || time > now {
		return 0, 0, false
	}
	e := t.heap[0]
	t.drop()
	delete(t.set, timerKey{e.time, e.slot})
	return e.slot, e.time, true
}

func (a timerEntry) less(b timerEntry) bool {
	return a.time < b.time || a.time == b.time && a.seq < b.seq
}

func (t *timers) push(e timerEntry) {
	t.heap = append(t.heap, e)
	h, i := t.heap, len(t.heap)-1
	for i > 0 {
		up := (i - 1) / 2
		if !h[i].less(h[up]) {
			return
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

// drop takes the first entry off the heap.
func (t *timers) drop() {
	h, n := t.heap, len(t.heap)-1
	h[0] = h[n]
	h = h[:n]
	t.heap = h
	i := 0
	for {
		c := 2*i + 1
		if c >= n {
			return
		}
		if c+1 < n && h[c+1].less(h[c]) {
			c++
		}
		if !h[c].less(h[i]) {
			return
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
}

// Names of timers among an operator's states.
const (
	eventTimers = "#event-timers"
	clockTimers = "#processing-timers"
)

// slotTimers are timers in order of slots, for a snapshot. An entry is the time as 8 bytes, little-endian.
type slotTimers struct {
	name string
	list []timerEntry
}

func (t *timers) bySlot(name string) *slotTimers {
	list := make([]timerEntry, 0, len(t.set))
	for k, seq := range t.set {
		list = append(list, timerEntry{k.time, seq, k.slot})
	}
	slices.SortFunc(list, func(a, b timerEntry) int {
		if a.slot != b.slot {
			return int(int64(a.slot) - int64(b.slot))
		}
		if a.less(b) {
			return -1
		}
		return 1
	})
	return &slotTimers{name, list}
}

func (s *slotTimers) snapshot(slot uint32, b []byte, put func([]byte) error) ([]byte, error) {
	i, _ := slices.BinarySearchFunc(s.list, slot, func(e timerEntry, slot uint32) int { return int(int64(e.slot) - int64(slot)) })
	for ; i < len(s.list) && s.list[i].slot == slot; i++ {
		b = binary.LittleEndian.AppendUint64(b[:0], uint64(s.list[i].time))
		if err := put(b); err != nil {
			return b, err
		}
	}
	return b, nil
}

var errTimer = errors.New("a timer is not 8 bytes")

// restore sets the timer that snapshot wrote.
func (t *timers) restore(slot uint32, b []byte) error {
	if len(b) != 8 {
		return errTimer
	}
	t.add(slot, int64(binary.LittleEndian.Uint64(b)))
	return nil
}
