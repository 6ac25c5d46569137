package appmaster

import (
	"fmt"
	"time"

	"github.com/heddle-stream/heddle/appmaster/sched"
	"github.com/heddle-stream/heddle/appmaster/slotmgr"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl"
	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
	"github.com/heddle-stream/heddle/internal/telemetry"
)

// turn brings the machines to rest and does what they want of the world.
func (m *master) turn() {
	now := time.Now()
	for _, e := range m.plane.Settle(now) {
		m.perform(e.Of)
	}
}

func (m *master) schedEvent(now time.Time, ev sched.Event) { m.plane.JobEvent(now, 0, ev) }

func (m *master) perform(effect any) {
	switch e := effect.(type) {
	case slotmgr.Accept:
		m.accept(e)
	case slotmgr.Refuse:
		m.log.Warn("refused an agent", "agent", e.Agent, "reason", e.Reason)
	case slotmgr.Ask:
		m.counts.Asked = e.Total
		m.asking(e.Total, time.Now())
		m.life.ask(e.Total)
		m.cfg.Driver.Ask(e.Total)
	case slotmgr.Return:
		m.log.Info("returning an agent", "agent", e.Agent, "reason", e.Reason)
		m.counts.Released++
		m.let(e.Agent, e.Reason)
	case slotmgr.Lost:
		m.lost(e)
	case slotmgr.Suspect:
		m.log.Warn("an agent is on probation", "agent", e.Agent, "reason", e.Reason)
		if d, ok := m.cfg.Driver.(Suspecter); ok {
			d.Suspect(e.Agent)
		}
		if a := m.agents[e.Agent]; a != nil && e.Addr != "" && a.listens {
			m.probe(e.Agent, e.Addr, func() { m.plane.SlotEvent(time.Now(), slotmgr.PortClosed{Agent: e.Agent}) })
		}
		m.dirty = true
	case slotmgr.Trusted:
		m.log.Info("an agent is back from probation", "agent", e.Agent)
		m.dirty = true
	case slotmgr.Exclude:
		m.exclude(e.Hosts)
	case slotmgr.Starved:
		m.warn("no more agents will be asked for: " + e.Reason)
	case sched.Deploy:
		m.deploy(e)
	case sched.CancelTasks:
		ids := make([]*ctlpb.ExecutionID, len(e.IDs))
		for i, id := range e.IDs {
			ids[i] = ctl.PBExecution(id)
		}
		m.toAgent(e.Agent, &ctlpb.FromMaster{M: &ctlpb.FromMaster_Cancel{Cancel: &ctlpb.Cancel{Ids: ids, Reason: e.Reason}}})
	case sched.StateChanged:
		m.log.Info("the job is "+e.To.String(), "was", e.From.String())
		m.became(e, time.Now())
		m.dirty = true
	default:
		panic(fmt.Sprintf("appmaster: unknown effect %T", e))
	}
}

// let asks an agent to go, and its driver to see to it.
func (m *master) let(id cluster.AgentID, reason string) {
	if a := m.agents[id]; a != nil && a.session != nil {
		a.session.send(&ctlpb.FromMaster{M: &ctlpb.FromMaster_Shutdown{Shutdown: &ctlpb.Shutdown{Reason: reason}}})
	}
	m.cfg.Driver.Return(id, false)
}

// exclude tells the driver where it shall start no agents.
func (m *master) exclude(hosts []string) {
	if len(hosts) > 0 {
		m.warn(fmt.Sprintf("hosts on which agents keep failing, or that are going away, get no agents for now: %v", hosts))
	}
	if d, ok := m.cfg.Driver.(Excluder); ok {
		d.Exclude(hosts)
	}
}

// lost makes sure that an agent is gone.
func (m *master) lost(e slotmgr.Lost) {
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
	flush := func(more bool) {
		order.More = more
		m.toAgent(e.Agent, &ctlpb.FromMaster{M: &ctlpb.FromMaster_Deploy{Deploy: order}})
		order, size = &ctlpb.Deploy{}, 0
	}
	ids := make([]cluster.ExecutionID, len(e.Tasks))
	for i, t := range e.Tasks {
		ids[i] = t.ID
	}
	trace := telemetry.Traceparent(m.life.deploying(e.Agent, ids))
	for i, t := range e.Tasks {
		pb := m.pbTask(t)
		pb.Traceparent = trace
		order.Tasks = append(order.Tasks, pb)
		for _, in := range t.Inputs {
			size += len(in.Channels)
		}
		if last := i == len(e.Tasks)-1; last || size >= orderSize {
			flush(!last)
		}
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
