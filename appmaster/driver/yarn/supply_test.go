package yarn

import (
	"context"
	"encoding/json"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/appmaster/driver/drivertest"
	"github.com/heddle-stream/heddle/appmaster/slotmgr"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/yarnclient/amrm"
	"github.com/heddle-stream/heddle/yarnclient/yarntest"
)

// supply is a master's slot manager over this driver, on a cluster in the process. Agents register when they are told to, or by themselves. It runs in a bubble.
type supply struct {
	t *testing.T
	c *yarntest.Cluster
	d *Driver

	events chan func()
	wg     sync.WaitGroup
	stop   context.CancelFunc

	// Owned by the loop.
	m       *slotmgr.Machine
	effects []slotmgr.Effect // all so far

	// Guarded by mu.
	mu      sync.Mutex
	exits   []appmaster.AgentExit
	granted []cluster.AgentID
	mute    map[cluster.AgentID]bool // agents that start and don't register
	silent  bool                     // no agent registers
}

func newSupply(t *testing.T, opt yarntest.Options, cfg slotmgr.Config, change func(*Config)) *supply {
	t.Helper()
	cfg.Attempt = 1
	cfg.SlotsPerAgent = max(cfg.SlotsPerAgent, 1)
	cfg.HeartbeatTimeout = 24 * time.Hour // agents' own heartbeats are not the matter here
	s := &supply{t: t, c: yarntest.New(opt), m: slotmgr.New(cfg), events: make(chan func(), 1000), mute: map[cluster.AgentID]bool{}}
	s.d = newDriver(t, s.c, func(c *Config) {
		c.Master = amrm.Config{Addrs: s.c.Addrs(), Token: s.c.Token(), Dial: s.c.Dial}
		if change != nil {
			change(c)
		}
	})
	env := drivertest.NewWorld(t.TempDir()).Env()
	env.Attempt = 1
	env.Secrets = func(id cluster.AgentID, _ cluster.ContainerID) (ctl.AgentSecrets, error) {
		return ctl.AgentSecrets{AgentID: id}, nil
	}
	env.Granted = func(id cluster.AgentID, c cluster.ContainerID, host string) {
		s.mu.Lock()
		s.granted = append(s.granted, id)
		s.mu.Unlock()
		s.event(slotmgr.Granted{Agent: id, Container: c, Host: host})
	}
	env.Exited = func(e appmaster.AgentExit) {
		s.mu.Lock()
		s.exits = append(s.exits, e)
		s.mu.Unlock()
		s.event(slotmgr.Exited{Agent: e.Agent, Reason: e.Reason, Blame: e.Blame})
	}
	env.Refused = func(why string) { s.event(slotmgr.AskRefused{Reason: why}) }
	env.Draining = func(hosts []string) { s.event(slotmgr.Drain{Hosts: hosts}) }
	env.Reclaim = func(agents []cluster.AgentID, n int) { s.event(slotmgr.Reclaim{Agents: agents, Count: n}) }
	s.c.OnStart(s.started)
	if err := s.d.Start(env); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.wg.Go(func() { s.loop(ctx) })
	return s
}

// started is what an agent does first: it registers, and is heard of from then on.
func (s *supply) started(k *yarntest.Container) {
	creds, err := token.Parse(k.Context.GetTokens())
	var sec ctl.AgentSecrets
	if err == nil {
		err = json.Unmarshal(creds.Secret(SecretName), &sec)
	}
	if err != nil {
		s.t.Error(err)
		return
	}
	s.mu.Lock()
	quiet := s.silent || s.mute[sec.AgentID]
	s.mu.Unlock()
	if !quiet {
		s.event(slotmgr.Registered{Agent: sec.AgentID, Attempt: 1, Slots: 1, Addr: string(sec.AgentID)})
	}
}

func (s *supply) event(ev slotmgr.Event) {
	s.events <- func() { s.perform(s.m.Handle(time.Now(), ev)) }
}

func (s *supply) need(n int) {
	s.event(slotmgr.Declare{Job: "j", Requirements: []cluster.Requirement{{Count: n}}})
}

func (s *supply) loop(ctx context.Context) {
	for {
		s.perform(s.m.Due(time.Now()))
		wait := time.Hour
		if next := s.m.Next(); !next.IsZero() {
			wait = max(time.Until(next), 0)
		}
		t := time.NewTimer(wait)
		select {
		case f := <-s.events:
			f()
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return
		}
		t.Stop()
	}
}

