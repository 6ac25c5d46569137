package netstack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
)

// cases are ways in which exchanges of other engines have failed, and the tests that hold ours against each. The ids are those of the project's
// collection of cases, which names where each was reported.
var cases = []struct{ id, failure, tests string }{
	{"X-02", "a failed dial hangs its waiters, or is remembered", "TestRefusedDialFailsAllAndIsForgotten"},
	{"X-03", "counting a connection's users races with its reuse and its end", "TestConnectionRaces TestIdleConnectionIsClosedAndDialedAgain TestClosingConnectionTakesNobody TestMachine"},
	{"X-04", "one channel's fault poisons the shared connection", "TestBreachLeavesOthersAlone TestBadCompression TestProducerFailureCarriesCause"},
	{"X-06", "a consumer is never woken after it found nothing", "TestWokenAfterNothing TestMachine"},
	{"X-08", "locks are taken in two orders, or callbacks run under one", "TestCancelCycles TestManyChannels TestCallbacksHoldNoLock"},
	{"X-09", "pools starve each other at the start", "TestMemoryIsExact TestExactMinimumRuns TestFairness"},
	{"X-10", "segments, descriptors or goroutines leak on cancel", "TestCancelCycles TestCancelGivesBack TestMachine TestTwoHundredAgents"},
	{"X-11", "a pool that was drained stays unavailable", "TestLastSegmentComesBack TestCreditCorners"},
	{"X-13", "connections only grow", "TestPeersComeAndGo TestIdleConnectionIsClosedAndDialedAgain TestTwoHundredAgents"},
	{"X-14", "the wrong end is blamed", "TestBlame TestProducerFailureCarriesCause TestLostConnectionReachesEveryChannel TestStackClose"},
	{"X-16", "not yet there, gone and dead producers look alike", "TestConsumerFirst TestPartitionNotFoundInTime TestPartitionNotFoundAndGone TestBlame"},
	{"X-17", "a hot key takes all segments, and barriers wait behind it", "TestHotSubpartition TestSubpartitionCap TestSlowChannel TestBarrierPassesAHotKey"},
	{"X-18", "handshakes time out under load", "TestHandshakesOnOneCPU TestHandshakesWaitTheirTurn"},
	{"X-19", "a taken port is not seen, a range not walked", "TestListen TestIPv6AndRanges"},
	{"X-21", "events before a consumer is there are lost, what is queued at the close is dropped", "TestEventBeforeConsumer TestCloseFlushes"},
}

func TestCasesHaveTests(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(b)
	}
	for _, c := range cases {
		for name := range strings.FieldsSeq(c.tests) {
			if !strings.Contains(source.String(), "\nfunc "+name+"(t *testing.T)") {
				t.Errorf("%s, %s: there is no %s", c.id, c.failure, name)
			}
		}
	}
}

func TestWokenAfterNothing(t *testing.T) {
	for _, local := range []bool{false, true} {
		a := start(t, nil)
		b := a
		if !local {
			b = start(t, nil)
		}
		p := mustPartition(t, a, "p", 1)
		g, w := open(t, b, "p", a.Addr(), 0)
		for n := range 20 { // one, nothing, one, nothing …
			if it, ok, err := g.Next(); ok || err != nil {
				t.Fatalf("got %+v, %v before anything was sent", it, err)
			}
			if n%2 == 0 {
				seg, err := p.Get(t.Context(), 0)
				if err != nil {
					t.Fatal(err)
				}
				p.Put(0, seg, 8)
			} else {
				p.Event(0, []byte("e"), EventOptions{})
			}
			it, err := next(g, w)
			if err != nil {
				t.Fatalf("item %d: %v", n, err)
			}
			g.Recycle(it)
		}
	}
}

