package sim

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/appmaster/sched"
	"github.com/heddle-stream/heddle/appmaster/slotmgr"
	"github.com/heddle-stream/heddle/appmaster/slotpool"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/jobgraph"
)

var (
	seeds = flag.Int("sim.seeds", 300, "seeds to run")
	first = flag.Int("sim.first", 1, "the first of them")
	one   = flag.Int("sim.seed", 0, "run this seed alone and show its trace")
)

func usedSlot(u slotmgr.Use) bool { return u.Allocation != 0 }

// TestSeeds runs a cluster full of faults for each seed. It covers the cases S-05, S-06, S-08, S-09, S-11, S-12, S-16, S-17, Y-02, Y-03,
// Y-05, Y-06, Y-07, Y-09, Y-10, Y-12 and Y-13 at once, in every order.
func TestSeeds(t *testing.T) {
	if *one != 0 {
		w := random(*one)
		t.Log("\n" + strings.Join(w.lines, "\n"))
		for _, p := range w.problems {
			t.Error(p)
		}
		return
	}
	var next, steps, ended, adopted atomic.Int64
	next.Store(int64(*first))
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for !t.Failed() {
				seed := int(next.Add(1) - 1)
				if seed >= *first+*seeds {
					return
				}
				w := random(seed)
				steps.Add(int64(w.steps))
				ended.Add(int64(finished(w)))
				adopted.Add(int64(w.adopted))
				if len(w.problems) > 0 {
					t.Errorf("seed %d: %s\n%s", seed, strings.Join(w.problems, "; "), strings.Join(w.lines[max(0, len(w.lines)-60):], "\n"))
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d seeds, %d steps, %d jobs finished, %d agents taken over by another attempt", *seeds, steps.Load(), ended.Load(), adopted.Load())
	if *seeds >= 100 && adopted.Load() == 0 && !t.Failed() {
		t.Error("no agent was taken over by another attempt of the master")
	}
	if n := ended.Load(); n < int64(*seeds)/4 && !t.Failed() {
		t.Errorf("only %d jobs of %d seeds finished: the faults leave nothing to see", n, *seeds)
	}
}

func finished(w *world) (n int) {
	for _, j := range w.master.plane.Jobs {
		if s, _ := j.Sched.State(); s == sched.Finished {
			n++
		}
	}
	return n
}

// TestDeterminism runs some seeds twice.
func TestDeterminism(t *testing.T) {
	for seed := 1; seed <= 10; seed++ {
		if a, b := random(seed), random(seed); a.digest != b.digest || a.steps != b.steps {
			t.Errorf("seed %d: two runs differ: %d steps and %d", seed, a.steps, b.steps)
		}
	}
}

// random makes a world of a seed and runs it to its end.
func random(seed int) *world {
	rng := rand.New(rand.NewPCG(uint64(seed), 7))
	pick := func(n ...int) int { return n[rng.IntN(len(n))] }
	cfg := config{
		agents: slotmgr.Config{
			SlotsPerAgent: pick(1, 2, 2, 3), MinAgents: pick(0, 0, 1, 3), SpareAgents: pick(0, 0, 0, 1), MaxAgents: pick(0, 0, 0, 6),
			EvenlySpread: rng.IntN(2) == 0, FailureBudget: pick(3, 1000, 1000, 1000), FailureWindow: time.Duration(pick(0, 30)) * time.Second,
			HostFailures: pick(0, 0, 2), HostExclusion: 20 * time.Second, IdleTimeout: 5 * time.Second,
			RegisterTimeout: 8 * time.Second, HeartbeatTimeout: 10 * time.Second, SpreadWait: 3 * time.Second, RecoverTimeout: 8 * time.Second,
			GrantBatch: pick(0, 1, 3), MaxSlots: pick(0, 0, 0, 9),
			Cut: rng.IntN(3) == 0, AgentTotal: cluster.Profile{MilliCPU: 2000, MemoryMB: 1000, Custom: "gpu=1"},
		},
		slots:    slotpool.Config{Strategy: slotpool.Strategy(rng.IntN(2)), Timeout: time.Duration(pick(15, 60, -1)) * time.Second, MatchBatch: pick(0, 1, 3)},
		restarts: pick(0, 3, 100, 100), hosts: pick(1, 3), life: time.Duration(pick(2, 8, 20)) * time.Second,
	}
	for range pick(1, 1, 2) {
		g := randomJob(rng)
		if cfg.agents.Cut {
			g.Profiles = randomProfiles(rng)
		}
		cfg.jobs = append(cfg.jobs, g)
	}
	w := newWorld(cfg, rng)
	w.driver.most = pick(0, 0, 0, 0, 0, 0, 4)
	for j := range w.master.plane.Jobs {
		w.startJob(j, w.delay(time.Second))
	}
	w.after(w.delay(time.Second), w.fault)
	w.run(time.Duration(30+rng.IntN(60)) * time.Second)
	w.calm = true
	for _, a := range w.order {
		if a.frozen {
			a.thaw()
		}
		if a.link != nil && a.link.hole {
			a.link.cut() // what was lost is not made good
		}
	}
	w.driver.mute, w.driver.slow = false, 0
	w.after(45*time.Second, w.cancelAll)
	w.run(rest)
	if len(w.problems) == 0 {
		w.atEnd()
	}
	return w
}

// cancelAll ends jobs that would wait for ever: those with no limit to their patience. A task whose order was lost must not be among them.
func (w *world) cancelAll() {
	for j, job := range w.master.plane.Jobs {
		for v := range w.cfg.jobs[j].Vertices {
			for e := range job.Sched.Executions(v) {
				if e.State == cluster.Deploying && w.now.Sub(e.Since) > 30*time.Second {
					w.broken("task %v of j%d has been deploying on %s since %v", e.ID, j+1, e.Slot.Agent, e.Since.Sub(epoch))
				}
			}
		}
	}
	for j := range w.master.plane.Jobs {
		w.master.plane.JobEvent(w.now, j, sched.Cancel{Reason: "enough"})
	}
}

// startJob starts a job, whose sources answer some time.
func (w *world) startJob(j int, in time.Duration) {
	m := w.master
	w.after(in, func() { m.plane.JobEvent(w.now, j, sched.Start{Held: true}) })
	w.after(in+w.delay(time.Second), func() { m.plane.JobEvent(w.now, j, sched.Checked{}) })
}

func randomJob(rng *rand.Rand) *jobgraph.Graph {
	g := &jobgraph.Graph{}
	for v := range 1 + rng.IntN(3) {
		x := jobgraph.Vertex{ID: v, Name: fmt.Sprint("v", v), Parallelism: 1 + rng.IntN(4), SlotGroup: []string{"default", "default", "other"}[rng.IntN(3)]}
		g.Vertices = append(g.Vertices, x)
		if v > 0 {
			connect(g, v-1, v)
		}
	}
	return g
}

// randomProfiles says what slots must have, more than any agent has in a few cases.
func randomProfiles(rng *rand.Rand) map[string]cluster.Profile {
	out := map[string]cluster.Profile{}
	for _, group := range []string{"default", "other"} {
		switch rng.IntN(8) {
		case 0, 1:
		case 2:
			out[group] = cluster.Profile{Custom: "gpu=1"}
		case 3:
			if rng.IntN(4) == 0 {
				out[group] = cluster.Profile{MemoryMB: 1001}
			}
		default:
			out[group] = cluster.Profile{MilliCPU: int64(rng.IntN(4)) * 400, MemoryMB: int64(1 + rng.IntN(500))}
		}
	}
	return out
}

// fault does something bad to the cluster, and comes again.
func (w *world) fault() {
	if w.calm {
		return
	}
	w.after(w.delay(3*time.Second), w.fault)
	var alive []*agent
	for _, a := range w.order {
		if !a.dead {
			alive = append(alive, a)
		}
	}
	if len(alive) == 0 {
		return
	}
	a := alive[w.rng.IntN(len(alive))]
	switch n := w.rng.IntN(20); {
	case n < 4:
		a.die("killed by signal 9", true)
	case n < 5:
		a.die("preempted", false)
	case n < 10:
		w.log("fault: the session of %s breaks", a.id)
		a.link.cut()
	case n < 12:
		w.log("fault: %s freezes", a.id)
		a.frozen = true
		w.after(w.delay(8*time.Second), a.thaw)
	case n < 14:
		if l := a.link; l != nil {
			w.log("fault: what %s sends and is sent is lost", a.id)
			l.hole = true
		}
	case n < 15:
		w.driver.surplus = 1 + w.rng.IntN(3)
	case n < 16:
		w.driver.mute = !w.driver.mute
	case n < 17:
		w.driver.slow = time.Duration(w.rng.IntN(12)) * time.Second
	case n < 18:
		w.stranger(a)
	case n < 19 && w.rng.IntN(3) == 0:
		w.log("fault: the master restarts")
		w.restart(w.rng.IntN(4) == 0)
	case n < 20 && w.rng.IntN(3) == 0:
		j := w.rng.IntN(len(w.master.plane.Jobs))
		w.master.plane.JobEvent(w.now, j, sched.Cancel{Reason: "ctrl-C"})
	}
}

// stranger registers who is not expected: it must be refused, whatever it says.
func (w *world) stranger(a *agent) {
	for _, ev := range []slotmgr.Registered{
		{Agent: "nobody", Attempt: w.master.attempt, Slots: 2, Addr: "nobody:9"},
		{Agent: a.id, Attempt: w.master.attempt + 1, Slots: len(a.slots), Addr: string(a.id) + ":9"},
		{Agent: a.id, Attempt: w.master.attempt, Slots: len(a.slots) + 1, Addr: "elsewhere:9"},
	} {
		if ev.Agent == a.id && !a.in {
			continue // it is not there yet: this would be it
		}
		for _, e := range w.master.slotEvent(ev) {
			if _, ok := e.(slotmgr.Accept); ok {
				w.broken("a stranger got in: %+v", ev)
			}
		}
	}
}

// restart replaces the master: the next attempt expects the agents of the one before, unless it shall forget them; they are
// refused then.
func (w *world) restart(forget bool) {
	old := w.master
	w.boot()
	for _, a := range w.order {
		if l := old.links[a.id]; l != nil {
			l.cut()
		}
		switch {
		case a.dead:
		case forget || w.chance(6): // its container is not known any more
			w.after(w.delay(20*time.Second), func() { a.die("its container was taken away", false) })
		default:
			w.driver.recover(a)
		}
	}
	for j := range w.master.plane.Jobs {
		w.startJob(j, w.delay(time.Second))
	}
}
