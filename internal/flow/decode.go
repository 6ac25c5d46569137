package flow

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"time"
	"unsafe"
)

// decoder decodes values of one layout, for one reader. What it decodes doesn't share memory with its input, save []byte.
type decoder struct {
	b     []byte // what is being decoded
	s     string // a copy of b that strings point into, where the layout has strings
	slabs []slab
}

// slab is memory from which slices of one type are cut, so that not every one is an allocation.
type slab struct {
	next unsafe.Pointer
	left int
}

// slabBytes is about how much is allocated at once for slices.
const slabBytes = 4 << 10

var (
	errShort    = errors.New("it ends too early")
	errLength   = errors.New("a length is out of range")
	errBool     = errors.New("a bool is neither 0 nor 1")
	errNanos    = errors.New("the nanoseconds of a time are out of range")
	errPresence = errors.New("the mark of a pointer is neither 0 nor 1")
)

// start begins with b, which must stay as it is while values decoded from it are used.
func (d *decoder) start(l *layout, b []byte) {
	d.b, d.s = b, ""
	if l.strings {
		d.s = string(b)
	}
	if d.slabs == nil {
		d.slabs = make([]slab, l.slabs)
	}
}

// value decodes the value that begins at pos into p and returns where it ends.
// The memory at p is a valid value of the type, though not a zero one; it is zero where the layout has codecs.
func (d *decoder) value(l *layout, pos int, p unsafe.Pointer) (int, error) {
	if len(d.b)-pos < l.least {
		return 0, errShort
	}
	for i := range l.ops {
		o := &l.ops[i]
		q := unsafe.Add(p, o.off)
		switch o.kind {
		case opWord:
			if len(d.b)-pos < 8 {
				return 0, errShort
			}
			*(*uint64)(q) = binary.LittleEndian.Uint64(d.b[pos:])
			pos += 8
		case opRaw:
			n := int(o.n)
			if len(d.b)-pos < n {
				return 0, errShort
			}
			copy(unsafe.Slice((*byte)(q), n), d.b[pos:])
			pos += n
		case opString:
			n, at, err := d.length(pos, 0)
			if err != nil {
				return 0, err
			}
			pos = at + n
			*(*string)(q) = d.s[at:pos]
		default:
			var err error
			if pos, err = d.other(o, pos, q); err != nil {
				return 0, err
			}
		}
	}
	for _, off := range l.bools {
		if *(*byte)(unsafe.Add(p, off)) > 1 {
			*(*byte)(unsafe.Add(p, off)) = 0
			return 0, errBool
		}
	}
	return pos, nil
}

// strings is value for many records that are strings and nothing else.
func (d *decoder) strings(recs []string, pos int) (int, error) {
	b, s := d.b, d.s
	for i := range recs {
		if pos < len(b) && b[pos] < 0x80 {
			end := pos + 1 + int(b[pos])
			if end > len(s) {
				return 0, errShort
			}
			recs[i] = s[pos+1 : end]
			pos = end
			continue
		}
		n, at, err := d.length(pos, 0)
		if err != nil {
			return 0, err
		}
		pos = at + n
		recs[i] = s[at:pos]
	}
	return pos, nil
}

// bytes is value for many records that are []byte and nothing else.
func (d *decoder) bytes(recs [][]byte, pos int) (int, error) {
	b := d.b
	for i := range recs {
		if pos < len(b) && b[pos]-1 < 0x7f { // 1 to 127: short, and not nil
			end := pos + int(b[pos])
			if end > len(b) {
				return 0, errShort
			}
			recs[i] = b[pos+1 : end : end]
			pos = end
			continue
		}
		n, at, err := d.length(pos, 1)
		if err != nil {
			return 0, err
		}
		recs[i] = nil
		if pos = at; n >= 0 {
			pos += n
			recs[i] = b[at:pos:pos]
		}
	}
	return pos, nil
}

// length reads a length of something that takes at least that many bytes, and where it begins.
// bias 1 is for what may be nil: then -1 is returned.
func (d *decoder) length(pos, bias int) (n, at int, err error) {
	if pos >= len(d.b) {
		return 0, 0, errShort
	}
	if c := d.b[pos]; c < 0x80 {
		n, at = int(c)-bias, pos+1
	} else {
		u, m := binary.Uvarint(d.b[pos:])
		if m <= 0 || u > uint64(len(d.b)) {
			return 0, 0, errLength
		}
		n, at = int(u)-bias, pos+m
	}
	if n > len(d.b)-at {
		return 0, 0, errShort
	}
	return n, at, nil
}

