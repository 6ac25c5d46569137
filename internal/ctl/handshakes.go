package ctl

import (
	"errors"
	"io"
	"net"
	"slices"
	"sync"

	"google.golang.org/grpc/credentials"
)

// handshakes are credentials of a server that bounds how many connections may be in their handshake, before which nobody has
// proved anything: when there is one more, the oldest is closed. An agent needs milliseconds for it, so that whoever opens
// connections and says nothing drives out only his own kind.
type handshakes struct {
	credentials.TransportCredentials
	most   int                            // immutable
	failed func(peer net.Addr, err error) // immutable; nil: nobody wants to know

	mu   sync.Mutex
	open []net.Conn // guarded by mu; the oldest first
}

// ServerHandshake implements credentials.TransportCredentials.
func (h *handshakes) ServerHandshake(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	h.enter(c)
	defer h.leave(c)
	conn, info, err := h.TransportCredentials.ServerHandshake(c)
	if err != nil && h.failed != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) { // those have said nothing
		h.failed(c.RemoteAddr(), err)
	}
	return conn, info, err
}

// Clone implements credentials.TransportCredentials.
func (h *handshakes) Clone() credentials.TransportCredentials {
	return &handshakes{TransportCredentials: h.TransportCredentials.Clone(), most: h.most, failed: h.failed}
}

func (h *handshakes) enter(c net.Conn) {
	var oldest net.Conn
	h.mu.Lock()
	h.open = append(h.open, c)
	if len(h.open) > h.most {
		oldest = h.open[0]
		h.open = slices.Delete(h.open, 0, 1)
	}
	h.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close()
	}
}

func (h *handshakes) leave(c net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := slices.Index(h.open, c); i >= 0 {
		h.open = slices.Delete(h.open, i, i+1)
	}
}