// TestCallbacksHoldNoLock calls back into the partition and the gate from Wake, where a lock held would be one taken twice.
func TestCallbacksHoldNoLock(t *testing.T) {
	for _, local := range []bool{false, true} {
		a := start(t, nil)
		b := a
		if !local {
			b = start(t, nil)
		}
		var mu sync.Mutex
		var p *Partition
		pw, gw := newWaker(), newWaker()
		var g *Gate
		p, err := a.NewPartition(PartitionConfig{ID: "p", Subpartitions: 1, Wake: func() {
			mu.Lock()
			defer mu.Unlock()
			if p != nil {
				p.Queued()
				p.Err()
				a.Stats()
			}
			pw.wake()
		}})
		if err != nil {
			t.Fatal(err)
		}
		gate, err := b.NewGate(GateConfig{Channels: []ChannelConfig{{Partition: "p", Addr: a.Addr()}}, Wake: func() {
			mu.Lock()
			defer mu.Unlock()
			if g != nil {
				g.Queued()
				b.Stats()
			}
			gw.wake()
		}})
		if err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		g = gate
		mu.Unlock()
		done := make(chan error, 1)
		go func() { done <- produce(t.Context(), p, 1, 200) }()
		if err := consume(gate, gw, []int{0}, 200); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		gate.Close()
		p.Release()
	}
}

// TestExactMinimumRuns gives two agents exactly the memory that they say they need: a shuffle each way starts and ends. One segment less
// fails at once.
func TestExactMinimumRuns(t *testing.T) {
	const subs = 4
	for _, total := range []int{subs + 1 + 2*subs, subs + 2*subs} {
		edit := func(c *Config) { c.MemorySegments = total }
		a, b := start(t, edit), start(t, edit)
		var wg sync.WaitGroup
		failed := 0
		for i, s := range []*Stack{a, b} {
			id := fmt.Sprint("p", i)
			p, err := s.NewPartition(PartitionConfig{ID: id, Subpartitions: subs})
			if err != nil {
				t.Fatal(err)
			}
			w := newWaker()
			cfg := GateConfig{Wake: w.wake}
			var ids []int
			for sub := range subs {
				ids = append(ids, sub)
				cfg.Channels = append(cfg.Channels, ChannelConfig{Partition: fmt.Sprint("p", 1-i), Subpartition: sub, Addr: []*Stack{b, a}[i].Addr()})
			}
			g, err := s.NewGate(cfg)
			if err != nil {
				failed++
				if !strings.Contains(err.Error(), "raise exchange.memory") {
					t.Errorf("got %v", err)
				}
				p.Release()
				continue
			}
			wg.Go(func() {
				if err := produce(t.Context(), p, subs, 50); err != nil {
					t.Error(err)
				}
				p.Release()
			})
			wg.Go(func() {
				if err := consume(g, w, ids, 50); err != nil {
					t.Error(err)
				}
				g.Close()
			})
		}
		wg.Wait()
		if want := 0; total < subs+1+2*subs {
			want = 2
			if failed != want {
				t.Errorf("%d of 2 started with too little", 2-failed)
			}
		} else if failed != want {
			t.Errorf("%d did not start with enough", failed)
		}
	}
}

// TestLastSegmentComesBack drains a partition and has its last segment come back from another goroutine.
func TestLastSegmentComesBack(t *testing.T) {
	a := start(t, func(c *Config) { c.MaxPerSubpartition = 1 })
	w := newWaker()
	p, err := a.NewPartition(PartitionConfig{ID: "p", Subpartitions: 1, Wake: w.wake})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	g, gw := open(t, a, "p", a.Addr(), 0)
	items := make(chan Item)
	go func() {
		for it := range items {
			g.Recycle(it)
		}
	}()
	defer close(items)
	for range 500 {
		seg := p.TryGet(0)
		for seg == nil {
			<-w
			seg = p.TryGet(0)
		}
		p.Put(0, seg, 8)
		it, err := next(g, gw)
		if err != nil {
			t.Fatal(err)
		}
		items <- it
	}
}

