package netstack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/testnet"
	"github.com/heddle-stream/heddle/netstack/bufpool"
)

func mustPartition(t testing.TB, s *Stack, id string, subs int) *Partition {
	t.Helper()
	p, err := s.NewPartition(PartitionConfig{ID: id, Subpartitions: subs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Release)
	return p
}

// open opens a gate at s of one channel for each of the subpartitions of p at addr.
func open(t testing.TB, s *Stack, p, addr string, subs ...int) (*Gate, waker) {
	t.Helper()
	w := newWaker()
	cfg := GateConfig{Name: "test", Wake: w.wake}
	for _, sub := range subs {
		cfg.Channels = append(cfg.Channels, ChannelConfig{Partition: p, Subpartition: sub, Addr: addr, ConnIndex: uint32(sub)})
	}
	g, err := s.NewGate(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return g, w
}

func wantRemote(t testing.TB, what string, err error, kind cluster.ErrorKind) *RemoteError {
	t.Helper()
	e, ok := errors.AsType[*RemoteError](err)
	if !ok || e.Kind != kind {
		t.Fatalf("%s: got %v, want a RemoteError of kind %v", what, err, kind)
	}
	return e
}

// eventually waits for ok; the stack works in the background.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still not: %s", what)
		}
	}
}

func TestProducerFailureCarriesCause(t *testing.T) {
	for _, local := range []bool{false, true} {
		a := start(t, func(c *Config) { c.Identity = "agent-a" })
		b := a
		if !local {
			b = start(t, nil)
		}
		p := mustPartition(t, a, "p", 2)
		g, w := open(t, b, "p", a.Addr(), 0)
		other, wo := open(t, b, "p", a.Addr(), 1)
		cause := &LocalError{Op: "run map", Kind: cluster.Invalid, Err: errors.New("division by zero in record 7")}
		seg, err := p.Get(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		p.Put(1, seg, 8)
		it, err := next(other, wo)
		if err != nil {
			t.Fatal(err)
		}
		p.Fail(cause)
		_, err = next(g, w)
		if e := wantRemote(t, "producer failed", err, cluster.Invalid); !strings.Contains(e.Error(), "division by zero in record 7") || !strings.Contains(e.Peer, "agent-a") {
			t.Errorf("got %v", e)
		}
		other.Recycle(it)
		if _, err := p.Get(t.Context(), 0); !errors.Is(err, cause) {
			t.Errorf("producer goes on after it failed: %v", err)
		}
		p.Release()
		late, wl := open(t, b, "p", a.Addr(), 0)
		_, err = next(late, wl)
		wantRemote(t, "request after the failure", err, cluster.Invalid)
	}
}

func TestConsumerFirst(t *testing.T) {
	for _, local := range []bool{false, true} {
		a := start(t, nil)
		b := a
		if !local {
			b = start(t, nil)
		}
		g, w := open(t, b, "p", a.Addr(), 0)
		eventually(t, "request waits", func() bool { return a.Stats().Waiting == 1 })
		p := mustPartition(t, a, "p", 1)
		done := make(chan error, 1)
		go func() { done <- produce(t.Context(), p, 1, 30) }()
		if err := consume(g, w, []int{0}, 30); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

func TestPartitionNotFoundAndGone(t *testing.T) {
	for _, local := range []bool{false, true} {
		a := start(t, func(c *Config) { c.PartitionRequestTimeout = 50 * time.Millisecond })
		b := a
		if !local {
			b = start(t, nil)
		}
		g, w := open(t, b, "never", a.Addr(), 0)
		_, err := next(g, w)
		wantRemote(t, "partition that never comes", err, cluster.NotFound)
		if !errors.Is(err, ErrPartitionNotFound) || errors.Is(err, ErrPartitionGone) {
			t.Errorf("got %v, want not found", err)
		}
		p := mustPartition(t, a, "was", 1)
		p.Release()
		g, w = open(t, b, "was", a.Addr(), 0)
		if _, err = next(g, w); !errors.Is(err, ErrPartitionGone) || errors.Is(err, ErrPartitionNotFound) {
			t.Errorf("got %v, want gone", err)
		}
		if st := a.Stats(); st.Waiting != 0 {
			t.Errorf("%d requests wait for ever", st.Waiting)
		}
	}
}

func TestPartitionNotFoundInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := testnet.New()
		a, b := simulated(t, n, nil)
		began := time.Now()
		g, w := open(t, b, "never", a.Addr(), 0)
		_, err := next(g, w)
		if took := time.Since(began); !errors.Is(err, ErrPartitionNotFound) || took < 10*time.Second || took > 13*time.Second {
			t.Errorf("got %v after %v, want not found after about 10s", err, took)
		}
	})
}

