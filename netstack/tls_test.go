package netstack

import (
	"crypto/tls"
	"fmt"
	"testing"
)

// TestTLSResumption closes connections and dials again: sessions are resumed, each with the peer it was made with.
func TestTLSResumption(t *testing.T) {
	mine := testTLS(t)
	edit := func(c *Config) { c.TLS = mine; c.Auth.Key = nil }
	a1, a2, b := start(t, edit), start(t, edit), start(t, edit)
	resumed := func(s *Stack) (n int) {
		s.mu.Lock()
		conns := s.connsLocked()
		s.mu.Unlock()
		for _, c := range conns {
			if c.nc.(*tls.Conn).ConnectionState().DidResume {
				n++
			}
		}
		return n
	}
	for round := range 3 {
		for i, a := range []*Stack{a1, a2} {
			id := fmt.Sprint("p", round, i)
			p := mustPartition(t, a, id, 1)
			done := make(chan error, 1)
			go func() { done <- produce(t.Context(), p, 1, 5) }()
			g, w := open(t, b, id, a.Addr(), 0)
			if err := consume(g, w, []int{0}, 5); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if got, want := resumed(a), min(round, 1); got != want {
				t.Errorf("round %d: %d connections resumed a session, want %d", round, got, want)
			}
			g.Close()
		}
		b.mu.Lock()
		conns := b.connsLocked()
		b.mu.Unlock()
		for _, c := range conns {
			c.close()
		}
		eventually(t, "closed", func() bool {
			return a1.Stats().Connections+a2.Stats().Connections+b.Stats().Connections == 0
		})
	}
}
