package slotpool

import (
	"cmp"
	"slices"

	"github.com/heddle-stream/heddle/internal/cluster"
)

// match finds a free slot for every request and takes them all, or takes none.
//
// Claims and preferences are honoured if all requests can be met so; if not, they give way: a small request may sit on the
// only slot that is large enough for another. Without them, the largest request goes first, each into the smallest
// slot that fits, which finds a full match whenever there is one and profiles can be ordered by size.
func (m *Machine) match(requests []SlotRequest) ([]cluster.Slot, bool) {
	if len(requests) > m.free {
		return nil, false
	}
	order := bySize(requests)
	a := assignment{m: m, requests: requests, rows: make([]int, len(requests))}
	if claims := slices.DeleteFunc(slices.Clone(order), func(i int) bool { return requests[i].Previous.Agent == "" }); len(claims) > 0 {
		a.pass(claims, m.former)
		a.pass(claims, func(r *SlotRequest) int { return m.onAgent(r, r.Previous.Agent) })
	}
	a.pass(order, m.preferred)
	a.pass(order, m.any)
	if !a.complete() && m.mixed {
		a.undo()
		a.pass(order, m.any)
	}
	if !a.complete() {
		a.undo()
		return nil, false
	}
	out := make([]cluster.Slot, len(requests))
	for i, row := range a.rows {
		out[i] = m.slots[row-1].Slot
	}
	return out, true
}

// assignment is a match being made.
type assignment struct {
	m        *Machine
	requests []SlotRequest
	rows     []int // 1 + row of the slot; 0: none yet
	done     int
}

// pass lets find choose for each request that has no slot yet, in order. Requests with a claim of their own go in an earlier
// pass than others, so that nobody takes another's former slot while there is a choice.
func (a *assignment) pass(order []int, find func(r *SlotRequest) int) {
	for _, i := range order {
		if a.rows[i] != 0 {
			continue
		}
		if row := find(&a.requests[i]); row >= 0 {
			a.m.take(row, a.requests[i].Profile)
			a.rows[i] = row + 1
			a.done++
		}
	}
}

func (a *assignment) complete() bool { return a.done == len(a.rows) }

func (a *assignment) undo() {
	for i, row := range a.rows {
		if row != 0 {
			a.m.put(row - 1)
			a.rows[i] = 0
		}
	}
	a.done = 0
}

// bySize returns the indices of requests, largest profile first, else in their order.
func bySize(requests []SlotRequest) []int {
	order := make([]int, len(requests))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		p, q := requests[a].Profile, requests[b].Profile
		return cmp.Or(cmp.Compare(q.MemoryMB, p.MemoryMB), cmp.Compare(q.MilliCPU, p.MilliCPU))
	})
	return order
}

// former finds the very slot that r had.
func (m *Machine) former(r *SlotRequest) int {
	a, ok := m.byAgent[r.Previous.Agent]
	if !ok {
		return -1
	}
	for _, row := range m.agents[a].free {
		if s := &m.slots[row]; s.ID == r.Previous && r.Profile.Fits(s.Profile) {
			return row
		}
	}
	return -1
}

// preferred finds a slot in one of the places that r would like.
func (m *Machine) preferred(r *SlotRequest) int {
	for _, id := range r.Agents {
		if row := m.onAgent(r, id); row >= 0 {
			return row
		}
	}
	for _, host := range r.Hosts {
		best := -1
		for _, a := range m.byHost[host] {
			if best < 0 || len(m.agents[a].free) > len(m.agents[best].free) {
				best = a
			}
		}
		if best >= 0 {
			if row := m.fitting(r, best); row >= 0 {
				return row
			}
		}
	}
	return -1
}

func (m *Machine) onAgent(r *SlotRequest, id cluster.AgentID) int {
	a, ok := m.byAgent[id]
	if !ok {
		return -1
	}
	return m.fitting(r, a)
}

// any finds a slot by strategy.
func (m *Machine) any(r *SlotRequest) int {
	a := m.ranking.Least(1)
	if m.cfg.Strategy == EvenlySpread {
		a = m.ranking.Most()
	}
	if a < 0 {
		return -1
	}
	switch {
	case m.mixed && r.Profile != (cluster.Profile{}):
		return m.smallest(r)
	case !r.Profile.Fits(m.first) && !m.mixed:
		return -1
	}
	return m.agents[a].free[0]
}

// fitting finds the smallest free slot of an agent that r fits.
func (m *Machine) fitting(r *SlotRequest, a int) int {
	best := -1
	for _, row := range m.agents[a].free {
		if p := m.slots[row].Profile; r.Profile.Fits(p) && (best < 0 || smaller(p, m.slots[best].Profile)) {
			best = row
		}
	}
	return best
}

// smallest looks at every agent for the smallest slot that r fits; among equals, the strategy's choice.
func (m *Machine) smallest(r *SlotRequest) int {
	best := -1
	for a := range m.agents {
		row := m.fitting(r, a)
		if row < 0 {
			continue
		}
		if best < 0 || smaller(m.slots[row].Profile, m.slots[best].Profile) {
			best = row
			continue
		}
		mine, other := len(m.agents[a].free), len(m.agents[m.slots[best].agent].free)
		if m.slots[row].Profile == m.slots[best].Profile && (mine != other) && (mine > other) == (m.cfg.Strategy == EvenlySpread) {
			best = row
		}
	}
	return best
}

func smaller(p, q cluster.Profile) bool { return p != q && p.Fits(q) }
