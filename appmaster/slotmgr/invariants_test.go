package slotmgr

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/heddle-stream/heddle/internal/cluster"
)

// check recomputes everything the Machine keeps by increments.
func check(m *Machine) error {
	var free, slots, allocated, barred, claims int
	var count [gone]int
	have := make([]map[int32]int, len(m.jobs))
	for i := range have {
		have[i] = map[int32]int{}
	}
	for row := range m.agents {
		a := &m.agents[row]
		if a.state == gone {
			continue
		}
		if got, ok := m.byID[a.id]; !ok || got != row {
			return fmt.Errorf("agent %s is not under its id", a.id)
		}
		count[a.state]++
		n, left, used := 0, a.total, 0
		for i := a.firstFree; i != 0; i = a.slots[i-1].link {
			if a.slots[i-1].allocation != 0 {
				return fmt.Errorf("%s/%d is both free and allocated", a.id, i-1)
			}
			n++
		}
		for i := range a.slots {
			if s := &a.slots[i]; s.allocation != 0 {
				used++
				if p := m.profileOf(a, s); m.cfg.Cut && !p.Fits(left) {
					return fmt.Errorf("%s has %v, its slots more", a.id, a.total)
				} else if m.cfg.Cut {
					left = left.Minus(p)
				}
			}
		}
		if m.cfg.Cut {
			slots += used
			if left != a.left {
				return fmt.Errorf("%s has {%v} left, by its count {%v}", a.id, left, a.left)
			}
			n = 0
		} else {
			slots += len(a.slots)
		}
		if used != a.used {
			return fmt.Errorf("%s has %d slots in use, by its count %d", a.id, used, a.used)
		}
		if n != a.free {
			return fmt.Errorf("%s has %d free slots in its list, %d by its count", a.id, n, a.free)
		}
		if a.ranked != (a.state == Alive && !a.barred) {
			return fmt.Errorf("%s is %v, barred %v, ranked %v", a.id, a.state, a.barred, a.ranked)
		}
		if a.ranked {
			free += n
		}
		if a.barred {
			barred++
		}
		if !a.claimed.IsZero() {
			claims++
		}
		if bad := m.excluded[a.node] != nil || m.draining[a.node] || !a.claimed.IsZero(); bad != a.barred {
			return fmt.Errorf("%s on %s is barred: %v", a.id, a.node, a.barred)
		}
		for i, s := range a.slots {
			if s.allocation == 0 {
				continue
			}
			allocated++
			p, ok := m.held[s.allocation]
			if !ok || int(p.agent) != row || int(p.slot) != i {
				return fmt.Errorf("allocation %d is not held where it is", s.allocation)
			}
			have[s.job][p.req]++
		}
	}
	if free != m.free || barred != m.barred || claims != m.claims || slots != m.slots || count != m.count || allocated != len(m.held) {
		return fmt.Errorf("sums are off: free %d/%d, slots %d/%d, count %v/%v, held %d/%d", m.free, free, m.slots, slots, m.count, count, len(m.held), allocated)
	}
	for i := range m.jobs {
		held := 0
		for k, n := range have[i] {
			held += n
			if k >= 0 && m.jobs[i].reqs[k].have != n {
				return fmt.Errorf("job %s has %d slots for requirement %d, by its count %d", m.jobs[i].id, n, k, m.jobs[i].reqs[k].have)
			}
		}
		if held != m.jobs[i].held {
			return fmt.Errorf("job %s holds %d slots, by its count %d", m.jobs[i].id, held, m.jobs[i].held)
		}
	}
	return nil
}

// world is a driver and its agents, as honest and as confused as the steps make it.
type world struct {
	m       *Machine
	now     time.Time
	cfg     Config
	total   int // of the last Ask
	granted int
	up      map[cluster.AgentID]bool // granted and not ended; true: registered
	given   map[cluster.AllocationID]cluster.SlotID
	need    map[cluster.JobID]int
}

func (w *world) perform(t *rapid.T, effects []Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case Ask:
			w.total = e.Total
		case Return:
			delete(w.up, e.Agent)
		case Lost:
			delete(w.up, e.Agent)
			for _, s := range e.Slots {
				delete(w.given, s.Allocation)
			}
		case Grant:
			for _, s := range e.Slots {
				if !w.up[s.ID.Agent] {
					t.Fatalf("granted a slot of %s, which is not up", s.ID.Agent)
				}
				for _, other := range w.given {
					if other == s.ID {
						t.Fatalf("slot %s is in two hands", s.ID)
					}
				}
				w.given[s.Allocation] = s.ID
			}
		}
	}
}

