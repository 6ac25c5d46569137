package flow

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"time"
	"unsafe"
)

// keyEncoder appends the encoding of the key at p.
type keyEncoder func(b []byte, p unsafe.Pointer) []byte

// keyEncoderOf builds the encoder of keys of type t. at is the path of fields that led to t; alone says that
// t is the whole key, so that a string needs no length.
func keyEncoderOf(t reflect.Type, at string, alone bool) (keyEncoder, error) {
	if load := wordLoader(t); load != nil {
		return func(b []byte, p unsafe.Pointer) []byte { return binary.LittleEndian.AppendUint64(b, load(p)) }, nil
	}
	if t == timeType {
		return appendKeyTime, nil
	}
	switch t.Kind() {
	case reflect.Bool:
		return func(b []byte, p unsafe.Pointer) []byte {
			if *(*bool)(p) {
				return append(b, 1)
			}
			return append(b, 0)
		}, nil
	case reflect.String:
		return func(b []byte, p unsafe.Pointer) []byte {
			s := *(*string)(p)
			if !alone {
				b = binary.LittleEndian.AppendUint64(b, uint64(len(s)))
			}
			return append(b, s...)
		}, nil
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return func(b []byte, p unsafe.Pointer) []byte {
				s := *(*[]byte)(p)
				if !alone {
					b = binary.LittleEndian.AppendUint64(b, uint64(len(s)))
				}
				return append(b, s...)
			}, nil
		}
	case reflect.Array:
		return keyArrayEncoder(t, at)
	case reflect.Struct:
		return keyStructEncoder(t, at)
	}
	return nil, fmt.Errorf("%s can't be a key: %s is a %s; a key consists of integers, floats, bools, strings, time.Time and structs and arrays of these",
		t, fieldPath(at), t.Kind())
}

var timeType = reflect.TypeFor[time.Time]()

func appendKeyTime(b []byte, p unsafe.Pointer) []byte {
	t := (*time.Time)(p)
	b = binary.LittleEndian.AppendUint64(b, uint64(t.Unix()))
	return binary.LittleEndian.AppendUint64(b, uint64(t.Nanosecond()))
}

func keyArrayEncoder(t reflect.Type, at string) (keyEncoder, error) {
	n, size := t.Len(), t.Elem().Size()
	if t.Elem().Kind() == reflect.Uint8 {
		return func(b []byte, p unsafe.Pointer) []byte { return append(b, unsafe.Slice((*byte)(p), n)...) }, nil
	}
	elem, err := keyEncoderOf(t.Elem(), at+"[]", false)
	if err != nil {
		return nil, err
	}
	return func(b []byte, p unsafe.Pointer) []byte {
		for i := range n {
			b = elem(b, unsafe.Add(p, uintptr(i)*size))
		}
		return b
	}, nil
}

func keyStructEncoder(t reflect.Type, at string) (keyEncoder, error) {
	type field struct {
		off uintptr
		enc keyEncoder
	}
	fields := make([]field, t.NumField())
	for i := range fields {
		f := t.Field(i)
		enc, err := keyEncoderOf(f.Type, joinPath(at, f.Name), false)
		if err != nil {
			return nil, err
		}
		fields[i] = field{f.Offset, enc}
	}
	return func(b []byte, p unsafe.Pointer) []byte {
		for _, f := range fields {
			b = f.enc(b, unsafe.Add(p, f.off))
		}
		return b
	}, nil
}

// joinPath appends a field's name to a path of fields.
func joinPath(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

// fieldPath words a path of fields for an error.
func fieldPath(at string) string {
	if at == "" {
		return "it"
	}
	return "field " + at
}
