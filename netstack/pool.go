package netstack

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
)

// connKey names a connection to a peer.
type connKey struct {
	addr  string
	index uint32 // below Config.MaxConnections
}

// dialPool shares connections among channels: one dial for each key, whose result all waiters get.
// A failed dial fails every waiter and is forgotten.
type dialPool struct {
	// Guarded by mu.
	mu      sync.Mutex
	entries map[connKey]*dialEntry
}

// dialEntry is a connection, or a dial on its way.
type dialEntry struct {
	conn    *conn // nil while dialing
	waiters []*channel
}

// connect brings ch to its connection, dialing it if there is none.
func (s *Stack) connect(ch *channel) {
	for {
		s.dials.mu.Lock()
		e := s.dials.entries[ch.key]
		if e != nil && e.conn != nil {
			c := e.conn
			s.dials.mu.Unlock()
			if c.attach(ch) {
				return
			}
			s.dials.evict(c)
			continue
		}
		if e != nil {
			e.waiters = append(e.waiters, ch)
			s.dials.mu.Unlock()
			return
		}
		e = &dialEntry{waiters: []*channel{ch}}
		s.dials.entries[ch.key] = e
		s.dials.mu.Unlock()
		if !s.launch(func(ctx context.Context) { s.serveDialed(ctx, ch.key, e) }) {
			s.dials.settle(ch.key, e, nil, &LocalError{Op: "dial " + ch.key.addr, Kind: cluster.Cancelled, Err: ErrClosed})
		}
		return
	}
}

// evict forgets c, so that the next channel dials anew.
func (p *dialPool) evict(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.entries[c.key]; e != nil && e.conn == c {
		delete(p.entries, c.key)
	}
}

// settle ends the dial of e: by a connection that all waiters share, or an error that they all get.
func (p *dialPool) settle(key connKey, e *dialEntry, c *conn, err error) {
	p.mu.Lock()
	waiters := e.waiters
	e.conn, e.waiters = c, nil
	if c == nil && p.entries[key] == e {
		delete(p.entries, key)
	}
	p.mu.Unlock()
	for _, ch := range waiters {
		if c != nil && c.attach(ch) {
			continue
		}
		if c != nil {
			err = &RemoteError{Peer: c.peer, Op: "read partition " + ch.partition, Kind: cluster.Lost, Err: errPeerClosed}
		}
		ch.gate.failChannel(ch, err)
	}
}

// serveDialed dials and then serves the connection until it ends.
func (s *Stack) serveDialed(ctx context.Context, key connKey, e *dialEntry) {
	c, err := s.dialRetry(ctx, key)
	if err == nil && !s.track(c) {
		c.nc.Close()
		c, err = nil, &LocalError{Op: "dial " + key.addr, Kind: cluster.Cancelled, Err: ErrClosed}
	}
	s.dials.settle(key, e, c, err)
	if c != nil {
		c.run()
	}
}

func (s *Stack) dialRetry(ctx context.Context, key connKey) (*conn, error) {
	backoff := s.cfg.ConnectBackoff
	for try := 0; ; try++ {
		c, err := s.dialOnce(ctx, key)
		if err == nil {
			return c, nil
		}
		if ctx.Err() != nil {
			return nil, &LocalError{Op: "dial " + key.addr, Kind: cluster.Cancelled, Err: ErrClosed}
		}
		if refusedByTLS(err) {
			err = &RemoteError{Peer: key.addr, Op: "connect", Kind: cluster.Denied, Err: err}
		}
		if try >= s.cfg.ConnectRetries || kindOf(err, cluster.Unavailable) == cluster.Denied {
			return nil, undialed(key.addr, try+1, err)
		}
		select {
		case <-time.After(backoff/2 + rand.N(max(backoff, 1))):
		case <-ctx.Done():
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

// undialed is why there is no connection to addr after so many attempts, and whose fault that is.
func undialed(addr string, attempts int, err error) error {
	if r, ok := errors.AsType[*RemoteError](err); ok {
		return r
	}
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		return &LocalError{Op: "connect to " + addr, Kind: cluster.Unavailable, Err: fmt.Errorf("%w; raise this process's limit on open files (ulimit -n)", err)}
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		err = fmt.Errorf("%w; set exchange.advertise to what that agent is called on other hosts", err)
	}
	op := "connect"
	if attempts > 1 {
		op = fmt.Sprintf("connect after %d attempts", attempts)
	}
	return &RemoteError{Peer: addr, Op: op, Kind: cluster.Unavailable, Err: err}
}

// refusedByTLS reports whether a certificate, ours or the peer's, was not accepted.
func refusedByTLS(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error" // how crypto/tls reports the peer's alert
}

const maxBackoff = 10 * time.Second

func (s *Stack) dialOnce(ctx context.Context, key connKey) (*conn, error) {
	dctx, cancel := context.WithTimeout(ctx, s.cfg.ConnectTimeout)
	defer cancel()
	nc, err := s.dialer(dctx, key.addr)
	if err != nil {
		return nil, err
	}
	raw := nc
	stop := context.AfterFunc(ctx, func() { raw.Close() })
	defer stop()
	nc.SetDeadline(time.Now().Add(s.cfg.HandshakeTimeout))
	var under *cork
	if s.cfg.TLS != nil {
		under = newCork(nc)
		nc = tls.Client(under, s.clientTLS(key.addr, under))
	}
	var c *conn
	if err = s.sockets.tune(raw); err == nil {
		c, err = s.greet(nc, key)
	}
	if err != nil {
		raw.Close()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("%w during the handshake", errPeerClosed)
		}
		return nil, err
	}
	nc.SetDeadline(time.Time{})
	c.seal(under)
	return c, nil
}
