package netstack

import (
	"net"
	"syscall"
	"time"
)

// A goroutine that puts a short segment while nothing else is to be written writes it itself, as far as the socket takes it
// without waiting. It saves waking the write loop, which is most of what a lone record costs; a busy connection gathers batches.
const (
	directMost  = 4 << 10               // bytes of such a segment at most
	directEvery = 50 * time.Microsecond // how often at most: more frequent ones are better gathered
)

// tryWriter writes what it can without waiting; an error means nothing but that a proper write must tell.
type tryWriter interface{ tryWrite(b []byte) int }

// enqueue enters a view that can be served. direct: the caller may write.
func (c *conn) enqueue(v *view, direct bool) {
	if !c.lock() {
		return
	}
	if direct && c.parked && c.try != nil {
		if now := time.Since(c.stack.began); now-c.wroteDirect >= directEvery {
			c.wroteDirect = now
			c.parked, c.direct = false, true // parked: nothing else is to be written
			c.mu.Unlock()
			c.writeDirect(v)
			return
		}
	}
	c.ready.push(v)
	c.unlock()
}

// writeDirect writes what v has in place of the write loop, which waits until direct is false.
func (c *conn) writeDirect(v *view) {
	more := v.part.Load().fill(v, &c.out)
	rest := c.out.tryWrite(c.try)
	if !rest {
		c.sent(&c.out)
	}
	c.mu.Lock()
	c.direct, c.unsent = false, rest
	if more {
		c.ready.push(v)
	}
	work := c.err != nil || c.closing || rest || len(c.control)+len(c.grants)+c.ready.len() > 0
	c.parked = !work
	c.mu.Unlock()
	if work {
		c.wakeWriter()
	}
}

// tryWrite writes without waiting and reports whether there is a rest, which write then goes on with.
func (b *batch) tryWrite(w tryWriter) (rest bool) {
	b.seal()
	b.vec = b.bufs
	for len(b.vec) > 0 {
		n := w.tryWrite(b.vec[0])
		if n < len(b.vec[0]) {
			b.began = true
			b.first = b.vec[0][n:]
			return true
		}
		b.vec = b.vec[1:]
	}
	return false
}

// socketTryWriter is the tryWriter of a TCP connection. Whoever may write uses it, one at a time.
type socketTryWriter struct {
	raw  syscall.RawConn
	b    []byte
	n    int
	once func(fd uintptr) bool // made once, so that a write allocates nothing
}

// newTryWriter returns nil for connections that can't be written without waiting.
func newTryWriter(nc net.Conn) tryWriter {
	t, ok := nc.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return nil
	}
	w := &socketTryWriter{raw: raw}
	w.once = func(fd uintptr) bool {
		w.n = writeOnce(fd, w.b)
		return true // whatever came of it: don't wait
	}
	return w
}

func (w *socketTryWriter) tryWrite(b []byte) int {
	w.b, w.n = b, 0
	err := w.raw.Write(w.once)
	w.b = nil
	if err != nil {
		return 0
	}
	return w.n
}