// simulated returns two stacks on n that are closed at the end of the bubble.
func simulated(t *testing.T, n *testnet.Network, edit func(*Config)) (a, b *Stack) {
	var stacks []*Stack
	for _, name := range []string{"a", "b"} {
		cfg := Config{Auth: Auth{Key: testKey}, Listener: n.Listen(name), Dial: n.Dial, Identity: name, SegmentBytes: 4096}
		if edit != nil {
			edit(&cfg)
		}
		s, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		stacks = append(stacks, s)
	}
	return stacks[0], stacks[1]
}

// TestBlackHole loses everything silently: both ends must find out within the bound, idle or not.
func TestBlackHole(t *testing.T) {
	for _, busy := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			n := testnet.New()
			a, b := simulated(t, n, nil)
			p := mustPartition(t, a, "p", 1)
			g, w := open(t, b, "p", a.Addr(), 0)
			synctest.Wait()
			time.Sleep(10 * time.Minute) // keepalives carry an idle connection
			if _, _, err := g.Next(); err != nil {
				t.Fatalf("idle connection failed: %v", err)
			}
			n.BlackHole()
			began := time.Now()
			lost := make(chan error, 1)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				for busy {
					seg, err := p.Get(ctx, 0)
					if err != nil {
						lost <- err
						return
					}
					p.Put(0, seg, 100)
				}
				lost <- p.Finish(ctx)
			}()
			_, err := nextWithin(g, w, time.Hour)
			wantRemote(t, "consumer", err, cluster.Lost)
			wantRemote(t, "producer", <-lost, cluster.Lost)
			if took := time.Since(began); took > 40*time.Second {
				t.Errorf("busy=%v: found out after %v", busy, took)
			}
		})
	}
}

// TestKeepalivesAlone leaves a connection idle for long between agents of which one, as of an older version, has no questions about clocks, which
// would keep it alive too: keepalives do, both ways.
func TestKeepalivesAlone(t *testing.T) {
	for _, old := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			n := testnet.New()
			a, b := simulated(t, n, nil)
			[]*Stack{a, b}[old].features = 0
			p := mustPartition(t, a, "p", 1)
			g, w := open(t, b, "p", a.Addr(), 0)
			synctest.Wait()
			time.Sleep(10 * time.Minute)
			if _, _, err := g.Next(); err != nil || p.Err() != nil {
				t.Fatalf("idle connection failed: %v, %v", err, p.Err())
			}
			p.Event(0, []byte("still here"), EventOptions{})
			if it, err := next(g, w); err != nil || string(it.Event) != "still here" {
				t.Errorf("got %q, %v", it.Event, err)
			}
			if d := n.Dials(); d != 1 {
				t.Errorf("%d dials, want 1", d)
			}
		})
	}
}

func TestIdleConnectionIsClosedAndDialedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := testnet.New()
		a, b := simulated(t, n, nil)
		p := mustPartition(t, a, "p", 2)
		for sub := range 2 {
			g, _ := open(t, b, "p", a.Addr(), sub)
			synctest.Wait()
			if got := n.Dials(); got != sub+1 {
				t.Fatalf("%d dials, want %d", got, sub+1)
			}
			time.Sleep(5 * time.Minute)
			if b.Stats().Connections != 1 {
				t.Fatal("a connection in use was closed")
			}
			g.Close()
			time.Sleep(2 * time.Minute)
			if a.Stats().Connections != 0 || b.Stats().Connections != 0 || n.Open() != 0 {
				t.Fatalf("an idle connection stays open: %+v", b.Stats())
			}
		}
		if err := p.Err(); err != nil {
			t.Errorf("an orderly close failed the producer: %v", err)
		}
	})
}

