package flow

import (
	"encoding/binary"
	"unsafe"
)

// put is append into room that is there: it encodes the value at p into b from pos on and returns where it ends, or -1 where
// b is too short. The layout has no custom codecs.
func (l *layout) put(b []byte, pos int, p unsafe.Pointer) int {
	for i := range l.ops {
		o := &l.ops[i]
		q := unsafe.Add(p, o.off)
		switch o.kind {
		case opWord:
			if len(b)-pos < 8 {
				return -1
			}
			binary.LittleEndian.PutUint64(b[pos:], *(*uint64)(q))
			pos += 8
		case opRaw:
			n := int(o.n)
			if len(b)-pos < n {
				return -1
			}
			copy(b[pos:], unsafe.Slice((*byte)(q), n))
			pos += n
		case opString:
			s := *(*string)(q)
			at := putLen(b, pos, len(s), len(s))
			if at < 0 {
				return -1
			}
			pos = at + copy(b[at:], s)
		case opBytes:
			s := *(*[]byte)(q)
			at := putLen(b, pos, len(s)+present(s), len(s))
			if at < 0 {
				return -1
			}
			pos = at + copy(b[at:], s)
		default:
			n := o.sizeOf(q)
			if len(b)-pos < n {
				return -1
			}
			o.append(b[:pos], q) // has room: it stays in b
			pos += n
		}
	}
	return pos
}

// present is 1 but for nil.
func present(s []byte) int {
	if s == nil {
		return 0
	}
	return 1
}

// putLen writes u as uvarint at pos of b, if n bytes have room behind it, and returns where they go; else -1.
func putLen(b []byte, pos, u, n int) int {
	if u < 0x80 {
		if len(b)-pos <= n {
			return -1
		}
		b[pos] = byte(u)
		return pos + 1
	}
	m := uvarintLen(u)
	if len(b)-pos < m+n {
		return -1
	}
	binary.PutUvarint(b[pos:], uint64(u))
	return pos + m
}

// putStrings puts as many of recs, all of them strings, as b has room for from pos on. It returns how many, and where they end.
func putStrings(b []byte, pos int, recs []string) (n, end int) {
	for i, s := range recs {
		if at := pos + 1; len(s) < 0x80 && len(s) <= len(b)-at { // as putLen does, inlined
			b[pos] = byte(len(s))
			pos = at + copy(b[at:], s)
			continue
		}
		at := putLen(b, pos, len(s), len(s))
		if at < 0 {
			return i, pos
		}
		pos = at + copy(b[at:], s)
	}
	return len(recs), pos
}

// putBytes is putStrings for []byte.
func putBytes(b []byte, pos int, recs [][]byte) (n, end int) {
	for i, s := range recs {
		if at := pos + 1; len(s)-1 < 0x7e && s != nil && len(s) <= len(b)-at {
			b[pos] = byte(len(s) + 1)
			pos = at + copy(b[at:], s)
			continue
		}
		at := putLen(b, pos, len(s)+present(s), len(s))
		if at < 0 {
			return i, pos
		}
		pos = at + copy(b[at:], s)
	}
	return len(recs), pos
}
