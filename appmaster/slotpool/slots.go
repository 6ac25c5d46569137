package slotpool

import (
	"slices"

	"github.com/heddle-stream/heddle/internal/cluster"
)

func (m *Machine) add(s cluster.Slot) {
	if _, known := m.byAlloc[s.Allocation]; known {
		return // doubled message
	}
	row := len(m.slots)
	if n := len(m.vacant); n > 0 {
		row, m.vacant = m.vacant[n-1], m.vacant[:n-1]
	} else {
		m.slots = append(m.slots, slot{})
	}
	m.slots[row] = slot{Slot: s, agent: int32(m.agentOf(&s)), class: int32(m.classOf(s.Profile)), pos: -1}
	m.byAlloc[s.Allocation] = row
	m.put(row)
}

func (m *Machine) agentOf(s *cluster.Slot) int {
	a, ok := m.byAgent[s.ID.Agent]
	if ok {
		return a
	}
	home, ok := m.hosts[s.Host]
	if !ok {
		home = len(m.hosts)
		m.hosts[s.Host] = home
	}
	a = len(m.agents)
	m.agents = append(m.agents, agent{id: s.ID.Agent, home: home})
	m.byAgent[s.ID.Agent] = a
	key := cluster.HostKey(s.Host)
	m.byHost[key] = append(m.byHost[key], a)
	if short := cluster.ShortHost(key); short != "" {
		m.byShort[short] = append(m.byShort[short], a)
	}
	if s.Rack != "" {
		m.byRack[s.Rack] = append(m.byRack[s.Rack], a)
	}
	return a
}

func (m *Machine) classOf(p cluster.Profile) int {
	c := slices.IndexFunc(m.classes, func(c class) bool { return c.profile == p })
	if c < 0 {
		c = len(m.classes)
		m.classes = append(m.classes, class{profile: p})
	}
	return c
}

func (m *Machine) sizeOf(p cluster.Profile) int32 {
	i := slices.Index(m.sizes, p)
	if i < 0 {
		i = len(m.sizes)
		m.sizes = append(m.sizes, p)
	}
	return int32(i)
}

// freeOf is an agent's list of free slots of a class, made if there is none.
func (a *agent) freeOf(class int) *freeList {
	for i := range a.free {
		if int(a.free[i].class) == class {
			return &a.free[i]
		}
	}
	a.free = append(a.free, freeList{class: int32(class)})
	return &a.free[len(a.free)-1]
}

// frees is how many free slots an agent has.
func (a *agent) frees() (n int) {
	for i := range a.free {
		n += len(a.free[i].rows)
	}
	return n
}

// vacate makes a slot free that is in use.
func (m *Machine) vacate(row int) {
	if s := &m.slots[row]; s.pos < 0 {
		m.wants(m.sizes[s.want], -1)
		m.put(row)
	}
}

// put makes a slot free that was taken or is new.
func (m *Machine) put(row int) {
	s := &m.slots[row]
	f := m.agents[s.agent].freeOf(int(s.class))
	s.pos, s.want = int32(len(f.rows)), 0
	f.rows = append(f.rows, int32(row))
	m.free++
	m.rank(s, len(f.rows))
}

// take makes a free slot one in use.
func (m *Machine) take(row int, want cluster.Profile) {
	s := &m.slots[row]
	f := m.agents[s.agent].freeOf(int(s.class))
	last := f.rows[len(f.rows)-1]
	f.rows[s.pos], m.slots[last].pos = last, s.pos
	f.rows = f.rows[:len(f.rows)-1]
	s.pos, s.want = -1, m.sizeOf(want)
	m.free--
	m.rank(s, len(f.rows))
}

func (m *Machine) rank(s *slot, n int) {
	r := &m.classes[s.class].ranking
	if n > 0 {
		r.Set(int(s.agent), m.agents[s.agent].home, n)
	} else {
		r.Remove(int(s.agent))
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
