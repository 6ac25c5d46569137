package netstack

import (
	"bytes"
	"fmt"
	"testing"
)

// TestAlignedBarriers has every producer send data, a barrier and more data, again and again, and a consumer that blocks each channel at
// its barrier until all have brought theirs, with as few segments as can be: it never waits for ever, and memory comes back.
func TestAlignedBarriers(t *testing.T) {
	for _, c := range []struct{ exclusive, floating int }{{2, 8}, {1, -1}, {-1, 1}, {-1, 3}} {
		for _, local := range []bool{false, true} {
			t.Run(fmt.Sprintf("%+v local=%v", c, local), func(t *testing.T) {
				const producers, rounds, each = 6, 8, 5
				edit := func(cfg *Config) {
					cfg.ExclusivePerChannel, cfg.FloatingPerGate, cfg.MaxPerSubpartition = c.exclusive, c.floating, 2
				}
				a := start(t, edit)
				b := a
				if !local {
					b = start(t, edit)
				}
				w := newWaker()
				cfg := GateConfig{Wake: w.wake}
				done := make(chan error, producers)
				for i := range producers {
					id := fmt.Sprint("p", i)
					p := mustPartition(t, a, id, 1)
					cfg.Channels = append(cfg.Channels, ChannelConfig{Partition: id, Addr: a.Addr()})
					go func() {
						for n := range rounds * each * (1 + i) {
							seg, err := p.Get(t.Context(), 0)
							if err == nil {
								err = p.Put(0, seg, 100)
							}
							if err == nil && n%(each*(1+i)) == each-1 { // at another place on each channel
								err = p.Event(0, []byte("barrier"), EventOptions{})
							}
							if err != nil {
								done <- err
								return
							}
						}
						done <- p.Finish(t.Context())
					}()
				}
				g, err := b.NewGate(cfg)
				if err != nil {
					t.Fatal(err)
				}
				var segments, barriers [producers]int
				blocked, ended := 0, 0
				for ended < producers {
					it, err := next(g, w)
					if err != nil {
						t.Fatalf("%v, with %d channels blocked; barriers %v, segments %v", err, blocked, barriers, segments)
					}
					switch {
					case it.End:
						ended++
					case it.Segment != nil:
						segments[it.Channel]++
						g.Recycle(it)
					default:
						if barriers[it.Channel]++; barriers[it.Channel] > barriers[0]+1 {
							t.Fatalf("channel %d is a barrier ahead", it.Channel)
						}
						g.Block(it.Channel)
						if blocked++; blocked == producers {
							for i := range producers {
								g.Resume(i)
							}
							blocked = 0
						}
					}
					if ended > 0 && blocked > 0 { // the last round is cut short by ends
						for i := range producers {
							g.Resume(i)
						}
						blocked = 0
					}
				}
				for i, n := range segments {
					if n != rounds*each*(1+i) {
						t.Errorf("channel %d brought %d segments", i, n)
					}
				}
				for range producers {
					if err := <-done; err != nil {
						t.Error(err)
					}
				}
				g.Close()
				eventually(t, "all is back", func() bool { return a.Stats().SegmentsUsed+b.Stats().SegmentsUsed == 0 })
			})
		}
	}
}

func TestOverdraft(t *testing.T) {
	a := start(t, func(c *Config) { c.MaxPerSubpartition, c.FloatingPerGate, c.Overdraft = 2, 1, 3 })
	p := mustPartition(t, a, "p", 1)
	n := 0
	for seg := p.TryGet(0); seg != nil; seg = p.TryGet(0) {
		p.Put(0, seg, 8)
		n++
	}
	over := 0
	for seg := p.Overdraft(0); seg != nil; seg = p.Overdraft(0) {
		p.Put(0, seg, 8)
		over++
	}
	if n != 2 || over != 3 {
		t.Errorf("got %d segments and %d more, want 2 and 3", n, over)
	}
	g, w := open(t, a, "p", a.Addr(), 0)
	for range n + over {
		it, err := next(g, w)
		if err != nil {
			t.Fatal(err)
		}
		g.Recycle(it)
	}
	if p.TryGet(0) == nil {
		t.Error("overdraft was not given back")
	}
}

// TestOverdraftOfTheGuaranteed has a connection that is busy with others' data hold up a producer that has nothing on its way: the
// segment that the overdraft then gives is the subpartition's own, and costs it none of those that are lent.
func TestOverdraftOfTheGuaranteed(t *testing.T) {
	a, b := start(t, func(c *Config) { c.Overdraft = 3 }), start(t, nil)
	p := mustPartition(t, a, "p", 1)
	open(t, b, "p", a.Addr(), 0)
	eventually(t, "attached", func() bool { return a.Stats().Channels == 1 })
	a.mu.Lock()
	admit := &a.connsLocked()[0].admit
	a.mu.Unlock()
	admit.add(admit.most)
	for n := range 100 {
		if p.TryGet(0) != nil {
			t.Fatal("got a segment though the connection is full")
		}
		seg := p.Overdraft(0)
		if seg == nil {
			t.Fatalf("no overdraft after %d were given back", n)
		}
		p.Put(0, seg, 0)
	}
	if n := a.Stats().SegmentsFloating; n != 0 {
		t.Errorf("%d segments are lent for ever", n)
	}
	signalAll(admit.add(-admit.most))
}

// TestOvertakenStaysAsItIs reads what a priority event has overtaken only after the consumer has taken all of it, as one does that
// writes it to a slow disk meanwhile.
func TestOvertakenStaysAsItIs(t *testing.T) {
	for _, method := range []string{"none", "lz4", "zstd"} {
		t.Run(method, func(t *testing.T) {
			const n = 12
			edit := func(c *Config) { c.Compression = method }
			a, b := start(t, edit), start(t, edit)
			p := mustPartition(t, a, "p", 1)
			g, w := open(t, b, "p", a.Addr(), 0)
			eventually(t, "attached", func() bool { return a.Stats().Channels == 1 })
			payload := func(i int) []byte { return bytes.Repeat([]byte(fmt.Sprintf("segment %d, ", i)), 50) }
			for i := range n {
				seg, err := p.Get(t.Context(), 0)
				if err != nil {
					t.Fatal(err)
				}
				p.Put(0, seg, copy(seg.Bytes(), payload(i)))
			}
			eventually(t, "all are at the consumer", func() bool { return g.Queued() == n })
			p.Event(0, []byte("barrier"), EventOptions{Priority: true})
			eventually(t, "the barrier is, too", func() bool {
				g.mu.Lock()
				defer g.mu.Unlock()
				return g.channels[0].queue.len() == n+1
			})
			barrier, err := next(g, w)
			if err != nil || string(barrier.Event) != "barrier" {
				t.Fatalf("got %+v, %v", barrier, err)
			}
			passed := g.Overtaken(barrier)
			for i := range n {
				it, err := next(g, w)
				if err != nil || !bytes.Equal(it.Payload, payload(i)) {
					t.Fatalf("item %d: got %q, %v", i, it.Payload, err)
				}
				g.Recycle(it)
			}
			if len(passed) != n {
				t.Fatalf("%d were overtaken, want %d", len(passed), n)
			}
			for i := range passed {
				if got, err := passed[i].Append(nil); err != nil || !bytes.Equal(got, payload(i)) {
					t.Errorf("overtaken %d: got %q, %v", i, got, err)
				}
				passed[i].Release()
			}
			g.Close()
			p.Release()
			eventually(t, "all is back", func() bool { return a.Stats().SegmentsUsed+b.Stats().SegmentsUsed == 0 })
		})
	}
}
