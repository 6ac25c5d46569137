package sim

import (
	"slices"
	"time"

	"github.com/heddle-stream/heddle/appmaster/sched"
	"github.com/heddle-stream/heddle/appmaster/slotmgr"
	"github.com/heddle-stream/heddle/appmaster/slotpool"
	"github.com/heddle-stream/heddle/internal/cluster"
)

// check checks what must hold after every step.
func (w *world) check() {
	p := w.master.plane
	if again := p.Settle(w.now); len(again) > 0 {
		w.broken("the plane is not at rest after Settle: %v", again)
	}
	use := map[cluster.SlotID]cluster.JobID{}
	hands := map[cluster.AllocationID]cluster.SlotID{}
	held := map[cluster.JobID]int{}
	for a := range p.Slots.Agents() {
		for i, u := range a.Slots {
			if u.Allocation == 0 {
				continue
			}
			held[u.Job]++
			id := cluster.SlotID{Agent: a.ID, Index: i}
			if other, twice := hands[u.Allocation]; twice {
				w.broken("allocation %d is slot %v and slot %v", u.Allocation, other, id)
			}
			use[id], hands[u.Allocation] = u.Job, id
		}
	}
	w.checkTasks(use)
	w.checkSupply(held)
}

// checkTasks checks that what runs, runs in slots of its own job.
func (w *world) checkTasks(use map[cluster.SlotID]cluster.JobID) {
	for j := range w.master.plane.Jobs {
		job := &w.master.plane.Jobs[j]
		for v := range w.cfg.jobs[j].Vertices {
			for e := range job.Sched.Executions(v) {
				if e.State.Final() || e.Slot.Agent == "" {
					continue
				}
				if use[e.Slot] != job.ID {
					w.broken("task %v of %s is %v in slot %v, which %q has", e.ID, job.ID, e.State, e.Slot, use[e.Slot])
				}
			}
		}
	}
}

// checkSupply checks that there are, or will be, as many slots as are needed, no more than allowed, and none that nobody wants.
func (w *world) checkSupply(held map[cluster.JobID]int) {
	var short []int // jobs that lack slots
	cfg, s, need, most, have := w.cfg.agents, w.master.plane.Slots.Supply(), 0, 0, 0
	for j := range w.master.plane.Jobs {
		m, held := w.master.plane.Jobs[j].Sched, held[w.master.plane.Jobs[j].ID]
		have += held
		if state, _ := m.State(); state == sched.Waiting {
			need += m.Slots()
			most += m.Slots()
			if held < m.Slots() {
				short = append(short, j)
			}
		} else {
			need += held // some may have been lost that nobody needs any more
			most += max(held, m.Slots())
		}
	}
	w.checkTurn(short, held)
	per := max(1, cfg.SlotsPerAgent)
	there := s.Alive + s.Probation + s.Starting
	spare := cfg.SpareAgents * per
	limited := s.Starved != "" || s.Limit > 0 && there+s.Asked >= s.Limit
	if cfg.Cut {
		w.checkCut(s)
	} else if coming := s.Free + s.Former + (s.Starting+s.Asked)*per + have; coming < need+spare && !limited {
		w.broken("%d slots are there or coming, %d needed and %d spare", coming, need, spare)
	}
	if s.Limit > 0 && s.Asked > 0 && there+s.Asked > s.Limit {
		w.broken("%d agents are there and %d asked for, the limit is %d", there, s.Asked, s.Limit)
	}
	if cfg.Cut {
		per, spare = 1, cfg.SpareAgents // a slot may need an agent of its own
	}
	if want := max(cfg.MinAgents, (most+spare+per-1)/per); s.Asked > want {
		w.broken("%d agents are asked for, at most %d are wanted", s.Asked, want)
	}
	if s.Starved != "" && s.Asked > 0 {
		w.broken("%d agents are asked for although no more will come", s.Asked)
	}
}

// checkTurn checks that jobs get slots in the order in which they first asked: while one lacks some, those after it get none.
func (w *world) checkTurn(short []int, held map[cluster.JobID]int) {
	m := w.master
	for n, j := range m.arrived {
		id := m.plane.Jobs[j].ID
		for _, before := range m.arrived[:n] {
			if held[id] > m.held[id] && slices.Contains(short, before) && slices.Contains(m.short, before) {
				w.broken("%s got slots while %s, which came before, lacks some", id, m.plane.Jobs[before].ID)
			}
		}
	}
	m.short, m.held = short, held
}

// alone checks that no other agent that the master knows runs the same subtask.
func (w *world) alone(a *agent, k key) {
	if a.given {
		return // it does not know yet that it was given up
	}
	for _, o := range w.order {
		if o == a || o.dead || o.given {
			continue
		}
		for _, x := range o.order {
			if x.job == k.job && x.id.Vertex == k.id.Vertex && x.id.Subtask == k.id.Subtask && !x.state.Final() && era(x.id) == era(k.id) {
				w.broken("%s starts %v of j%d while %s runs %v", a.id, k.id, k.job+1, o.id, x.id)
			}
		}
	}
}

// atEnd checks what must hold once faults are over and everything had its time: every request has ended.
func (w *world) atEnd() {
	p := w.master.plane
	for j := range p.Jobs {
		if state, since := p.Jobs[j].Sched.State(); !state.Final() {
			w.broken("job j%d is still %v, since %v", j+1, state, since.Sub(epoch))
		}
		if next := p.Jobs[j].Pool.Next(); !next.IsZero() {
			w.broken("the pool of j%d still waits", j+1)
		}
	}
	known := map[cluster.AgentID]bool{}
	for a := range p.Slots.Agents() {
		known[a.ID] = true
		if slices.ContainsFunc(a.Slots, usedSlot) {
			w.broken("agent %s still has slots in use: %v", a.ID, a.Slots)
		}
	}
	for _, a := range w.order {
		if !a.dead && !known[a.id] {
			w.broken("agent %s still runs, and nobody knows it", a.id)
		}
	}
	s, cfg := p.Slots.Supply(), w.cfg.agents
	if keep := max(cfg.MinAgents, cfg.SpareAgents); s.Alive+s.Probation+s.Starting > keep {
		w.broken("%d agents are still there, %d are to be kept", s.Alive+s.Probation+s.Starting, keep)
	}
}

// rest is how long everything needs to come to its end when faults are over.
const rest = 2 * time.Minute

// checkCut checks, where slots are cut as they are asked for, that something comes if the first who waits can't be served from
// what there is.
func (w *world) checkCut(s slotmgr.Supply) {
	limited := s.Starved != "" || s.Full || s.Limit > 0 && s.Alive+s.Probation+s.Starting+s.Asked >= s.Limit
	if limited || s.Starting+s.Asked+s.Former > 0 || s.Holding {
		return
	}
	for _, j := range w.master.arrived {
		p := &w.master.plane.Jobs[j]
		requests, _ := p.Pool.Waiting()
		for i := range requests {
			if !w.master.plane.Slots.CanServe(requests[i].Profile) {
				return // it waits in vain, and all after it
			}
		}
		if len(requests) > 0 {
			w.broken("%s waits for %v, and nothing is asked for", p.ID, slotpool.Describe(requests))
			return
		}
	}
}
