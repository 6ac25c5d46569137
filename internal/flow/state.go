package flow

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"reflect"
)

// States are the states of one instance of an operator. The author's setup function declares them, with NewValue and the like.
type States struct {
	at       *slotSet // nil: the operator has no keys
	codecs   *Codecs
	keyed    []keyedState
	shared   []sharedState
	names    map[string]bool
	readOnly bool // shared states can't be written now
	errs     []error
}

func newStates(at *slotSet, codecs *Codecs) *States {
	return &States{at: at, codecs: codecs, names: map[string]bool{}}
}

// keyedState is a state with a value for each key, as checkpoints see it.
type keyedState interface {
	stateName() string
	// snapshot hands put the encoding of what is held at slot: one or more pieces, or none. b is scratch.
	snapshot(slot uint32, b []byte, put func([]byte) error) ([]byte, error)
	// restore takes back a piece.
	restore(slot uint32, b []byte) error
}

// err returns what was wrong with the declarations.
func (s *States) err() error { return errors.Join(s.errs...) }

// declare checks the name of a new state.
func (s *States) declare(name string, err error) {
	switch {
	case name == "" || name[0] == '#':
		err = fmt.Errorf("%q is no name for a state: it must not be empty nor begin with #", name)
	case s.names[name]:
		err = fmt.Errorf("state %q is declared twice", name)
	case err != nil:
		err = fmt.Errorf("state %q: %w", name, err)
	}
	s.names[name] = true
	if err != nil {
		s.errs = append(s.errs, err)
	}
}

// keyedSlots returns what a keyed state finds its values by.
func (s *States) keyedSlots(name string) *slotSet {
	if s.at == nil {
		s.errs = append(s.errs, fmt.Errorf("state %q: the operator has no keys; use KeyBy before it, or state that is shared", name))
		return &slotSet{current: outside}
	}
	return s.at
}

// column is what the kinds of keyed state share: a value for each slot that has one.
type column[C any] struct {
	name string
	at   *slotSet
	vals []C
	has  []bool
}

func newColumn[C any](s *States, name string, err error) column[C] {
	s.declare(name, err)
	return column[C]{name: name, at: s.keyedSlots(name)}
}

func (c *column[C]) stateName() string { return c.name }

// get returns the value of the current key.
func (c *column[C]) get() (v C, ok bool) {
	i := c.at.current
	if i < uint32(len(c.vals)) {
		return c.vals[i], c.has[i]
	}
	c.at.absent()
	return v, false
}

// own returns the place of a slot's value, which from now on counts as held.
func (c *column[C]) own(slot uint32) *C {
	if slot >= uint32(len(c.vals)) {
		var zero C
		c.vals, c.has = grown(c.vals, slot, zero), grown(c.has, slot, false)
	}
	if !c.has[slot] {
		c.has[slot] = true
		c.at.hold(slot)
	}
	return &c.vals[slot]
}

// Clear removes the value of the current key.
func (c *column[C]) Clear() {
	i := c.at.current
	if i >= uint32(len(c.vals)) {
		c.at.absent()
		return
	}
	if c.has[i] {
		var zero C
		c.vals[i], c.has[i] = zero, false
		c.at.letGo(i)
	}
}

// Value is a state that holds one value for each key.
type Value[S any] struct {
	column[S]
	codec *stateCodec[S]
}

// NewValue declares a Value of that name.
func NewValue[S any](s *States, name string) *Value[S] {
	c, err := newStateCodec[S](s.codecs)
	v := &Value[S]{column: newColumn[S](s, name, err), codec: c}
	s.keyed = append(s.keyed, v)
	return v
}

// Get returns the value of the current key, the zero value if it has none. What it holds is shared and must not be modified.
func (v *Value[S]) Get() S {
	s, _ := v.get()
	return s
}

// Lookup is Get, and tells whether the current key has a value.
func (v *Value[S]) Lookup() (S, bool) { return v.get() }

// Set gives the current key a value. Strings and slices in it are copied if they are not those it had.
func (v *Value[S]) Set(s S) { v.codec.keep.replace(v.own(v.at.write()), s) }

func (v *Value[S]) snapshot(slot uint32, b []byte, put func([]byte) error) ([]byte, error) {
	if slot >= uint32(len(v.vals)) || !v.has[slot] {
		return b, nil
	}
	b, err := v.codec.Append(b[:0], &v.vals[slot])
	if err != nil {
		return b, err
	}
	return b, put(b)
}

func (v *Value[S]) restore(slot uint32, b []byte) error {
	p := v.own(slot)
	var zero S
	*p = zero
	return v.codec.Decode(b, p)
}

// List is a state that holds a list for each key.
type List[S any] struct {
	column[[]S]
	codec *stateCodec[[]S]
	keep  keeper[S]
}

// NewList declares a List of that name.
func NewList[S any](s *States, name string) *List[S] {
	c, err := newStateCodec[[]S](s.codecs)
	l := &List[S]{column: newColumn[[]S](s, name, err), codec: c, keep: keeperOf[S](s.codecs, true)}
	s.keyed = append(s.keyed, l)
	return l
}

// Get returns the list of the current key, borrowed until it is changed.
func (l *List[S]) Get() []S {
	s, _ := l.get()
	return s
}

// Len is the length of the current key's list.
func (l *List[S]) Len() int { return len(l.Get()) }

// Add appends to the list of the current key.
func (l *List[S]) Add(v S) {
	p := l.own(l.at.write())
	*p = append(*p, v)
	l.keep.keep(&(*p)[len(*p)-1])
}

