package flow

import (
	"fmt"
	"reflect"
	"unsafe"
)

// Codec is an author's own encoding of a type. One value serves all subtasks at once, so it holds no scratch state.
type Codec[T any] interface {
	// Append appends the encoding of v to b.
	Append(b []byte, v *T) ([]byte, error)
	// Decode sets v, which is zero, from what Append appended. b is borrowed for the call:
	// what v keeps of it must be copied. Malformed input is an error.
	Decode(b []byte, v *T) error
}

// Codecs are the codecs that the author of a job gave for types of their own. They apply wherever the
// type occurs: as a record, in a field, in a slice.
type Codecs struct {
	byType map[reflect.Type]*customCodec
}

// customCodec is a Codec with its type erased.
type customCodec struct {
	append func(b []byte, p unsafe.Pointer) ([]byte, error)
	decode func(b []byte, p unsafe.Pointer) error
}

// NewCodecs returns an empty set.
func NewCodecs() *Codecs { return &Codecs{byType: map[reflect.Type]*customCodec{}} }

// Use makes c the codec of T. It may be called until the job runs. A second codec for T is an error.
func Use[T any](cs *Codecs, c Codec[T]) error {
	t := reflect.TypeFor[T]()
	if cs.byType[t] != nil {
		return fmt.Errorf("type %s has a codec already", t)
	}
	cs.byType[t] = &customCodec{
		append: func(b []byte, p unsafe.Pointer) ([]byte, error) { return c.Append(b, (*T)(p)) },
		decode: func(b []byte, p unsafe.Pointer) error { return c.Decode(b, (*T)(p)) },
	}
	return nil
}

// of returns the codec for t, nil if there is none.
func (cs *Codecs) of(t reflect.Type) *customCodec {
	if cs == nil {
		return nil
	}
	return cs.byType[t]
}
