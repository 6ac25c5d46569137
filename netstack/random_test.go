package netstack

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/testnet"
	"pgregory.net/rapid"
)

// TestRandomExchanges runs exchanges of random shape, with random limits and a consumer that holds on to segments,
// over connections in memory: everything arrives once, in order, and all comes back at the end.
func TestRandomExchanges(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		subs, n := rapid.IntRange(1, 6).Draw(rt, "consumers"), rapid.IntRange(0, 40).Draw(rt, "segments")
		producers := rapid.IntRange(1, 4).Draw(rt, "producers")
		cfg := Config{
			Auth: Auth{Key: testKey}, SegmentBytes: 1024, MemorySegments: 400,
			ExclusivePerChannel: rapid.SampledFrom([]int{-1, 1, 2, 3}).Draw(rt, "exclusive"),
			FloatingPerGate:     rapid.SampledFrom([]int{-1, 1, 2, 8}).Draw(rt, "floating"),
			MaxPerChannel:       rapid.IntRange(1, 12).Draw(rt, "max per channel"),
			MaxPerSubpartition:  rapid.IntRange(1, 5).Draw(rt, "max per subpartition"),
			MaxConnections:      rapid.IntRange(1, 3).Draw(rt, "connections"),
		}
		hold := 0
		if cfg.ExclusivePerChannel > 1 && cfg.MaxPerSubpartition > 1 {
			hold = 1 // with fewer, a consumer that keeps one would wait for itself
		}
		local := rapid.Bool().Draw(rt, "some local")
		if local {
			hold = 0
		}
		net := testnet.New()
		stacks := map[string]*Stack{}
		for _, name := range []string{"a", "b"} {
			cfg.Listener, cfg.Dial, cfg.Identity = net.Listen(name), net.Dial, name
			s, err := New(cfg)
			if err != nil {
				rt.Fatal(err)
			}
			defer s.Close()
			stacks[name] = s
		}
		var wg sync.WaitGroup
		errs := make(chan error, producers+subs)
		for i := range producers {
			p, err := stacks["a"].NewPartition(PartitionConfig{ID: fmt.Sprint("p", i), Subpartitions: subs})
			if err != nil {
				rt.Fatal(err)
			}
			wg.Go(func() {
				defer p.Release()
				errs <- produceMixed(t, p, subs, n)
			})
		}
		for sub := range subs {
			w := newWaker()
			gc := GateConfig{Wake: w.wake}
			for i := range producers {
				gc.Channels = append(gc.Channels, ChannelConfig{Partition: fmt.Sprint("p", i), Subpartition: sub, Addr: "a", ConnIndex: uint32(sub + i)})
			}
			s := stacks["b"]
			if local && sub%2 == 0 {
				s = stacks["a"]
			}
			g, err := s.NewGate(gc)
			if err != nil {
				rt.Fatal(err)
			}
			wg.Go(func() {
				defer g.Close()
				errs <- consumeMixed(g, w, sub, producers, n, hold)
			})
		}
		wg.Wait()
		for range producers + subs {
			if err := <-errs; err != nil {
				rt.Fatal(err)
			}
		}
		for name, s := range stacks {
			for deadline := time.Now().Add(5 * time.Second); ; runtime.Gosched() {
				st := s.Stats()
				if st.SegmentsUsed == 0 && st.SegmentsReserved == 0 && st.SegmentsFloating == 0 && st.Channels == 0 {
					break
				}
				if time.Now().After(deadline) {
					rt.Fatalf("stack %s keeps %+v", name, st)
				}
			}
		}
	})
}

// produceMixed sends n numbered segments a subpartition, watermarks that coalesce after each, and a priority event in the middle.
func produceMixed(t *testing.T, p *Partition, subs, n int) error {
	for seq := range n {
		for sub := range subs {
			seg, err := p.Get(t.Context(), sub)
			if err != nil {
				return err
			}
			size := 12 + (seq*37+sub)%(len(seg.Bytes())-12)
			fill(seg.Bytes()[:size], sub, seq)
			if err := p.Put(sub, seg, size); err != nil {
				return err
			}
			for _, w := range []byte{byte(seq), byte(seq + 1)} {
				if err := p.Event(sub, []byte{'w', w}, EventOptions{Coalesce: true}); err != nil {
					return err
				}
			}
			if seq == n/2 {
				if err := p.Event(sub, []byte("now"), EventOptions{Priority: true}); err != nil {
					return err
				}
			}
		}
	}
	return p.Finish(t.Context())
}

// consumeMixed checks what produceMixed sent. It recycles each segment only after hold more of its channel.
func consumeMixed(g *Gate, w waker, sub, channels, n, hold int) error {
	seq, mark, priority := make([]int, channels), make([]int, channels), make([]int, channels)
	held := make([][]Item, channels)
	for left := channels; left > 0; {
		it, err := next(g, w)
		if err != nil {
			return err
		}
		ch := it.Channel
		switch {
		case it.End:
			if left--; seq[ch] != n || mark[ch] != n || (n > 0 && priority[ch] != 1) {
				return fmt.Errorf("channel %d ended after %d of %d segments, watermark %d, %d priority events", ch, seq[ch], n, mark[ch], priority[ch])
			}
		case it.Segment != nil:
			if err := verify(it.Payload, sub, seq[ch]); err != nil {
				return err
			}
			seq[ch]++
			held[ch] = append(held[ch], it)
		case bytes.Equal(it.Event, []byte("now")):
			priority[ch]++
		default:
			v := int(it.Event[1])
			if it.Event[0] != 'w' || v < mark[ch] || v > seq[ch] {
				return fmt.Errorf("channel %d: watermark %d after segment %d and watermark %d", ch, v, seq[ch]-1, mark[ch])
			}
			mark[ch] = v
		}
		for len(held[ch]) > hold || (it.End && len(held[ch]) > 0) {
			g.Recycle(held[ch][0])
			held[ch] = held[ch][1:]
		}
	}
	return nil
}

// TestHandshakesOnOneCPU opens a hundred connections at once.
func TestHandshakesOnOneCPU(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const n = 100
	a, b := start(t, nil), start(t, func(c *Config) { c.MaxConnections = n })
	mustPartition(t, a, "p", n)
	subs := make([]int, n)
	for i := range subs {
		subs[i] = i
	}
	g, _ := open(t, b, "p", a.Addr(), subs...)
	eventually(t, "all connected", func() bool { st := a.Stats(); return st.Channels == n && st.Connections == n })
	if _, _, err := g.Next(); err != nil {
		t.Error(err)
	}
}

// TestHandshakesWaitTheirTurn has as many peers as may be proving themselves; the next one, which tries but once, waits for a place.
func TestHandshakesWaitTheirTurn(t *testing.T) {
	a := start(t, nil)
	for range maxGreeters {
		a.greeters <- struct{}{}
	}
	dialed := make(chan struct{})
	b := start(t, func(c *Config) {
		c.ConnectRetries, c.HandshakeTimeout = -1, time.Minute
		c.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
			nc, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
			close(dialed)
			return nc, err
		}
	})
	mustPartition(t, a, "p", 1)
	g, _ := open(t, b, "p", a.Addr(), 0)
	<-dialed
	for range maxGreeters {
		<-a.greeters
	}
	eventually(t, "connected", func() bool { return a.Stats().Channels == 1 })
	if _, _, err := g.Next(); err != nil {
		t.Error(err)
	}
}
