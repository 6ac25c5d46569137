package slotmgr

import (
	"slices"

	"github.com/heddle-stream/heddle/internal/cluster"
)

// equalSize is the profile of each of n slots that total is cut into. Custom resources are only for those who ask for them.
func equalSize(total cluster.Profile, n int) cluster.Profile {
	return cluster.Profile{MilliCPU: total.MilliCPU, MemoryMB: total.MemoryMB}.Part(n)
}

// divide makes the slots of an agent that is new. With Cut there are none before they are asked for.
func (m *Machine) divide(row int) {
	a := &m.agents[row]
	if m.cfg.Cut {
		a.left = a.total
		return
	}
	a.class = m.classOf(classKey{profile: a.total.Part(a.most)})
	a.slots, a.free, a.firstFree = make([]slot, a.most), a.most, 1
	for i := range a.slots[:a.most-1] {
		a.slots[i].link = int32(i + 2)
	}
	m.slots += a.most
}

// occupy marks the slots of a new agent that it holds for an earlier attempt. They are of no job that is known.
func (m *Machine) occupy(row int, held []Held) {
	a := &m.agents[row]
	for _, h := range held {
		if _, twice := m.held[h.Allocation]; twice || h.Allocation == 0 || h.Slot < 0 || h.Slot >= maxSlots || !m.cfg.Cut && h.Slot >= len(a.slots) {
			continue
		}
		if m.cfg.Cut {
			m.extend(a, h.Slot+1)
		}
		s := &a.slots[h.Slot]
		if s.allocation != 0 {
			continue
		}
		m.unlist(a, int32(h.Slot))
		i := m.jobOf("")
		s.allocation, s.job, s.link = h.Allocation, int32(i), 0
		a.used++
		if m.cfg.Cut {
			// What it had is not known, so that all is taken to be in use until it is free.
			s.link = int32(m.sizeOf(a.left))
			a.left = cluster.Profile{}
			a.equal += a.most
			m.slots++
		} else {
			a.free--
		}
		m.held[h.Allocation] = place{agent: int32(row), slot: int32(h.Slot), req: -1}
		m.jobs[i].held++
		a.holds++
	}
}

// extend makes room for n slots of an agent. New ones are free, the lowest first.
func (m *Machine) extend(a *agent, n int) {
	for len(a.slots) < n {
		a.slots = append(a.slots, slot{link: a.firstFree})
		a.firstFree = int32(len(a.slots))
	}
}

// unlist takes a free slot out of its agent's list.
func (m *Machine) unlist(a *agent, index int32) {
	for at := &a.firstFree; *at != 0; at = &a.slots[*at-1].link {
		if *at == index+1 {
			*at = a.slots[index].link
			return
		}
	}
}

// equalOf is the size of a slot for who asks for none.
func (m *Machine) equalOf() cluster.Profile { return equalSize(m.cfg.AgentTotal, m.cfg.SlotsPerAgent) }

// size is what is cut for a request, and whether it counts as an equal part.
func (m *Machine) size(p cluster.Profile) (cluster.Profile, bool) {
	if p == (cluster.Profile{}) {
		return m.equalOf(), true
	}
	return p, false
}

func (m *Machine) sizeOf(p cluster.Profile) int {
	i := slices.Index(m.sizes, p)
	if i < 0 {
		i = len(m.sizes)
		m.sizes = append(m.sizes, p)
	}
	return i
}

// pickCut returns the agent that a slot of profile p is cut from, or -1: one that has the least left that p fits or, evenly
// spread, the most.
func (m *Machine) pickCut(p cluster.Profile) int {
	if m.cfg.MaxSlots > 0 && m.slots >= m.cfg.MaxSlots {
		return -1
	}
	p, equal := m.size(p)
	best := -1
	for c := range m.classes {
		cl := &m.classes[c]
		if cl.agents == 0 || !p.Fits(cl.profile) || equal && cl.equal == 0 {
			continue
		}
		if best >= 0 {
			order := cl.profile.Compare(m.classes[best].profile) // negative: it has more
			if order == 0 {
				order = m.classes[best].equal - cl.equal
			}
			if (order < 0) != m.cfg.EvenlySpread {
				continue
			}
		}
		best = c
	}
	if best < 0 {
		return -1
	}
	if m.cfg.EvenlySpread {
		return m.classes[best].ranking.Most()
	}
	return m.classes[best].ranking.Least(0)
}

