package slotmgr

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// claimed is how long an agent that is wanted back counts as such, and one given back as an answer to it.
const claimed = 30 * time.Second

// onDrain takes note of hosts that are going away. Agents that are starting there would come in vain.
func (m *Machine) onDrain(now time.Time, ev Drain) (out []Effect) {
	next := map[string]bool{}
	for _, h := range ev.Hosts {
		next[h] = true
	}
	if maps.Equal(next, m.draining) {
		return nil
	}
	m.draining = next
	m.bar()
	m.scanBy(now)
	for row := range m.agents {
		if a := &m.agents[row]; a.state == Starting && next[a.node] {
			out = append(out, m.giveBack(now, row))
		}
	}
	return append(out, Exclude{m.Excluded()})
}

// onReclaim gives back what costs least: agents that are starting, then free ones. Of the rest those with fewest slots in use get no
// new ones for a while, so that they may become free; their tasks are left alone, since ending them would cost more than may be saved.
func (m *Machine) onReclaim(now time.Time, ev Reclaim) (out []Effect) {
	m.unclaim(now)
	for _, id := range ev.Agents {
		if row, ok := m.byID[id]; ok {
			m.claim(row, now)
		}
	}
	open := ev.Count - len(m.returned)
	var rows []int
	for row := range m.agents {
		switch a := &m.agents[row]; {
		case a.state == gone:
		case !a.claimed.IsZero():
			open--
		case !a.barred:
			rows = append(rows, row)
		}
	}
	slices.SortStableFunc(rows, func(x, y int) int { return cmp.Compare(m.load(x), m.load(y)) })
	for _, row := range rows[:max(0, min(open, len(rows)))] {
		m.claim(row, now)
	}
	m.bar()
	for row := range m.agents {
		if a := &m.agents[row]; a.state == Starting && !a.claimed.IsZero() && !slices.Contains(ev.Agents, a.id) {
			out = append(out, m.giveBack(now, row))
		}
	}
	return out
}

// load is how much it costs to give an agent back: nothing while it starts, little while it is free.
func (m *Machine) load(row int) int {
	a := &m.agents[row]
	if a.state == Starting {
		return -1
	}
	return a.used
}

func (m *Machine) claim(row int, now time.Time) {
	if m.agents[row].claimed.IsZero() {
		m.claims++
	}
	m.agents[row].claimed = now.Add(claimed)
	m.scanBy(now)
	m.scanBy(now.Add(claimed))
}

// unclaim forgets what was wanted back so long ago that it seems not to be any more.
func (m *Machine) unclaim(now time.Time) {
	m.returned = slices.DeleteFunc(m.returned, func(t time.Time) bool { return !now.Before(t.Add(claimed)) })
	changed := false
	for row := range m.agents {
		switch a := &m.agents[row]; {
		case a.claimed.IsZero() || a.state == gone:
		case now.Before(a.claimed):
			m.scanBy(a.claimed)
		default:
			a.claimed, changed = time.Time{}, true
			m.claims--
		}
	}
	if changed {
		m.bar()
	}
}

// giveBack lets an agent go that is barred and has no slot in use.
func (m *Machine) giveBack(now time.Time, row int) Effect {
	a := &m.agents[row]
	id, why := a.id, "its host is excluded"
	switch {
	case m.draining[a.node]:
		why = fmt.Sprintf("its host %s is going away", a.node)
	case !a.claimed.IsZero():
		why = "it is wanted back, and free"
		m.returned = append(m.returned, now)
		m.scanBy(now.Add(claimed))
	}
	m.remove(row)
	return Return{id, why}
}
