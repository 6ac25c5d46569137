package slotpool

import (
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
	byHost  map[string][]int // rows in agents, by cluster.HostKey
	byShort map[string][]int // rows in agents, by cluster.ShortHost
	byRack  map[string][]int // rows in agents
	hosts   map[string]int   // numbered from 0
	classes []class          // of slots of one profile, in order of their first; few
	sizes   []cluster.Profile
	free    int
	marks   int32 // matches begun so far

	bulks    []bulk                // in order of arrival
	match    *assignment           // of the first bulk, being made; nil: none
	changed  bool                  // since a match of the first bulk was last found impossible
	need     []cluster.Requirement // slots in use and asked for, the hardest profile first; no zero counts
	declared []cluster.Requirement
	starved  string
	outlook  string
}

type slot struct {
	cluster.Slot
	agent int32
	class int32
	pos   int32 // in its agent's free list; negative: in use, or taken for a match: its mark
	want  int32 // of one in use: index in sizes of what was asked for
}

// class is the slots of one profile.
type class struct {
	profile cluster.Profile
	ranking cluster.Spread // of agents by free slots of the class; those without any are out
}

type agent struct {
	id   cluster.AgentID
	home int // index of its host
	free []freeList
}

// freeList is an agent's free slots of one class.
type freeList struct {
	class int32
	rows  []int32 // in slots
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
	if cfg.MatchBatch == 0 {
		cfg.MatchBatch = 1000
	}
	return &Machine{
		cfg: cfg, byAlloc: map[cluster.AllocationID]int{}, byAgent: map[cluster.AgentID]int{},
		byHost: map[string][]int{}, byShort: map[string][]int{}, byRack: map[string][]int{}, hosts: map[string]int{},
	}
}

