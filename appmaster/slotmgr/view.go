package slotmgr

import (
	"fmt"
	"iter"
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
)

// Supply sums up what there is, for errors and for people.
type Supply struct {
	Alive, Probation, Starting int      // agents
	Asked                      int      // agents asked for that the driver has not granted
	Slots, Free                int      // of agents that are there; those on excluded hosts have none free
	Limit                      int      // the most agents there may be; 0 is no limit
	LimitBy                    Limit    // which limit that is
	Full                       bool     // with Cut: as many slots were cut as may be
	Holding                    bool     // slots are held back, to be spread over agents that are starting
	Suspects                   []string // agents on probation with the reason, some of them
	Starved                    string   // why no more will come, "" if they may
	StarvedSince               time.Time
	Former                     int      // slots in use for an earlier attempt, about to be free
	Failed                     int      // agents that failed and still count
	Excluded                   []string // hosts that get no agents for now

	Cut         bool            // slots are cut from agents as they are asked for: Free is 0, and Left says what there is
	Total, Left cluster.Profile // of agents that are there, and of those that may give slots
	Since       time.Time       // when the agent that has been starting for longest was granted; zero if none is starting
}

// Supply returns the sums now.
func (m *Machine) Supply() Supply {
	s := Supply{
		Alive: m.count[Alive], Probation: m.count[Probation], Starting: m.count[Starting],
		Asked: max(0, m.asked-m.granted), Slots: m.slots, Free: m.free, Limit: m.limit, Starved: m.starved, StarvedSince: m.starvedAt,
		LimitBy: m.limitBy, Full: m.cfg.Cut && m.cfg.MaxSlots > 0 && m.slots >= m.cfg.MaxSlots, Holding: m.isHolding(),
		Former: m.former(), Failed: len(m.failures), Excluded: m.Excluded(), Cut: m.cfg.Cut,
	}
	for i := range m.agents {
		a := &m.agents[i]
		if a.state == Starting && (s.Since.IsZero() || a.since.Before(s.Since)) {
			s.Since = a.since
		}
		if a.state == Probation && len(s.Suspects) < 5 {
			s.Suspects = append(s.Suspects, fmt.Sprintf("%s: %s", a.id, a.why))
		}
		if m.cfg.Cut && a.state != gone {
			s.Total = s.Total.Plus(a.total)
			if a.ranked {
				s.Left = s.Left.Plus(a.left)
			}
		}
	}
	return s
}

// isHolding reports whether the first job that lacks slots has to wait for agents that are starting.
func (m *Machine) isHolding() bool {
	for i := range m.jobs {
		if j := &m.jobs[i]; j.missing() > 0 {
			return !j.over && m.holding(j.wait)
		}
	}
	return false
}

// CanServe reports whether an agent as they are expected could have a slot of a profile.
func (m *Machine) CanServe(p cluster.Profile) bool {
	if m.cfg.Cut {
		size, _ := m.size(p)
		return size.Fits(m.cfg.AgentTotal)
	}
	return p.Fits(m.cfg.AgentTotal.Part(m.cfg.SlotsPerAgent)) // what asks for nothing always fits
}

// Expected is what an agent is expected to have.
func (m *Machine) Expected() cluster.Profile { return m.cfg.AgentTotal }

// Agent is an agent as seen from outside.
type Agent struct {
	ID         cluster.AgentID
	Container  cluster.ContainerID
	Host, Addr string
	State      State
	Why        string          // of Probation
	Total      cluster.Profile // its resources
	Left       cluster.Profile // of them, what no slot has, where slots are cut as they are asked for
	Free       int
	Heard      time.Time
	Former     bool  // an attempt before this one has started it
	Slots      []Use // by index
}

// Use is who has a slot. The zero Use is a free one.
type Use struct {
	Job        cluster.JobID // "" with an allocation: an attempt before this one gave it away
	Allocation cluster.AllocationID
	Profile    cluster.Profile // of the slot
}

// Agents goes through all agents, in the order of the table. An Agent is a copy, good for ever.
func (m *Machine) Agents() iter.Seq[Agent] {
	return func(yield func(Agent) bool) {
		for i := range m.agents {
			if m.agents[i].state != gone && !yield(m.view(&m.agents[i])) {
				return
			}
		}
	}
}

func (m *Machine) view(a *agent) Agent {
	v := Agent{ID: a.id, Container: a.container, Host: a.host, Addr: a.addr, State: a.state, Why: a.why, Free: a.free, Heard: a.heard, Total: a.total, Left: a.left, Former: a.former}
	n := len(a.slots)
	for m.cfg.Cut && n > 0 && a.slots[n-1].allocation == 0 {
		n-- // of a slot that was, only its number is left
	}
	v.Slots = make([]Use, n)
	for i, s := range a.slots[:n] {
		if s.allocation != 0 {
			v.Slots[i].Job, v.Slots[i].Allocation = m.jobs[s.job].id, s.allocation
		}
		v.Slots[i].Profile = m.profileOf(a, &s)
	}
	return v
}

// profileOf is what a slot has; with Cut, nothing if it is free.
func (m *Machine) profileOf(a *agent, s *slot) cluster.Profile {
	switch {
	case !m.cfg.Cut:
		return m.classes[a.class].profile
	case s.allocation == 0:
		return cluster.Profile{}
	case s.link < 0:
		return m.sizes[^s.link]
	}
	return m.sizes[s.link]
}

// Available is how many slots there are for a job: those that it has, and free ones. Where slots are cut as they are asked
// for, free ones are of the equal size.
func (m *Machine) Available(id cluster.JobID) int {
	n := m.free
	for i := range m.jobs {
		if m.jobs[i].id == id {
			n += m.jobs[i].held
		}
	}
	if m.cfg.Cut {
		for c := range m.classes {
			if cl := &m.classes[c]; cl.agents > 0 {
				n += cl.agents * fit(cl.profile, cl.equal, m.equalOf())
			}
		}
	}
	return n
}
