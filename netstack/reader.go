package netstack

import (
	"io"
	"net"
	"sync/atomic"

	"github.com/heddle-stream/heddle/netstack/bufpool"
	"github.com/heddle-stream/heddle/netstack/wire"
)

// stageSize holds any frame but data, with room for more frames behind it.
const stageSize = 2 * (wire.HeaderSize + wire.MaxControl)

// frameReader reads frames from a connection. Small frames are read many at once into a stage; a data frame's
// payload is read straight into its segment, and the same read picks up the beginning of the next frame.
// One goroutine uses it.
type frameReader struct {
	nc      net.Conn
	maxData uint32
	sums    bool // frames have checksums
	stage   [stageSize]byte
	r, w    int // what is read and not yet parsed: stage[r:w]

	bytes atomic.Uint64 // read so far; anybody may load it
}

// fill reads until n bytes are staged.
func (f *frameReader) fill(n int) error {
	if len(f.stage)-f.r < n {
		f.w = copy(f.stage[:], f.stage[f.r:f.w])
		f.r = 0
	}
	for f.w-f.r < n {
		if f.r == f.w {
			f.r, f.w = 0, 0
		}
		k, err := f.nc.Read(f.stage[f.w:])
		f.w += k
		f.bytes.Add(uint64(k))
		if err != nil && f.w-f.r < n {
			return cut(err, f.w-f.r)
		}
	}
	return nil
}

// cut makes an end within a frame an unexpected one.
func cut(err error, have int) error {
	if err == io.EOF && have > 0 {
		return io.ErrUnexpectedEOF
	}
	return err
}

// header reads the next frame's header.
func (f *frameReader) header() (wire.Header, error) {
	if f.w-f.r < wire.HeaderSize {
		if err := f.fill(wire.HeaderSize); err != nil {
			return wire.Header{}, err
		}
	}
	h, err := wire.ParseHeader(f.stage[f.r:f.w], f.maxData)
	f.r += wire.HeaderSize
	return h, err
}

// control returns the payload of a frame that is not data, valid until the next call.
func (f *frameReader) control(h wire.Header) ([]byte, error) {
	n := int(h.Length)
	if err := f.fill(n); err != nil {
		return nil, cut(err, 1)
	}
	b := f.stage[f.r : f.r+n]
	f.r += n
	return b, f.check(h, b)
}

// check holds a whole payload against the frame's checksum, if there are any.
func (f *frameReader) check(h wire.Header, payload []byte) error {
	if !f.sums {
		return nil
	}
	s := wire.NewSum(h)
	s.Add(payload)
	return s.Check(h)
}

// data reads the payload of a data frame into seg.
func (f *frameReader) data(seg *bufpool.Segment, h wire.Header) error {
	n := int(h.Length)
	if err := f.payload(seg, n); err != nil {
		return err
	}
	return f.check(h, seg.Read(0, n))
}

func (f *frameReader) payload(seg *bufpool.Segment, n int) error {
	got := copy(seg.Read(0, n), f.stage[f.r:f.w])
	f.r += got
	if got == n {
		return nil
	}
	f.r, f.w = 0, 0
	for got < n {
		k, err := f.nc.Read(seg.Read(got, n+bufpool.TailRoom))
		got += k
		f.bytes.Add(uint64(k))
		if err != nil && got < n {
			return cut(err, 1)
		}
	}
	f.w = copy(f.stage[:], seg.Read(n, got))
	return nil
}

// discard skips the payload of a frame.
func (f *frameReader) discard(h wire.Header) error {
	s := wire.NewSum(h)
	for n := int(h.Length); n > 0; {
		if f.r == f.w {
			if err := f.fill(1); err != nil {
				return cut(err, 1)
			}
		}
		k := min(n, f.w-f.r)
		s.Add(f.stage[f.r : f.r+k])
		f.r += k
		n -= k
	}
	if f.sums {
		return s.Check(h)
	}
	return nil
}
