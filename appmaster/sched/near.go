package sched

import (
	"slices"

	"github.com/heddle-stream/heddle/internal/cluster"
)

// addWishes says for each slot where the sources that it runs read best.
func (m *Machine) addWishes(slots []SharedSlot) {
	if len(m.near) == 0 {
		return
	}
	for gi := range m.groups {
		g := &m.groups[gi]
		for _, v := range g.vertices {
			for s := range m.graph.Vertices[v].Parallelism {
				n, ok := m.near[[2]int{v, s}]
				if !ok {
					continue
				}
				at := &slots[g.first+s] // a guess for a narrow vertex, until it was placed
				if m.shared != nil {
					at = &slots[m.shared[v][s]]
				}
				at.Hosts, at.Racks = merge(at.Hosts, n.Hosts), merge(at.Racks, n.Racks)
			}
		}
	}
}

// merge adds what is new of more to list.
func merge(list, more []string) []string {
	for _, x := range more {
		if !slices.Contains(list, x) {
			list = append(slices.Clip(list), x)
		}
	}
	return list
}

// nearest places a vertex that is narrower than its group and reads where it matters: each subtask into a slot where it
// reads best, the one with the fewest tasks of those; others into what is left. It returns nil if it does not matter.
func (m *Machine) nearest(g *group, v int, load *load) []int {
	p := m.graph.Vertices[v].Parallelism
	out, taken, matters := make([]int, p), map[int]bool{}, false
	for s := range out {
		out[s] = -1
		n, ok := m.near[[2]int{v, s}]
		if !ok {
			continue
		}
		best, rank := -1, 0
		for i := g.first; i < g.first+g.width; i++ {
			r := distance(n, m.slots[i].Host, m.slots[i].Rack)
			if taken[i] || r < 0 || best >= 0 && (r > rank || r == rank && !load.lighter(i, best)) {
				continue
			}
			best, rank = i, r
		}
		if best >= 0 {
			out[s], taken[best], matters = best, true, true
		}
	}
	if !matters {
		return nil
	}
	rest := slices.DeleteFunc(load.lightest(g.first, g.width, g.width), func(i int) bool { return taken[i] })
	slices.SortStableFunc(rest, func(a, b int) int {
		switch {
		case load.lighter(a, b):
			return -1
		case load.lighter(b, a):
			return 1
		}
		return 0
	})
	for s := range out {
		if out[s] < 0 {
			out[s], rest = rest[0], rest[1:]
		}
	}
	return out
}

// distance is how far down the wishes a place is, -1 if it is not among them.
func distance(n Near, host, rack string) int {
	if i := slices.IndexFunc(n.Hosts, func(x string) bool { return cluster.SameHost(x, host) }); i >= 0 {
		return i
	}
	if i := slices.Index(n.Racks, rack); i >= 0 && rack != "" {
		return len(n.Hosts) + i
	}
	return -1
}

// lighter reports whether slot a has fewer tasks than slot b, by its agent and then by itself.
func (l *load) lighter(a, b int) bool {
	x, y := l.agents[l.agentOf[a]], l.agents[l.agentOf[b]]
	return x < y || x == y && l.slots[a] < l.slots[b]
}
