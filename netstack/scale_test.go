package netstack

import (
	"context"
	"fmt"
	"runtime"
	"testing"
)

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestIdleChannelsAreSmall holds 10,000 channels on one connection: both ends together cost at most 2 kB a channel
// (segments are memory only while something is in them).
func TestIdleChannelsAreSmall(t *testing.T) {
	const n = 10_000
	edit := func(c *Config) { c.MemorySegments = 3 * n; c.SegmentBytes = 1024 }
	a, b := start(t, edit), start(t, edit)
	before := heap()
	p := mustPartition(t, a, "p", n)
	cfg := GateConfig{}
	for sub := range n {
		cfg.Channels = append(cfg.Channels, ChannelConfig{Partition: "p", Subpartition: sub, Addr: a.Addr()})
	}
	g, err := b.NewGate(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	eventually(t, "all attached", func() bool { return a.Stats().Channels == n })
	cfg = GateConfig{}
	each := (heap() - before) / n
	t.Logf("%d bytes a channel, %d connections", each, a.Stats().Connections)
	if each > 2000 || a.Stats().Connections != 1 {
		t.Errorf("%d bytes a channel, %d connections", each, a.Stats().Connections)
	}
	runtime.KeepAlive(p)
}

// TestFairness has many busy producers on one connection: in any stretch they get about the same.
func TestFairness(t *testing.T) {
	const n, rounds = 50, 600
	a, b := start(t, nil), start(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	w := newWaker()
	cfg := GateConfig{Wake: w.wake}
	done := make(chan error, n)
	for i := range n {
		p := mustPartition(t, a, fmt.Sprint("p", i), 1)
		cfg.Channels = append(cfg.Channels, ChannelConfig{Partition: fmt.Sprint("p", i), Addr: a.Addr()})
		go func() { done <- produce(ctx, p, 1, 1<<30) }()
	}
	g, err := b.NewGate(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	var counts [n]int
	for total := 0; total < n*rounds; {
		it, err := next(g, w)
		if err != nil {
			t.Fatal(err)
		}
		if it.Segment != nil {
			if total >= n*rounds/3 { // they begin one after the other
				counts[it.Channel]++
			}
			total++
			g.Recycle(it)
		}
	}
	lo, hi := counts[0], counts[0]
	for _, c := range counts {
		lo, hi = min(lo, c), max(hi, c)
	}
	if float64(hi) > 1.5*float64(lo) {
		t.Errorf("between %d and %d segments a channel: %v", lo, hi, counts)
	}
	cancel()
	g.Close()
	for range n {
		<-done
	}
}

// TestSteadyStateAllocatesNothing counts allocations over many segments and watermarks.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	a, b := start(t, nil), start(t, nil)
	p := mustPartition(t, a, "p", 1)
	g, w := open(t, b, "p", a.Addr(), 0)
	mark := []byte{'w', 1}
	round := func() {
		for range 1000 {
			seg, err := p.Get(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			p.Put(0, seg, len(seg.Bytes()))
			p.Event(0, mark, EventOptions{Coalesce: true})
			for got := false; !got; {
				it, ok, err := g.Next()
				if err != nil {
					t.Fatal(err)
				}
				if !ok {
					<-w
				}
				got = it.Segment != nil
				g.Recycle(it)
			}
		}
	}
	round()
	if n := testing.AllocsPerRun(5, round); n > 20 { // events are copied into chunks of 2 kB, shared by a thousand; the race detector adds some
		t.Errorf("%v allocations for 1000 segments and events", n)
	}
}
