package slotpool

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
)

// Machine is the pool of one job.
type Machine struct {
	cfg Config

	slots   []slot                       // dense; rows of slots given back are reused
	byAlloc map[cluster.AllocationID]int // rows in slots
	vacant  []int
	agents  []agent // never shrinks: one row an agent that ever offered
	byAgent map[cluster.AgentID]int
	byHost  map[string][]int // rows in agents
	ranking cluster.Ranking  // of agents by free slots; those without any are out
	free    int

	first cluster.Profile // of the first slot ever offered
	mixed bool            // a slot of another profile was offered

	bulks    []bulk                // in order of arrival
	need     []cluster.Requirement // slots in use and asked for, largest profile first; no zero counts
	declared []cluster.Requirement
	starved  string
	outlook  string
}

type slot struct {
	cluster.Slot
	agent int
	pos   int // in its agent's free list; -1: in use
	want  cluster.Profile
}

type agent struct {
	id   cluster.AgentID
	free []int // rows in slots
}

type bulk struct {
	Request
	since time.Time
}

// New returns an empty pool.
func New(cfg Config) *Machine {
	if cfg.Timeout == 0 {
		cfg.Timeout = 30 * time.Second
	}
	return &Machine{cfg: cfg, byAlloc: map[cluster.AllocationID]int{}, byAgent: map[cluster.AgentID]int{}, byHost: map[string][]int{}}
}

// Handle applies ev. What follows from the new state, Due says.
func (m *Machine) Handle(now time.Time, ev Event) []Effect {
	switch ev := ev.(type) {
	case Request:
		m.wantAll(ev.Requests, 1)
		m.bulks = append(m.bulks, bulk{ev, now})
	case Withdraw:
		if i := slices.IndexFunc(m.bulks, func(b bulk) bool { return b.Bulk == ev.Bulk }); i >= 0 {
			m.wantAll(m.bulks[i].Requests, -1)
			m.bulks = slices.Delete(m.bulks, i, i+1)
		}
	case Offer:
		for _, s := range ev.Slots {
			m.add(s)
		}
	case Lost:
		for _, id := range ev.Allocations {
			if row, ok := m.byAlloc[id]; ok {
				m.vacate(row)
				m.remove(row)
			}
		}
	case Release:
		for _, id := range ev.Allocations {
			if row, ok := m.byAlloc[id]; ok {
				m.vacate(row)
			}
		}
	case Starved:
		m.starved = ev.Reason
	case Outlook:
		m.outlook = ev.Text
	default:
		panic(fmt.Sprintf("slotpool: unknown event %T", ev))
	}
	return nil
}

// Due returns what is due now: bulks that can be fulfilled or have failed, a changed requirement, surplus.
func (m *Machine) Due(now time.Time) (out []Effect) {
	out = m.answer(now, out)
	if !slices.Equal(m.need, m.declared) {
		m.declared = slices.Clone(m.need)
		out = append(out, Declare{m.declared})
	}
	if len(m.bulks) == 0 && m.free > 0 {
		out = append(out, Free{m.surplus()})
	}
	return out
}

// Next returns when Due has something to do even if nothing happens before, or the zero time.
func (m *Machine) Next() time.Time {
	if len(m.bulks) == 0 || m.cfg.Timeout < 0 {
		return time.Time{}
	}
	return m.bulks[0].since.Add(m.cfg.Timeout)
}

// answer fulfils bulks in order of arrival, until one has to wait.
func (m *Machine) answer(now time.Time, out []Effect) []Effect {
	for len(m.bulks) > 0 {
		b := m.bulks[0]
		slots, ok := m.match(b.Requests)
		switch {
		case ok:
			out = append(out, Fulfilled{b.Bulk, slots})
		case m.starved != "":
			out = append(out, Failed{b.Bulk, m.shortage(b, "", m.starved)})
		case m.cfg.Timeout >= 0 && !now.Before(b.since.Add(m.cfg.Timeout)):
			out = append(out, Failed{b.Bulk, m.shortage(b, fmt.Sprintf(" within %v (slot.request-timeout)", m.cfg.Timeout), m.outlook)})
		default:
			return out
		}
		if !ok {
			m.wantAll(b.Requests, -1)
		}
		m.bulks = m.bulks[1:]
	}
	return out
}

