package flow

import (
	"encoding/binary"
	"math"
	"math/bits"
	"reflect"
	"unsafe"
)

// MaxKeyGroups bounds the number of key groups of an operator.
const MaxKeyGroups = 1 << 15

// KeyGroup is the key group, 0 ≤ group < groups, of a key with this hash.
func KeyGroup(hash uint64, groups int) int { return int((hash >> 32) * uint64(groups) >> 32) }

// GroupSubtask is the subtask that owns a key group.
func GroupSubtask(group, groups, parallelism int) int { return group * parallelism / groups }

// Constants of XXH64, https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md.
const (
	prime1 uint64 = 0x9E3779B185EBCA87
	prime2 uint64 = 0xC2B2AE3D27D4EB4F
	prime3 uint64 = 0x165667B19E3779F9
	prime4 uint64 = 0x85EBCA77C2B2AE63
	prime5 uint64 = 0x27D4EB2F165667C5
)

// HashBytes is the hash of a key's encoding: XXH64 with seed 0. It is the same in every process and every version,
// since key groups in checkpoints depend on it.
//
// The encoding of a key: an integer, whatever its width, as 8 bytes little-endian, sign-extended where it has a sign;
// a float as the 8 bytes of its float64, with -0 as 0 and one NaN; a bool as one byte; a string, []byte or byte array as its bytes;
// a time.Time as its Unix seconds and then its nanoseconds, as integers. The fields of a struct and the elements of another array follow each other, each
// string within them after its length as an integer.
func HashBytes(b []byte) uint64 {
	n := len(b)
	var h uint64
	if n >= 32 {
		b, h = hashStripes(b)
	} else {
		h = prime5
	}
	h += uint64(n)
	for ; len(b) >= 8; b = b[8:] {
		h = bits.RotateLeft64(h^round(0, binary.LittleEndian.Uint64(b)), 27)*prime1 + prime4
	}
	if len(b) >= 4 {
		h = bits.RotateLeft64(h^uint64(binary.LittleEndian.Uint32(b))*prime1, 23)*prime2 + prime3
		b = b[4:]
	}
	for _, c := range b {
		h = bits.RotateLeft64(h^uint64(c)*prime5, 11) * prime1
	}
	return avalanche(h)
}

// hashStripes consumes b 32 bytes at a time and returns what is left and the state.
func hashStripes(b []byte) ([]byte, uint64) {
	p1 := prime1 // a variable: the sums overflow on purpose
	v1, v2, v3, v4 := p1+prime2, prime2, uint64(0), -p1
	for ; len(b) >= 32; b = b[32:] {
		v1 = round(v1, binary.LittleEndian.Uint64(b))
		v2 = round(v2, binary.LittleEndian.Uint64(b[8:]))
		v3 = round(v3, binary.LittleEndian.Uint64(b[16:]))
		v4 = round(v4, binary.LittleEndian.Uint64(b[24:]))
	}
	h := bits.RotateLeft64(v1, 1) + bits.RotateLeft64(v2, 7) + bits.RotateLeft64(v3, 12) + bits.RotateLeft64(v4, 18)
	for _, v := range [...]uint64{v1, v2, v3, v4} {
		h = (h^round(0, v))*prime1 + prime4
	}
	return b, h
}

func round(acc, input uint64) uint64 {
	return bits.RotateLeft64(acc+input*prime2, 31) * prime1
}

func avalanche(h uint64) uint64 {
	h = (h ^ h>>33) * prime2
	h = (h ^ h>>29) * prime3
	return h ^ h>>32
}

// HashUint64 is HashBytes of the 8 bytes of v, little-endian.
func HashUint64(v uint64) uint64 {
	h := prime5 + 8
	h = bits.RotateLeft64(h^round(0, v), 27)*prime1 + prime4
	return avalanche(h)
}

// HashString is HashBytes of the bytes of s.
func HashString(s string) uint64 { return HashBytes(unsafe.Slice(unsafe.StringData(s), len(s))) }

// floatBits is the encoding of a float within keys.
func floatBits(f float64) uint64 {
	switch {
	case f == 0:
		return 0
	case f != f:
		return 0x7FF8000000000001
	}
	return math.Float64bits(f)
}

// HashOf returns the function that hashes keys of type K. It is an error, naming the type and field, if K can't be a key:
// a key consists of integers, floats, bools, strings, []byte, time.Time, and arrays and structs of these.
func HashOf[K any]() (func(*K) uint64, error) {
	t := reflect.TypeFor[K]()
	if load := wordLoader(t); load != nil {
		return func(k *K) uint64 { return HashUint64(load(unsafe.Pointer(k))) }, nil
	}
	if t.Kind() == reflect.String {
		return func(k *K) uint64 { return HashString(*(*string)(unsafe.Pointer(k))) }, nil
	}
	enc, err := keyEncoderOf(t, "", true)
	if err != nil {
		return nil, err
	}
	return func(k *K) uint64 {
		var scratch [96]byte
		return HashBytes(enc(scratch[:0], unsafe.Pointer(k)))
	}, nil
}

// wordLoader returns how an integer or float of type t is read as the word that is its encoding; nil for other types.
func wordLoader(t reflect.Type) func(unsafe.Pointer) uint64 {
	switch t.Kind() {
	case reflect.Int, reflect.Int64, reflect.Uint, reflect.Uint64, reflect.Uintptr:
		return func(p unsafe.Pointer) uint64 { return *(*uint64)(p) }
	case reflect.Int32:
		return func(p unsafe.Pointer) uint64 { return uint64(*(*int32)(p)) }
	case reflect.Uint32:
		return func(p unsafe.Pointer) uint64 { return uint64(*(*uint32)(p)) }
	case reflect.Int16:
		return func(p unsafe.Pointer) uint64 { return uint64(*(*int16)(p)) }
	case reflect.Uint16:
		return func(p unsafe.Pointer) uint64 { return uint64(*(*uint16)(p)) }
	case reflect.Int8:
		return func(p unsafe.Pointer) uint64 { return uint64(*(*int8)(p)) }
	case reflect.Uint8:
		return func(p unsafe.Pointer) uint64 { return uint64(*(*uint8)(p)) }
	case reflect.Float64:
		return func(p unsafe.Pointer) uint64 { return floatBits(*(*float64)(p)) }
	case reflect.Float32:
		return func(p unsafe.Pointer) uint64 { return floatBits(float64(*(*float32)(p))) }
	}
	return nil
}
