package flow

import (
	"encoding/binary"
	"fmt"
	"unsafe"
)

// A segment is what a writer puts into one buffer of the exchange. It begins with a header:
//
//	byte 0     kind: 1 records, 2 a fragment of a record that is larger than a segment
//	byte 1     flags: 1 times follow the records; 2 the last fragment
//	bytes 2-3  layout.print
//	bytes 4-7  records: how many; fragment: its number within its record, from 0
//
// Records: their encodings in a row from byte 8 on; then, with times, zero to seven bytes up to a multiple of eight
// and eight bytes for the time of each record. All of a segment's records have a time or none has.
//
// Fragment: eight bytes that tell its writer from all others, then a piece of a segment of one record.
const (
	headBytes = 8

	kindRecords  = 1
	kindFragment = 2

	flagTimes = 1
	flagLast  = 2
)

// head is a segment's header.
type head struct {
	kind, flags byte
	print       uint16
	count       uint32
}

func (h head) put(b []byte) {
	_ = b[headBytes-1]
	b[0], b[1] = h.kind, h.flags
	binary.LittleEndian.PutUint16(b[2:], h.print)
	binary.LittleEndian.PutUint32(b[4:], h.count)
}

// parseHead reads a header and checks it as far as it can be without what follows.
func parseHead(b []byte, l *layout) (head, error) {
	if len(b) < headBytes {
		return head{}, errShort
	}
	h := head{b[0], b[1], binary.LittleEndian.Uint16(b[2:]), binary.LittleEndian.Uint32(b[4:])}
	switch {
	case h.kind != kindRecords && h.kind != kindFragment:
		return h, fmt.Errorf("its kind is %d", h.kind)
	case h.print != l.print:
		return h, fmt.Errorf("it holds records of another type than %s", l.typ)
	case h.kind == kindRecords && h.flags&^flagTimes != 0, h.kind == kindFragment && h.flags&^flagLast != 0:
		return h, fmt.Errorf("its flags are %#x", h.flags)
	case h.kind == kindRecords && h.count == 0:
		return h, fmt.Errorf("it is empty")
	}
	return h, nil
}

// pad8 is n rounded up to a multiple of 8.
func pad8(n int) int { return (n + 7) &^ 7 }

// aligned reports whether b begins at a multiple of 8.
func aligned(b []byte) bool { return uintptr(unsafe.Pointer(unsafe.SliceData(b)))&7 == 0 }

// alignedBytes allocates n bytes that begin at a multiple of 8.
func alignedBytes(n int) []byte {
	words := make([]uint64, max(1, pad8(n)/8))
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), pad8(n))[:n:n]
}

// timesOf returns the times at the end of a segment of records, in place, and where they begin; without times, its length.
func timesOf(b []byte, h head) ([]int64, int, error) {
	if h.flags&flagTimes == 0 {
		return nil, len(b), nil
	}
	n := uint64(h.count) * 8
	if len(b)%8 != 0 || n > uint64(len(b)-headBytes) {
		return nil, 0, errShort
	}
	at := len(b) - int(n)
	return unsafe.Slice((*int64)(unsafe.Pointer(&b[at])), h.count), at, nil
}
