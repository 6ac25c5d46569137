package appmaster

import (
	"fmt"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/appmaster/sched"
	"github.com/heddle-stream/heddle/appmaster/slotmgr"
	"github.com/heddle-stream/heddle/appmaster/slotpool"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl"
	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
)

// Events of the machines: their effects queue up and are performed by turn, in order.

func (m *master) slotEvent(now time.Time, ev slotmgr.Event) { push(m, m.slots.Handle(now, ev)) }

func (m *master) poolEvent(now time.Time, ev slotpool.Event) { push(m, m.pool.Handle(now, ev)) }

func (m *master) schedEvent(now time.Time, ev sched.Event) { push(m, m.sched.Handle(now, ev)) }

func push[E any](m *master, effects []E) bool {
	for _, e := range effects {
		m.effects = append(m.effects, e)
	}
	return len(effects) > 0
}

// turn performs what the machines want until they want nothing more, then tells the driver how many agents are wanted in the end.
func (m *master) turn() {
	now := time.Now()
	for {
		for len(m.effects) > 0 {
			e := m.effects[0]
			m.effects = m.effects[1:]
			m.perform(now, e)
		}
		if state, _ := m.sched.State(); state == sched.Waiting {
			m.pool.Handle(now, slotpool.Outlook{Text: m.outlook(now)})
		}
		// The machines in their fixed order; what one wants may change what is due for the next.
		if !push(m, m.slots.Due(now)) && !push(m, m.pool.Due(now)) && !push(m, m.sched.Due(now)) {
			break
		}
	}
	m.effects = nil
	if m.ask != m.asked {
		m.asked = m.ask
		m.cfg.Driver.Ask(m.ask)
	}
}

func (m *master) perform(now time.Time, effect any) {
	switch e := effect.(type) {
	case slotmgr.Effect:
		m.performSlots(now, e)
	case slotpool.Effect:
		m.performPool(now, e)
	case sched.Effect:
		m.performSched(now, e)
	case splitsFor:
		m.sendSplits(e)
	default:
		panic(fmt.Sprintf("appmaster: unknown effect %T", e))
	}
}

func (m *master) performSlots(now time.Time, effect slotmgr.Effect) {
	switch e := effect.(type) {
	case slotmgr.Accept:
		m.accept(e.Agent)
	case slotmgr.Refuse:
		m.log.Warn("refused an agent", "agent", e.Agent, "reason", e.Reason)
	case slotmgr.Grant:
		m.poolEvent(now, slotpool.Offer{Slots: e.Slots})
	case slotmgr.Ask:
		m.ask = e.Total
	case slotmgr.Return:
		m.log.Info("returning an agent", "agent", e.Agent, "reason", e.Reason)
		m.let(e.Agent, e.Reason)
	case slotmgr.Lost:
		m.lost(now, e)
	case slotmgr.Suspect:
		m.log.Warn("an agent is on probation", "agent", e.Agent, "reason", e.Reason)
		m.dirty = true
	case slotmgr.Trusted:
		m.log.Info("an agent is back from probation", "agent", e.Agent)
		m.dirty = true
	case slotmgr.Starved:
		m.log.Warn("no more agents will be asked for", "reason", e.Reason)
		m.poolEvent(now, slotpool.Starved{Reason: e.Reason})
	}
}

// let asks an agent to go, and its driver to see to it.
func (m *master) let(id cluster.AgentID, reason string) {
	if a := m.agents[id]; a != nil && a.session != nil {
		a.session.send(&ctlpb.FromMaster{M: &ctlpb.FromMaster_Shutdown{Shutdown: &ctlpb.Shutdown{Reason: reason}}})
	}
	m.cfg.Driver.Return(id, false)
}

// lost tells the pool and the scheduler that an agent is gone, and makes sure that it is.
func (m *master) lost(now time.Time, e slotmgr.Lost) {
	m.log.Error("an agent was lost", "agent", e.Agent, "host", e.Host, "reason", e.Reason)
	m.dirty = true
	if a := m.agents[e.Agent]; a != nil {
		a.lost, a.host = e.Reason, e.Host
		if a.exit != nil {
			m.lastLogs = a.exit.LastLogs
		}
		if a.session != nil {
			a.session.finish()
		}
	}
	m.cfg.Driver.Return(e.Agent, true)
	ids := make([]cluster.AllocationID, len(e.Slots))
	for i, s := range e.Slots {
		ids[i] = s.Allocation
	}
	m.poolEvent(now, slotpool.Lost{Allocations: ids})
	m.schedEvent(now, sched.AgentLost{Agent: e.Agent, Reason: e.Reason})
}

func (m *master) performPool(now time.Time, effect slotpool.Effect) {
	switch e := effect.(type) {
	case slotpool.Declare:
		m.slotEvent(now, slotmgr.Declare{Job: m.job, Requirements: e.Requirements})
	case slotpool.Fulfilled:
		m.schedEvent(now, sched.Granted{Bulk: e.Bulk, Slots: e.Slots})
	case slotpool.Failed:
		m.schedEvent(now, sched.Refused{Bulk: e.Bulk, Failure: e.Failure})
	case slotpool.Free:
		m.slotEvent(now, slotmgr.Release{Allocations: e.Allocations})
	}
}