// TestPeersComeAndGo has 200 agents that exchange once and leave: what they leave at the one that stays is nothing.
func TestPeersComeAndGo(t *testing.T) {
	hub := start(t, nil)
	files := descriptors()
	for i := range 200 {
		s, err := New(Config{Auth: Auth{Key: testKey}, SegmentBytes: 4096})
		if err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprint("p", i)
		p := mustPartition(t, s, id, 1)
		p.Event(0, []byte("hello"), EventOptions{})
		g, w := open(t, hub, id, s.Addr(), 0)
		if it, err := next(g, w); err != nil || string(it.Event) != "hello" {
			t.Fatalf("got %q, %v", it.Event, err)
		}
		g.Close()
		s.Close()
	}
	eventually(t, "connections and dials are forgotten", func() bool {
		hub.dials.mu.Lock()
		defer hub.dials.mu.Unlock()
		return hub.Stats().Connections == 0 && len(hub.dials.entries) == 0 && descriptors() <= files
	})
}

// TestBlame holds who is blamed for what.
func TestBlame(t *testing.T) {
	quick := func(c *Config) { c.ConnectRetries, c.PartitionRequestTimeout = -1, 200*time.Millisecond }
	t.Run("reset", func(t *testing.T) {
		a, b := start(t, quick), start(t, quick)
		p := mustPartition(t, a, "p", 1)
		g, w := open(t, b, "p", a.Addr(), 0)
		eventually(t, "connected", func() bool { return a.Stats().Channels == 1 })
		a.mu.Lock()
		nc := a.connsLocked()[0].nc.(*net.TCPConn)
		a.mu.Unlock()
		nc.SetLinger(0)
		nc.Close()
		_, err := next(g, w)
		wantRemote(t, "the consumer", err, cluster.Lost)
		eventually(t, "the producer knows", func() bool { return p.Err() != nil })
		wantRemote(t, "the producer", p.Err(), cluster.Lost)
	})
	t.Run("own close", func(t *testing.T) {
		a, b := start(t, quick), start(t, quick)
		mustPartition(t, a, "p", 1)
		g, w := open(t, b, "p", a.Addr(), 0)
		eventually(t, "connected", func() bool { return a.Stats().Channels == 1 })
		b.Close()
		_, err := next(g, w)
		if e, ok := errors.AsType[*LocalError](err); !ok || !errors.Is(err, ErrClosed) || e.Kind != cluster.Cancelled {
			t.Errorf("got %v", err)
		}
	})
	t.Run("dead producer is not a missing partition", func(t *testing.T) {
		a, b := start(t, quick), start(t, quick)
		addr := a.Addr()
		a.Close()
		g, w := open(t, b, "p", addr, 0)
		_, err := next(g, w)
		if wantRemote(t, "nobody listens", err, cluster.Unavailable); errors.Is(err, ErrPartitionNotFound) {
			t.Errorf("got %v", err)
		}
	})
}

// TestBarrierPassesAHotKey fills one of 100 subpartitions whose consumer is stuck: the others' data and barriers pass, and so does
// its own priority event.
func TestBarrierPassesAHotKey(t *testing.T) {
	const subs = 100
	edit := func(c *Config) { c.MemorySegments = 4096 }
	a, b := start(t, edit), start(t, edit)
	p := mustPartition(t, a, "p", subs)
	ids := make([]int, subs)
	for i := range ids {
		ids[i] = i
	}
	hot, wh := open(t, b, "p", a.Addr(), 0)
	rest, wr := open(t, b, "p", a.Addr(), ids[1:]...)
	eventually(t, "attached", func() bool { return a.Stats().Channels == subs })
	eventually(t, "the hot one is full at both ends", func() bool {
		seg := p.TryGet(0)
		if seg != nil {
			p.Put(0, seg, 100)
		}
		return seg == nil && hot.Queued() > 0
	})
	within, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for sub := range subs {
		if sub > 0 {
			seg, err := p.Get(within, sub)
			if err != nil {
				t.Fatalf("no segment for subpartition %d: %v", sub, err)
			}
			p.Put(sub, seg, 100)
		}
		if err := p.Event(sub, []byte("barrier"), EventOptions{Priority: sub == 0}); err != nil {
			t.Fatal(err)
		}
	}
	for n := 0; n < 2*(subs-1); n++ {
		it, err := next(rest, wr)
		if err != nil {
			t.Fatal(err)
		}
		rest.Recycle(it)
	}
	eventually(t, "the hot one's barrier is first", func() bool {
		hot.mu.Lock()
		defer hot.mu.Unlock()
		q := &hot.channels[0].queue
		return q.len() > 0 && q.at(0).seg == nil
	})
	if it, err := next(hot, wh); err != nil || string(it.Event) != "barrier" {
		t.Errorf("got %+v, %v, want the barrier before the data", it, err)
	}
}