func (s *supply) perform(effects []slotmgr.Effect) {
	s.effects = append(s.effects, effects...)
	for _, e := range effects {
		switch e := e.(type) {
		case slotmgr.Ask:
			s.d.Ask(e.Total)
		case slotmgr.Return:
			s.d.Return(e.Agent, false)
		case slotmgr.Lost:
			s.d.Return(e.Agent, true)
		case slotmgr.Exclude:
			s.d.Exclude(e.Hosts)
		}
	}
}

// look runs f in the loop.
func (s *supply) look(f func(*slotmgr.Machine)) {
	done := make(chan struct{})
	s.events <- func() { f(s.m); close(done) }
	<-done
}

func (s *supply) supply() (out slotmgr.Supply) {
	s.look(func(m *slotmgr.Machine) { out = m.Supply() })
	return out
}

func (s *supply) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s.d.Stop(ctx)
	s.d.Close()
	s.stop()
	s.wg.Wait()
	s.c.Close()
}

// inSupply runs a test in a bubble, where time passes when nothing else happens.
func inSupply(t *testing.T, opt yarntest.Options, cfg slotmgr.Config, f func(t *testing.T, s *supply)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newSupply(t, opt, cfg, nil)
		f(t, s)
		s.close()
	})
}

// TestDiesBeforeRegistering: a container ends before its agent registers, and one more is asked for in its place (FLINK-9190).
func TestDiesBeforeRegistering(t *testing.T) {
	inSupply(t, yarntest.Options{}, slotmgr.Config{FailureBudget: 5}, func(t *testing.T, s *supply) {
		s.mu.Lock()
		s.mute["agent-1"] = true
		s.mu.Unlock()
		s.need(1)
		time.Sleep(3 * time.Second)
		s.c.End(where(t, s.c, "agent-1"), 1, "no such library")
		time.Sleep(5 * time.Second)
		if v := s.supply(); v.Alive != 1 || v.Starting != 0 || v.Asked != 0 || v.Free != 0 {
			t.Errorf("supply %+v", v)
		}
		if f := s.c.Figures(); f.Granted != 2 || f.Held != 1 || f.Open != 0 {
			t.Errorf("granted %d, held %d, open %d", f.Granted, f.Held, f.Open)
		}
	})
}

// TestOneEndsWhileOthersStart: of three that start, one ends. One is asked for in its place, not three (FLINK-18226).
func TestOneEndsWhileOthersStart(t *testing.T) {
	inSupply(t, yarntest.Options{}, slotmgr.Config{FailureBudget: 5}, func(t *testing.T, s *supply) {
		s.mu.Lock()
		s.mute["agent-1"], s.mute["agent-2"], s.mute["agent-3"] = true, true, true
		s.mu.Unlock()
		s.need(3)
		time.Sleep(3 * time.Second)
		s.c.End(where(t, s.c, "agent-2"), 1, "")
		time.Sleep(10 * time.Second)
		for _, id := range []cluster.AgentID{"agent-1", "agent-3"} {
			s.event(slotmgr.Registered{Agent: id, Attempt: 1, Slots: 1, Addr: string(id)})
		}
		time.Sleep(10 * time.Second)
		if v := s.supply(); v.Alive != 3 || v.Free != 0 {
			t.Errorf("supply %+v", v)
		}
		if f := s.c.Figures(); f.Granted != 4 || f.Held != 3 {
			t.Errorf("granted %d, held %d", f.Granted, f.Held)
		}
	})
}

// TestNeverRegisters: an agent starts and does not register. After its time it is given back and another asked for, and it counts as a failure (FLINK-13554).
func TestNeverRegisters(t *testing.T) {
	inSupply(t, yarntest.Options{}, slotmgr.Config{FailureBudget: 1, RegisterTimeout: 20 * time.Second}, func(t *testing.T, s *supply) {
		s.mu.Lock()
		s.mute["agent-1"] = true
		s.mu.Unlock()
		s.need(1)
		time.Sleep(19 * time.Second)
		if f := s.c.Figures(); f.Granted != 1 || len(f.Released) != 0 {
			t.Errorf("before its time: granted %d, released %v", f.Granted, f.Released)
		}
		time.Sleep(10 * time.Second)
		f := s.c.Figures()
		if v := s.supply(); v.Alive != 1 || f.Granted != 2 || f.Held != 1 || v.Starved != "" {
			t.Errorf("supply %+v; granted %d, held %d", v, f.Granted, f.Held)
		}
		// A second failure is one too many.
		s.event(slotmgr.Exited{Agent: "agent-2", Reason: "exit status 1", Blame: true})
		time.Sleep(time.Second)
		if v := s.supply(); !strings.Contains(v.Starved, "2 agents have failed") {
			t.Errorf("starved: %q", v.Starved)
		}
	})
}

