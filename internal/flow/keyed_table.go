package flow

import (
	"fmt"
	"math"
)

// Slots of keys that have none.
const (
	noSlot  uint32 = math.MaxUint32 - iota // the current key holds no state yet
	outside                                // no key is current: neither record nor timer is being handled
)

// slotSet is what keyed states see of an operator's key table, whatever the type of its keys: which slot
// is current, and how many states hold something for each slot. A slot that nothing holds is free for another key.
type slotSet struct {
	current uint32
	uses    []uint32      // [slot]
	acquire func() uint32 // gives the current key a slot and makes it current
}

// write returns the slot of the current key, which it gives one if need be.
func (s *slotSet) write() uint32 {
	if s.current >= outside {
		if s.current == outside {
			panic("keyed state or timer used outside of Process and OnTimer: there is no current key")
		}
		return s.acquire()
	}
	return s.current
}

// absent panics unless there is a current key, for states that were read at a slot they don't have.
func (s *slotSet) absent() {
	if s.current == outside {
		panic("keyed state used outside of Process and OnTimer: there is no current key")
	}
}

func (s *slotSet) hold(slot uint32)      { s.uses[slot]++ }
func (s *slotSet) letGo(slot uint32)     { s.uses[slot]-- }
func (s *slotSet) used(slot uint32) bool { return s.uses[slot] > 0 }

// keyTable gives each key that holds state a slot: a small number by which its states are found in slices.
// A key is looked up once a record, however many states it has.
type keyTable[K comparable] struct {
	slotSet
	slots map[K]uint32
	keys  []K // [slot]
	free  []uint32
	keep  keeper[K]
	key   K // the current one, borrowed
}

func newKeyTable[K comparable]() *keyTable[K] {
	t := &keyTable[K]{slots: make(map[K]uint32), keep: keeperOf[K](nil, true)}
	t.current, t.acquire = outside, t.insertCurrent
	return t
}

// enter makes k current, until leave.
func (t *keyTable[K]) enter(k K) {
	t.key = k
	if s, ok := t.slots[k]; ok {
		t.current = s
	} else {
		t.current = noSlot
	}
}

// enterSlot makes the key of slot current, until leave.
func (t *keyTable[K]) enterSlot(slot uint32) { t.current, t.key = slot, t.keys[slot] }

// leave ends what enter began, and frees the slot if nothing is held there.
func (t *keyTable[K]) leave() {
	if s := t.current; s < outside && t.uses[s] == 0 {
		t.release(s)
	}
	t.current = outside
}

// release frees a slot.
func (t *keyTable[K]) release(slot uint32) {
	var zero K
	delete(t.slots, t.keys[slot])
	t.keys[slot] = zero
	t.free = append(t.free, slot)
}

func (t *keyTable[K]) insertCurrent() uint32 {
	t.current = t.insert(t.key)
	t.key = t.keys[t.current]
	return t.current
}

// slotOf returns the slot of k, a new one if it has none.
func (t *keyTable[K]) slotOf(k K) uint32 {
	if s, ok := t.slots[k]; ok {
		return s
	}
	return t.insert(k)
}

func (t *keyTable[K]) insert(k K) uint32 {
	checkKey(k)
	var s uint32
	if n := len(t.free); n > 0 {
		s, t.free = t.free[n-1], t.free[:n-1]
		t.keys[s] = k
	} else {
		s = uint32(len(t.keys))
		t.keys, t.uses = append(t.keys, k), append(t.uses, 0)
	}
	t.keep.keep(&t.keys[s])
	t.slots[t.keys[s]] = s
	return s
}

// checkKey refuses a key that isn't equal to itself, as NaN is: its state would never be found again.
func checkKey[K comparable](k K) {
	if k != k {
		panic(fmt.Sprintf("key %v is not equal to itself and can't be grouped by", k))
	}
}

// live returns the slots that keys have.
func (t *keyTable[K]) live() []uint32 {
	slots := make([]uint32, 0, len(t.slots))
	for s, n := range t.uses {
		if n > 0 {
			slots = append(slots, uint32(s))
		}
	}
	return slots
}
