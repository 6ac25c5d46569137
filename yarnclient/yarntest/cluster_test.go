package yarntest_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/hrpctest"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/yarnclient/amrm"
	"github.com/heddle-stream/heddle/yarnclient/book"
	"github.com/heddle-stream/heddle/yarnclient/nm"
	"github.com/heddle-stream/heddle/yarnclient/yarntest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var key = book.Key{Priority: 1, Request: 1}

// master is a simple one: it keeps what it was given and starts it if told to.
type master struct {
	t     *testing.T
	c     *yarntest.Cluster
	s     *amrm.Session
	nm    *nm.Client
	kept  []book.Grant
	start bool
	wg    sync.WaitGroup

	// Guarded by mu.
	mu       sync.Mutex
	granted  []book.Grant
	done     []book.Done
	surplus  int
	outcomes []book.Outcome
	failures []error
	rejected []book.Key
}

func (m *master) heard(o book.Outcome) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.granted = append(m.granted, o.Granted...)
	m.done = append(m.done, o.Completed...)
	m.surplus += len(o.Surplus)
	m.outcomes = append(m.outcomes, o)
	if !m.start {
		return
	}
	for _, g := range o.Granted {
		m.wg.Go(func() {
			err := m.nm.Start(context.Background(), nm.Launch{Container: g.Container, Node: g.Node, Token: g.Token, Command: "run"})
			if err != nil {
				m.mu.Lock()
				m.failures = append(m.failures, err)
				m.mu.Unlock()
			}
		})
	}
}

func (m *master) want(n int) { m.s.Want(book.Ask{Key: key, Count: n, MemoryMB: 64, VCores: 1}) }

func (m *master) counts() (granted, done, surplus int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.granted), len(m.done), m.surplus
}

// with runs a test of a registered master in a bubble, and cleans up.
func with(t *testing.T, opt yarntest.Options, start bool, f func(t *testing.T, c *yarntest.Cluster, m *master)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := yarntest.New(opt)
		m := register(t, c, start, 0)
		f(t, c, m)
		m.close()
		c.Close()
	})
}

func register(t *testing.T, c *yarntest.Cluster, start bool, expiry time.Duration) *master {
	t.Helper()
	m := &master{t: t, c: c, start: start}
	// The client of the NodeManagers is there before the first grant.
	m.nm = nm.New(nm.Config{Dial: c.Dial, Token: func(n string) (token.Token, bool) { return m.s.NMToken(n) }})
	var err error
	var reg amrm.Registration
	ready := make(chan struct{})
	m.s, reg, err = amrm.Register(t.Context(), amrm.Config{Addrs: c.Addrs(), Token: c.Token(), Host: "am", Port: -1, Dial: c.Dial, Expiry: expiry,
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)), Heard: func(o book.Outcome) { <-ready; m.heard(o) },
		Rejected: func(k book.Key, _ error) { m.mu.Lock(); defer m.mu.Unlock(); m.rejected = append(m.rejected, k) }})
	if err != nil {
		t.Fatal(err)
	}
	m.kept = reg.Kept
	close(ready)
	return m
}

func (m *master) close() {
	m.s.Close()
	m.nm.Close()
	m.wg.Wait()
}

