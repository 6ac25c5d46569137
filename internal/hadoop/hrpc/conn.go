package hrpc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
)

// conn is one authenticated connection. Two goroutines own it: one reads, one writes; the first to fail ends both.
type conn struct {
	// Immutable.
	nc    net.Conn
	addr  string
	layer Layer // nil: frames go as they are
	cfg   *Config
	ping  []byte
	out   chan []byte   // whole frames
	done  chan struct{} // closed when the connection is of no more use
	wg    sync.WaitGroup

	// Guarded by mu.
	mu       sync.Mutex
	pending  map[int32]chan<- result // each has room for one
	err      error                   // why done was closed
	unsent   error                   // why nothing can be written any more
	lastRead time.Time
	lastUse  time.Time // a call began or ended

	// Owned by the reader.
	inner []byte // unwrapped bytes that are no whole frame yet
}

// result is what a call gets.
type result struct {
	r   response
	err error
}

func newConn(nc net.Conn, addr string, layer Layer, cfg *Config, clientID []byte) (*conn, error) {
	ping, err := appendFrame(nil, requestHeader(callPing, clientID, -1))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	c := &conn{nc: nc, addr: addr, layer: layer, cfg: cfg, ping: ping, out: make(chan []byte), done: make(chan struct{}),
		pending: map[int32]chan<- result{}, lastRead: now, lastUse: now}
	c.wg.Add(2)
	go c.reader()
	go c.writer()
	return c, nil
}

// close ends the connection and waits for its goroutines.
func (c *conn) close(err error) {
	c.fail(err)
	c.wg.Wait()
}

// fail marks the connection as broken and gives every waiting call its error. Only the first call matters.
func (c *conn) fail(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	calls := c.pending
	c.pending = nil
	c.mu.Unlock()
	close(c.done)
	c.nc.Close()
	for _, ch := range calls {
		ch <- result{err: c.lost(err)}
	}
}

// lost is the error of a call whose request may have been sent when the connection broke.
func (c *conn) lost(err error) error {
	if re, ok := errors.AsType[*RemoteError](err); ok {
		return re
	}
	return &ConnError{Addr: c.addr, Sent: true, Err: err}
}

// usable reports whether a call may be begun.
func (c *conn) usable() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err == nil
}

// ended is the error of a call that came too late to be sent: what the server said, else why the connection ended.
func (c *conn) ended() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if re, ok := errors.AsType[*RemoteError](c.err); ok {
		return re
	}
	return &ConnError{Addr: c.addr, Err: fmt.Errorf("it closed the connection at once: %w", c.err)}
}

// call sends a frame and waits for the answer to its id.
func (c *conn) call(ctx context.Context, id int32, frame []byte) (response, error) {
	answer := make(chan result, 1)
	c.mu.Lock()
	if c.err != nil {
		err := c.err
		c.mu.Unlock()
		return response{}, &ConnError{Addr: c.addr, Err: err}
	}
	c.pending[id] = answer
	began := time.Now()
	c.lastUse = began
	c.mu.Unlock()

	var timeout <-chan time.Time
	if c.cfg.CallTimeout > 0 {
		t := time.NewTimer(c.cfg.CallTimeout)
		defer t.Stop()
		timeout = t.C
	}
	out := c.out
	for {
		select {
		case out <- frame:
			out = nil
		case r := <-answer:
			if out != nil && r.err != nil {
				if ce, ok := r.err.(*ConnError); ok {
					ce.Sent = false
				}
			}
			return r.r, r.err
		case <-ctx.Done():
			c.forget(id)
			return response{}, fmt.Errorf("cannot get an answer from %s: %w", c.addr, ctx.Err())
		case <-timeout:
			c.forget(id)
			if !c.heardSince(began) {
				c.fail(errCallTimeout) // nothing at all came: the next call shall not wait on it too
			}
			return response{}, &ConnError{Addr: c.addr, Sent: out == nil, Err: errCallTimeout}
		}
	}
}

func (c *conn) forget(id int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, id)
	c.lastUse = time.Now()
}

func (c *conn) heardSince(t time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lastRead.After(t)
}

// writer sends frames in order, pings while answers are late, and ends the connection when it is idle.
func (c *conn) writer() {
	defer c.wg.Done()
	tick := time.NewTimer(c.tick())
	defer tick.Stop()
	for {
		select {
		case <-c.done:
			return
		case f := <-c.out:
			if err := c.write(f); err != nil {
				c.stopWriting(err)
				return
			}
		case <-tick.C:
			if err := c.quiet(); err != nil {
				c.stopWriting(err)
				return
			}
			tick.Reset(c.tick())
		}
	}
}

