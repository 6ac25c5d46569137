// Package testnet is a network in memory, for tests. Its connections are net.Pipes, so that it works
// under testing/synctest, and it can lose what is sent or cut all connections at once. FreePort is of the real network,
// for tests and benchmarks that start servers.
package testnet

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
)

// Network connects those who listen on it with those who dial on it.
type Network struct {
	hole atomic.Bool

	// Guarded by mu.
	mu        sync.Mutex
	listeners map[string]*listener
	open      map[*conn]struct{}
	dials     int
}

// New returns an empty network.
func New() *Network {
	return &Network{listeners: make(map[string]*listener), open: make(map[*conn]struct{})}
}

// Listen listens on addr, any string.
func (n *Network) Listen(addr string) net.Listener {
	l := &listener{n: n, addr: addr, queue: make(chan net.Conn), done: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listeners[addr] = l
	return l
}

// Dial connects to whoever listens on addr.
func (n *Network) Dial(ctx context.Context, addr string) (net.Conn, error) {
	n.mu.Lock()
	n.dials++
	l := n.listeners[addr]
	n.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("dial %s: %w", addr, syscall.ECONNREFUSED)
	}
	a, b := net.Pipe()
	mine, theirs := n.track(a, addr), n.track(b, "dialer")
	select {
	case l.queue <- theirs:
		return mine, nil
	case <-l.done:
		a.Close()
		b.Close()
		return nil, fmt.Errorf("dial %s: %w", addr, syscall.ECONNREFUSED)
	case <-ctx.Done():
		a.Close()
		b.Close()
		return nil, ctx.Err()
	}
}

func (n *Network) track(p net.Conn, remote string) *conn {
	c := &conn{Conn: p, n: n, remote: addr(remote)}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open[c] = struct{}{}
	return c
}

// Dials is how often Dial was called.
func (n *Network) Dials() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dials
}

// Open is how many ends of connections are open.
func (n *Network) Open() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.open)
}

// BlackHole makes the network lose everything that is written from now on, silently.
func (n *Network) BlackHole() { n.hole.Store(true) }

// Cut closes every connection.
func (n *Network) Cut() {
	n.mu.Lock()
	var conns []*conn
	for c := range n.open {
		conns = append(conns, c)
	}
	n.mu.Unlock()
	for _, c := range conns {
		c.Close()
	}
}

type conn struct {
	net.Conn
	n      *Network
	remote addr
}

func (c *conn) Write(b []byte) (int, error) {
	if c.n.hole.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *conn) Close() error {
	c.n.mu.Lock()
	delete(c.n.open, c)
	c.n.mu.Unlock()
	return c.Conn.Close()
}

func (c *conn) RemoteAddr() net.Addr { return c.remote }

type addr string

func (a addr) Network() string { return "test" }
func (a addr) String() string  { return string(a) }

type listener struct {
	n     *Network
	addr  string
	queue chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() {
		l.n.mu.Lock()
		delete(l.n.listeners, l.addr)
		l.n.mu.Unlock()
		close(l.done)
	})
	return nil
}

func (l *listener) Addr() net.Addr { return addr(l.addr) }
