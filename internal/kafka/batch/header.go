package batch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// HeaderSize is the size of a batch's header:
//
//	 0  8  base offset
//	 8  4  length of what follows this field
//	12  4  partition leader epoch
//	16  1  magic, 2
//	17  4  CRC32C of what follows this field
//	21  2  attributes: bits 0–2 codec, 3 log append time, 4 transactional, 5 control
//	23  4  last offset delta
//	27  8  base timestamp
//	35  8  max timestamp
//	43  8  producer id
//	51  2  producer epoch
//	53  4  base sequence
//	57  4  number of records
const HeaderSize = 61

const (
	lengthEnd    = 12 // where the length field's count begins
	minLength    = HeaderSize - lengthEnd
	offMagic     = 16
	offCRC       = 17
	offAttrs     = 21
	offLastDelta = 23
	offBaseTime  = 27
	offMaxTime   = 35
	offProducer  = 43
	offEpoch     = 51
	offSequence  = 53
	offCount     = 57

	attrCodec         = 0x07
	attrLogAppendTime = 0x08
	attrTransactional = 0x10
	attrControl       = 0x20
)

// ErrShort says that a batch is cut short: its rest was not fetched. Size tells how large the whole is.
var ErrShort = errors.New("record batch is cut short")

// ErrCorrupt is the kind of every error about malformed batches.
var ErrCorrupt = errors.New("corrupt record batch")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Header is the header of a batch.
type Header struct {
	BaseOffset  int64
	Size        int // of the whole batch with its header
	LeaderEpoch int32
	Attributes  int16
	LastDelta   int32
	BaseTime    int64
	MaxTime     int64
	ProducerID  int64
	Epoch       int16
	Sequence    int32
	Count       int32
}

// NextOffset is the position after the batch.
func (h *Header) NextOffset() int64 { return h.BaseOffset + int64(h.LastDelta) + 1 }

// Codec is the compression of the records.
func (h *Header) Codec() Codec { return Codec(h.Attributes & attrCodec) }

// Control reports whether the batch holds a transaction marker instead of records.
func (h *Header) Control() bool { return h.Attributes&attrControl != 0 }

// Transactional reports whether the batch belongs to a transaction.
func (h *Header) Transactional() bool { return h.Attributes&attrTransactional != 0 }

// LogAppendTime reports whether the broker's time of appending (MaxTime) stands for that of every record.
func (h *Header) LogAppendTime() bool { return h.Attributes&attrLogAppendTime != 0 }

// Size is the size of the batch that b begins with, or 0 if b is too short to say.
func Size(b []byte) int {
	if len(b) < lengthEnd {
		return 0
	}
	n := int64(int32(binary.BigEndian.Uint32(b[8:])))
	return int(max(n, 0)) + lengthEnd
}

// Parse reads the header of the batch that b begins with. A batch that is not whole is ErrShort.
func Parse(b []byte) (Header, error) {
	if len(b) < lengthEnd {
		return Header{}, ErrShort
	}
	size := Size(b)
	if len(b) > offMagic && b[offMagic] < 2 {
		return Header{}, fmt.Errorf("%w: message format %d is older than Kafka 0.11; rewrite the topic with a current producer", ErrCorrupt, b[offMagic])
	}
	if len(b) > offMagic && b[offMagic] > 2 {
		return Header{}, fmt.Errorf("%w: unknown message format %d", ErrCorrupt, b[offMagic])
	}
	if size < HeaderSize {
		return Header{}, fmt.Errorf("%w: length %d is below %d", ErrCorrupt, size, HeaderSize)
	}
	if len(b) < size {
		return Header{}, ErrShort
	}
	return parse(b, size)
}

func parse(b []byte, size int) (Header, error) {
	be := binary.BigEndian
	h := Header{
		BaseOffset:  int64(be.Uint64(b)),
		Size:        size,
		LeaderEpoch: int32(be.Uint32(b[12:])),
		Attributes:  int16(be.Uint16(b[offAttrs:])),
		LastDelta:   int32(be.Uint32(b[offLastDelta:])),
		BaseTime:    int64(be.Uint64(b[offBaseTime:])),
		MaxTime:     int64(be.Uint64(b[offMaxTime:])),
		ProducerID:  int64(be.Uint64(b[offProducer:])),
		Epoch:       int16(be.Uint16(b[offEpoch:])),
		Sequence:    int32(be.Uint32(b[offSequence:])),
		Count:       int32(be.Uint32(b[offCount:])),
	}
	if h.LastDelta < 0 || h.Count < 0 || h.BaseOffset < 0 || h.BaseOffset > maxOffset {
		return Header{}, fmt.Errorf("%w: base offset %d, last offset delta %d, %d records", ErrCorrupt, h.BaseOffset, h.LastDelta, h.Count)
	}
	return h, nil
}

const maxOffset = 1<<63 - 1<<32 // leaves room for a delta

// Verify checks the CRC of the whole batch b, which Parse has accepted.
func Verify(b []byte) error {
	want := binary.BigEndian.Uint32(b[offCRC:])
	if got := crc32.Checksum(b[offAttrs:], castagnoli); got != want {
		return fmt.Errorf("%w: CRC is %08x, its header says %08x", ErrCorrupt, got, want)
	}
	return nil
}

// Scan walks the headers of the batches in b and returns the position after the last whole one, the epoch of the leader that
// appended that one, and how many bytes of b the whole ones take. next is from if there is none.
func Scan(b []byte, from int64) (next int64, epoch int32, n int, err error) {
	next, epoch = from, -1
	for n < len(b) {
		h, err := Parse(b[n:])
		if errors.Is(err, ErrShort) {
			break
		}
		if err != nil {
			return next, epoch, n, err
		}
		n += h.Size
		next, epoch = max(next, h.NextOffset()), h.LeaderEpoch
	}
	return next, epoch, n, nil
}