func (m *Machine) shortage(b bulk, within, why string) cluster.Failure {
	msg := fmt.Sprintf("cannot get %s%s: %d of them there", count(len(b.Requests), "slot"), within, min(m.free, len(b.Requests)))
	if b.Requests[0].Profile != (cluster.Profile{}) {
		msg += fmt.Sprintf(" (asked for %v)", b.Requests[0].Profile)
	}
	if why != "" {
		msg += "; " + why
	}
	return cluster.Failure{Kind: cluster.Unavailable, Message: msg}
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// wants counts n more slots of profile p as needed: in use, or asked for and waited for.
func (m *Machine) wants(p cluster.Profile, n int) {
	i, ok := slices.BinarySearchFunc(m.need, p, func(r cluster.Requirement, p cluster.Profile) int {
		return cmp.Or(cmp.Compare(p.MemoryMB, r.Profile.MemoryMB), cmp.Compare(p.MilliCPU, r.Profile.MilliCPU))
	})
	if !ok {
		m.need = slices.Insert(m.need, i, cluster.Requirement{Profile: p})
	}
	if m.need[i].Count += n; m.need[i].Count == 0 {
		m.need = slices.Delete(m.need, i, i+1)
	}
}

func (m *Machine) wantAll(requests []SlotRequest, n int) {
	for i := range requests {
		m.wants(requests[i].Profile, n)
	}
}

// surplus takes every free slot out of the pool.
func (m *Machine) surplus() (ids []cluster.AllocationID) {
	for a := m.ranking.Most(); a >= 0; a = m.ranking.Most() {
		row := m.agents[a].free[0]
		ids = append(ids, m.slots[row].Allocation)
		m.remove(row)
	}
	return ids
}

func (m *Machine) add(s cluster.Slot) {
	if _, known := m.byAlloc[s.Allocation]; known {
		return // doubled message
	}
	a, ok := m.byAgent[s.ID.Agent]
	if !ok {
		a = len(m.agents)
		m.agents = append(m.agents, agent{id: s.ID.Agent})
		m.byAgent[s.ID.Agent] = a
		m.byHost[s.Host] = append(m.byHost[s.Host], a)
	}
	row := len(m.slots)
	if n := len(m.vacant); n > 0 {
		row, m.vacant = m.vacant[n-1], m.vacant[:n-1]
	} else {
		m.slots = append(m.slots, slot{})
	}
	if len(m.slots) == 1 {
		m.first = s.Profile
	}
	m.mixed = m.mixed || s.Profile != m.first
	m.slots[row] = slot{Slot: s, agent: a, pos: -1}
	m.byAlloc[s.Allocation] = row
	m.put(row)
}

// vacate makes a slot free that is in use.
func (m *Machine) vacate(row int) {
	if s := &m.slots[row]; s.pos < 0 {
		m.wants(s.want, -1)
		m.put(row)
	}
}

// put makes a slot free that was taken or is new.
func (m *Machine) put(row int) {
	s := &m.slots[row]
	a := &m.agents[s.agent]
	s.pos, s.want = len(a.free), cluster.Profile{}
	a.free = append(a.free, row)
	m.free++
	m.rank(s.agent)
}

// take makes a free slot one in use.
func (m *Machine) take(row int, want cluster.Profile) {
	s := &m.slots[row]
	a := &m.agents[s.agent]
	last := a.free[len(a.free)-1]
	a.free[s.pos], m.slots[last].pos = last, s.pos
	a.free = a.free[:len(a.free)-1]
	s.pos, s.want = -1, want
	m.free--
	m.rank(s.agent)
}

func (m *Machine) rank(row int) {
	if n := len(m.agents[row].free); n > 0 {
		m.ranking.Set(row, n)
	} else {
		m.ranking.Remove(row)
	}
}

func (m *Machine) remove(row int) {
	if m.slots[row].pos >= 0 {
		m.take(row, cluster.Profile{})
	}
	delete(m.byAlloc, m.slots[row].Allocation)
	m.slots[row] = slot{pos: -1}
	m.vacant = append(m.vacant, row)
}
