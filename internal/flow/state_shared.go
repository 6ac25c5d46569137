package flow

import "iter"

// sharedState is a state that belongs to the operator, not to a key: every subtask holds the same.
type sharedState interface {
	stateName() string
	snapshot(b []byte, put func([]byte) error) ([]byte, error)
	restore(b []byte) error
}

// SharedMap is a map that every subtask of an operator has a copy of: broadcast state. Since each subtask changes its own copy, only a broadcast
// input may change it, and in the same way everywhere: what is put in must depend on the records of that input alone.
type SharedMap[MK comparable, MV any] struct {
	pairCodec[MK, MV]
	name   string
	states *States
	vals   map[MK]*MV
}

// NewSharedMap declares a SharedMap of that name.
func NewSharedMap[MK comparable, MV any](s *States, name string) *SharedMap[MK, MV] {
	c, err := newPairCodec[MK, MV](s.codecs)
	s.declare(name, err)
	m := &SharedMap[MK, MV]{pairCodec: c, name: name, states: s, vals: make(map[MK]*MV)}
	s.shared = append(s.shared, m)
	return m
}

func (m *SharedMap[MK, MV]) stateName() string { return m.name }

// Get returns what the map has for k.
func (m *SharedMap[MK, MV]) Get(k MK) (MV, bool) {
	return lookup(m.vals, m.normal.of(k))
}

// Len is the number of entries.
func (m *SharedMap[MK, MV]) Len() int { return len(m.vals) }

// All ranges over the map, in no particular order.
func (m *SharedMap[MK, MV]) All() iter.Seq2[MK, MV] {
	return pairs(m.vals)
}

// Set puts v into the map. Only the function for the broadcast input may call it.
func (m *SharedMap[MK, MV]) Set(k MK, v MV) {
	m.writable()
	m.put(m.vals, k, v)
}

// Delete removes k. Only the function for the broadcast input may call it.
func (m *SharedMap[MK, MV]) Delete(k MK) {
	m.writable()
	delete(m.vals, m.normal.of(k))
}

func (m *SharedMap[MK, MV]) writable() {
	if m.states.readOnly {
		panic("shared state " + m.name + " changed by a record that only one subtask gets: only the broadcast input may change it")
	}
}

func (m *SharedMap[MK, MV]) snapshot(b []byte, put func([]byte) error) ([]byte, error) {
	return m.appendEach(m.vals, b, put)
}

func (m *SharedMap[MK, MV]) restore(b []byte) error { return m.decodeInto(m.vals, b) }