func TestLostConnectionReachesEveryChannel(t *testing.T) {
	n := testnet.New()
	a, b := simulated(t, n, nil)
	const gates = 20
	p := mustPartition(t, a, "p", gates)
	var gs []*Gate
	var ws []waker
	for sub := range gates {
		g, w := open(t, b, "p", a.Addr(), sub)
		gs, ws = append(gs, g), append(ws, w)
	}
	eventually(t, "all attached", func() bool { return a.Stats().Channels == gates })
	if b.Stats().Connections != 1 {
		t.Errorf("%d connections, want all on one", b.Stats().Connections)
	}
	n.Cut()
	for i, g := range gs {
		_, err := next(g, ws[i])
		wantRemote(t, "consumer", err, cluster.Lost)
	}
	_, err := p.Get(t.Context(), 0)
	for err == nil {
		_, err = p.Get(t.Context(), 0)
	}
	wantRemote(t, "producer", err, cluster.Lost)
	// Nothing is remembered: the next channel dials anew.
	mustPartition(t, a, "q", 1)
	g, _ := open(t, b, "q", a.Addr(), 0)
	eventually(t, "dialed again", func() bool { return a.Stats().Channels == 1 })
	g.Close()
}

// TestLostAfterTheEnd cuts the connection when all has come and not all was taken: the consumer takes the rest; the producer, who does not know, is told.
func TestLostAfterTheEnd(t *testing.T) {
	n := testnet.New()
	a, b := simulated(t, n, nil)
	p := mustPartition(t, a, "p", 1)
	g, w := open(t, b, "p", a.Addr(), 0)
	done := make(chan error, 1)
	go func() { done <- produce(t.Context(), p, 1, 4) }()
	eventually(t, "all is at the consumer", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.channels[0].whole
	})
	n.Cut()
	wantRemote(t, "producer", <-done, cluster.Lost)
	eventually(t, "the consumer's end knows", func() bool { return b.Stats().Connections == 0 })
	if err := consume(g, w, []int{0}, 4); err != nil {
		t.Errorf("after the cut: %v", err)
	}
	g.Close()
	p.Release()
	eventually(t, "all is back", func() bool { return a.Stats().SegmentsUsed+b.Stats().SegmentsUsed == 0 })
}

func TestRefusedDialFailsAllAndIsForgotten(t *testing.T) {
	n := testnet.New()
	_, s := simulated(t, n, func(c *Config) { c.ConnectRetries = 1; c.ConnectBackoff = 50 * time.Millisecond })
	for round := range 2 {
		var wg sync.WaitGroup
		for range 50 {
			g, w := open(t, s, "p", "nowhere", 0)
			wg.Go(func() {
				_, err := next(g, w)
				if e, ok := errors.AsType[*RemoteError](err); !ok || e.Kind != cluster.Unavailable || !strings.Contains(e.Error(), "refused") {
					t.Errorf("got %v", err)
				}
			})
		}
		wg.Wait()
		if d := n.Dials(); d > 20*(round+1) { // 2 if the machine isn't so busy that the first fails before the last asks
			t.Errorf("%d dials for 50 channels to one peer, %d times", d, round+1)
		}
	}
	// Failure is not remembered: a listener that appears on the address is found at once.
	a, err := New(Config{Auth: Auth{Key: testKey}, SegmentBytes: 4096, Listener: n.Listen("nowhere"), Dial: n.Dial})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	mustPartition(t, a, "p", 1)
	open(t, s, "p", "nowhere", 0)
	eventually(t, "connected", func() bool { return a.Stats().Channels == 1 })
}