// TestEventBeforeConsumer queues events and data before anybody has asked for them.
func TestEventBeforeConsumer(t *testing.T) {
	for _, local := range []bool{false, true} {
		a := start(t, nil)
		b := a
		if !local {
			b = start(t, nil)
		}
		p := mustPartition(t, a, "p", 1)
		for i := range 5 {
			if err := p.Event(0, []byte{byte(i)}, EventOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		g, w := open(t, b, "p", a.Addr(), 0)
		for i := range 5 {
			if it, err := next(g, w); err != nil || len(it.Event) != 1 || it.Event[0] != byte(i) {
				t.Fatalf("got %v, %v, want event %d", it.Event, err, i)
			}
		}
	}
}

// TestClosingConnectionTakesNobody has a channel come to a connection that is about to close and still known: it gets another one.
func TestClosingConnectionTakesNobody(t *testing.T) {
	a, b := start(t, nil), start(t, nil)
	mustPartition(t, a, "p", 1)
	open(t, b, "p", a.Addr(), 0)
	eventually(t, "connected", func() bool { return a.Stats().Channels == 1 })
	b.mu.Lock()
	old := b.connsLocked()[0]
	b.mu.Unlock()
	old.mu.Lock()
	old.closing = true // its write loop, which would make it forgotten, sleeps
	old.mu.Unlock()
	q := mustPartition(t, a, "q", 1)
	done := make(chan error, 1)
	go func() { done <- produce(t.Context(), q, 1, 5) }()
	g, w := open(t, b, "q", a.Addr(), 0)
	if err := consume(g, w, []int{0}, 5); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	old.wakeWriter()
	eventually(t, "the old one is closed", func() bool { return b.Stats().Connections == 1 })
}

// TestCancelGivesBack has one of two consumers leave, within the process or not, while much waits for it: all of it comes back at once, though the producer
// goes on.
func TestCancelGivesBack(t *testing.T) {
	for _, local := range []bool{false, true} {
		a := start(t, nil)
		b := a
		if !local {
			b = start(t, nil)
		}
		p := mustPartition(t, a, "p", 2)
		g, _ := open(t, b, "p", a.Addr(), 0)
		stay, w := open(t, b, "p", a.Addr(), 1)
		eventually(t, "attached", func() bool { p.mu.Lock(); defer p.mu.Unlock(); return p.subs[0].view != nil && p.subs[1].view != nil })
		eventually(t, "the first consumer is far behind", func() bool {
			seg := p.TryGet(0)
			if seg != nil {
				p.Put(0, seg, 8)
			}
			return seg == nil && (local || g.Queued() > 0)
		})
		g.Close()
		eventually(t, "nothing waits for the one that left", func() bool {
			return p.Queued() == 0 && a.Stats().SegmentsUsed+b.Stats().SegmentsUsed == 0
		})
		seg, err := p.Get(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		p.Put(1, seg, 8)
		it, err := next(stay, w)
		if err != nil {
			t.Fatal(err)
		}
		stay.Recycle(it)
		p.Release()
		stay.Close()
	}
}