// lastWord is how long a server that closed its side may take to say why.
const lastWord = time.Second

// stopWriting leaves the end of the connection to the reader: a server that refuses us says why before it closes, and
// that is worth more than the failed write which its closing makes of ours.
func (c *conn) stopWriting(err error) {
	c.mu.Lock()
	c.unsent = err
	c.mu.Unlock()
	if errors.Is(err, errIdle) {
		c.fail(err)
		return
	}
	_ = c.nc.SetReadDeadline(time.Now().Add(lastWord)) // fails on a closed connection, whose reader ends anyway
}

// tick is how often quiet looks.
func (c *conn) tick() time.Duration {
	return max(min(c.cfg.PingInterval, c.cfg.IdleTimeout)/2, time.Millisecond)
}

var errIdle = errors.New("the connection was idle")

// quiet pings a server that owes answers, and gives up a connection that nobody uses.
func (c *conn) quiet() error {
	now := time.Now()
	c.mu.Lock()
	owes, read, use := len(c.pending) > 0, now.Sub(c.lastRead), now.Sub(c.lastUse)
	c.mu.Unlock()
	switch {
	case !owes && use >= c.cfg.IdleTimeout:
		return errIdle
	case owes && read >= c.cfg.PingInterval:
		return c.write(c.ping)
	}
	return nil
}

func (c *conn) write(frame []byte) error {
	if c.layer != nil {
		var err error
		if frame, err = wrapFrame(c.layer, frame); err != nil {
			return err
		}
	}
	if err := c.nc.SetWriteDeadline(time.Now().Add(c.cfg.WriteTimeout)); err != nil {
		return err
	}
	_, err := c.nc.Write(frame)
	return err
}

// reader hands answers to those who wait for them.
func (c *conn) reader() {
	defer c.wg.Done()
	in := bufio.NewReaderSize(c.nc, 32<<10)
	for {
		body, err := readFrame(in, c.cfg.MaxResponse)
		if err == nil {
			c.mu.Lock()
			c.lastRead = time.Now()
			c.mu.Unlock()
			err = c.frame(body)
		}
		if err != nil {
			c.fail(c.reason(err))
			return
		}
	}
}

// reason is why the connection ends: what the server said, else what went wrong first.
func (c *conn) reason(err error) error {
	if _, ok := errors.AsType[*RemoteError](err); ok {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unsent != nil {
		return c.unsent
	}
	return err
}

// frame handles one frame from the wire.
func (c *conn) frame(body []byte) error {
	r, err := parseResponse(body)
	if err != nil {
		return err
	}
	if c.layer == nil {
		return c.deliver(r)
	}
	if r.id != callSASL || r.body == nil {
		return fmt.Errorf("%s sent a frame without the protection that was agreed on", c.addr)
	}
	m := &pb.RpcSaslProto{}
	if err := proto.Unmarshal(r.body, m); err != nil {
		return err
	}
	if m.GetState() != pb.RpcSaslProto_WRAP {
		return fmt.Errorf("%s sent %v after authentication", c.addr, m.GetState())
	}
	plain, err := c.layer.Unwrap(m.Token)
	if err != nil {
		return err
	}
	c.inner = append(c.inner, plain...)
	return c.innerFrames()
}

// innerFrames delivers the whole frames that came wrapped.
func (c *conn) innerFrames() error {
	for len(c.inner) >= 4 {
		n, err := frameLength(c.inner[:4], c.cfg.MaxResponse)
		if err != nil {
			return err
		}
		if len(c.inner)-4 < n {
			return nil
		}
		r, err := parseResponse(c.inner[4 : 4+n])
		if err != nil {
			return err
		}
		// The rest is copied, since the answer keeps its bytes.
		c.inner = append([]byte(nil), c.inner[4+n:]...)
		if err := c.deliver(r); err != nil {
			return err
		}
	}
	return nil
}

// deliver hands an answer to its call. An answer to nobody, whose call has timed out, is dropped.
func (c *conn) deliver(r response) error {
	if r.id < 0 || r.header.GetStatus() == pb.RpcResponseHeaderProto_FATAL {
		if r.header.GetStatus() == pb.RpcResponseHeaderProto_SUCCESS {
			return fmt.Errorf("%s answered call %d, which nobody made", c.addr, r.id)
		}
		return remoteError(c.addr, "", r.header)
	}
	c.mu.Lock()
	ch := c.pending[r.id]
	delete(c.pending, r.id)
	c.lastUse = time.Now()
	c.mu.Unlock()
	if ch != nil {
		ch <- result{r: r}
	}
	return nil
}
