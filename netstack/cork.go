package netstack

import (
	"net"
	"sync"

	"github.com/heddle-stream/heddle/netstack/tlsrec"
)

// corkBytes is how much a cork gathers for one write and asks for in one read.
const corkBytes = 256 << 10

// cork lies between TLS and a connection. crypto/tls writes, and reads, each record of 16 KiB by itself;
// a cork, once drawn tight, gathers those of a whole batch for one write, and reads many at once. Until then it keeps the last
// record of each direction, and gives crypto/tls one record at a time, so that another can go on where that stops (takeOver).
type cork struct {
	net.Conn
	secrets trafficSecrets // the handshake's

	// Owned by TLS's reader.
	in     []byte
	r, w   int    // in[r:w] is read ahead
	full   bool   // the last read filled in
	left   int    // of the record that is being read, while not tight
	lastIn []byte // the record read last, while not tight

	// Guarded by mu, which is held while writing, as crypto/tls holds its own: those who write wait for each other.
	mu      sync.Mutex
	tight   bool
	out     []byte
	lastOut []byte // the record written last, while not tight
}

func newCork(nc net.Conn) *cork { return &cork{Conn: nc} }

// tighten begins gathering. Until then, during the handshake, every write goes out at once.
func (c *cork) tighten() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tight, c.lastIn, c.lastOut = true, nil, nil
}

// Write gathers b, or writes it.
func (c *cork) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.tight {
		c.lastOut = append(c.lastOut[:0], lastRecord(b)...)
		return c.Conn.Write(b)
	}
	c.out = append(c.out, b...)
	if len(c.out) >= corkBytes {
		return len(b), c.flushLocked()
	}
	return len(b), nil
}

// flush writes what was gathered.
func (c *cork) flush() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.flushLocked()
}

func (c *cork) flushLocked() error {
	if len(c.out) == 0 {
		return nil
	}
	_, err := c.Conn.Write(c.out)
	c.out = c.out[:0]
	return err
}

// Read reads ahead, beyond what TLS asks for.
func (c *cork) Read(b []byte) (int, error) {
	if c.r == c.w {
		if err := c.more(); err != nil {
			return 0, err
		}
	}
	have := c.in[c.r:c.w]
	if !c.tight {
		if c.left == 0 {
			if err := c.need(tlsrec.HeaderSize); err != nil {
				c.left = c.w - c.r // as it is: crypto/tls will say what is wrong
			} else {
				c.left = tlsrec.HeaderSize + int(c.in[c.r+3])<<8 + int(c.in[c.r+4])
			}
			c.lastIn = c.lastIn[:0]
		}
		have = c.in[c.r:min(c.w, c.r+c.left)]
	}
	n := copy(b, have)
	if c.r += n; !c.tight {
		c.left -= n
		c.lastIn = append(c.lastIn, have[:n]...)
	}
	return n, nil
}

// need reads until n bytes are ahead: tlsrec.MaxRecord at most, and while not tight, a header.
func (c *cork) need(n int) error {
	for c.w-c.r < n {
		if err := c.more(); err != nil {
			return err
		}
	}
	return nil
}

// more reads ahead what comes.
func (c *cork) more() error {
	rest := c.in[c.r:c.w]
	switch {
	case c.in == nil:
		c.in = make([]byte, 8<<10) // enough for a handshake
	case c.full && c.tight && len(c.in) < corkBytes: // there is more to gain
		c.in = make([]byte, min(4*len(c.in), corkBytes))
	}
	c.r, c.w = 0, copy(c.in, rest)
	n, err := c.Conn.Read(c.in[c.w:])
	c.w += n
	c.full = c.w == len(c.in)
	if n > 0 {
		return nil
	}
	return err
}

// lastRecord is the last of the whole records that b consists of.
func lastRecord(b []byte) []byte {
	for len(b) > tlsrec.HeaderSize {
		n := tlsrec.HeaderSize + int(b[3])<<8 + int(b[4])
		if n >= len(b) {
			return b
		}
		b = b[n:]
	}
	return b
}
