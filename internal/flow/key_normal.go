package flow

import (
	"fmt"
	"reflect"
	"time"
	"unsafe"
)

// Keys are compared by Go's == and found in maps, but two equal moments need not be == as values of time.Time: they differ in where
// their Location lies in memory and in their reading of the monotonic clock. So every time.Time in a key gets one form as the key is taken
// from a record or handed to a state: UTC, without such a reading. That is also what a key that was encoded and decoded has.

// normalizer gives keys of one type the form in which equal ones are ==. The zero one is for types that need none.
type normalizer[K any] struct {
	times []uintptr // offsets of the time.Time in a K
}

func newNormalizer[K any]() normalizer[K] {
	return normalizer[K]{timeOffsets(nil, reflect.TypeFor[K](), 0)}
}

// of returns k in that form.
func (n normalizer[K]) of(k K) K {
	if n.times == nil {
		return k
	}
	return n.normal(k)
}

// normal is apart so that a k that needs nothing stays on the stack.
func (n normalizer[K]) normal(k K) K {
	for _, off := range n.times {
		t := (*time.Time)(unsafe.Add(unsafe.Pointer(&k), off))
		*t = t.UTC().Round(0)
	}
	return k
}

// normalKey returns the function that takes what key takes, in the form in which equal keys are ==. It is key itself where
// that is so of every K; nil stays nil.
func normalKey[T, K any](key func(T) K) func(T) K {
	n := newNormalizer[K]()
	if n.times == nil || key == nil {
		return key
	}
	return func(rec T) K { return n.normal(key(rec)) }
}

// timeOffsets appends the offsets of the time.Time in a t that lies at off.
func timeOffsets(offs []uintptr, t reflect.Type, off uintptr) []uintptr {
	if t == timeType {
		return append(offs, off)
	}
	switch t.Kind() {
	case reflect.Array:
		for i := range t.Len() {
			n := len(offs)
			if offs = timeOffsets(offs, t.Elem(), off+uintptr(i)*t.Elem().Size()); len(offs) == n {
				return offs // no times in there
			}
		}
	case reflect.Struct:
		for i := range t.NumField() {
			offs = timeOffsets(offs, t.Field(i).Type, off+t.Field(i).Offset)
		}
	}
	return offs
}

// checkMapKey refuses types whose values can't be told apart by ==: pointers are equal by where they lead, which
// is another place once they were copied or restored. Of a type with a codec its author knows better.
func checkMapKey(t reflect.Type, cs *Codecs) error {
	if at, found := pointerIn(t, "", cs); found != nil {
		return fmt.Errorf("%s can't be told apart from others by ==: %s is a %s; use a type of integers, floats, bools, strings, time.Time, and structs and arrays of these",
			t, fieldPath(at), found)
	}
	return nil
}

// pointerIn returns the first part of a t that is equal by identity, nil if there is none.
func pointerIn(t reflect.Type, at string, cs *Codecs) (string, reflect.Type) {
	if t == timeType || cs.of(t) != nil {
		return "", nil
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.UnsafePointer, reflect.Interface, reflect.Chan:
		return at, t
	case reflect.Array:
		return pointerIn(t.Elem(), at+"[]", cs)
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if at, found := pointerIn(f.Type, joinPath(at, f.Name), cs); found != nil {
				return at, found
			}
		}
	}
	return "", nil
}