func (m *master) performSched(now time.Time, effect sched.Effect) {
	switch e := effect.(type) {
	case sched.RequestSlots:
		m.poolEvent(now, slotpool.Request{Bulk: e.Bulk, Requests: slotRequests(e.Slots)})
	case sched.WithdrawSlots:
		m.poolEvent(now, slotpool.Withdraw{Bulk: e.Bulk})
	case sched.ReleaseSlots:
		m.poolEvent(now, slotpool.Release{Allocations: e.Allocations})
	case sched.Deploy:
		m.deploy(e)
	case sched.CancelTasks:
		ids := make([]*ctlpb.ExecutionID, len(e.IDs))
		for i, id := range e.IDs {
			ids[i] = ctl.PBExecution(id)
		}
		m.toAgent(e.Agent, &ctlpb.FromMaster{M: &ctlpb.FromMaster_Cancel{Cancel: &ctlpb.Cancel{Ids: ids, Reason: e.Reason}}})
	case sched.GiveUp:
		m.slotEvent(now, slotmgr.Left{Agent: e.Agent, Reason: e.Reason})
	case sched.StateChanged:
		m.log.Info("the job is "+e.To.String(), "was", e.From.String())
		m.dirty = true
	}
}

func slotRequests(slots []sched.SharedSlot) []slotpool.SlotRequest {
	out := make([]slotpool.SlotRequest, len(slots))
	for i, s := range slots {
		out[i] = slotpool.SlotRequest{Group: s.Group, Index: s.Index, Previous: s.Previous}
	}
	return out
}

// toAgent sends a message if the agent has a session. If not, its loss is on its way.
func (m *master) toAgent(id cluster.AgentID, msg *ctlpb.FromMaster) {
	if a := m.agents[id]; a != nil && a.session != nil {
		a.session.send(msg)
	}
}

// orderSize is about how many channels one Deploy message names at most, so that messages stay far below ctl.MaxMessage.
const orderSize = 50_000

// deploy sends an agent its tasks, with the splits known by now, in as few messages as their size allows.
func (m *master) deploy(e sched.Deploy) {
	order, size := &ctlpb.Deploy{}, 0
	flush := func() {
		m.toAgent(e.Agent, &ctlpb.FromMaster{M: &ctlpb.FromMaster_Deploy{Deploy: order}})
		order, size = &ctlpb.Deploy{}, 0
	}
	for _, t := range e.Tasks {
		order.Tasks = append(order.Tasks, m.pbTask(t))
		for _, in := range t.Inputs {
			size += len(in.Channels)
		}
		if size >= orderSize {
			flush()
		}
	}
	if len(order.Tasks) > 0 {
		flush()
	}
	m.log.Info("deployed tasks", "agent", e.Agent, "tasks", len(e.Tasks))
}

func (m *master) pbTask(t sched.Task) *ctlpb.Task {
	out := &ctlpb.Task{Id: ctl.PBExecution(t.ID), Allocation: uint64(t.Allocation), Slot: int32(t.Slot)}
	for _, in := range t.Inputs {
		pb := &ctlpb.Input{Edge: int32(in.Edge), Channels: make([]*ctlpb.Channel, len(in.Channels))}
		for i, c := range in.Channels {
			pb.Channels[i] = &ctlpb.Channel{
				Partition: c.Partition, Subpartition: int32(c.Subpartition), Addr: c.Addr, ConnIndex: c.ConnIndex, Producer: int32(c.Producer),
			}
		}
		out.Inputs = append(out.Inputs, pb)
	}
	for _, o := range t.Outputs {
		out.Outputs = append(out.Outputs, &ctlpb.Output{Edge: int32(o.Edge), Partition: o.Partition, Subpartitions: int32(o.Subpartitions)})
	}
	for _, src := range m.sources {
		if src.vertex == t.ID.Vertex {
			out.Splits, out.NoMoreSplits = pbSplits(src.splits[t.ID.Subtask]), src.final
		}
	}
	return out
}

// outlook says what slots there are and will be.
func (m *master) outlook(now time.Time) string {
	s := m.slots.Supply()
	parts := []string{fmt.Sprintf("%d of %s free on %s", s.Free, count(s.Slots, "slot"), count(s.Alive+s.Probation, "agent"))}
	if s.Starting > 0 {
		starting := count(s.Starting, "agent") + " starting"
		if age := now.Sub(s.Since).Round(time.Second); age > 0 {
			starting += fmt.Sprintf(" for up to %v", age)
		}
		parts = append(parts, starting)
	}
	if s.Asked > 0 {
		parts = append(parts, count(s.Asked, "agent")+" asked for and not granted")
	}
	if s.Limit > 0 && s.Alive+s.Probation+s.Starting+s.Asked >= s.Limit {
		parts = append(parts, fmt.Sprintf("the limit of %s (agents.max) is reached", count(s.Limit, "agent")))
	}
	if s.Starved != "" {
		parts = append(parts, "no more agents will come: "+s.Starved)
	}
	return strings.Join(parts, ", ")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
