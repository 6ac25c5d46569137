package netstack

import (
	"io"
	"math/rand/v2"
	"net"
	"time"

	"github.com/heddle-stream/heddle/netstack/wire"
)

// link is one connection: its two ends and what is on the way.
type link struct {
	index uint32
	ends  [2]*end // consumer's, producer's
	dead  bool
}

// end is one end of a connection, and what it will read.
type end struct {
	net.Conn
	conn   *conn
	peer   *end
	in     []byte // unread
	parts  []byte // written to this end, and not yet a whole frame
	frames []sentFrame
	rnd    *rand.Rand
	loaded bool // a batch was gathered and is to be written
	asleep bool // gather found nothing and wake was not heard since
	closed bool
}

// sentFrame is a frame on its way.
type sentFrame struct {
	h      wire.Header
	grants []wire.Grant
}

func (e *end) Close() error                    { e.closed = true; return nil }
func (e *end) SetDeadline(time.Time) error     { return nil }
func (e *end) SetReadDeadline(time.Time) error { return nil }
func (e *end) Read(b []byte) (int, error) {
	if len(e.in) == 0 {
		return 0, io.EOF
	}
	n := copy(b, e.in)
	e.in = e.in[n:]
	return n, nil
}

func (e *end) Write(b []byte) (int, error) {
	if e.closed || e.peer.closed {
		return 0, net.ErrClosed
	}
	e.peer.in = append(e.peer.in, b...)
	var fs []sentFrame
	fs, e.peer.parts = parseFrames(append(e.peer.parts, b...))
	e.peer.frames = append(e.peer.frames, fs...)
	return len(b), nil
}

// tryWrite takes some of b, or all.
func (e *end) tryWrite(b []byte) int {
	n := len(b)
	if e.rnd.IntN(2) == 0 {
		n = e.rnd.IntN(len(b) + 1)
	}
	n, _ = e.Write(b[:n])
	return n
}

// parseFrames reads what whole frames b has.
func parseFrames(b []byte) (fs []sentFrame, rest []byte) {
	for len(b) >= wire.HeaderSize {
		h, err := wire.ParseHeader(b, 1<<20)
		if err != nil {
			panic(err)
		}
		n := wire.HeaderSize + int(h.Length)
		if len(b) < n {
			break
		}
		f := sentFrame{h: h}
		for p := b[wire.HeaderSize:n]; h.Type == wire.Credit && len(p) > 0; {
			var g wire.Grant
			if g, p, err = wire.ParseGrant(p); err != nil {
				panic(err)
			}
			f.grants = append(f.grants, g)
		}
		fs = append(fs, f)
		b = b[n:]
	}
	return fs, b
}
