package netstack

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/netstack/wire"
)

// conn is one connection that has proved itself. The dialing end has channels, the listening end views;
// each end has a read loop and a write loop.
//
//	open ──Goodbye sent──> closing ──peer's end, or a second later──> closed
//	  └────────────── fault: read, write, keepalive, protocol ──────────^
type conn struct {
	// Immutable.
	stack    *Stack
	nc       net.Conn
	rd       *frameReader // the read loop's
	dialed   bool
	key      connKey // if dialed
	peer     string  // identity and address
	log      *slog.Logger
	version  uint16        // of the protocol
	compress string        // what data is compressed by, if accepted; "": not
	traces   bool          // both ends take trace frames, and tell their clock
	socket   net.Conn      // under TLS, else nc
	flush    func() error  // sends what nc has gathered
	resumed  bool          // a TLS session
	wake     chan struct{} // 1 slot: the write loop has something to do
	try      tryWriter     // nil: only the write loop writes

	written atomic.Uint64 // bytes

	unyielded int         // the read loop's: segments since it last made way
	out       batch       // owned by the write loop or, while direct, by who set that
	arriving  arrivingHop // the read loop's: the trace frame, if that was the last one

	// Guarded by mu.
	mu       sync.Mutex
	control  []byte // whole frames to send
	grants   []wire.Grant
	ready    queue[*view]
	parked   bool // the write loop waits for wake, and nothing is to be written
	direct   bool // another goroutine writes
	unsent   bool // it has left a rest in out
	closing  bool // send what is there, then Goodbye
	err      error
	channels map[uint32]*channel // if dialed
	views    map[uint32]*view    // if not
	lastID   uint32

	admit admission

	wroteDirect time.Duration // since the stack began: when direct was set last
	peerClock   clockEstimate // of the peer

	// Owned by the stack's watch loop.
	watch connWatch
}

// connWatch is what the watch loop remembers of a connection.
type connWatch struct {
	read, written uint64
	readAt, wrote time.Time
	idleSince     time.Time
	asked         time.Time // for the peer's clock
}

func newConn(s *Stack, nc net.Conn, rd *frameReader, dialed bool, peer string) *conn {
	c := &conn{
		stack: s, nc: nc, socket: nc, flush: func() error { return nil }, rd: rd, dialed: dialed, peer: peer, log: s.cfg.Logger.With("peer", peer),
		wake: make(chan struct{}, 1), admit: admission{most: s.admitMost, few: s.admitFew},
	}
	if dialed {
		c.channels = make(map[uint32]*channel)
	} else {
		c.views = make(map[uint32]*view)
	}
	return c
}

// seal makes c, whose handshake is done, gather TLS records for the socket under them. Without TLS, under is nil.
func (c *conn) seal(under *cork) {
	if under == nil {
		c.try = newTryWriter(c.nc)
		return
	}
	st := c.nc.(*tls.Conn).ConnectionState()
	c.flush, c.socket, c.resumed = under.flush, under.Conn, st.DidResume
	if c.stack.ownRecords {
		if s := takeOver(st, under, c.dialed); s != nil {
			c.nc, c.rd.nc, c.flush = s, s, s.flush
		}
	}
	under.tighten()
}

// run serves the connection until it is closed. The write loop is its only goroutine beside the caller's.
func (c *conn) run() {
	var writer sync.WaitGroup
	c.ask()
	writer.Go(c.writeLoop)
	err := c.readLoop()
	c.fail(err)
	writer.Wait()
}

func (c *conn) readLoop() error {
	step := c.stepProducer
	if c.dialed {
		step = c.stepConsumer
	}
	for {
		if err := step(); err != nil {
			return err
		}
	}
}

// lock locks mu and reports true, unless the connection has failed.
func (c *conn) lock() bool {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return false
	}
	return true
}

// unlock unlocks mu and wakes the write loop.
func (c *conn) unlock() {
	w := c.parked
	c.parked = false
	c.mu.Unlock()
	if w {
		c.wakeWriter()
	}
}

func (c *conn) wakeWriter() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// grant queues credit for a channel.
func (c *conn) grant(id uint32, n int) {
	if c.lock() {
		c.grants = append(c.grants, wire.Grant{Channel: id, Credit: uint32(n)})
		c.unlock()
	}
}

// next waits for something to send and gathers it into b. done: the connection has failed, or
// is closing and b is the last batch.
func (c *conn) next(b *batch) (done bool) {
	for {
		done, ok := c.gather(b)
		if ok {
			return done
		}
		<-c.wake
	}
}