// TestSurplusStaysSmall grants a thousand containers over many beats while starting them is slow (FLINK-12342): what is too much stays below a
// heartbeat's worth and goes back.
func TestSurplusStaysSmall(t *testing.T) {
	with(t, yarntest.Options{PerBeat: 100, Nodes: 20}, true, func(t *testing.T, c *yarntest.Cluster, m *master) {
		for range 200 {
			c.Script("startContainers", yarntest.Slow(5*time.Second))
		}
		// The want grows while grants come, as an application's that starts.
		for n := 100; n <= 1000; n += 100 {
			g, _, _ := m.counts()
			m.want(n - g)
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(2 * time.Minute)
		g, _, surplus := m.counts()
		f := c.Figures()
		if g != 1000 || surplus > 100 || f.Held != 1000 || f.Open != 0 || len(f.Released) != surplus {
			t.Errorf("granted %d, surplus %d, released %d, held %d, open %d", g, surplus, len(f.Released), f.Held, f.Open)
		}
		if n := len(c.Running()); n != 1000 {
			t.Errorf("%d containers run", n)
		}
		t.Logf("surplus %d of 1000, after %d beats", surplus, len(f.Beats))
	})
}

// TestReleasesExtra is given three more than it asked for (FLINK-8613).
func TestReleasesExtra(t *testing.T) {
	with(t, yarntest.Options{}, false, func(t *testing.T, c *yarntest.Cluster, m *master) {
		c.Surplus(3)
		m.want(2)
		time.Sleep(5 * time.Second)
		g, _, s := m.counts()
		if f := c.Figures(); g != 2 || s != 3 || len(f.Released) != 3 || f.Held != 2 {
			t.Errorf("granted %d, surplus %d, released %v, held %d", g, s, f.Released, f.Held)
		}
	})
}

// TestKeptContainers of an earlier attempt end without a new ask (FLINK-9567).
func TestKeptContainers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := yarntest.New(yarntest.Options{})
		ids := c.Keep(3)
		m := register(t, c, false, 0)
		if len(m.kept) != 3 {
			t.Errorf("told of %d kept containers", len(m.kept))
		}
		for _, id := range ids {
			c.End(id, 0, "")
		}
		time.Sleep(30 * time.Second)
		_, done, _ := m.counts()
		for _, r := range c.Figures().Heard {
			if len(r.Ask) > 0 {
				t.Errorf("asked %v though nothing is wanted", r.Ask)
			}
		}
		if done != 3 {
			t.Errorf("%d ends", done)
		}
		m.close()
		c.Close()
	})
}

// TestFirstBeatAsks at once, not after an interval.
func TestFirstBeatAsks(t *testing.T) {
	with(t, yarntest.Options{}, false, func(t *testing.T, c *yarntest.Cluster, m *master) {
		start := time.Now()
		m.want(5)
		for {
			if g, _, _ := m.counts(); g == 5 {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if d := time.Since(start); d > 300*time.Millisecond {
			t.Errorf("granted after %v", d)
		}
		before := len(c.Figures().Beats)
		time.Sleep(time.Minute)
		if n := len(c.Figures().Beats) - before; n < 19 || n > 22 {
			t.Errorf("%d beats in an idle minute, want 20", n)
		}
	})
}

// TestSlowNodesDelayNothing: a NodeManager takes 10 s to accept (FLINK-15036), and beats go on.
func TestSlowNodesDelayNothing(t *testing.T) {
	with(t, yarntest.Options{}, true, func(t *testing.T, c *yarntest.Cluster, m *master) {
		for range 10 {
			c.Script("startContainers", yarntest.Slow(10*time.Second))
		}
		m.want(10)
		time.Sleep(30 * time.Second)
		beats := c.Figures().Beats
		for i := 1; i < len(beats); i++ {
			if d := beats[i].Sub(beats[i-1]); d > 3*time.Second+100*time.Millisecond {
				t.Errorf("%v between two beats", d)
			}
		}
		if n := len(c.Running()); n != 10 {
			t.Errorf("%d run", n)
		}
	})
}

// TestSlowListener: who hears outcomes takes its time, and beats go on.
func TestSlowListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := yarntest.New(yarntest.Options{})
		s, _, err := amrm.Register(t.Context(), amrm.Config{Addrs: c.Addrs(), Token: c.Token(), Dial: c.Dial, Heard: func(book.Outcome) { time.Sleep(time.Minute) }})
		if err != nil {
			t.Fatal(err)
		}
		s.Want(book.Ask{Key: key, Count: 1, MemoryMB: 1})
		time.Sleep(30 * time.Second)
		if n := len(c.Figures().Beats); n < 10 {
			t.Errorf("%d beats", n)
		}
		s.Close()
		c.Close()
	})
}

