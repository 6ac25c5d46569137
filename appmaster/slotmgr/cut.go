package slotmgr

import "github.com/heddle-stream/heddle/internal/cluster"

// equal is the profile of each of n slots that total is cut into.
func equal(total cluster.Profile, n int) cluster.Profile {
	return cluster.Profile{MilliCPU: total.MilliCPU / int64(n), MemoryMB: total.MemoryMB / int64(n)}
}

// fit is how many slots of profile p can be cut from total, at most most. The zero profile is an equal part of it.
func fit(total cluster.Profile, most int, p cluster.Profile) int {
	n := int64(most)
	if p.MilliCPU > 0 {
		n = min(n, total.MilliCPU/p.MilliCPU)
	}
	if p.MemoryMB > 0 {
		n = min(n, total.MemoryMB/p.MemoryMB)
	}
	return int(n)
}

// divide makes an agent that has no slot in use one of n free slots of a profile.
func (m *Machine) divide(row int, p cluster.Profile, n int) {
	a := &m.agents[row]
	m.slots += n - len(a.slots)
	a.class = m.classOf(p)
	a.slots, a.free, a.firstFree = make([]slot, n), n, 1
	for i := range a.slots[:n-1] {
		a.slots[i].nextFree = int32(i + 2)
	}
}

// recut cuts an agent that is wholly free into slots of a profile that none of the slots has, and returns its row, or -1.
// An agent's slots all have one profile, until it is wholly free again.
func (m *Machine) recut(p cluster.Profile) int {
	for row := range m.agents {
		a := &m.agents[row]
		if !a.ranked || a.free < len(a.slots) {
			continue
		}
		n := fit(a.total, a.most, p)
		if n == 0 {
			continue
		}
		m.free -= a.free
		m.classes[a.class].ranking.Remove(row)
		a.ranked = false
		m.divide(row, p, n)
		m.rank(row)
		return row
	}
	return -1
}

// agentsFor is how many agents there should be beyond those that have slots in use or could serve what is lacking.
func (m *Machine) agentsFor() int {
	if !m.cfg.Cut {
		return ceilDiv(m.need(), m.cfg.SlotsPerAgent)
	}
	n := m.cfg.SpareAgents - m.whollyFree()
	for i := range m.jobs {
		for _, r := range m.jobs[i].reqs {
			if per := fit(m.cfg.AgentTotal, m.cfg.SlotsPerAgent, r.Profile); per > 0 { // else no agent could ever have one
				n += ceilDiv(r.Count-r.have, per)
			}
		}
	}
	return n
}

// spares reports whether an agent that is wholly free is one too many.
func (m *Machine) spares(a *agent) bool {
	if !m.cfg.Cut {
		return m.need() <= -a.free
	}
	for i := range m.jobs {
		if m.jobs[i].missing() > 0 {
			return false
		}
	}
	return m.whollyFree() > m.cfg.SpareAgents
}

func (m *Machine) whollyFree() (n int) {
	for row := range m.agents {
		if a := &m.agents[row]; a.ranked && a.free == len(a.slots) {
			n++
		}
	}
	return n
}
