package netstack

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-stream/heddle/internal/testnet"
	"github.com/heddle-stream/heddle/netstack/wire"
)

// TestHopSpans lets a segment wait in each place for a time of its own.
func TestHopSpans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := simulated(t, testnet.New(), func(c *Config) { c.ExclusivePerChannel, c.FloatingPerGate, c.MaxPerChannel = 1, -1, 1 })
		p := mustPartition(t, a, "p", 1)
		put := func(note string) {
			seg, err := p.Get(context.Background(), 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.PutNoted(0, seg, copy(seg.Bytes(), "data"), []byte(note)); err != nil {
				t.Fatal(err)
			}
		}
		g, _ := open(t, b, "p", a.Addr(), 0)
		take := func() Item {
			synctest.Wait()
			it, ok, err := g.Next()
			if err != nil || !ok {
				t.Fatalf("next: %v, %v", ok, err)
			}
			return it
		}
		synctest.Wait()
		put("one")
		put("")
		put("three")
		time.Sleep(3 * time.Second) // the first waits to be taken, the others for credit
		one := take()
		wantHop(t, one.Hop, "one", 0, 0, 0, 3*time.Second)
		g.Recycle(one)
		two := take()
		if two.Hop != nil {
			t.Errorf("a segment without note came with %+v", two.Hop)
		}
		time.Sleep(4 * time.Second)
		g.Recycle(two)
		synctest.Wait()
		time.Sleep(5 * time.Second)
		wantHop(t, take().Hop, "three", 7*time.Second, 0, 0, 5*time.Second)
		for _, c := range append(a.PeerClocks(), b.PeerClocks()...) {
			if c.Samples < eagerSamples || c.Ahead != 0 || c.Within > time.Millisecond {
				t.Errorf("clock of %s: %+v, want 0 from %d samples", c.Peer, c.Offset, eagerSamples)
			}
		}
	})
}

// TestHopsAreKept: a Hop is its own until its segment is recycled, though others come meanwhile, and though that is not the segment which it came with,
// since that was compressed.
func TestHopsAreKept(t *testing.T) {
	for _, algorithm := range []string{"", "lz4", "zstd"} {
		t.Run(algorithm, func(t *testing.T) { // in no bubble: zstd's encoders and decoder are the process's, and hold channels
			a, b := simulated(t, testnet.New(), func(c *Config) { c.Compression, c.ExclusivePerChannel = algorithm, 4 })
			p := mustPartition(t, a, "p", 1)
			g, w := open(t, b, "p", a.Addr(), 0)
			for round := range 3 {
				var items []Item
				for i := range 4 {
					seg, err := p.Get(t.Context(), 0)
					if err != nil {
						t.Fatal(err)
					}
					if err := p.PutNoted(0, seg, copy(seg.Bytes(), strings.Repeat("data", 200)), fmt.Appendf(nil, "%d of %d", i, round)); err != nil {
						t.Fatal(err)
					}
					it, err := next(g, w)
					if err != nil {
						t.Fatal(err)
					}
					items = append(items, it)
				}
				for i, it := range items {
					if it.Hop == nil || string(it.Hop.Note) != fmt.Sprintf("%d of %d", i, round) || len(it.Payload) != 800 {
						t.Errorf("compression %q, round %d: item %d came with %+v", algorithm, round, i, it.Hop)
					}
					g.Recycle(it)
				}
			}
		})
	}
}

func wantHop(t *testing.T, h *Hop, note string, spans ...time.Duration) {
	t.Helper()
	if h == nil || string(h.Note) != note {
		t.Fatalf("got %+v, want note %q", h, note)
	}
	at := []time.Time{h.Put, h.Credited, h.Written, h.Received, h.Taken}
	for i, want := range spans {
		if got := at[i+1].Sub(at[i]); got != want {
			t.Errorf("%s: span %d took %v, want %v", note, i, got, want)
		}
	}
}

