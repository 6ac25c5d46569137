package slotpool

import (
	"slices"

	"github.com/heddle-stream/heddle/internal/cluster"
)

// assignment is a match being made: a free slot for every request, all of them or none.
//
// Claims and preferences are honoured if all requests can be met so; if not, they give way: a small request may sit on the
// only slot that is large enough for another. Without them, the hardest request goes first, each into the smallest
// slot that fits, which finds a full match whenever there is one and profiles can be ordered by size.
type assignment struct {
	m        *Machine
	requests []SlotRequest
	order    []int32 // of requests, the hardest profile first, else as they are
	claims   []int32 // those that had a slot before
	rows     []int32 // by request: 1 + row of the slot; 0: none yet
	out      []cluster.Slot
	done     int
	mark     int32 // pos of the slots that it took

	pass int // index in passes
	next int // in the pass's order
}

// passes are gone through one after the other: each lets its function choose for requests that have no slot yet. Requests
// with a claim of their own go first, so that nobody takes another's former slot while there is a choice.
var passes = [...]struct {
	claims bool
	find   func(*Machine, *SlotRequest) int
}{
	{true, (*Machine).former},
	{true, func(m *Machine, r *SlotRequest) int { return m.onAgent(r, r.Previous.Agent) }},
	{false, (*Machine).preferred},
	{false, (*Machine).any},
	{false, nil}, // where profiles differ and not all were met: begin anew, without claims and preferences
	{false, (*Machine).any},
}

func (m *Machine) begin(requests []SlotRequest) *assignment {
	m.marks++
	a := &assignment{m: m, mark: -1 - m.marks, requests: requests, order: byDifficulty(requests), rows: make([]int32, len(requests))}
	for _, i := range a.order {
		if requests[i].Previous.Agent != "" {
			a.claims = append(a.claims, i)
		}
	}
	return a
}

// try goes on with the match of requests, the first bulk's, for as many steps as are left. If it is not over then, m.match is set.
func (m *Machine) try(requests []SlotRequest, steps *int) ([]cluster.Slot, bool) {
	if m.match == nil {
		if len(requests) > m.free || !m.changed {
			return nil, false
		}
		m.match = m.begin(requests)
		m.match.out = make([]cluster.Slot, len(requests))
	}
	a := m.match
	if !a.run(steps) {
		return nil, false
	}
	m.match = nil
	if a.done < len(requests) {
		a.undo()
		m.changed = false
		return nil, false
	}
	return a.out, true
}

// abandon takes back a match that is not over.
func (m *Machine) abandon() {
	if m.match != nil {
		m.match.undo()
		m.match = nil
	}
}

// run makes steps, and reports whether the match is over, made or not.
func (a *assignment) run(steps *int) bool {
	for a.pass < len(passes) && a.done < len(a.requests) {
		p := &passes[a.pass]
		if p.find == nil {
			if len(a.m.classes) == 1 {
				return true
			}
			a.undo()
			a.pass++
			continue
		}
		order := a.order
		if p.claims {
			order = a.claims
		}
		for ; a.next < len(order); a.next++ {
			i := order[a.next]
			if a.rows[i] != 0 {
				continue
			}
			if *steps == 0 {
				return false
			}
			*steps--
			if row := p.find(a.m, &a.requests[i]); row >= 0 {
				a.take(i, row)
			}
		}
		a.pass, a.next = a.pass+1, 0
	}
	return true
}

func (a *assignment) take(i int32, row int) {
	a.m.take(row, a.requests[i].Profile)
	a.m.slots[row].pos = a.mark
	a.rows[i] = int32(row + 1)
	if a.out != nil {
		a.out[i] = a.m.slots[row].Slot
	}
	a.done++
}

// has reports whether the slot in a row was taken for this match.
func (a *assignment) has(row int) bool { return a != nil && a.m.slots[row].pos == a.mark }

