package slotmgr

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// failure is an agent that failed.
type failure struct {
	at   time.Time
	host string
}

// exclusion is a host that gets no agents for now.
type exclusion struct {
	until  time.Time
	defied int // agents that the driver has started there all the same
}

// defiance is how many agents a driver may start on an excluded host before it is believed to have no other.
const defiance = 3

// blame counts a failure. Too many end the supply of agents, too many of one host exclude it. As many as are kept spare may fail in
// any case: they are there to be lost.
func (m *Machine) blame(now time.Time, host, reason string) (out []Effect) {
	if w := m.cfg.FailureWindow; w > 0 {
		m.failures = slices.DeleteFunc(m.failures, func(f failure) bool { return !now.Before(f.at.Add(w)) })
	}
	m.failures = append(m.failures, failure{now, host})
	if m.cfg.HostFailures > 0 && host != "" && m.failuresOf(host) > m.cfg.HostFailures {
		out = m.exclude(now, host)
	}
	if n := len(m.failures); n > m.cfg.FailureBudget+m.cfg.SpareAgents {
		if n > 1 {
			reason = fmt.Sprintf("%d agents have failed; the last: %s", n, reason)
		}
		out = append(out, m.starve(now, reason)...)
	}
	return out
}

func (m *Machine) failuresOf(host string) (n int) {
	for _, f := range m.failures {
		if f.host == host {
			n++
		}
	}
	return n
}

// exclude gives no more slots on a host for a while. Those in use are left alone.
func (m *Machine) exclude(now time.Time, host string) []Effect {
	if m.excluded[host] != nil {
		return nil
	}
	x := &exclusion{until: now.Add(m.cfg.HostExclusion)}
	m.excluded[host] = x
	m.scanBy(x.until)
	m.bar()
	m.scanBy(now)
	return []Effect{Exclude{m.Excluded()}}
}

// readmit ends the exclusion of hosts whose time is over.
func (m *Machine) readmit(now time.Time) []Effect {
	var over []string
	for _, host := range slices.Sorted(maps.Keys(m.excluded)) {
		if until := m.excluded[host].until; now.Before(until) {
			m.scanBy(until)
		} else {
			over = append(over, host)
		}
	}
	return m.admit(over...)
}

func (m *Machine) admit(hosts ...string) []Effect {
	if len(hosts) == 0 {
		return nil
	}
	for _, host := range hosts {
		delete(m.excluded, host)
	}
	m.bar()
	return []Effect{Exclude{m.Excluded()}}
}

// Excluded returns the hosts that get no agents for now, in alphabetical order.
func (m *Machine) Excluded() []string {
	hosts := maps.Clone(m.draining)
	for h := range m.excluded {
		hosts[h] = true
	}
	return slices.Sorted(maps.Keys(hosts))
}

// bar bars the agents that must get no new slots, and readmits the others.
func (m *Machine) bar() {
	for row := range m.agents {
		a := &m.agents[row]
		barred := m.excluded[a.node] != nil || m.draining[a.node] || !a.claimed.IsZero()
		if a.state == gone || a.barred == barred {
			continue
		}
		a.barred = barred
		if barred {
			m.barred++
		} else {
			m.barred--
		}
		m.rank(row)
	}
}