// cut makes a slot of profile p on an agent that has as much left.
func (m *Machine) cut(row int, p cluster.Profile) (int32, cluster.Profile) {
	a := &m.agents[row]
	p, equal := m.size(p)
	m.leave(row)
	if a.firstFree == 0 {
		m.extend(a, len(a.slots)+1)
	}
	index := a.firstFree - 1
	s := &a.slots[index]
	a.firstFree, s.link = s.link, int32(m.sizeOf(p))
	a.left = a.left.Minus(p)
	a.used++
	m.slots++
	if equal {
		a.equal++
		s.link = ^s.link
	}
	m.enter(row)
	return index, p
}

// putBack makes a slot in use again part of what is left of its agent.
func (m *Machine) putBack(row int, index int32) {
	a := &m.agents[row]
	if a.ranked {
		m.leave(row)
	}
	s := &a.slots[index]
	size := s.link
	if size < 0 {
		size = ^size
		a.equal--
	}
	if m.jobs[s.job].id == "" { // see occupy
		a.equal -= a.most
	}
	a.left = a.left.Plus(m.sizes[size])
	a.used--
	m.slots--
	*s = slot{link: a.firstFree}
	a.firstFree = index + 1
	if a.ranked {
		m.enter(row)
	}
}

// agentsFor is how many agents there should be beyond those that have slots in use or could serve what is lacking.
func (m *Machine) agentsFor() int {
	if !m.cfg.Cut {
		return ceilDiv(m.need(), m.cfg.SlotsPerAgent)
	}
	// Into agents that are there, as far as they go, and into new ones.
	items, spare, n := m.lackingItems(), 0, 0
	for c := range m.classes {
		if cl := &m.classes[c]; cl.agents > 0 {
			used := 0
			if len(items) > 0 {
				used = pack(items, cl.profile, cl.equal, cl.agents)
			}
			spare += min(cl.whole, cl.agents-used)
		}
	}
	for len(items) > 0 {
		used := pack(items, m.cfg.AgentTotal, m.cfg.SlotsPerAgent, 0)
		if used == 0 {
			break // all is served, or no agent could ever have what is left
		}
		n += used
	}
	return n + m.cfg.SpareAgents - spare
}

// item is a number of slots of one size that are lacking.
type item struct {
	size  cluster.Profile
	equal bool
	n     int
}

func (m *Machine) lackingItems() (items []item) {
	total := 0
	for i := range m.jobs {
		for _, r := range m.jobs[i].reqs {
			if lack := r.Count - r.have; lack > 0 {
				size, equal := m.size(r.Profile)
				items = append(items, item{size, equal, lack})
				total += lack
			}
		}
	}
	if m.cfg.MaxSlots > 0 { // what is over it is never served
		for over := total - max(0, m.cfg.MaxSlots-m.slots); over > 0 && len(items) > 0; {
			last := &items[len(items)-1]
			cut := min(over, last.n)
			last.n -= cut
			over -= cut
			if last.n == 0 {
				items = items[:len(items)-1]
			}
		}
	}
	slices.SortStableFunc(items, func(a, b item) int { return a.size.Compare(b.size) })
	return items
}

// pack takes items off that are put, the largest first, into agents that have so much left: into as many as are filled in the
// same way, at most most of them; 0 is any number. It returns how many were used, 0 if nothing fits.
func pack(items []item, left cluster.Profile, equal, most int) int {
	took := make([]int, len(items))
	times := 0
	for i := range items {
		it := &items[i]
		for it.n > took[i] && it.size.Fits(left) && (!it.equal || equal > 0) {
			left = left.Minus(it.size)
			took[i]++
			if it.equal {
				equal--
			}
		}
		if took[i] > 0 && (times == 0 || it.n/took[i] < times) {
			times = it.n / took[i]
		}
	}
	if most > 0 {
		times = min(times, most)
	}
	for i := range items {
		items[i].n -= took[i] * times
	}
	return times
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
		if a := &m.agents[row]; a.ranked && a.used == 0 {
			n++
		}
	}
	return n
}

// fit is how many slots of profile p can be cut from total, at most most.
func fit(total cluster.Profile, most int, p cluster.Profile) (n int) {
	for n < most && p.Fits(total) {
		total = total.Minus(p)
		n++
	}
	return n
}
