package appmaster

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
)

// Pace of probes.
const (
	probeTimeout = 2 * time.Second        // of one try to connect
	probePause   = 300 * time.Millisecond // between tries
	probeTries   = 3
)

// probe looks whether somebody listens where an agent's exchange is, in the background. Without refused, it notes that somebody
// does. With it, refused is called in the loop each time that the host says nobody does: that ends the wait for an agent
// whose session broke, since its process is gone. A host that was never reached from here proves nothing.
func (m *master) probe(id cluster.AgentID, addr string, refused func()) {
	m.wg.Go(func() {
		for try := range probeTries {
			if try > 0 {
				select {
				case <-time.After(probePause):
				case <-m.stopped:
					return
				}
			}
			c, err := m.dial(addr)
			if err == nil {
				_ = c.Close()
				m.post(func() {
					if a := m.agents[id]; a != nil && a.addr == addr {
						a.listens = true
					}
				})
				return
			}
			if refused != nil && errors.Is(err, syscall.ECONNREFUSED) {
				m.post(refused)
			} else if refused == nil {
				return
			}
		}
	})
}

// dial tries to connect until its time is over, or this master's is.
func (m *master) dial(addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	m.wg.Go(func() {
		select {
		case <-m.stopped:
			cancel()
		case <-ctx.Done():
		}
	})
	return new(net.Dialer).DialContext(ctx, "tcp", addr)
}
