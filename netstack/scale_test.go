package netstack

import (
	"flag"
	"fmt"
	"runtime"
	"slices"
	"testing"
)

// The race detector makes ten thousand busy channels take a quarter of a minute.
var scaleChannels = flag.Int("scale.channels", 1_000, "busy channels on one connection in TestFairness")

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

// TestFairness keeps the producers of many channels on one connection busy: in any stretch each channel gets about the same.
// One goroutine feeds all, so that it is the exchange that is measured, and not how goroutines are scheduled.
func TestFairness(t *testing.T) {
	for _, c := range []struct{ partitions, subs, rounds int }{{50, 1, 200}, {2, 100, 80}, {1, *scaleChannels, 32}} {
		t.Run(fmt.Sprintf("%d-%d", c.partitions, c.subs), func(t *testing.T) {
			n := c.partitions * c.subs
			edit := func(cfg *Config) { cfg.SegmentBytes, cfg.MemorySegments, cfg.MaxPerSubpartition = 1024, 1024+8*n, 3 }
			a, b := start(t, edit), start(t, edit)
			w, pw := newWaker(), newWaker()
			cfg := GateConfig{Wake: w.wake}
			var ps []*Partition
			for i := range c.partitions {
				id := fmt.Sprint("p", i)
				p, err := a.NewPartition(PartitionConfig{ID: id, Subpartitions: c.subs, MaxSegments: 3 * c.subs, Wake: pw.wake})
				if err != nil {
					t.Fatal(err)
				}
				defer p.Release()
				ps = append(ps, p)
				for sub := range c.subs {
					cfg.Channels = append(cfg.Channels, ChannelConfig{Partition: id, Subpartition: sub, Addr: a.Addr()})
				}
			}
			g, err := b.NewGate(cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			eventually(t, "all attached", func() bool { return a.Stats().Channels == n })
			if st := a.Stats(); st.Connections != 1 {
				t.Errorf("%d connections, want all channels on one", st.Connections)
			}
			stop, fed := make(chan struct{}), make(chan struct{})
			go func() { defer close(fed); feed(ps, c.subs, 100, pw, stop) }()
			counts := make([]int, n)
			for total := 0; total < n*c.rounds; {
				it, err := next(g, w)
				if err != nil {
					t.Fatal(err)
				}
				if total >= n*c.rounds/4 { // the first come before all channels have begun
					counts[it.Channel]++
				}
				total++
				g.Recycle(it)
			}
			close(stop)
			<-fed
			if lo, hi := slices.Min(counts), slices.Max(counts); float64(hi) > 1.5*float64(lo) {
				t.Errorf("between %d and %d segments a channel", lo, hi)
			} else {
				t.Logf("%d to %d segments a channel", lo, hi)
			}
		})
	}
}

// feed keeps every subpartition as full as it may be, none before the others, with payloads of size bytes. w is woken by every partition.
func feed(ps []*Partition, subs, size int, w waker, stop chan struct{}) {
	for at := 0; ; {
		got := false
		for range len(ps) * subs { // on from where the last round found nothing: a connection has little room at a time
			p, sub := ps[at/subs], at%subs
			if seg := p.TryGet(sub); seg != nil {
				got = p.Put(sub, seg, size) == nil || got
			}
			at = (at + 1) % (len(ps) * subs)
		}
		if got {
			continue
		}
		select {
		case <-stop:
			return
		case <-w:
		}
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
