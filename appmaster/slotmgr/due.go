package slotmgr

import (
	"fmt"
	"slices"
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
)

// Due returns what is due now: see the package comment.
func (m *Machine) Due(now time.Time) []Effect {
	var out []Effect
	m.more = false
	if !m.scanAt.IsZero() && !now.Before(m.scanAt) {
		out = m.scan(now)
	}
	// Grants don't change what is lacking, but what is asked for decides whether grants are held back.
	out = m.grantAll(now, m.ask(out))
	if m.cfg.Cut { // what is left of agents, and who can be served from it, depends on where slots were cut
		out = m.ask(out)
	}
	return out
}

func (m *Machine) ask(out []Effect) []Effect {
	if total := m.granted + m.lacking(); total != m.asked {
		m.asked = total
		out = append(out, Ask{total})
	}
	return out
}

// Next returns when Due has something to do even if nothing happens before, or the zero time.
//
// If More reports that there is more, it is due at once.
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

// More reports whether the last Due has left something for the next one.
func (m *Machine) More() bool { return m.more }

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
	if a.holds > 0 && over(a.stopBy) {
		return giveUp(fmt.Sprintf("it did not stop what it ran for an earlier attempt within %v", m.cfg.RecoverTimeout))
	}
	switch a.state {
	case Starting:
		if a.former {
			if over(a.since.Add(m.cfg.RecoverTimeout)) {
				id, reason := a.id, fmt.Sprintf("it did not come back to this attempt within %v", m.cfg.RecoverTimeout)
				return append(m.lose(now, id, reason, false), Return{id, reason})
			}
			return nil
		}
		late := m.cfg.RegisterTimeout > 0 && over(a.since.Add(m.cfg.RegisterTimeout))
		if m.surplus() && (late || m.cfg.IdleTimeout > 0 && over(a.since.Add(m.cfg.IdleTimeout))) {
			id := a.id
			m.remove(row)
			return []Effect{Return{id, "nobody needs it any more, and it has not registered yet"}}
		}
		if late {
			return giveUp(fmt.Sprintf("it did not register within %v", m.cfg.RegisterTimeout))
		}
	case Probation:
		if !a.exitBy.IsZero() {
			if over(a.exitBy) {
				return giveUp(a.why)
			}
			return nil
		}
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
			return append([]Effect{Suspect{Agent: a.id, Reason: a.why}}, m.scanAgent(now, row)...)
		}
		if a.barred && a.used == 0 {
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
	return m.cfg.IdleTimeout > 0 && a.used == 0 &&
		m.count[Alive]+m.count[Starting]+m.count[Probation]-m.barred > m.kept() && m.spares(a)
}

// need is how many slots there should be beyond those that are free: those that jobs lack, and the spare ones.
func (m *Machine) need() int {
	need := m.cfg.SpareAgents*m.cfg.SlotsPerAgent - m.free - m.former()
	for i := range m.jobs {
		need += m.jobs[i].missing()
	}
	return need
}

// former is how many slots are in use for an earlier attempt: they are about to be free.
func (m *Machine) former() int {
	if i := slices.IndexFunc(m.jobs, func(j job) bool { return j.id == "" }); i >= 0 {
		return m.jobs[i].held
	}
	return 0
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
		slots, stopped := m.grant(i, missing)
		if len(slots) > 0 {
			out = append(out, Grant{j.id, slots})
		}
		if m.more = stopped; stopped || j.missing() > 0 {
			return out
		}
		j.wait = time.Time{}
	}
	return out
}

// grant gives free slots to job i, at most a batch; stopped says that there are more.
func (m *Machine) grant(i, missing int) (slots []cluster.Slot, stopped bool) {
	if m.free == 0 && !m.cfg.Cut {
		return nil, false
	}
	j := &m.jobs[i]
	for k := range j.reqs {
		for r := &j.reqs[k]; r.have < r.Count; {
			if len(slots) == m.cfg.GrantBatch {
				return slots, true
			}
			row := -1
			if m.cfg.Cut {
				row = m.pickCut(r.Profile)
			} else {
				row = m.pick(r.Profile)
			}
			if row < 0 {
				break
			}
			if slots == nil {
				slots = make([]cluster.Slot, 0, min(missing, m.cfg.GrantBatch))
			}
			slots = append(slots, m.take(row, i, k))
		}
	}
	return slots, false
}

// pick returns the agent that gives the next slot of a profile, or -1. Among classes whose slots fit, the smallest profile is tried first.
func (m *Machine) pick(p cluster.Profile) int {
	best, bestRow := -1, -1
	for c := range m.classes {
		cl := &m.classes[c]
		if !p.Fits(cl.profile) || best >= 0 && !cl.profile.Fits(m.classes[best].profile) {
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

// take gives a free slot of an agent, or one that is cut from it, to requirement k of job i.
func (m *Machine) take(row, i, k int) cluster.Slot {
	a := &m.agents[row]
	var index int32
	var profile cluster.Profile
	if m.cfg.Cut {
		index, profile = m.cut(row, m.jobs[i].reqs[k].Profile)
	} else {
		index, profile = a.firstFree-1, m.classes[a.class].profile
		a.firstFree = a.slots[index].link
		a.free--
		a.used++
		m.free--
		m.classes[a.class].ranking.Set(row, a.home, a.free)
	}
	s := &a.slots[index]
	s.allocation, s.job = m.next, int32(i)
	m.next++
	m.held[s.allocation] = place{agent: int32(row), slot: index, req: int32(k)}
	m.jobs[i].held++
	m.jobs[i].reqs[k].have++
	return cluster.Slot{
		ID:         cluster.SlotID{Agent: a.id, Index: int(index)},
		Allocation: s.allocation, Profile: profile, Host: a.host, Addr: a.addr, Rack: a.rack,
	}
}

// kept is how many agents are kept even when nobody needs them. What was given back because it was wanted back is not fetched again at once.
func (m *Machine) kept() int { return max(0, m.cfg.MinAgents-len(m.returned)) }

// lacking is how many agents are needed beyond those that are there or starting.
func (m *Machine) lacking() int {
	if m.starved != "" {
		return 0
	}
	lack := max(0, m.beyond())
	if m.limit > 0 {
		lack = max(0, min(lack, m.limit-m.count[Starting]-m.count[Alive]-m.count[Probation]))
	}
	return lack
}

// beyond is how many agents are needed beyond those that are there or starting, if any may come. Negative: so many of them
// that are starting are not needed.
func (m *Machine) beyond() int {
	agents := m.count[Starting] + m.count[Alive] + m.count[Probation]
	return max(m.agentsFor()-m.count[Starting], m.kept()-agents+m.barred-m.claims)
}

// surplus reports whether an agent that is starting is one too many: others came with more slots than was expected, or what it
// was asked for is over.
func (m *Machine) surplus() bool { return m.beyond() < 0 }

func ceilDiv(a, b int) int {
	if a <= 0 {
		return 0
	}
	return (a + b - 1) / b
}
