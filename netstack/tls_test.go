package netstack

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
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
			if c.resumed {
				n++
			}
			if _, own := c.nc.(*sealedConn); !own {
				t.Errorf("crypto/tls protects the records of a connection (resumed: %v)", c.resumed)
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

// TestSetTLS replaces certificates while records flow: open connections go on, and those that begin later use the new ones alone.
func TestSetTLS(t *testing.T) {
	old, fresh := testTLS(t), testTLS(t)
	edit := func(c *Config) {
		c.TLS = old
		c.Auth.Key = nil
		c.ConnectRetries = -1
		c.HandshakeTimeout = 10 * time.Second
	}
	a, b, late := start(t, edit), start(t, edit), start(t, edit)
	p := mustPartition(t, a, "p", 1)
	g, w := open(t, b, "p", a.Addr(), 0)
	flows := func(n int) {
		t.Helper()
		done := make(chan error, 1)
		go func() {
			for range n {
				seg, err := p.Get(t.Context(), 0)
				if err == nil {
					err = p.Put(0, seg, 8)
				}
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
		for range n {
			it, err := next(g, w)
			if err != nil {
				t.Fatal(err)
			}
			g.Recycle(it)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	flows(20)
	for _, s := range []*Stack{a, b} {
		s.SetTLS(fresh)
	}
	flows(20)
	q := mustPartition(t, a, "q", 2)
	done := make(chan error, 1)
	go func() { done <- produce(t.Context(), q, 2, 5) }()
	g2, w2 := open(t, b, "q", a.Addr(), 0, 1) // the second on a connection of its own
	if err := consume(g2, w2, []int{0, 1}, 5); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	g3, w3 := open(t, late, "p", a.Addr(), 0)
	if _, err := next(g3, w3); err == nil || kindOf(err, cluster.Internal) != cluster.Denied {
		t.Errorf("a peer with the old certificate: %v", err)
	}
}

// TestEverythingAtOnce has checksums, compression, TLS, a key, debloating and two connections together, with as few segments as can be.
func TestEverythingAtOnce(t *testing.T) {
	mine := testTLS(t)
	for _, method := range []string{"lz4", "zstd"} {
		for _, exclusive := range []int{-1, 1} {
			t.Run(fmt.Sprint(method, exclusive), func(t *testing.T) {
				edit := func(c *Config) {
					c.TLS, c.Checksum, c.Compression, c.DebloatTarget, c.MaxConnections = mine, true, method, time.Second, 2
					c.ExclusivePerChannel, c.FloatingPerGate, c.MemorySegments = exclusive, -1, 8
				}
				a, b := start(t, edit), start(t, edit)
				p := mustPartition(t, a, "p", 2)
				g, w := open(t, b, "p", a.Addr(), 0, 1)
				eventually(t, "attached", func() bool { return a.Stats().Channels == 2 && a.Stats().Connections == 2 })
				done := make(chan error, 1)
				go func() { done <- produceTexts(t.Context(), p) }()
				if err := consumeTexts(g, w); err != nil {
					t.Fatal(err)
				}
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				if a.Stats().PackedBytes == 0 {
					t.Error("nothing was compressed")
				}
				g.Close()
				p.Release()
				eventually(t, "all is back", func() bool { return a.Stats().SegmentsUsed+b.Stats().SegmentsUsed == 0 })
			})
		}
	}
}

// TestPeerStartsAgain has an agent die in mid-stream and another, with other settings, come at the same address: the consumer's next
// attempt gets to that one.
func TestPeerStartsAgain(t *testing.T) {
	for _, encrypted := range []bool{false, true} {
		var mine *TLS
		if encrypted {
			mine = testTLS(t)
		}
		const addr = "127.0.0.1:1" // leads to whoever is a
		var a *Stack
		b := start(t, func(c *Config) {
			c.TLS, c.Checksum, c.Compression = mine, true, "lz4"
			c.Dial = func(ctx context.Context, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "tcp", a.Addr())
			}
		})
		for round := range 4 {
			a = start(t, func(c *Config) {
				c.TLS, c.Checksum, c.Compression = mine, round%2 == 0, []string{"lz4", "zstd"}[round/2]
			})
			id := fmt.Sprint("p", round/2) // of a second attempt at the same partition, too
			p := mustPartition(t, a, id, 1)
			g, w := open(t, b, id, addr, 0)
			done := make(chan error, 1)
			go func() { done <- produce(t.Context(), p, 1, 1<<20) }()
			for range 5 {
				it, err := next(g, w)
				if err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
				g.Recycle(it)
			}
			a.mu.Lock()
			conns := a.connsLocked()
			a.mu.Unlock()
			for _, c := range conns {
				c.socket.Close() // without TLS's goodbye, as the kernel does
			}
			for {
				it, err := next(g, w)
				if err != nil {
					if wantRemote(t, "peer that died", err, cluster.Lost); strings.Contains(err.Error(), "EOF") {
						t.Errorf("what is that to say: %v", err)
					}
					break
				}
				g.Recycle(it)
			}
			if err := <-done; err == nil {
				t.Error("the producer's end came without a consumer")
			}
			g.Close()
			a.Close()
		}
		eventually(t, "nothing is left", func() bool { st := b.Stats(); return st.Connections == 0 && st.SegmentsUsed == 0 })
	}
}

// TestAgentsConnectAtOnceByTLS has 300 agents, more than may prove themselves at once, dial one in the same moment, each of which tries once.
func TestAgentsConnectAtOnceByTLS(t *testing.T) {
	const agents = 300
	mine := testTLS(t)
	edit := func(c *Config) {
		c.TLS, c.ConnectRetries, c.ConnectTimeout, c.HandshakeTimeout, c.MemorySegments = mine, -1, 2*time.Minute, 2*time.Minute, 2*agents
	}
	hub := start(t, edit)
	p := mustPartition(t, hub, "p", agents)
	produced := make(chan error, 1)
	go func() { produced <- produce(t.Context(), p, agents, 3) }()
	var wg sync.WaitGroup
	for i := range agents {
		s := start(t, edit)
		wg.Go(func() {
			g, w := open(t, s, "p", hub.Addr(), i)
			if err := consume(g, w, []int{i}, 3); err != nil {
				t.Errorf("agent %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	if err := <-produced; err != nil {
		t.Error(err)
	}
	if got := hub.Stats().Connections; got != agents {
		t.Errorf("%d connections, want one of each agent", got)
	}
}
