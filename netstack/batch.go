package netstack

import (
	"net"

	"github.com/heddle-stream/heddle/netstack/bufpool"
	"github.com/heddle-stream/heddle/netstack/wire"
)

// Bounds of one vectored write.
const (
	maxBatchFrames = 64
	maxBatchBytes  = 512 << 10
)

// sentSegment is a segment in a batch and whose it is.
type sentSegment struct {
	seg  *bufpool.Segment
	view *view
}

// batch gathers frames for one vectored write: segments in place, all else copied into scratch.
// The write loop owns it.
type batch struct {
	bufs    [][]byte // pieces in order
	sent    []sentSegment
	segs    []*bufpool.Segment // of sent
	scratch []byte             // small frames since the last segment, from mark on
	mark    int
	bytes   int // in bufs
	frames  int
	sums    bool // frames get checksums

	vec   net.Buffers // bufs, as consumed by a write
	began bool        // a write without waiting left vec, and first of its first piece
	first []byte
}

func (b *batch) reset() {
	clear(b.sent)
	clear(b.bufs)
	b.bufs, b.sent, b.segs, b.scratch = b.bufs[:0], b.sent[:0], b.segs[:0], b.scratch[:0]
	b.mark, b.bytes, b.frames, b.began, b.first = 0, 0, 0, false, nil
}

func (b *batch) full() bool { return b.frames >= maxBatchFrames || b.bytes >= maxBatchBytes }

func (b *batch) addEvent(h wire.Header, payload []byte) {
	b.scratch = wire.AppendHeader(b.scratch, h)
	b.scratch = append(b.scratch, payload...)
	b.frames++
}

func (b *batch) addData(h wire.Header, it outItem, v *view) {
	b.seal()
	frame := it.seg.Frame(wire.HeaderSize, int(it.n))
	wire.PutHeader(frame, h)
	if b.sums {
		wire.PutSum(frame)
	}
	b.bufs = append(b.bufs, frame)
	b.bytes += len(frame)
	b.frames++
	b.sent = append(b.sent, sentSegment{it.seg, v})
	b.segs = append(b.segs, it.seg)
}

// seal makes a piece of the small frames gathered since the last one.
func (b *batch) seal() {
	if n := len(b.scratch); n > b.mark {
		if b.sums {
			wire.PutSums(b.scratch[b.mark:n])
		}
		b.bufs = append(b.bufs, b.scratch[b.mark:n:n])
		b.bytes += n - b.mark
		b.mark = n
	}
}

// write sends everything. A plain connection takes it as one vectored write.
func (b *batch) write(nc net.Conn) error {
	if b.began {
		b.vec[0] = b.first
	} else {
		b.seal()
		b.vec = b.bufs
	}
	if len(b.vec) == 0 {
		return nil
	}
	_, err := b.vec.WriteTo(nc)
	return err
}
