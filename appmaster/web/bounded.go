package web

import (
	"net"
	"sync"
	"syscall"
)

// mostConnections is how many connections a server has at a time. Who may do nothing can open them too, and is told apart when his request has been read only.
const mostConnections = 512

// places is mostConnections, or less where the process may have few descriptors: half of them are for its work.
func places() int {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err == nil && uint64(r.Cur)/2 < mostConnections {
		return max(1, int(r.Cur)/2)
	}
	return mostConnections
}

// bounded is a listener that has up to some connections at a time. More wait until one ends, which the server's timeouts see to.
type bounded struct {
	net.Listener
	places chan struct{} // each connection holds one
	closed chan struct{}
	close  func()
}

func boundedListener(l net.Listener, most int) *bounded {
	closed := make(chan struct{})
	return &bounded{l, make(chan struct{}, most), closed, sync.OnceFunc(func() { close(closed) })}
}

// Accept implements net.Listener.
func (b *bounded) Accept() (net.Conn, error) {
	select {
	case b.places <- struct{}{}:
	case <-b.closed:
		return nil, net.ErrClosed
	}
	c, err := b.Listener.Accept()
	if err != nil {
		<-b.places
		return nil, err
	}
	return &placed{c, sync.OnceFunc(func() { <-b.places })}, nil
}

// Close implements net.Listener.
func (b *bounded) Close() error {
	b.close()
	return b.Listener.Close()
}

// placed is a connection that holds a place.
type placed struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (p *placed) Close() error {
	defer p.leave()
	return p.Conn.Close()
}