// TestHopHeldAndCredit blocks a channel for an alignment, from another process and within one: how long it was blocked is told apart from the wait
// before and after. Segments bring the credit that was left and what was behind them.
func TestHopHeldAndCredit(t *testing.T) {
	for name, local := range map[string]bool{"remote": false, "local": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := simulated(t, testnet.New(), func(c *Config) { c.ExclusivePerChannel, c.MaxPerChannel = 2, 2 })
				if local {
					b = a
				}
				p := mustPartition(t, a, "p", 1)
				for range 4 { // before there is a consumer: those behind are known when one leaves
					seg, err := p.Get(t.Context(), 0)
					if err != nil {
						t.Fatal(err)
					}
					if err := p.PutNoted(0, seg, 4, []byte("n")); err != nil {
						t.Fatal(err)
					}
				}
				g, _ := open(t, b, "p", a.Addr(), 0)
				synctest.Wait()
				var got []Hop
				for i := range 4 {
					time.Sleep(time.Second)
					if i == 1 {
						g.Block(0)
						time.Sleep(5 * time.Second)
						if _, ok, err := g.Next(); ok || err != nil {
							t.Fatalf("a blocked channel gives something: %v, %v", ok, err)
						}
						g.Resume(0)
						time.Sleep(2 * time.Second)
					}
					synctest.Wait()
					it, ok, err := g.Next()
					if err != nil || !ok || it.Hop == nil {
						t.Fatalf("item %d: %+v, %v, %v", i, it, ok, err)
					}
					got = append(got, *it.Hop)
					g.Recycle(it)
					synctest.Wait()
				}
				held := []time.Duration{0, 5 * time.Second, 5 * time.Second, 0} // there is credit for the last when all is over
				if local {
					held[3] = 5 * time.Second
				}
				for i, h := range got {
					want := held[i]
					if h.Held != want || h.Held > h.Taken.Sub(h.Received) || h.Backlog != 3-i {
						t.Errorf("segment %d was held for %v of %v, with %d behind it; want %v and %d", i, h.Held, h.Taken.Sub(h.Received), h.Backlog, want, 3-i)
					}
					if want := []int{1, 0, 0, 0}[i]; !local && h.Credit != want || local && h.Credit != 0 {
						t.Errorf("segment %d left a credit of %d, want %d", i, h.Credit, want)
					}
				}
			})
		})
	}
}

