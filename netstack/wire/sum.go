package wire

import (
	"encoding/binary"
	"hash/crc32"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// summed is how many bytes of the header the checksum covers: all before it.
const summed = HeaderSize - 4

// PutSum enters into a whole frame the CRC-32C of its header and payload.
func PutSum(frame []byte) {
	sum := crc32.Update(crc32.Update(0, castagnoli, frame[:summed]), castagnoli, frame[HeaderSize:])
	binary.LittleEndian.PutUint32(frame[summed:], sum)
}

// PutSums does PutSum to each of the whole frames in b.
func PutSums(b []byte) {
	for len(b) >= HeaderSize {
		n := HeaderSize + int(binary.LittleEndian.Uint32(b[4:]))
		PutSum(b[:n])
		b = b[n:]
	}
}

// Sum checks a frame piece by piece.
type Sum struct{ sum uint32 }

// NewSum begins with the header of a frame.
func NewSum(h Header) Sum {
	var b [HeaderSize]byte
	PutHeader(b[:], h)
	return Sum{crc32.Update(0, castagnoli, b[:summed])}
}

// Add continues with a piece of the payload.
func (s *Sum) Add(payload []byte) { s.sum = crc32.Update(s.sum, castagnoli, payload) }

// Check reports whether h came with this sum.
func (s *Sum) Check(h Header) error {
	if s.sum != h.Sum {
		return ErrSum
	}
	return nil
}
