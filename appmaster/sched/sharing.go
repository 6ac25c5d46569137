package sched

import (
	"cmp"
	"slices"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/flow"
)

// share puts every subtask into one of its group's slots, no two of one vertex into the same.
//
// A vertex as wide as its group takes them in order. A narrower one goes where its co-located vertex went, or the vertex of equal
// parallelism that feeds it subtask by subtask; if there is none, to the agents and there to the slots that have the fewest tasks.
// So a job of many narrow vertices does not pile them up in the first slot.
//
// The next attempts keep what was found: each shared slot is asked for where it was before, so that subtasks come back to
// where their state is, together with those that they shared a slot with.
func (m *Machine) share() {
	if m.shared == nil {
		m.shared = m.sharing()
	}
	for v, slots := range m.shared {
		for s, slot := range slots {
			m.execs[m.first[v]+s].slot = slot
		}
	}
}

// sharing returns by vertex and subtask the index of its slot.
func (m *Machine) sharing() [][]int {
	load := newLoad(m.slots)
	at := make([][]int, len(m.graph.Vertices)) // by vertex and subtask: index of the slot
	for gi := range m.groups {
		g := &m.groups[gi]
		// The widest first: where their tasks are is no choice, and so what the narrower ones are to even out.
		wide := slices.Clone(g.vertices)
		slices.SortStableFunc(wide, func(u, v int) int { return m.graph.Vertices[v].Parallelism - m.graph.Vertices[u].Parallelism })
		for _, v := range wide {
			at[v] = m.place(g, v, at, load)
			for _, slot := range at[v] {
				load.add(slot)
			}
		}
	}
	return at
}

func (m *Machine) place(g *group, v int, at [][]int, load *load) []int {
	p := m.graph.Vertices[v].Parallelism
	if p == g.width {
		out := make([]int, p)
		for s := range out {
			out[s] = g.first + s
		}
		return out
	}
	if like := m.like(g, v); like >= 0 {
		return at[like]
	}
	if at := m.nearest(g, v, load); at != nil {
		return at
	}
	return load.lightest(g.first, g.width, p)
}

// like returns an earlier vertex of g in whose slots v belongs, or -1.
func (m *Machine) like(g *group, v int) int {
	x := &m.graph.Vertices[v]
	for _, u := range g.vertices {
		if u < v && x.CoLocation != "" && m.graph.Vertices[u].CoLocation == x.CoLocation {
			return u
		}
	}
	for _, e := range x.In {
		from := &m.graph.Vertices[m.graph.Edges[e].From]
		oneToOne := m.graph.Edges[e].Kind == flow.Forward || m.graph.Edges[e].Kind == flow.Rescale
		if oneToOne && from.ID < v && from.Parallelism == x.Parallelism && from.SlotGroup == x.SlotGroup {
			return from.ID
		}
	}
	return -1
}

// load counts the tasks of slots and agents.
type load struct {
	agentOf []int // by slot
	slots   []int
	agents  []int
}

func newLoad(slots []cluster.Slot) *load {
	l := &load{agentOf: make([]int, len(slots)), slots: make([]int, len(slots))}
	rows := map[cluster.AgentID]int{}
	for i := range slots {
		row, ok := rows[slots[i].ID.Agent]
		if !ok {
			row = len(rows)
			rows[slots[i].ID.Agent] = row
			l.agents = append(l.agents, 0)
		}
		l.agentOf[i] = row
	}
	return l
}

func (l *load) add(slot int) {
	l.slots[slot]++
	l.agents[l.agentOf[slot]]++
}

// lightest returns n of the slots from first to first+width-1, each next one of the agent that has the fewest tasks by then.
func (l *load) lightest(first, width, n int) []int {
	own := make([][]int, len(l.agents)) // by agent: its slots, lightest first
	var agents cluster.Ranking
	for s := first; s < first+width; s++ {
		own[l.agentOf[s]] = append(own[l.agentOf[s]], s)
	}
	for a := range own {
		slices.SortStableFunc(own[a], func(s, t int) int { return cmp.Compare(l.slots[s], l.slots[t]) })
		if len(own[a]) > 0 {
			agents.Set(a, l.agents[a])
		}
	}
	out := make([]int, 0, n)
	for taken := make([]int, len(own)); len(out) < n; {
		a := agents.Least(0)
		out = append(out, own[a][taken[a]])
		if taken[a]++; taken[a] == len(own[a]) {
			agents.Remove(a)
		} else {
			agents.Set(a, l.agents[a]+taken[a])
		}
	}
	slices.Sort(out) // neighbours stay neighbours
	return out
}