// TestNoteWithinProcess takes a segment that goes no further.
func TestNoteWithinProcess(t *testing.T) {
	a := start(t, nil)
	p := mustPartition(t, a, "p", 1)
	g, w := open(t, a, "p", a.Addr(), 0)
	seg, err := p.Get(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.PutNoted(0, seg, copy(seg.Bytes(), "data"), []byte("here")); err != nil {
		t.Fatal(err)
	}
	it, err := next(g, w)
	if err != nil || it.Hop == nil || !it.Hop.Local || string(it.Hop.Note) != "here" || it.Hop.Taken.Before(it.Hop.Put) {
		t.Fatalf("got %+v, %v", it.Hop, err)
	}
	g.Recycle(it)
	if seg, err = p.Get(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := p.PutNoted(0, seg, 4, []byte(strings.Repeat("x", MaxNote+1))); err == nil {
		t.Error("a note that is too long was accepted")
	}
	if n := a.Stats().SegmentsUsed; n != 0 {
		t.Errorf("%d segments in use", n)
	}
}

// TestTraceFrames talks to a producer and to a consumer by frames.
func TestTraceFrames(t *testing.T) {
	_, tk := talkWith(t, true, wire.Traces, nil)
	h, b := tk.want("a new connection asks for the clock", wire.Keepalive)
	q, err := wire.ParseClock(b)
	if err != nil || q.Answer || h.Channel != 0 {
		t.Fatalf("got %+v, %v, want a question", q, err)
	}
	tk.send(wire.AppendClock(nil, wire.Clock{Asked: 77}))
	_, b = tk.want("the answer", wire.Keepalive)
	if q, err = wire.ParseClock(b); err != nil || !q.Answer || q.Asked != 77 || q.Heard > q.Answered {
		t.Fatalf("got %+v, %v, want an answer to 77", q, err)
	}
}

// TestTraceWithoutItsData sends trace frames that nothing belongs to.
func TestTraceWithoutItsData(t *testing.T) {
	s, tk := talk(t, true, nil)
	g, w := gate(t, s, "a")
	a := tk.request("a", 2)
	trace := func(ch, seq uint32) []byte { return wire.AppendTrace(nil, ch, seq, wire.Traced{Note: []byte("n")}) }
	tk.send(trace(a, 5), data(a, 0, "other number"), trace(a+7, 1), data(a, 1, "other channel"))
	for _, want := range []string{"other number", "other channel"} {
		it := wantItem(t, g, w, 0, want)
		if it.Hop != nil {
			t.Errorf("%s: got %+v", want, it.Hop)
		}
		g.Recycle(it)
	}
	tk.want("credit", wire.Credit)
	tk.send(trace(a, 2), frame(wire.Header{Type: wire.Event, Channel: a, Seq: 2}, "between"), data(a, 3, "not directly"))
	wantItem(t, g, w, 0, "between")
	if it := wantItem(t, g, w, 0, "not directly"); it.Hop != nil {
		t.Errorf("not directly: got %+v", it.Hop)
	}
}

// TestTraceByAWrongClock sends times of a producer whose clock is ahead, behind or in disorder, before its offset is known: no phase takes less than nothing.
func TestTraceByAWrongClock(t *testing.T) {
	s, tk := talk(t, true, nil)
	g, w := gate(t, s, "a")
	a := tk.request("a", 2)
	now, hour := s.clock(), int64(time.Hour)
	for i, at := range []wire.Traced{
		{Put: now + hour, Credited: now + 2*hour, Written: now + 3*hour},
		{Put: now - 3*hour, Credited: now - 2*hour, Written: now - hour},
		{Put: now - hour, Credited: now - 2*hour, Written: now - 3*hour},
		{Put: now, Credited: now + hour, Written: now - hour},
	} {
		at.Note = []byte("n")
		tk.send(wire.AppendTrace(nil, a, uint32(i), at), data(a, uint32(i), "x"))
		it := wantItem(t, g, w, 0, "x")
		h := it.Hop
		if h == nil {
			t.Fatalf("times %d: there is no hop", i)
		}
		if h.Credited.Before(h.Put) || h.Written.Before(h.Credited) || h.Received.Before(h.Written) || h.Taken.Before(h.Received) {
			t.Errorf("times %d: the hop is %+v", i, h)
		}
		if want := time.Duration(at.Written - at.Credited); i == 0 && h.Written.Sub(h.Credited) != want {
			t.Errorf("times %d: the send queue took %v, want %v", i, h.Written.Sub(h.Credited), want)
		}
		g.Recycle(it)
	}
}

// TestClockEstimate keeps the sample with the least error, which grows.
func TestClockEstimate(t *testing.T) {
	var e clockEstimate
	if got := e.offset(5); got != (Offset{}) {
		t.Errorf("without a sample: %+v", got)
	}
	const ms = int64(time.Millisecond)
	at := func(now, ahead, there, back int64) { // a question sent so that its answer comes at now
		asked := now - there - back - 1
		heard := asked + there - ahead
		e.sample(asked, heard, heard+1, now)
	}
	want := func(now int64, ahead, within time.Duration) {
		t.Helper()
		got := e.offset(now)
		if d := got.Ahead - ahead; d < -2 || d > 2 || got.Within < within || got.Within > within+2*time.Microsecond {
			t.Errorf("at %d: %+v, want %v within %v", now, got, ahead, within)
		}
	}
	at(1000*ms, -7*ms, 4*ms, 4*ms)
	want(1000*ms, -7*time.Millisecond, 4*time.Millisecond)
	at(1010*ms, -7*ms, 1*ms, 19*ms) // worse: not taken
	want(1010*ms, -7*time.Millisecond, 4*time.Millisecond+time.Microsecond)
	at(1020*ms, -7*ms, 2*ms, 0) // one-sided: wrong by half of the way
	want(1020*ms, -8*time.Millisecond, time.Millisecond)
	at(101020*ms, -6*ms, 6*ms, 6*ms) // 100 s later the old one may be 11 ms wrong
	want(101020*ms, -6*time.Millisecond, 6*time.Millisecond)
	for _, bad := range [][4]int64{{5, 5, 4, 6}, {5, 5, 5, 4}, {5, 0, 9, 6}} {
		n := e.samples
		if e.sample(bad[0], bad[1], bad[2], bad[3]); e.samples != n {
			t.Errorf("%v was taken for an answer", bad)
		}
	}
}

// TestClocksThatDiffer takes clocks for equal where the samples allow it, and else for as different as they say.
func TestClocksThatDiffer(t *testing.T) {
	const ms = time.Millisecond
	for _, x := range []struct{ ahead, within, want time.Duration }{
		{0, 0, 0}, {40 * ms, 50 * ms, 0}, {-50 * ms, 50 * ms, 0}, {-51 * ms, 50 * ms, -51 * ms}, {time.Hour, ms, time.Hour},
	} {
		if got := (Offset{Ahead: x.ahead, Within: x.within, Samples: 1}).likely(); got != x.want {
			t.Errorf("%v within %v is taken for %v, want %v", x.ahead, x.within, got, x.want)
		}
	}
}