func TestMemoryIsExact(t *testing.T) {
	a := start(t, func(c *Config) { c.MemorySegments = 10 })
	_, err := a.NewPartition(PartitionConfig{ID: "p", Subpartitions: 10})
	if e, ok := errors.AsType[*bufpool.MemoryError](err); !ok || e.Need != 11 || !strings.Contains(err.Error(), "exchange.memory") {
		t.Errorf("got %v", err)
	}
	var channels []ChannelConfig
	for i := range 6 {
		channels = append(channels, ChannelConfig{Partition: fmt.Sprint(i), Addr: "127.0.0.1:1"})
	}
	_, err = a.NewGate(GateConfig{Name: "map (2/4)", Channels: channels})
	if e, ok := errors.AsType[*bufpool.MemoryError](err); !ok || e.Need != 12 || !strings.Contains(err.Error(), "gate map (2/4) of 6 channels") ||
		!strings.Contains(err.Error(), "12 segments of 4KiB, 10 of 10 are free; raise exchange.memory to at least 48KiB") {
		t.Errorf("got %v", err)
	}
	mustPartition(t, a, "p", 9)
}

// TestCreditCorners runs with as few segments as can be.
func TestCreditCorners(t *testing.T) {
	for _, c := range []struct{ exclusive, floating, cap int }{{-1, 1, 1}, {-1, 3, 0}, {1, -1, 1}, {2, -1, 0}, {-1, -1, 2}} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			edit := func(cfg *Config) {
				cfg.ExclusivePerChannel, cfg.FloatingPerGate, cfg.MaxPerSubpartition, cfg.MemorySegments = c.exclusive, c.floating, c.cap, 40
			}
			const subs, n = 10, 60
			a, b := start(t, edit), start(t, edit)
			p := mustPartition(t, a, "p", subs)
			done := make(chan error, 1)
			go func() { done <- produce(t.Context(), p, subs, n) }()
			var ids []int
			for sub := range subs {
				ids = append(ids, sub)
			}
			g, w := open(t, b, "p", a.Addr(), ids...)
			if err := consume(g, w, ids, n); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestHotSubpartition fills one subpartition whose consumer does nothing: the others still get segments.
func TestHotSubpartition(t *testing.T) {
	a := start(t, func(c *Config) { c.FloatingPerGate = 8; c.MaxPerSubpartition = 100 })
	woken := newWaker()
	p, err := a.NewPartition(PartitionConfig{ID: "p", Subpartitions: 100, Wake: woken.wake})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	n := 0
	for seg := p.TryGet(0); seg != nil; seg = p.TryGet(0) {
		p.Put(0, seg, 8)
		n++
	}
	if n != 1+8 {
		t.Errorf("the hot one got %d segments, want its own and all 8 floating ones", n)
	}
	for sub := 1; sub < 100; sub++ {
		seg := p.TryGet(sub)
		if seg == nil {
			t.Fatalf("subpartition %d gets no segment", sub)
		}
		p.Put(sub, seg, 0)
	}
	if p.TryGet(0) != nil {
		t.Fatal("got a segment over the limit")
	}
	g, w := open(t, a, "p", a.Addr(), 0)
	it, err := next(g, w)
	if err != nil {
		t.Fatal(err)
	}
	g.Recycle(it)
	<-woken
	if p.TryGet(0) == nil {
		t.Error("woken for nothing")
	}
}

func TestGetHonoursCancel(t *testing.T) {
	a := start(t, nil)
	p := mustPartition(t, a, "p", 1)
	ctx, cancel := context.WithCancel(t.Context())
	errs := make(chan error)
	go func() {
		for {
			if _, err := p.Get(ctx, 0); err != nil {
				errs <- err
				return
			}
		}
	}()
	cancel()
	err := <-errs
	if e, ok := errors.AsType[*LocalError](err); !ok || e.Kind != cluster.Cancelled || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestSlowChannel has one consumer that takes nothing: another on the same connection gets everything.
func TestSlowChannel(t *testing.T) {
	a, b := start(t, nil), start(t, nil)
	slow, fast := mustPartition(t, a, "slow", 1), mustPartition(t, a, "fast", 1)
	gs, _ := open(t, b, "slow", a.Addr(), 0)
	ctx, cancel := context.WithCancel(t.Context())
	stuck := make(chan error, 1)
	go func() { stuck <- produce(ctx, slow, 1, 1000) }()
	gf, wf := open(t, b, "fast", a.Addr(), 0)
	done := make(chan error, 1)
	go func() { done <- produce(t.Context(), fast, 1, 1000) }()
	if err := consume(gf, wf, []int{0}, 1000); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if q := gs.Queued(); q > 32 {
		t.Errorf("a consumer that takes nothing holds %d segments", q)
	}
	cancel()
	if err := <-stuck; err == nil {
		t.Error("the slow one was not held back")
	}
}

// TestDialsInTime has every attempt to connect hang: each ends by the timeout, the pauses between them grow, with jitter, and the error
// comes after the last.
func TestDialsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout, backoff = 2 * time.Second, 400 * time.Millisecond
		n := testnet.New()
		var began, ended []time.Time
		_, b := simulated(t, n, func(c *Config) {
			c.ConnectTimeout, c.ConnectRetries, c.ConnectBackoff = timeout, 3, backoff
			c.Dial = func(ctx context.Context, _ string) (net.Conn, error) {
				began = append(began, time.Now())
				<-ctx.Done()
				ended = append(ended, time.Now())
				return nil, ctx.Err()
			}
		})
		g, w := open(t, b, "p", "a", 0)
		_, err := next(g, w)
		if e := wantRemote(t, "hanging dials", err, cluster.Unavailable); !errors.Is(e, context.DeadlineExceeded) || !strings.Contains(e.Error(), "after 4 attempts") {
			t.Errorf("got %v", e)
		}
		if len(began) != 4 {
			t.Fatalf("%d attempts, want 4", len(began))
		}
		shares := map[float64]bool{}
		for i := range began {
			if took := ended[i].Sub(began[i]); took != timeout {
				t.Errorf("attempt %d took %v, want %v", i, took, timeout)
			}
			if i == 0 {
				continue
			}
			least := backoff << (i - 1) / 2
			pause := began[i].Sub(ended[i-1])
			if pause < least || pause > 3*least {
				t.Errorf("%v before attempt %d, want %v to %v", pause, i, least, 3*least)
			}
			shares[float64(pause)/float64(least)] = true
		}
		if len(shares) < 2 { // or else all agents that lost a peer come back at once
			t.Errorf("the pauses have no jitter: %v of the least", shares)
		}
	})
}

// TestDialsWithoutPause has none between attempts.
func TestDialsWithoutPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		n := 0
		_, b := simulated(t, testnet.New(), func(c *Config) {
			c.ConnectRetries, c.ConnectBackoff = 50, -1
			c.Dial = func(context.Context, string) (net.Conn, error) { n++; return nil, io.EOF }
		})
		g, w := open(t, b, "p", "a", 0)
		_, err := next(g, w)
		wantRemote(t, "refused dials", err, cluster.Unavailable)
		if took := time.Since(began); n != 51 || took != 0 {
			t.Errorf("%d attempts in %v, want 51 without a pause", n, took)
		}
	})
}

// TestSubpartitionCap: what one consumer may have ahead of it is bounded though there is more to lend.
func TestSubpartitionCap(t *testing.T) {
	a := start(t, func(c *Config) { c.FloatingPerGate, c.MaxPerSubpartition = 20, 3 })
	p := mustPartition(t, a, "p", 2)
	for sub := range 2 {
		n := 0
		for seg := p.TryGet(sub); seg != nil; seg = p.TryGet(sub) {
			p.Put(sub, seg, 8)
			n++
		}
		if n != 3 {
			t.Errorf("subpartition %d got %d segments, want 3", sub, n)
		}
	}
}
