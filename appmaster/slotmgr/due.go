package slotmgr

import (
	"fmt"
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
)

// Due returns what is due now: see the package comment.
func (m *Machine) Due(now time.Time) []Effect {
	var out []Effect
	if !m.scanAt.IsZero() && !now.Before(m.scanAt) {
		out = m.scan(now)
	}
	if m.cfg.Cut { // how many agents are lacking depends on how those that are free can be cut
		out = m.grantAll(now, out)
	}
	// Else grants don't change what is lacking, but what is asked for decides whether grants are held back.
	if total := m.granted + m.lacking(); total != m.asked {
		m.asked = total
		out = append(out, Ask{total})
	}
	return m.grantAll(now, out)
}

// Next returns when Due has something to do even if nothing happens before, or the zero time.
func (m *Machine) Next() time.Time {
	next := m.scanAt
	for i := range m.jobs {
		if j := &m.jobs[i]; j.missing() > 0 { // those after it wait for it
			if t := j.wait.Add(m.cfg.SpreadWait); !j.over && m.holding(j.wait) && (next.IsZero() || t.Before(next)) {
				next = t
			}
			break
		}
	}
	return next
}

// scan looks at every agent's clocks, and sets when to do so again.
func (m *Machine) scan(now time.Time) (out []Effect) {
	m.scanAt = time.Time{}
	out = m.readmit(now)
	m.unclaim(now)
	for row := range m.agents {
		if m.agents[row].state != gone {
			out = append(out, m.scanAgent(now, row)...)
		}
	}
	return out
}

func (m *Machine) scanAgent(now time.Time, row int) []Effect {
	a := &m.agents[row]
	over := func(t time.Time) bool { // whether t is past; if not, look again then
		if now.Before(t) {
			m.scanBy(t)
			return false
		}
		return true
	}
	giveUp := func(reason string) []Effect {
		id := a.id
		return append(m.lose(now, id, reason, true), Return{id, reason})
	}
	switch a.state {
	case Starting:
		if m.cfg.RegisterTimeout > 0 && over(a.since.Add(m.cfg.RegisterTimeout)) {
			return giveUp(fmt.Sprintf("it did not register within %v", m.cfg.RegisterTimeout))
		}
	case Probation:
		if a.broken && over(a.since.Add(m.cfg.SessionGrace)) {
			return giveUp(a.why + ", and it did not come back")
		}
		if over(a.heard.Add(m.cfg.HeartbeatTimeout)) {
			why := fmt.Sprintf("no heartbeat for %v", m.cfg.HeartbeatTimeout)
			if a.broken {
				why = a.why + ", and it did not come back"
			}
			return giveUp(why)
		}
	case Alive:
		if over(a.heard.Add(m.cfg.HeartbeatTimeout / 2)) {
			m.become(row, Probation, now)
			a.why = fmt.Sprintf("no heartbeat for %v", m.cfg.HeartbeatTimeout/2)
			return append([]Effect{Suspect{a.id, a.why}}, m.scanAgent(now, row)...)
		}
		if a.barred && a.free == len(a.slots) {
			return []Effect{m.giveBack(now, row)}
		}
		if m.returnable(a) && over(a.idle.Add(m.cfg.IdleTimeout)) {
			id := a.id
			m.remove(row)
			return []Effect{Return{id, fmt.Sprintf("idle for %v", m.cfg.IdleTimeout)}}
		}
	}
	return nil
}

// returnable reports whether an agent may go once it has been idle for long enough.
func (m *Machine) returnable(a *agent) bool {
	return m.cfg.IdleTimeout > 0 && a.free == len(a.slots) &&
		m.count[Alive]+m.count[Starting]+m.count[Probation]-m.barred > m.kept() && m.spares(a)
}

// need is how many slots there should be beyond those that are free: those that jobs lack, and the spare ones.
func (m *Machine) need() int {
	need := m.cfg.SpareAgents*m.cfg.SlotsPerAgent - m.free
	for i := range m.jobs {
		need += m.jobs[i].missing()
	}
	return need
}

