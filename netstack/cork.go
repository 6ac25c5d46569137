package netstack

import (
	"net"
	"sync"
)

// corkBytes is how much a cork gathers for one write and asks for in one read.
const corkBytes = 256 << 10

// cork lies between TLS and a connection. crypto/tls writes, and reads, each record of 16 KiB by itself;
// a cork, once drawn tight, gathers those of a whole batch for one write, and reads many at once.
type cork struct {
	net.Conn

	// Owned by TLS's reader.
	in   []byte
	r, w int // in[r:w] is read ahead

	// Guarded by mu, which is held while writing, as crypto/tls holds its own: those who write wait for each other.
	mu    sync.Mutex
	tight bool
	out   []byte
}

func newCork(nc net.Conn) *cork { return &cork{Conn: nc} }

// tighten begins gathering. Until then, during the handshake, every write goes out at once.
func (c *cork) tighten() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tight = true
}

// Write gathers b, or writes it.
func (c *cork) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.tight {
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
		if c.in == nil {
			c.in = make([]byte, 8<<10) // enough for a handshake
		} else if c.w == len(c.in) && len(c.in) < corkBytes {
			c.in = make([]byte, 4*len(c.in)) // it was filled: there is more to gain
		}
		c.r, c.w = 0, 0
		n, err := c.Conn.Read(c.in)
		if c.w = n; err != nil && n == 0 {
			return 0, err
		}
	}
	n := copy(b, c.in[c.r:c.w])
	c.r += n
	return n, nil
}