// Set replaces the list of the current key by a copy of list; an empty one clears it.
func (l *List[S]) Set(list []S) {
	if len(list) == 0 {
		l.Clear()
		return
	}
	p := l.own(l.at.write())
	n := append(make([]S, 0, len(list)), list...)
	for i := range n {
		l.keep.keep(&n[i])
	}
	*p = n
}

func (l *List[S]) snapshot(slot uint32, b []byte, put func([]byte) error) ([]byte, error) {
	if slot >= uint32(len(l.vals)) || !l.has[slot] {
		return b, nil
	}
	b, err := l.codec.Append(b[:0], &l.vals[slot])
	if err != nil {
		return b, err
	}
	return b, put(b)
}

func (l *List[S]) restore(slot uint32, b []byte) error { return l.codec.Decode(b, l.own(slot)) }

// Map is a state that holds a map for each key. Entries with a time.Time in their key are found by the instant, whatever its time zone;
// All ranges over it in UTC.
type Map[MK comparable, MV any] struct {
	column[map[MK]*MV]
	pairCodec[MK, MV]
}

// NewMapState declares a Map of that name.
func NewMapState[MK comparable, MV any](s *States, name string) *Map[MK, MV] {
	c, err := newPairCodec[MK, MV](s.codecs)
	m := &Map[MK, MV]{column: newColumn[map[MK]*MV](s, name, err), pairCodec: c}
	s.keyed = append(s.keyed, m)
	return m
}

// Get returns what the current key's map has for k.
func (m *Map[MK, MV]) Get(k MK) (MV, bool) {
	vals, _ := m.get()
	return lookup(vals, m.normal.of(k))
}

// lookup returns the value of k.
func lookup[MK comparable, MV any](m map[MK]*MV, k MK) (v MV, ok bool) {
	if p, ok := m[k]; ok {
		return *p, true
	}
	return v, false
}

// pairs ranges over values.
func pairs[MK comparable, MV any](m map[MK]*MV) iter.Seq2[MK, MV] {
	return func(yield func(MK, MV) bool) {
		for k, v := range m {
			if !yield(k, *v) {
				return
			}
		}
	}
}

// Set puts v into the current key's map.
func (m *Map[MK, MV]) Set(k MK, v MV) {
	p := m.own(m.at.write())
	if *p == nil {
		*p = make(map[MK]*MV)
	}
	m.put(*p, k, v)
}

// Delete removes k from the current key's map.
func (m *Map[MK, MV]) Delete(k MK) {
	vals, ok := m.get()
	if !ok {
		return
	}
	if delete(vals, m.normal.of(k)); len(vals) == 0 {
		m.Clear()
	}
}

// Len is the number of entries of the current key's map.
func (m *Map[MK, MV]) Len() int {
	vals, _ := m.get()
	return len(vals)
}

// All ranges over the current key's map, in no particular order. Entries may be deleted meanwhile.
func (m *Map[MK, MV]) All() iter.Seq2[MK, MV] {
	vals, _ := m.get()
	return pairs(vals)
}

func (m *Map[MK, MV]) snapshot(slot uint32, b []byte, put func([]byte) error) ([]byte, error) {
	if slot >= uint32(len(m.vals)) {
		return b, nil
	}
	return m.appendEach(m.vals[slot], b, put)
}

func (m *Map[MK, MV]) restore(slot uint32, b []byte) error {
	p := m.own(slot)
	if *p == nil {
		*p = make(map[MK]*MV)
	}
	return m.decodeInto(*p, b)
}

// pairCodec encodes the entries of a map, each as the length of its key (uvarint), the key and the value.
type pairCodec[MK comparable, MV any] struct {
	key    *stateCodec[MK]
	val    *stateCodec[MV]
	normal normalizer[MK]
}

func newPairCodec[MK comparable, MV any](cs *Codecs) (c pairCodec[MK, MV], err error) {
	c.normal = newNormalizer[MK]()
	if err = checkMapKey(reflect.TypeFor[MK](), cs); err != nil {
		return c, err
	}
	if c.key, err = newStateCodec[MK](cs); err != nil {
		return c, err
	}
	c.val, err = newStateCodec[MV](cs)
	return c, err
}

// put sets an entry to copies of k and v. Values are behind pointers since an assignment to a map would
// replace a key that is kept by one that is borrowed.
func (c pairCodec[MK, MV]) put(m map[MK]*MV, k MK, v MV) {
	k = c.normal.of(k)
	if p, ok := m[k]; ok {
		c.val.keep.replace(p, v)
		return
	}
	checkKey(k)
	c.insert(m, k, v)
}

// insert is apart so that k and v stay on the stack where there is an entry.
func (c pairCodec[MK, MV]) insert(m map[MK]*MV, k MK, v MV) {
	c.key.keep.keep(&k)
	c.val.keep.keep(&v)
	m[k] = &v
}

func (c pairCodec[MK, MV]) appendEach(m map[MK]*MV, b []byte, put func([]byte) error) (_ []byte, err error) {
	var kb []byte
	for k, v := range m {
		if kb, err = c.key.Append(kb[:0], &k); err != nil {
			return b, err
		}
		b = append(binary.AppendUvarint(b[:0], uint64(len(kb))), kb...)
		if b, err = c.val.Append(b, v); err != nil {
			return b, err
		}
		if err = put(b); err != nil {
			return b, err
		}
	}
	return b, nil
}

func (c pairCodec[MK, MV]) decodeInto(m map[MK]*MV, b []byte) error {
	n, w := binary.Uvarint(b)
	if w <= 0 || n > uint64(len(b)-w) {
		return errShort
	}
	var k MK
	if err := c.key.Decode(b[w:w+int(n)], &k); err != nil {
		return err
	}
	var v MV
	if err := c.val.Decode(b[w+int(n):], &v); err != nil {
		return err
	}
	m[k] = &v
	return nil
}