// Handle applies ev. What follows from the new state, Due says.
func (m *Machine) Handle(now time.Time, ev Event) []Effect {
	m.changed = true
	switch ev := ev.(type) {
	case Request:
		m.onRequest(now, ev)
	case Withdraw:
		if i := m.find(ev.Bulk); i >= 0 {
			m.drop(i)
		}
	case Offer:
		for _, s := range ev.Slots {
			m.add(s)
		}
	case Lost:
		for _, id := range ev.Allocations {
			if row, ok := m.byAlloc[id]; ok {
				if m.match.has(row) {
					m.abandon()
				}
				m.vacate(row)
				m.remove(row)
			}
		}
	case Release:
		for _, id := range ev.Allocations {
			if row, ok := m.byAlloc[id]; ok && !m.match.has(row) {
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

func (m *Machine) find(bulk int) int {
	for i := range m.bulks {
		if m.bulks[i].Bulk == bulk {
			return i
		}
	}
	return -1
}

func (m *Machine) onRequest(now time.Time, ev Request) {
	m.wantAll(ev.Requests, 1)
	b := bulk{ev, now}
	if i := m.find(ev.Replaces); ev.Replaces != 0 && i >= 0 {
		b.since = m.bulks[i].since
		m.bulks = slices.Insert(m.bulks, i+1, b)
		m.drop(i)
		return
	}
	m.bulks = append(m.bulks, b)
}

// drop forgets a bulk that was not fulfilled.
func (m *Machine) drop(i int) {
	if i == 0 {
		m.abandon()
	}
	m.wantAll(m.bulks[i].Requests, -1)
	m.bulks = slices.Delete(m.bulks, i, i+1)
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

// More reports whether the last Due has left something for the next one, which is due at once.
func (m *Machine) More() bool { return m.match != nil }

// Next returns when Due has something to do even if nothing happens before, or the zero time. If there is More, it is due at once.
func (m *Machine) Next() time.Time {
	if len(m.bulks) == 0 || m.cfg.Timeout < 0 {
		return time.Time{}
	}
	return m.bulks[0].since.Add(m.cfg.Timeout)
}

// Waiting returns the requests that wait for slots, in the order in which they came, and since when the first of them has.
func (m *Machine) Waiting() (requests []SlotRequest, since time.Time) {
	for i := range m.bulks {
		requests = append(requests, m.bulks[i].Requests...)
	}
	if len(m.bulks) > 0 {
		since = m.bulks[0].since
	}
	return requests, since
}

// answer fulfils bulks in order of arrival, until one has to wait.
func (m *Machine) answer(now time.Time, out []Effect) []Effect {
	for steps := m.cfg.MatchBatch; len(m.bulks) > 0; {
		b := m.bulks[0]
		slots, ok := m.try(b.Requests, &steps)
		switch {
		case ok:
			m.bulks, m.changed = m.bulks[1:], true
			out = append(out, Fulfilled{b.Bulk, slots})
			continue
		case m.match != nil:
			return out // goes on with the next Due
		case m.starved != "":
			out = append(out, Failed{b.Bulk, m.shortage(b, "", m.starved)})
		case m.cfg.Timeout >= 0 && !now.Before(b.since.Add(m.cfg.Timeout)):
			out = append(out, Failed{b.Bulk, m.shortage(b, fmt.Sprintf(" within %v (slot.request-timeout)", m.cfg.Timeout), m.outlook)})
		default:
			return out
		}
		m.drop(0)
		m.changed = true
	}
	return out
}

func (m *Machine) shortage(b bulk, within, why string) cluster.Failure {
	msg := fmt.Sprintf("cannot get %s%s: %d of them there", Describe(b.Requests), within, m.servable(b.Requests))
	if why != "" {
		msg += "; " + why
	}
	return cluster.Failure{Kind: cluster.Unavailable, Message: msg}
}

// Describe says what requests ask for: "4 slots", or "6 slots (4 of 512 MiB, 2 of any size)".
func Describe(requests []SlotRequest) string {
	text := count(len(requests), "slot")
	var kinds []cluster.Requirement
	for i := range requests {
		k := slices.IndexFunc(kinds, func(r cluster.Requirement) bool { return r.Profile == requests[i].Profile })
		if k < 0 {
			k = len(kinds)
			kinds = append(kinds, cluster.Requirement{Profile: requests[i].Profile})
		}
		kinds[k].Count++
	}
	if len(kinds) == 0 || len(kinds) == 1 && kinds[0].Profile == (cluster.Profile{}) {
		return text
	}
	if len(kinds) == 1 {
		return fmt.Sprintf("%s of %v", text, kinds[0].Profile)
	}
	for i, k := range kinds {
		size := "any size"
		if k.Profile != (cluster.Profile{}) {
			size = k.Profile.String()
		}
		text += fmt.Sprintf("%s%d of %s", map[bool]string{true: " (", false: ", "}[i == 0], k.Count, size)
	}
	return text + ")"
}

// servable is how many of requests there are free slots for.
func (m *Machine) servable(requests []SlotRequest) int {
	a := m.begin(requests)
	for _, i := range a.order {
		if row := m.any(&requests[i]); row >= 0 {
			a.take(i, row)
		}
	}
	n := a.done
	a.undo()
	return n
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// wants counts n more slots of profile p as needed: in use, or asked for and waited for.
func (m *Machine) wants(p cluster.Profile, n int) {
	i, ok := slices.BinarySearchFunc(m.need, p, func(r cluster.Requirement, p cluster.Profile) int { return r.Profile.Compare(p) })
	if !ok {
		m.need = slices.Insert(m.need, i, cluster.Requirement{Profile: p})
	}
	if m.need[i].Count += n; m.need[i].Count == 0 {
		m.need = slices.Delete(m.need, i, i+1)
	}
}

// wantAll is wants for each of requests, times n.
func (m *Machine) wantAll(requests []SlotRequest, n int) {
	for i := 0; i < len(requests); {
		first := i
		for i < len(requests) && requests[i].Profile == requests[first].Profile {
			i++
		}
		m.wants(requests[first].Profile, n*(i-first))
	}
}

// surplus takes every free slot out of the pool.
func (m *Machine) surplus() (ids []cluster.AllocationID) {
	for c := range m.classes {
		for a := m.classes[c].ranking.Most(); a >= 0; a = m.classes[c].ranking.Most() {
			row := int(m.agents[a].freeOf(c).rows[0])
			ids = append(ids, m.slots[row].Allocation)
			m.remove(row)
		}
	}
	return ids
}