func (w *world) settle(t *rapid.T) {
	w.perform(t, w.m.Due(w.now))
	if err := check(w.m); err != nil {
		t.Fatal(err)
	}
	if again := w.m.Due(w.now); len(again) > 0 {
		t.Fatalf("Due has more to say at once: %v", again)
	}
	s := w.m.Supply()
	need := 0
	for _, n := range w.need {
		need += n
	}
	there := s.Alive + s.Probation + s.Starting
	if s.Limit > 0 && there+s.Asked > max(s.Limit, there) {
		t.Fatalf("%d agents there, %d asked for, limit %d", there, s.Asked, w.cfg.MaxAgents)
	}
	if w.cfg.Cut {
		return // counts of agents depend on how they are cut: see agentsFor
	}
	if s.Asked > max(w.cfg.MinAgents, need+w.cfg.SpareAgents) {
		t.Fatalf("asked for %d agents, for %d slots", s.Asked, need)
	}
	limited := s.Starved != "" || s.Limit > 0 && there+s.Asked >= s.Limit
	if coming := s.Free + (s.Starting+s.Asked)*w.cfg.SlotsPerAgent + len(w.given); coming < need+w.cfg.SpareAgents*w.cfg.SlotsPerAgent && !limited {
		t.Fatalf("%d slots are there or coming, %d needed", coming, need)
	}
}

func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{
			Attempt: 1, SlotsPerAgent: rapid.IntRange(1, 3).Draw(t, "slots"), MinAgents: rapid.IntRange(0, 2).Draw(t, "min"),
			MaxAgents: rapid.SampledFrom([]int{0, 0, 3}).Draw(t, "max"), EvenlySpread: rapid.Bool().Draw(t, "evenly"), FailureBudget: rapid.SampledFrom([]int{0, 3, 1000}).Draw(t, "budget"),
			SpareAgents: rapid.IntRange(0, 2).Draw(t, "spare"), MaxSlots: rapid.SampledFrom([]int{0, 0, 5}).Draw(t, "slots.max"),
			HostFailures: rapid.IntRange(0, 2).Draw(t, "host failures"), FailureWindow: rapid.SampledFrom([]time.Duration{0, time.Minute}).Draw(t, "window"),
			HostExclusion: time.Minute, Cut: rapid.Bool().Draw(t, "cut"), AgentTotal: cluster.Profile{MemoryMB: 6},
		}
		w := &world{m: New(cfg), cfg: cfg, now: epoch, up: map[cluster.AgentID]bool{}, given: map[cluster.AllocationID]cluster.SlotID{}, need: map[cluster.JobID]int{}}
		handle := func(ev Event) { w.perform(t, w.m.Handle(w.now, ev)) }
		pick := func() cluster.AgentID {
			ids := slices.Sorted(maps.Keys(w.up))
			return rapid.SampledFrom(append(ids, "stranger")).Draw(t, "agent")
		}
		steps := map[string]func(*rapid.T){
			"grant": func(t *rapid.T) {
				if w.granted >= w.total && !rapid.Bool().Draw(t, "surplus") {
					return
				}
				w.granted++
				id := cluster.AgentID(fmt.Sprintf("a%d", w.granted))
				w.up[id] = false
				handle(Granted{Agent: id, Host: rapid.SampledFrom([]string{"h1", "h2"}).Draw(t, "host")})
			},
			"register": func(t *rapid.T) {
				id := pick()
				for _, e := range w.m.Handle(w.now, Registered{Agent: id, Attempt: 1, Slots: rapid.IntRange(1, 3).Draw(t, "n"), Addr: "x", Total: cluster.Profile{MemoryMB: 6}}) {
					if e, ok := e.(Accept); ok {
						if registered, known := w.up[id]; !known || registered != e.Back {
							t.Fatalf("accepted %s, back %v", id, e.Back)
						}
						w.up[id] = true
					}
				}
			},
			"heard":  func(t *rapid.T) { handle(Heard{pick()}) },
			"broken": func(t *rapid.T) { handle(SessionBroken{pick(), "x"}) },
			"exited": func(t *rapid.T) { handle(Exited{Agent: pick(), Reason: "x", Blame: rapid.Bool().Draw(t, "blame")}) },
			"declare": func(t *rapid.T) {
				id := cluster.JobID(rapid.SampledFrom([]string{"j1", "j2"}).Draw(t, "job"))
				w.need[id] = rapid.IntRange(0, 7).Draw(t, "need")
				r := cluster.Requirement{Count: w.need[id]}
				if cfg.Cut {
					r.Profile.MemoryMB = rapid.Int64Range(0, 7).Draw(t, "mem")
				}
				handle(Declare{id, []cluster.Requirement{r}})
			},
			"release": func(t *rapid.T) {
				var ev Release
				for _, a := range slices.Sorted(maps.Keys(w.given)) {
					if rapid.Bool().Draw(t, "it") {
						ev.Allocations = append(ev.Allocations, a, a) // doubled
						delete(w.given, a)
					}
				}
				handle(ev)
			},
			"drain": func(t *rapid.T) {
				handle(Drain{rapid.SampledFrom([][]string{nil, nil, {"h1"}, {"h1", "h2"}}).Draw(t, "hosts")})
			},
			"reclaim": func(t *rapid.T) {
				ev := Reclaim{Count: rapid.IntRange(0, 3).Draw(t, "count")}
				if rapid.Bool().Draw(t, "for certain") {
					ev.Agents = []cluster.AgentID{pick()}
				}
				handle(ev)
			},
			"time": func(t *rapid.T) {
				w.now = w.now.Add(time.Duration(rapid.IntRange(1, 40000).Draw(t, "ms")) * time.Millisecond)
			},
			"": func(t *rapid.T) { w.settle(t) },
		}
		t.Repeat(steps)
	})
}

