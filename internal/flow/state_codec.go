package flow

import (
	"errors"
	"fmt"
	"reflect"
	"unsafe"
)

// stateCodec encodes what state keeps like records are encoded. One goroutine uses it.
type stateCodec[T any] struct {
	layout *layout
	dec    decoder
	keep   keeper[T]
}

// newStateCodec returns the codec of T, or why it has none.
func newStateCodec[T any](cs *Codecs) (*stateCodec[T], error) {
	l, err := layoutOf(reflect.TypeFor[T](), cs)
	if err != nil {
		return nil, err
	}
	return &stateCodec[T]{layout: l, keep: keeperOf[T](cs, true)}, nil
}

// Append implements Codec.
func (c *stateCodec[T]) Append(b []byte, v *T) ([]byte, error) {
	return c.layout.append(b, unsafe.Pointer(v))
}

var errTrailing = errors.New("bytes are left over")

// Decode implements Codec. v shares no memory with b.
func (c *stateCodec[T]) Decode(b []byte, v *T) error {
	c.dec.start(c.layout, b)
	n, err := c.dec.value(c.layout, 0, unsafe.Pointer(v))
	if err == nil && n != len(b) {
		err = errTrailing
	}
	if err != nil {
		var zero T
		*v = zero
		return fmt.Errorf("cannot decode %s: %w", reflect.TypeFor[T](), err)
	}
	c.keep.keep(v)
	return nil
}