// TestUnregister repeats until the ResourceManager confirms (FLINK-8900), with the status as it is.
func TestUnregister(t *testing.T) {
	for _, status := range []pb.FinalApplicationStatusProto{pb.FinalApplicationStatusProto_APP_SUCCEEDED, pb.FinalApplicationStatusProto_APP_FAILED, pb.FinalApplicationStatusProto_APP_KILLED} {
		with(t, yarntest.Options{FinishRounds: 5}, false, func(t *testing.T, c *yarntest.Cluster, m *master) {
			c.Script("finishApplicationMaster", func() error { return hrpctest.ErrDrop }, yarntest.Fail("java.io.IOException", "disk"), yarntest.LoseAnswer)
			if err := m.s.Finish(t.Context(), status, "the end", "http://x"); err != nil {
				t.Fatal(err)
			}
			f := c.Figures().Finished
			if f == nil || f.GetFinalApplicationStatus() != status || f.GetDiagnostics() != "the end" {
				t.Errorf("the ResourceManager has %v", f)
			}
			<-m.s.Done()
			if m.s.Err() != nil {
				t.Errorf("after Finish: %v", m.s.Err())
			}
		})
	}
}

// TestUnregisterAfterRestart: the ResourceManager has forgotten the master when that ends.
func TestUnregisterAfterRestart(t *testing.T) {
	with(t, yarntest.Options{}, false, func(t *testing.T, c *yarntest.Cluster, m *master) {
		c.Restart(0, nil)
		if err := m.s.Finish(t.Context(), pb.FinalApplicationStatusProto_APP_SUCCEEDED, "", ""); err != nil {
			t.Fatal(err)
		}
		if f := c.Figures(); f.Finished == nil || f.Registers < 2 {
			t.Errorf("registered %d times, finished %v", f.Registers, f.Finished)
		}
	})
}

// TestTokenRoll uses the new token once the old is refused: after a broken connection, and after a failover (YARN-3103, gobblin#831).
func TestTokenRoll(t *testing.T) {
	with(t, yarntest.Options{Managers: 2}, false, func(t *testing.T, c *yarntest.Cluster, m *master) {
		time.Sleep(time.Minute)
		c.RollKey()
		time.Sleep(time.Minute)
		c.Activate()
		c.Cut()
		before := len(c.Figures().Beats)
		time.Sleep(time.Minute)
		if n := len(c.Figures().Beats) - before; n < 15 {
			t.Fatalf("%d beats in the minute after the connection broke", n)
		}
		c.RollKey()
		time.Sleep(time.Minute)
		c.Activate()
		c.Restart(1, nil)
		m.want(1)
		time.Sleep(time.Minute)
		if g, _, _ := m.counts(); g != 1 {
			t.Errorf("granted %d after failover", g)
		}
	})
}

// TestFailover asks again for what is open, gives back again, blacklists again (HAWQ-496 and others), also after both were away for two minutes.
func TestFailover(t *testing.T) {
	for _, away := range []time.Duration{0, 2 * time.Minute} {
		with(t, yarntest.Options{Managers: 2, PerBeat: 1}, true, func(t *testing.T, c *yarntest.Cluster, m *master) {
			m.s.Blacklist([]string{"node2"})
			m.want(6)
			time.Sleep(600 * time.Millisecond)
			had, _, _ := m.counts()
			if had == 0 || had == 6 {
				t.Fatalf("granted %d before the failover; the test wants some, not all", had)
			}
			c.Restart(1, func() { time.Sleep(away) })
			time.Sleep(time.Minute)
			g, _, surplus := m.counts()
			f := c.Figures()
			if f.Held != 6 || f.Open != 0 || f.Blacklist != 1 || f.Registers != 2 || surplus != 0 {
				t.Errorf("away %v: granted %d, surplus %d, held %d, open %d, blacklist %d, registered %d times", away, g, surplus, f.Held, f.Open, f.Blacklist, f.Registers)
			}
			for _, k := range c.Running() {
				if !strings.HasPrefix(k.Node, "node1") {
					t.Errorf("%v runs on %s", k.ID, k.Node)
				}
			}
		})
	}
}

