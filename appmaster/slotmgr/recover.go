package slotmgr

import "time"

// onRecovered expects an agent of an earlier attempt to register with this one. It was not asked for, so that it does not count
// as granted; but it may serve, so that fewer are asked for while it is expected.
func (m *Machine) onRecovered(now time.Time, ev Recovered) {
	if _, known := m.byID[ev.Agent]; known {
		return // doubled message
	}
	m.expect(agent{id: ev.Agent, container: ev.Container, node: ev.Host, host: ev.Host, since: now, former: true})
	m.scanBy(now.Add(m.cfg.RecoverTimeout))
}
