package flow

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"unsafe"
)

// MaxRecordBytes bounds the encoding of one record.
const MaxRecordBytes = 256 << 20

const fragmentHead = headBytes + 8

// fragments puts records together that are larger than a segment. Those of different writers may come mixed.
type fragments struct {
	open map[uint64]*fragment
}

type fragment struct {
	next uint32 // number of the next piece
	data []byte // 8-byte aligned
}

var errFragment = errors.New("fragments of a record are missing or out of order")

// add takes a piece. With the last one it returns the whole segment.
func (f *fragments) add(b []byte, h head) ([]byte, error) {
	if len(b) <= fragmentHead {
		return nil, errShort
	}
	writer := binary.LittleEndian.Uint64(b[headBytes:])
	p := f.open[writer]
	if p == nil {
		if f.open == nil {
			f.open = map[uint64]*fragment{}
		}
		p = &fragment{}
		f.open[writer] = p
	}
	if h.count != p.next {
		delete(f.open, writer)
		return nil, errFragment
	}
	piece := b[fragmentHead:]
	if len(p.data)+len(piece) > MaxRecordBytes+fragmentHead {
		delete(f.open, writer)
		return nil, errLength
	}
	p.next++
	p.data = appendAligned(p.data, piece)
	if h.flags&flagLast == 0 {
		return nil, nil
	}
	delete(f.open, writer)
	return p.data, nil
}

// appendAligned is append for memory that stays 8-byte aligned.
func appendAligned(b, more []byte) []byte {
	if need := len(b) + len(more); need > cap(b) {
		b = append(alignedBytes(max(need, 2*cap(b)))[:0], b...)
	}
	return append(b, more...)
}

// fragmenter sends records that are larger than a segment.
type fragmenter struct {
	writer uint64 // chosen by chance; 0 until needed
}

// send sends whole, a segment of one record, in pieces on channel ch of out. seg is the open segment of ch.
func (f *fragmenter) send(out SegmentOut, ch int, seg []byte, print uint16, whole []byte, sent *Counter) error {
	if len(whole) > MaxRecordBytes {
		return fmt.Errorf("cannot send a record of %d bytes: the limit is %d", len(whole), MaxRecordBytes)
	}
	for f.writer == 0 {
		f.writer = rand.Uint64()
	}
	more := out.Get
	if l, ok := out.(SegmentLender); ok {
		more = l.GetMore
	}
	for i := uint32(0); len(whole) > 0; i++ {
		if i > 0 {
			var err error
			if seg, err = more(ch); err != nil {
				return err
			}
		}
		if len(seg) <= fragmentHead {
			return fmt.Errorf("cannot send records in segments of %d bytes", len(seg))
		}
		n := copy(seg[fragmentHead:], whole)
		whole = whole[n:]
		h := head{kind: kindFragment, print: print, count: i}
		if len(whole) == 0 {
			h.flags = flagLast
		}
		h.put(seg)
		binary.LittleEndian.PutUint64(seg[headBytes:], f.writer)
		if err := out.Put(ch, fragmentHead+n); err != nil {
			return err
		}
		sent.Add(int64(fragmentHead + n))
	}
	return nil
}

// sendWhole wraps the encoding of one record into a segment and sends that in pieces. seg is the open segment of ch.
func (f *fragmenter) sendWhole(out SegmentOut, ch int, seg []byte, print uint16, rec []byte, time int64, timed bool, sent *Counter) error {
	h := head{kind: kindRecords, print: print, count: 1}
	size := headBytes + len(rec)
	if timed {
		h.flags = flagTimes
		size = pad8(size) + 8
	}
	whole := alignedBytes(size)
	h.put(whole)
	copy(whole[headBytes:], rec)
	if timed {
		binary.LittleEndian.PutUint64(whole[size-8:], uint64(time))
	}
	return f.send(out, ch, seg, print, whole, sent)
}

// memory is the bytes of a value.
func memory(p unsafe.Pointer, n uintptr) []byte { return unsafe.Slice((*byte)(p), n) }
