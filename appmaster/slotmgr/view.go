package slotmgr

import (
	"iter"
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
)

// Supply sums up what there is, for errors and for people.
type Supply struct {
	Alive, Probation, Starting int       // agents
	Asked                      int       // agents asked for that the driver has not granted
	Slots, Free                int       // of agents that are there; those on excluded hosts have none free
	Limit                      int       // the most agents there may be; 0 is no limit
	Starved                    string    // why no more will come, "" if they may
	Since                      time.Time // when the agent that has been starting for longest was granted; zero if none is starting
}

// Supply returns the sums now.
func (m *Machine) Supply() Supply {
	s := Supply{
		Alive: m.count[Alive], Probation: m.count[Probation], Starting: m.count[Starting],
		Asked: max(0, m.asked-m.granted), Slots: m.slots, Free: m.free, Limit: m.limit, Starved: m.starved,
	}
	if s.Starting > 0 {
		for i := range m.agents {
			if a := &m.agents[i]; a.state == Starting && (s.Since.IsZero() || a.since.Before(s.Since)) {
				s.Since = a.since
			}
		}
	}
	return s
}

// Agent is an agent as seen from outside.
type Agent struct {
	ID         cluster.AgentID
	Container  cluster.ContainerID
	Host, Addr string
	State      State
	Why        string // of Probation
	Slot       cluster.Profile
	Free       int
	Heard      time.Time
	Slots      []Use // by index
}

// Use is who has a slot. The zero Use is a free one.
type Use struct {
	Job        cluster.JobID
	Allocation cluster.AllocationID
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
	v := Agent{ID: a.id, Container: a.container, Host: a.host, Addr: a.addr, State: a.state, Why: a.why, Free: a.free, Heard: a.heard}
	if len(a.slots) > 0 {
		v.Slot = m.classes[a.class].profile
		v.Slots = make([]Use, len(a.slots))
	}
	for i, s := range a.slots {
		if s.allocation != 0 {
			v.Slots[i] = Use{m.jobs[s.job].id, s.allocation}
		}
	}
	return v
}