// TestEvenness registers agents and takes slots in any order: the most and the least used differ by one at most.
func TestEvenness(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		agents, slots := rapid.IntRange(1, 9).Draw(t, "agents"), rapid.IntRange(1, 5).Draw(t, "slots")
		need := rapid.IntRange(1, agents*slots).Draw(t, "need")
		m := New(Config{Attempt: 1, SlotsPerAgent: slots, MinAgents: agents, EvenlySpread: true})
		m.Handle(epoch, Declare{"j", []cluster.Requirement{{Count: need}}})
		m.Due(epoch)
		used := map[cluster.AgentID]int{}
		for i := range agents {
			m.Handle(epoch, Granted{Agent: cluster.AgentID(fmt.Sprint(i))})
		}
		for i := range agents { // one after another
			id := cluster.AgentID(fmt.Sprint(i))
			used[id] = 0
			m.Handle(epoch, Registered{Agent: id, Attempt: 1, Slots: slots})
			for _, e := range m.Due(epoch) {
				if g, ok := e.(Grant); ok {
					for _, s := range g.Slots {
						used[s.ID.Agent]++
					}
				}
			}
		}
		counts := slices.Sorted(maps.Values(used))
		sum := 0
		for _, c := range counts {
			sum += c
		}
		if sum != need || counts[len(counts)-1]-counts[0] > 1 {
			t.Fatalf("used %v, %d in all, want %d spread evenly", counts, sum, need)
		}
	})
}

// BenchmarkSlots registers 10,000 agents of 10 slots, gives all slots away and takes them back.
func BenchmarkSlots(b *testing.B) {
	const agents, slots = 10_000, 10
	for b.Loop() {
		m := New(Config{Attempt: 1, SlotsPerAgent: slots, MinAgents: agents, EvenlySpread: true})
		m.Due(epoch)
		ids := make([]cluster.AgentID, agents)
		for i := range ids {
			ids[i] = cluster.AgentID(fmt.Sprint("agent-", i))
			m.Handle(epoch, Granted{Agent: ids[i]})
		}
		for _, id := range ids {
			m.Handle(epoch, Registered{Agent: id, Attempt: 1, Slots: slots})
		}
		m.Handle(epoch, Declare{"j", []cluster.Requirement{{Count: agents * slots}}})
		for _, e := range m.Due(epoch) {
			for _, s := range e.(Grant).Slots {
				m.Handle(epoch, Release{[]cluster.AllocationID{s.Allocation}})
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/agents/slots, "ns/slot")
}