// TestStartsFailForEver: NodeManagers refuse every start. That ends after the budget, with an error that says why, and is no storm on the way (FLINK-10868).
func TestStartsFailForEver(t *testing.T) {
	inSupply(t, yarntest.Options{}, slotmgr.Config{FailureBudget: 10, FailureWindow: 10 * time.Minute}, func(t *testing.T, s *supply) {
		for range 1000 {
			s.c.Script("startContainers", yarntest.Fail("org.apache.hadoop.yarn.exceptions.YarnException", "no such user on this node"))
		}
		s.need(2)
		time.Sleep(5 * time.Minute)
		v, f := s.supply(), s.c.Figures()
		if !strings.Contains(v.Starved, "agents have failed") || !strings.Contains(v.Starved, "no such user") {
			t.Errorf("starved: %q", v.Starved)
		}
		if f.Granted > 14 || f.Held != 0 || f.Open != 0 {
			t.Errorf("granted %d, held %d, open %d", f.Granted, f.Held, f.Open)
		}
		for i := 1; i < len(f.Beats); i++ {
			if d := f.Beats[i].Sub(f.Beats[i-1]); d < 20*time.Millisecond {
				t.Errorf("%v between two heartbeats", d)
			}
		}
		if n := len(f.Beats); n > 5*60*4+50 {
			t.Errorf("%d heartbeats in five minutes", n)
		}
	})
}