// gather is next that, instead of waiting, reports that there is nothing and that wake will tell.
func (c *conn) gather(b *batch) (done, ok bool) {
	c.mu.Lock()
	if c.direct || c.unsent {
		ok, c.unsent = !c.direct, c.unsent && c.direct
		c.mu.Unlock()
		return false, ok
	}
	if c.err == nil && !c.closing && len(c.control)+len(c.grants)+c.ready.len() == 0 {
		c.parked = true
		c.mu.Unlock()
		return false, false
	}
	done = c.err != nil || c.closing
	b.scratch = append(b.scratch, c.control...)
	c.control = c.control[:0]
	for g := c.grants; len(g) > 0; {
		n := min(len(g), wire.MaxGrants)
		b.scratch = wire.AppendCredit(b.scratch, g[:n])
		g = g[n:]
	}
	c.grants = c.grants[:0]
	if done {
		b.scratch = wire.AppendHeader(b.scratch, wire.Header{Type: wire.Goodbye})
		c.mu.Unlock()
		return true, true
	}
	for c.ready.len() > 0 && !b.full() {
		v := c.ready.pop()
		c.mu.Unlock()
		more := v.part.Load().fill(v, b)
		c.mu.Lock()
		if more {
			c.ready.push(v)
		}
	}
	c.mu.Unlock()
	return false, true
}

// send writes a batch and gives back what was in it.
func (c *conn) send(b *batch) error {
	err := b.write(c.nc)
	if err == nil {
		err = c.flush()
	}
	c.sent(b)
	return err
}

// sent gives back what was in a batch that was written, or lost.
func (c *conn) sent(b *batch) {
	c.stack.pool.Put(b.segs...)
	written(b.sent)
	c.written.Add(uint64(b.bytes))
	b.reset()
}

func (c *conn) writeLoop() {
	for {
		done := c.next(&c.out)
		err := c.send(&c.out)
		switch {
		case err != nil:
			c.fail(fmt.Errorf("write: %w", err))
			return
		case done:
			c.endWriting()
			return
		}
	}
}

// closeLinger is how long an orderly close waits for the peer to read what was sent and to close its end.
const closeLinger = time.Second

// endWriting leaves the rest of an orderly close to the read loop: it reads until the peer closes too.
// (To close with unread input would make the kernel reset the connection, and drop what the peer has not read.)
func (c *conn) endWriting() {
	c.nc.SetReadDeadline(time.Now().Add(closeLinger))
	if w, ok := c.nc.(interface{ CloseWrite() error }); ok {
		w.CloseWrite()
		c.flush()
	} else {
		c.nc.Close()
	}
}

// close ends the connection in order: what is queued to be sent is sent.
func (c *conn) close() {
	if c.lock() {
		c.closing = true
		c.unlock()
		c.nc.SetDeadline(time.Now().Add(closeLinger))
	}
}

var (
	errPeerClosed  = errors.New("the peer closed the connection")
	errPeerStopped = fmt.Errorf("%w in the middle of what it sent, as when its process dies", errPeerClosed)
)

// fail ends the connection at once, and every channel and view on it.
func (c *conn) fail(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	closing := c.closing
	c.err = err
	channels, views := c.channels, c.views
	c.channels, c.views = nil, nil
	c.mu.Unlock()
	c.socket.Close() // first, or TLS would say goodbye, and wait where nobody reads
	c.nc.Close()
	c.wakeWriter()
	c.stack.forget(c)

	switch {
	case errors.Is(err, io.EOF):
		err = errPeerClosed
	case errors.Is(err, io.ErrUnexpectedEOF): // under TLS, each end without its goodbye
		err = errPeerStopped
	}
	if len(channels)+len(views) > 0 {
		c.log.Warn("exchange connection lost", "channels", len(channels)+len(views), "err", err)
	} else {
		c.log.Debug("exchange connection closed", "err", err)
	}
	for _, ch := range channels {
		ch.gate.failChannel(ch, c.lost("read partition "+ch.partition, closing, err))
	}
	for _, v := range views {
		c.stack.leave(v, c.lost("send partition "+v.partition, closing, err))
	}
}

// lost is what the end of a connection is to one of its users: our doing if we were closing it, else the peer's.
func (c *conn) lost(op string, closing bool, err error) error {
	if closing {
		return &LocalError{Op: op, Kind: cluster.Cancelled, Err: ErrClosed}
	}
	return &RemoteError{Peer: c.peer, Op: op, Kind: cluster.Lost, Err: err}
}

// users is how many channels and views the connection has.
func (c *conn) users() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.channels) + len(c.views)
}