func (a *assignment) undo() {
	for i, row := range a.rows {
		if row != 0 {
			a.m.put(int(row - 1))
			a.rows[i] = 0
		}
	}
	a.done = 0
}

// byDifficulty returns the indices of requests, the hardest profile first, else in their order.
func byDifficulty(requests []SlotRequest) []int32 {
	order := make([]int32, len(requests))
	sorted := true
	for i := range order {
		order[i] = int32(i)
		if i > 0 && requests[i].Profile != requests[i-1].Profile {
			sorted = sorted && requests[i-1].Profile.Compare(requests[i].Profile) <= 0
		}
	}
	if !sorted {
		slices.SortStableFunc(order, func(a, b int32) int { return requests[a].Profile.Compare(requests[b].Profile) })
	}
	return order
}

// former finds the very slot that r had.
func (m *Machine) former(r *SlotRequest) int {
	a, ok := m.byAgent[r.Previous.Agent]
	if !ok {
		return -1
	}
	for i := range m.agents[a].free {
		for _, row := range m.agents[a].free[i].rows {
			if s := &m.slots[row]; s.ID == r.Previous && r.Profile.Fits(s.Profile) {
				return int(row)
			}
		}
	}
	return -1
}

// preferred finds a slot in one of the places that r would like.
func (m *Machine) preferred(r *SlotRequest) int {
	for _, id := range r.Agents {
		if row := m.onAgent(r, id); row >= 0 {
			return row
		}
	}
	for _, host := range r.Hosts {
		if row := m.onHost(r, host); row >= 0 {
			return row
		}
	}
	for _, rack := range r.Racks {
		if row := m.among(r, m.byRack[rack]); row >= 0 {
			return row
		}
	}
	return -1
}

// onHost finds a slot on a host, whose name may lack its domain, or have it where the agents' lacks it; see cluster.SameHost.
func (m *Machine) onHost(r *SlotRequest, name string) int {
	key := cluster.HostKey(name)
	if row := m.among(r, m.byHost[key]); row >= 0 {
		return row
	}
	if short := cluster.ShortHost(key); short != "" {
		return m.among(r, m.byHost[short])
	}
	return m.among(r, m.byShort[key])
}

// among finds a slot of the agent that has most free, of some.
func (m *Machine) among(r *SlotRequest, agents []int) int {
	best, most := -1, 0
	for _, a := range agents {
		if n := m.agents[a].frees(); n > most {
			if row := m.fitting(r, a); row >= 0 {
				best, most = row, n
			}
		}
	}
	return best
}

func (m *Machine) onAgent(r *SlotRequest, id cluster.AgentID) int {
	a, ok := m.byAgent[id]
	if !ok {
		return -1
	}
	return m.fitting(r, a)
}

// any finds a slot by strategy, of the smallest profile that fits.
func (m *Machine) any(r *SlotRequest) int {
	best, at := -1, -1
	for c := range m.classes {
		cl := &m.classes[c]
		if !r.Profile.Fits(cl.profile) || best >= 0 && !smaller(cl.profile, m.classes[best].profile) {
			continue
		}
		a := cl.ranking.Least(1)
		if m.cfg.Strategy == EvenlySpread {
			a = cl.ranking.Most()
		}
		if a >= 0 {
			best, at = c, a
		}
	}
	if best < 0 {
		return -1
	}
	return int(m.agents[at].freeOf(best).rows[0])
}

// fitting finds the smallest free slot of an agent that r fits.
func (m *Machine) fitting(r *SlotRequest, a int) int {
	best := -1
	for i := range m.agents[a].free {
		f := &m.agents[a].free[i]
		p := m.classes[f.class].profile
		if len(f.rows) > 0 && r.Profile.Fits(p) && (best < 0 || smaller(p, m.slots[best].Profile)) {
			best = int(f.rows[0])
		}
	}
	return best
}

// smaller reports whether a slot of profile p should go before one of q.
func smaller(p, q cluster.Profile) bool { return p != q && p.Compare(q) > 0 }