// TestEndBeforeStartReturns: a container's end is told before the call that started it returns. The agent ends once, and the counts are right (SPARK-43510, SAMZA-2117).
func TestEndBeforeStartReturns(t *testing.T) {
	inSupply(t, yarntest.Options{}, slotmgr.Config{FailureBudget: 100}, func(t *testing.T, s *supply) {
		n := 0
		s.c.OnStart(func(k *yarntest.Container) {
			s.mu.Lock()
			n++
			first := n <= 5
			s.mu.Unlock()
			if !first {
				s.started(k)
				return
			}
			s.c.End(k.ID, 1, "died at once")
			time.Sleep(5 * time.Second)
		})
		s.need(3)
		time.Sleep(2 * time.Minute)
		if v := s.supply(); v.Alive != 3 || v.Starting != 0 || v.Asked != 0 {
			t.Errorf("supply %+v", v)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if f := s.c.Figures(); f.Granted != 8 || f.Held != 3 || len(s.exits) != 5 {
			t.Errorf("granted %d, held %d, %d ends", f.Granted, f.Held, len(s.exits))
		}
		for i, e := range s.exits {
			if slices.ContainsFunc(s.exits[i+1:], func(x appmaster.AgentExit) bool { return x.Agent == e.Agent }) {
				t.Errorf("%s ended twice", e.Agent)
			}
		}
	})
}

// TestLateStart: a container waits so long for its start that its token has expired (YARN-11251). It is given up once, and another asked for.
func TestLateStart(t *testing.T) {
	inSupply(t, yarntest.Options{}, slotmgr.Config{FailureBudget: 3, RegisterTimeout: time.Hour}, func(t *testing.T, s *supply) {
		s.c.Script("startContainers", func() error {
			time.Sleep(11 * time.Minute) // the NodeManager's queue
			for _, id := range s.c.Held() {
				s.c.End(id, -100, "Container expired since it was unused")
			}
			return nil
		})
		s.need(1)
		time.Sleep(15 * time.Minute)
		if v, f := s.supply(), s.c.Figures(); v.Alive != 1 || f.Held != 1 || f.Granted != 2 {
			t.Errorf("supply %+v; granted %d, held %d", v, f.Granted, f.Held)
		}
	})
}

// TestFiftyEnd: fifty containers are gone when Stop returns, and what is heard later is ignored (FLINK-25277, FLINK-30908).
func TestFiftyEnd(t *testing.T) {
	inSupply(t, yarntest.Options{Nodes: 10}, slotmgr.Config{}, func(t *testing.T, s *supply) {
		s.need(50)
		time.Sleep(10 * time.Second)
		if v := s.supply(); v.Alive != 50 {
			t.Fatalf("supply %+v", v)
		}
		for range 10 {
			s.c.Script("stopContainers", yarntest.Slow(2*time.Second))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begun := time.Now()
		s.d.Stop(ctx)
		if d := time.Since(begun); d > 20*time.Second { // not when they are given up for another reason
			t.Errorf("Stop took %v", d)
		}
		time.Sleep(time.Second) // those that NodeManagers were slow to stop went back to the ResourceManager
		if n := len(s.c.Running()); n != 0 {
			t.Errorf("%d containers run after Stop", n)
		}
		s.mu.Lock()
		ends := len(s.exits)
		s.mu.Unlock()
		s.c.Surplus(3)
		s.c.Decommission(0)
		time.Sleep(10 * time.Second)
		s.mu.Lock()
		defer s.mu.Unlock()
		if ends != 50 || len(s.exits) != 50 || len(s.granted) != 50 {
			t.Errorf("%d ends by then, %d in all; %d agents granted", ends, len(s.exits), len(s.granted))
		}
	})
}

// TestDrainAndReclaim: a node is decommissioned, and a container wanted back. Idle agents go, those in use stay, and what is still needed comes elsewhere.
func TestDrainAndReclaim(t *testing.T) {
	inSupply(t, yarntest.Options{Nodes: 2}, slotmgr.Config{MinAgents: 4, IdleTimeout: -1}, func(t *testing.T, s *supply) {
		time.Sleep(10 * time.Second) // two on each node
		s.need(1)
		time.Sleep(time.Second)
		var used cluster.AgentID
		var host string
		s.look(func(m *slotmgr.Machine) {
			for a := range m.Agents() {
				if a.Free == 0 {
					used, host = a.ID, a.Host
				}
			}
		})
		s.c.Decommission(map[string]int{"node1": 0, "node2": 1}[host])
		time.Sleep(20 * time.Second)
		on := map[string]int{}
		s.look(func(m *slotmgr.Machine) {
			for a := range m.Agents() {
				on[a.Host]++
			}
		})
		if on[host] != 1 || len(on) != 2 {
			t.Errorf("agents by host %v; %s on %s is in use", on, used, host)
		}
		before := s.supply().Alive
		s.c.PreemptAny(2, 64)
		time.Sleep(10 * time.Second)
		if v := s.supply(); v.Alive != before-2 || v.Slots-v.Free < 1 {
			t.Errorf("%d agents before, supply %+v", before, v)
		}
		time.Sleep(time.Minute)
		if v := s.supply(); v.Alive != before {
			t.Errorf("later: %d agents before, supply %+v", before, v)
		}
		for _, id := range s.gone() {
			if id == used {
				t.Errorf("%s was in use and is gone", id)
			}
		}
	})
}

func (s *supply) gone() (ids []cluster.AgentID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.exits {
		ids = append(ids, e.Agent)
	}
	return ids
}

// TestThousand is granted a thousand containers over ten heartbeats while NodeManagers take 5 s to start one (FLINK-12342): the surplus stays below one
// heartbeat's worth, all of it goes back, and nothing is held that nobody has.
func TestThousand(t *testing.T) {
	inSupply(t, yarntest.Options{Nodes: 50, PerBeat: 100}, slotmgr.Config{RegisterTimeout: 10 * time.Minute}, func(t *testing.T, s *supply) {
		for range 1000 {
			s.c.Script("startContainers", yarntest.Slow(5*time.Second))
		}
		for n := 100; n <= 1000; n += 100 {
			s.need(n)
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(10 * time.Minute)
		v, f := s.supply(), s.c.Figures()
		surplus := f.Granted - 1000
		if v.Alive != 1000 || f.Held != 1000 || f.Open != 0 || surplus > 100 || len(f.Released) != surplus {
			t.Errorf("alive %d, held %d, open %d, surplus %d, released %d", v.Alive, f.Held, f.Open, surplus, len(f.Released))
		}
		longest := time.Duration(0)
		for i := 1; i < len(f.Beats); i++ {
			longest = max(longest, f.Beats[i].Sub(f.Beats[i-1]))
		}
		if longest > 3*time.Second+200*time.Millisecond {
			t.Errorf("%v between two heartbeats", longest)
		}
		t.Logf("surplus %d of 1000, longest pause between heartbeats %v", surplus, longest)
	})
}

// TestMemory is what the master's account with YARN takes with 200 agents, the cluster in this process included: driver, session, NodeManagers' connections, slot manager.
func TestMemory(t *testing.T) {
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	inSupply(t, yarntest.Options{Nodes: 50}, slotmgr.Config{}, func(t *testing.T, s *supply) {
		s.need(200)
		time.Sleep(10 * time.Second)
		if v := s.supply(); v.Alive != 200 {
			t.Fatalf("supply %+v", v)
		}
		used := (float64(heap()) - float64(before)) / (1 << 20)
		t.Logf("200 agents take %.1f MB of heap", used)
		if used > 40 {
			t.Errorf("200 agents take %.1f MB of heap", used)
		}
	})
}
