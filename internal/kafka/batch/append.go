package batch

import (
	"encoding/binary"
	"hash/crc32"
)

// Record is a record to be written.
type Record struct {
	Time    int64  // milliseconds since the Unix epoch
	Key     []byte // nil: null
	Value   []byte // nil: null
	Headers []RecordHeader
}

// Append appends a batch of records to dst. Of h it takes BaseOffset, LeaderEpoch, Attributes (with the codec), ProducerID,
// Epoch and Sequence, and for a control batch or a compacted one the caller's LastDelta, if that is beyond the records given.
// Records have successive offsets. A batch without a producer id has ProducerID, Epoch and Sequence -1.
func Append(dst []byte, h Header, recs []Record) ([]byte, error) {
	begin := len(dst)
	dst = append(dst, make([]byte, HeaderSize)...)
	for i := range recs {
		if i == 0 {
			h.BaseTime, h.MaxTime = recs[i].Time, recs[i].Time
		}
		h.MaxTime = max(h.MaxTime, recs[i].Time)
		dst = appendRecord(dst, &recs[i], recs[i].Time-h.BaseTime, int64(i))
	}
	if c := h.Codec(); c != None {
		packed, err := new(Compressor).Pack(c, dst[begin+HeaderSize:])
		if err != nil {
			return dst[:begin], err
		}
		dst = append(dst[:begin+HeaderSize], packed...)
	}
	h.Count = int32(len(recs))
	h.LastDelta = max(h.LastDelta, h.Count-1)
	seal(dst[begin:], &h)
	return dst, nil
}

// seal writes the header of the batch b.
func seal(b []byte, h *Header) {
	be := binary.BigEndian
	be.PutUint64(b, uint64(h.BaseOffset))
	be.PutUint32(b[8:], uint32(len(b)-lengthEnd))
	be.PutUint32(b[12:], uint32(h.LeaderEpoch))
	b[offMagic] = 2
	be.PutUint16(b[offAttrs:], uint16(h.Attributes))
	be.PutUint32(b[offLastDelta:], uint32(h.LastDelta))
	be.PutUint64(b[offBaseTime:], uint64(h.BaseTime))
	be.PutUint64(b[offMaxTime:], uint64(h.MaxTime))
	be.PutUint64(b[offProducer:], uint64(h.ProducerID))
	be.PutUint16(b[offEpoch:], uint16(h.Epoch))
	be.PutUint32(b[offSequence:], uint32(h.Sequence))
	be.PutUint32(b[offCount:], uint32(h.Count))
	be.PutUint32(b[offCRC:], crc32.Checksum(b[offAttrs:], castagnoli))
}

func appendRecord(dst []byte, r *Record, dt, do int64) []byte {
	size := 1 + varintLen(dt) + varintLen(do) + bytesLen(r.Key) + bytesLen(r.Value) + varintLen(int64(len(r.Headers)))
	for _, h := range r.Headers {
		size += varintLen(int64(len(h.Key))) + len(h.Key) + bytesLen(h.Value)
	}
	dst = binary.AppendVarint(dst, int64(size))
	dst = append(dst, 0)
	dst = binary.AppendVarint(dst, dt)
	dst = binary.AppendVarint(dst, do)
	dst = appendBytes(dst, r.Key)
	dst = appendBytes(dst, r.Value)
	return AppendHeaders(dst, r.Headers)
}

// AppendHeaders appends headers with their number, as Headers reads them.
func AppendHeaders(dst []byte, headers []RecordHeader) []byte {
	dst = binary.AppendVarint(dst, int64(len(headers)))
	for _, h := range headers {
		dst = binary.AppendVarint(dst, int64(len(h.Key)))
		dst = append(dst, h.Key...)
		dst = appendBytes(dst, h.Value)
	}
	return dst
}

func appendBytes(dst, b []byte) []byte {
	if b == nil {
		return binary.AppendVarint(dst, -1)
	}
	dst = binary.AppendVarint(dst, int64(len(b)))
	return append(dst, b...)
}

func bytesLen(b []byte) int {
	if b == nil {
		return 1
	}
	return varintLen(int64(len(b))) + len(b)
}

func varintLen(v int64) int {
	u := uint64(v<<1) ^ uint64(v>>63)
	n := 1
	for ; u >= 0x80; u >>= 7 {
		n++
	}
	return n
}