// other does the rarer kinds.
func (d *decoder) other(o *op, pos int, q unsafe.Pointer) (int, error) {
	switch o.kind {
	case opBytes:
		n, at, err := d.length(pos, 1)
		if err != nil {
			return 0, err
		}
		if n < 0 {
			*(*[]byte)(q) = nil
			return at, nil
		}
		*(*[]byte)(q) = d.b[at : at+n : at+n]
		return at + n, nil
	case opTime:
		return d.time(pos, (*time.Time)(q))
	case opSlice:
		return d.slice(o, pos, q)
	case opArray:
		return d.many(o.elem, pos, q, int(o.n))
	case opPointer:
		return d.pointer(o, pos, q)
	}
	return d.custom(o, pos, q)
}

func (d *decoder) time(pos int, t *time.Time) (int, error) {
	if len(d.b)-pos < timeBytes {
		return 0, errShort
	}
	sec, nano := binary.LittleEndian.Uint64(d.b[pos:]), binary.LittleEndian.Uint32(d.b[pos+8:])
	if nano >= 1e9 {
		return 0, errNanos
	}
	*t = time.Unix(int64(sec), int64(nano)).UTC()
	return pos + timeBytes, nil
}

// many decodes n values in a row.
func (d *decoder) many(l *layout, pos int, p unsafe.Pointer, n int) (int, error) {
	if l.fixed && len(l.bools) == 0 {
		size := n * int(l.size)
		if len(d.b)-pos < size {
			return 0, errShort
		}
		copy(unsafe.Slice((*byte)(p), size), d.b[pos:])
		return pos + size, nil
	}
	var err error
	for i := range n {
		if pos, err = d.value(l, pos, unsafe.Add(p, uintptr(i)*l.size)); err != nil {
			return 0, err
		}
	}
	return pos, nil
}

func (d *decoder) slice(o *op, pos int, q unsafe.Pointer) (int, error) {
	s := (*sliceWords)(q)
	u, m := binary.Uvarint(d.b[pos:])
	if m <= 0 {
		return 0, errShort
	}
	pos += m
	if u == 0 {
		s.data, s.len, s.cap = nil, 0, 0
		return pos, nil
	}
	u--
	if least := uint64(max(1, o.elem.least)); u > uint64(len(d.b)-pos)/least {
		if o.elem.least > 0 || u > maxEmpty {
			return 0, errLength
		}
	}
	n := int(u)
	data := d.cut(o, n)
	pos, err := d.many(o.elem, pos, data, n)
	if err != nil {
		return 0, err
	}
	s.data, s.len, s.cap = data, n, n
	return pos, nil
}

// maxEmpty bounds how many values of a type without size a slice or segment may hold, since no bytes do.
const maxEmpty = 1 << 16

// cut returns zero memory for n elements of the slices of o.
func (d *decoder) cut(o *op, n int) unsafe.Pointer {
	sl := &d.slabs[o.slab]
	if sl.next == nil || sl.left < n {
		count := max(n, slabBytes/max(1, int(o.elem.size)))
		if n == 0 {
			count = max(1, count)
		}
		sl.next = reflect.MakeSlice(o.typ, count, count).UnsafePointer()
		sl.left = count
	}
	p := sl.next
	if sl.left -= n; sl.left > 0 {
		sl.next = unsafe.Add(p, uintptr(n)*o.elem.size)
	} else {
		sl.next = nil
	}
	return p
}

func (d *decoder) pointer(o *op, pos int, q unsafe.Pointer) (int, error) {
	to := (*unsafe.Pointer)(q)
	*to = nil
	if pos >= len(d.b) {
		return 0, errShort
	}
	switch d.b[pos] {
	case 0:
		return pos + 1, nil
	case 1:
		p := reflect.New(o.typ).UnsafePointer()
		end, err := d.value(o.elem, pos+1, p)
		if err != nil {
			return 0, err
		}
		*to = p
		return end, nil
	}
	return 0, errPresence
}

// custom runs an author's codec.
func (d *decoder) custom(o *op, pos int, q unsafe.Pointer) (_ int, err error) {
	n, at, err := d.length(pos, 0)
	if err != nil {
		return 0, err
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("codec: panic: %v%s", p, panicSite())
		}
	}()
	if err := o.code.decode(d.b[at:at+n:at+n], q); err != nil {
		return 0, fmt.Errorf("codec: %w", err)
	}
	return at + n, nil
}
