package flow

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"time"
	"unsafe"
)

const timeBytes = 12 // a time.Time: seconds (8), nanoseconds (4)

// uvarintLen is the number of bytes of n as uvarint.
func uvarintLen(n int) int { return (bits.Len64(uint64(n)|1) + 6) / 7 }

// encodedSize is the number of bytes of the value at p. The layout has no custom codecs.
func (l *layout) encodedSize(p unsafe.Pointer) int {
	n := 0
	for i := range l.ops {
		o := &l.ops[i]
		q := unsafe.Add(p, o.off)
		switch o.kind {
		case opRaw, opWord:
			n += int(o.n)
		case opString:
			s := len(*(*string)(q))
			n += uvarintLen(s) + s
		case opBytes:
			s := len(*(*[]byte)(q))
			n += uvarintLen(s+1) + s
		default:
			n += o.sizeOf(q)
		}
	}
	return n
}

// sizeOf is the encoded size of the rarer kinds.
func (o *op) sizeOf(q unsafe.Pointer) int {
	switch o.kind {
	case opTime:
		return timeBytes
	case opSlice:
		s := (*sliceWords)(q)
		return uvarintLen(s.len+1) + o.elem.manySize(s.data, s.len)
	case opArray:
		return o.elem.manySize(q, int(o.n))
	case opPointer:
		if to := *(*unsafe.Pointer)(q); to != nil {
			return 1 + o.elem.encodedSize(to)
		}
		return 1
	}
	panic("flow: a layout with codecs has no size")
}

// sliceWords is the memory of a slice of any type.
type sliceWords struct {
	data     unsafe.Pointer
	len, cap int
}

// manySize is the encoded size of n values in a row.
func (l *layout) manySize(p unsafe.Pointer, n int) int {
	if l.fixed {
		return n * int(l.size)
	}
	sum := 0
	for i := range n {
		sum += l.encodedSize(unsafe.Add(p, uintptr(i)*l.size))
	}
	return sum
}

// append appends the encoding of the value at p.
func (l *layout) append(b []byte, p unsafe.Pointer) ([]byte, error) {
	for i := range l.ops {
		o := &l.ops[i]
		q := unsafe.Add(p, o.off)
		switch o.kind {
		case opWord:
			b = binary.LittleEndian.AppendUint64(b, *(*uint64)(q))
		case opRaw:
			b = append(b, unsafe.Slice((*byte)(q), o.n)...)
		case opString:
			s := *(*string)(q)
			b = appendLen(b, len(s))
			b = append(b, s...)
		case opBytes:
			s := *(*[]byte)(q)
			if s == nil {
				b = append(b, 0)
				continue
			}
			b = appendLen(b, len(s)+1)
			b = append(b, s...)
		default:
			var err error
			if b, err = o.append(b, q); err != nil {
				return b, err
			}
		}
	}
	return b, nil
}

// append does the rarer kinds.
func (o *op) append(b []byte, q unsafe.Pointer) ([]byte, error) {
	switch o.kind {
	case opTime:
		return appendTime(b, *(*time.Time)(q)), nil
	case opSlice:
		s := (*sliceWords)(q)
		if s.data == nil {
			return append(b, 0), nil
		}
		return o.elem.appendMany(appendLen(b, s.len+1), s.data, s.len)
	case opArray:
		return o.elem.appendMany(b, q, int(o.n))
	case opPointer:
		to := *(*unsafe.Pointer)(q)
		if to == nil {
			return append(b, 0), nil
		}
		return o.elem.append(append(b, 1), to)
	}
	return appendCustom(b, o.code, q)
}

func (l *layout) appendMany(b []byte, p unsafe.Pointer, n int) ([]byte, error) {
	if l.fixed {
		return append(b, unsafe.Slice((*byte)(p), uintptr(n)*l.size)...), nil
	}
	var err error
	for i := range n {
		if b, err = l.append(b, unsafe.Add(p, uintptr(i)*l.size)); err != nil {
			return b, err
		}
	}
	return b, nil
}

func appendLen(b []byte, n int) []byte {
	if n < 0x80 {
		return append(b, byte(n))
	}
	return binary.AppendUvarint(b, uint64(n))
}

func appendTime(b []byte, t time.Time) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(t.Unix()))
	return binary.LittleEndian.AppendUint32(b, uint32(t.Nanosecond()))
}

// appendCustom runs an author's codec behind its length, which takes as many bytes as it needs: most encodings
// are short, so the others are moved up.
func appendCustom(b []byte, c *customCodec, q unsafe.Pointer) (_ []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("codec: panic: %v%s", p, panicSite())
		}
	}()
	start := len(b)
	b, err = c.append(append(b, 0), q)
	if err != nil {
		return b, fmt.Errorf("codec: %w", err)
	}
	n := len(b) - start - 1
	if n < 0 {
		return b, fmt.Errorf("codec: Append returned fewer bytes than it was given")
	}
	if n < 0x80 {
		b[start] = byte(n)
		return b, nil
	}
	var size [binary.MaxVarintLen64]byte
	head := binary.AppendUvarint(size[:0], uint64(n))
	b = append(b, head[1:]...)
	copy(b[start+len(head):], b[start+1:start+1+n])
	copy(b[start:], head)
	return b, nil
}