// TestErrorsPass: one exception, a lost request, a lost answer (YARN-5999). Beats go on and nothing is asked for twice.
func TestErrorsPass(t *testing.T) {
	with(t, yarntest.Options{}, false, func(t *testing.T, c *yarntest.Cluster, m *master) {
		c.Script("allocate", yarntest.Fail("java.io.IOException", "broken"), func() error { return hrpctest.ErrDrop }, yarntest.LoseAnswer, yarntest.LoseAnswer,
			yarntest.Fail(hrpc.ClassRetriable, "busy"))
		m.want(4)
		time.Sleep(30 * time.Second)
		g, _, surplus := m.counts()
		if f := c.Figures(); g != 4 || surplus != 0 || f.Granted != 4 {
			t.Errorf("granted %d, surplus %d, in all %d", g, surplus, f.Granted)
		}
	})
}

// TestRegisterAnswerLost goes on when the ResourceManager has it registered already.
func TestRegisterAnswerLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := yarntest.New(yarntest.Options{})
		c.Script("registerApplicationMaster", yarntest.LoseAnswer)
		m := register(t, c, false, 0)
		m.want(1)
		time.Sleep(5 * time.Second)
		if g, _, _ := m.counts(); g != 1 {
			t.Errorf("granted %d", g)
		}
		m.close()
		c.Close()
	})
}

// TestAttemptOver ends the session without unregistering.
func TestAttemptOver(t *testing.T) {
	with(t, yarntest.Options{}, false, func(t *testing.T, c *yarntest.Cluster, m *master) {
		c.EndAttempt()
		<-m.s.Done()
		if !errors.Is(m.s.Err(), amrm.ErrOver) {
			t.Errorf("the session ended by %v", m.s.Err())
		}
		if err := m.s.Finish(t.Context(), pb.FinalApplicationStatusProto_APP_SUCCEEDED, "", ""); !errors.Is(err, amrm.ErrOver) {
			t.Errorf("unregistering then: %v", err)
		}
	})
}

// TestBadAsk drops the ask that can't be met, and the others are met.
func TestBadAsk(t *testing.T) {
	with(t, yarntest.Options{}, false, func(t *testing.T, c *yarntest.Cluster, m *master) {
		m.s.Want(book.Ask{Key: book.Key{Priority: 9, Request: 1}, Count: 1, MemoryMB: 1 << 20})
		m.want(2)
		time.Sleep(10 * time.Second)
		m.mu.Lock()
		rejected := m.rejected
		m.mu.Unlock()
		if g, _, _ := m.counts(); g != 2 || len(rejected) != 1 || rejected[0].Priority != 9 {
			t.Errorf("granted %d, rejected %v", g, rejected)
		}
	})
}

// TestBeatsKeepUpWithExpiry stays below a third of a short expiry.
func TestBeatsKeepUpWithExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := yarntest.New(yarntest.Options{})
		m := register(t, c, false, 3*time.Second)
		time.Sleep(30 * time.Second)
		if n := len(c.Figures().Beats); n < 28 {
			t.Errorf("%d beats in 30 s", n)
		}
		m.close()
		c.Close()
	})
}

// TestNotices of preemption and decommissioning arrive, and containers larger than asked for are seen as such.
func TestNotices(t *testing.T) {
	with(t, yarntest.Options{RoundUpMB: 1024}, false, func(t *testing.T, c *yarntest.Cluster, m *master) {
		m.want(1)
		time.Sleep(time.Second)
		m.mu.Lock()
		g := m.granted[0]
		m.mu.Unlock()
		if g.MemoryMB != 1024 {
			t.Errorf("granted %d MB", g.MemoryMB)
		}
		c.Preempt(g.Container)
		c.Decommission(1)
		time.Sleep(5 * time.Second)
		var preempted, nodes int
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, o := range m.outcomes {
			preempted += len(o.Preempt)
			nodes += len(o.Nodes)
		}
		if preempted != 1 || nodes != 1 {
			t.Errorf("%d preemptions, %d nodes", preempted, nodes)
		}
	})
}
