package appmaster

import (
	"strings"
	"time"

	"github.com/heddle-stream/heddle/appmaster/slotmgr"
	"github.com/heddle-stream/heddle/internal/cluster"
)

// draining takes note of hosts that are going away.
func (m *master) draining(hosts []string) {
	if len(hosts) > 0 {
		m.log.Warn("hosts are going away: no new work there, and agents there go once they are free", "hosts", strings.Join(hosts, ", "), "in-use", m.busyOn(hosts))
	}
	m.plane.SlotEvent(time.Now(), slotmgr.Drain{Hosts: hosts})
	m.dirty = true
}

// busyOn is how many agents on hosts run tasks, which are lost when the hosts go.
func (m *master) busyOn(hosts []string) (n int) {
	for a := range m.plane.Slots.Agents() {
		for _, h := range hosts {
			if r := m.agents[a.ID]; r != nil && r.host == h && a.Free < len(a.Slots) {
				n++
			}
		}
	}
	return n
}

// reclaim gives agents back that are wanted, as far as that costs no task.
func (m *master) reclaim(agents []cluster.AgentID, count int) {
	m.log.Warn("agents are wanted back", "for-certain", len(agents), "in-all-beside", count)
	m.plane.SlotEvent(time.Now(), slotmgr.Reclaim{Agents: agents, Count: count})
	m.dirty = true
}