// holding reports whether grants to a job that has lacked slots since t wait for agents that are starting,
// so that they can be spread over all of them.
func (m *Machine) holding(t time.Time) bool {
	return m.cfg.EvenlySpread && m.cfg.SpreadWait > 0 && !t.IsZero() && m.starved == "" && (m.count[Starting] > 0 || m.granted < m.asked)
}

// grantAll gives free slots to jobs, in order of arrival: the next one gets nothing before this one has all.
func (m *Machine) grantAll(now time.Time, out []Effect) []Effect {
	for i := range m.jobs {
		j := &m.jobs[i]
		missing := j.missing()
		if missing == 0 {
			j.wait = time.Time{}
			continue
		}
		if j.wait.IsZero() {
			j.wait, j.over = now, false
		}
		j.over = j.over || !now.Before(j.wait.Add(m.cfg.SpreadWait))
		if !j.over && m.holding(j.wait) {
			return out
		}
		if slots := m.grant(i, missing); len(slots) > 0 {
			out = append(out, Grant{j.id, slots})
		}
		if j.missing() > 0 {
			return out
		}
		j.wait = time.Time{}
	}
	return out
}

func (m *Machine) grant(i, missing int) []cluster.Slot {
	if m.free == 0 {
		return nil
	}
	slots := make([]cluster.Slot, 0, min(missing, m.free))
	j := &m.jobs[i]
	for k := range j.reqs {
		for r := &j.reqs[k]; r.have < r.Count; {
			row := m.pick(r.Requirement)
			if row < 0 && m.cfg.Cut {
				row = m.recut(r.Profile)
			}
			if row < 0 {
				break
			}
			slots = append(slots, m.take(row, i, k))
		}
	}
	return slots
}

// pick returns the agent that gives the next slot for r, or -1. Among classes whose slots fit, the smallest profile is tried first.
func (m *Machine) pick(r cluster.Requirement) int {
	best, bestRow := -1, -1
	for c := range m.classes {
		cl := &m.classes[c]
		if !r.Profile.Fits(cl.profile) || best >= 0 && !cl.profile.Fits(m.classes[best].profile) {
			continue
		}
		row := cl.ranking.Least(1)
		if m.cfg.EvenlySpread {
			row = cl.ranking.Most()
		}
		if row >= 0 && m.agents[row].free > 0 {
			best, bestRow = c, row
		}
	}
	return bestRow
}

// take gives the first free slot of an agent to requirement k of job i.
func (m *Machine) take(row, i, k int) cluster.Slot {
	a := &m.agents[row]
	index := a.firstFree - 1
	s := &a.slots[index]
	a.firstFree = s.nextFree
	*s = slot{allocation: m.next, job: int32(i)}
	m.next++
	a.free--
	m.free--
	cl := &m.classes[a.class]
	cl.ranking.Set(row, a.free)
	m.held[s.allocation] = place{agent: int32(row), slot: index, req: int32(k)}
	m.jobs[i].held++
	m.jobs[i].reqs[k].have++
	return cluster.Slot{
		ID:         cluster.SlotID{Agent: a.id, Index: int(index)},
		Allocation: s.allocation, Profile: cl.profile, Host: a.host, Addr: a.addr,
	}
}

// kept is how many agents are kept even when nobody needs them. What was given back because it was wanted back is not fetched again at once.
func (m *Machine) kept() int { return max(0, m.cfg.MinAgents-len(m.returned)) }

// lacking is how many agents are needed beyond those that are there or starting.
func (m *Machine) lacking() int {
	if m.starved != "" {
		return 0
	}
	agents := m.count[Starting] + m.count[Alive] + m.count[Probation]
	lack := max(m.agentsFor()-m.count[Starting], m.kept()-agents+m.barred-m.claims, 0)
	if m.limit > 0 {
		lack = max(0, min(lack, m.limit-agents))
	}
	return lack
}

func ceilDiv(a, b int) int {
	if a <= 0 {
		return 0
	}
	return (a + b - 1) / b
}
