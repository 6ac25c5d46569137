package appmaster

import (
	"fmt"
	"time"

	"github.com/heddle-stream/heddle/appmaster/plane"
	"github.com/heddle-stream/heddle/appmaster/sched"
	"github.com/heddle-stream/heddle/appmaster/slotmgr"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl"
	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
)

// driverEnv connects the driver to the loop.
func (m *master) driverEnv() DriverEnv {
	return DriverEnv{
		App: m.cfg.App, Attempt: m.cfg.Attempt, AppDir: m.cfg.AppDir, Logger: m.log,
		Environ: m.life.environ(),
		Secrets: m.secretsFor, SecretsLife: m.cfg.Keys.authority.Life(),
		Granted: func(id cluster.AgentID, container cluster.ContainerID, host string) {
			m.post(func() {
				m.agents[id] = &agentRecord{container: container, host: host, asked: m.askedAt(m.counts.Granted), granted: time.Now()}
				m.dirty = true
				m.counts.Granted++
				m.life.granted(id, container, host)
				m.log.Info("starting an agent", "agent", id, "host", host)
				if m.leaving {
					m.cfg.Driver.Return(id, false)
				}
				m.plane.SlotEvent(time.Now(), slotmgr.Granted{Agent: id, Container: container, Host: host})
			})
		},
		Recovered: func(id cluster.AgentID, container cluster.ContainerID, host string) {
			m.post(func() {
				m.agents[id] = &agentRecord{container: container, host: host}
				m.dirty = true
				m.log.Info("expecting an agent of an earlier attempt", "agent", id, "host", host)
				if m.leaving {
					m.cfg.Driver.Return(id, false)
				}
				m.plane.SlotEvent(time.Now(), slotmgr.Recovered{Agent: id, Container: container, Host: host})
			})
		},
		Exited: func(exit AgentExit) { m.post(func() { m.onExit(exit) }) },
		Refused: func(reason string) {
			m.post(func() { m.plane.SlotEvent(time.Now(), slotmgr.AskRefused{Reason: reason}) })
		},
		Draining: func(hosts []string) { m.post(func() { m.draining(hosts) }) },
		Reclaim:  func(agents []cluster.AgentID, count int) { m.post(func() { m.reclaim(agents, count) }) },
	}
}

// secretsFor makes the secrets of one agent. The driver's goroutines call it.
func (m *master) secretsFor(id cluster.AgentID, container cluster.ContainerID) (ctl.AgentSecrets, error) {
	leaf, err := m.cfg.Keys.authority.Agent(m.nameOf(id, container))
	if err != nil {
		return ctl.AgentSecrets{}, err
	}
	return ctl.AgentSecrets{
		App: m.cfg.App, Attempt: m.cfg.Attempt, AgentID: id, ContainerID: string(container), MasterAddr: m.cfg.Advertise,
		Cert: string(leaf.Cert), Key: string(leaf.Key), CA: string(m.cfg.Keys.authority.CertPEM()),
		ExchangeKey: m.cfg.Keys.exchange, Options: m.cfg.Secrets,
	}, nil
}

// onExit notes an agent's end before the slot manager hears of it, so that its last words are at hand.
func (m *master) onExit(exit AgentExit) {
	a := m.agents[exit.Agent]
	if a == nil || a.exit != nil {
		return
	}
	a.exit, a.ended = &exit, time.Now()
	m.counts.Ended++
	if exit.Blame {
		m.counts.Failed++
	}
	m.life.gone(exit.Agent, "it ended before it registered")
	m.dirty = true
	m.log.Info("an agent has ended", "agent", exit.Agent, "reason", exit.Reason)
	m.plane.SlotEvent(time.Now(), slotmgr.Exited{Agent: exit.Agent, Reason: exit.Reason, Blame: exit.Blame})
}

// onRegister handles an agent's first message.
func (m *master) onRegister(s *session, reg *ctlpb.Register) {
	now := time.Now()
	a := m.agents[s.agent]
	if m.leaving {
		m.refuse(s, over)
		return
	}
	if why := m.mismatch(reg); why != "" {
		m.refuse(s, why)
		m.schedEvent(now, sched.Fail{Failure: cluster.Failure{Kind: cluster.Invalid, Message: fmt.Sprintf("agent %s can't run this job: %s", s.agent, why)}})
		return
	}
	if why := m.impostor(s, reg.GetAttempt()); why != "" {
		m.refuse(s, why)
		return
	}
	effects := m.plane.Register(now, slotmgr.Registered{
		Agent: s.agent, Attempt: reg.GetAttempt(), Slots: int(reg.GetSlots()), Host: reg.GetHost(), Rack: reg.GetRack(), Addr: reg.GetExchangeAddr(),
		Total: cluster.Profile{MilliCPU: reg.GetMilliCpu(), MemoryMB: reg.GetMemoryMb(), Custom: cluster.CustomOf(reg.GetCustom())},
	}, m.heldTasks(s.agent, reg.GetTasks()))
	for _, e := range effects {
		switch e := e.(type) {
		case slotmgr.Refuse:
			m.refuse(s, e.Reason)
		case slotmgr.Accept:
			if a.session != nil {
				a.session.finish() // it broke unnoticed
			}
			a.session, a.pid, a.addr = s, int(reg.GetPid()), reg.GetExchangeAddr()
			if a.joined.IsZero() {
				a.joined = now
			}
			if ms := reg.GetStartedMs(); ms > 0 {
				a.started = time.UnixMilli(ms)
			}
			m.probe(s.agent, a.addr, nil)
			switch n := plane.Count(len(reg.GetTasks()), "task"); {
			case e.Back:
				m.warn(fmt.Sprintf("agent %s is back after its session broke, with %s", s.agent, n))
			case e.Former:
				m.warn(fmt.Sprintf("agent %s of an earlier attempt is back, with %s", s.agent, n))
			}
		}
	}
}

// heldTasks are the tasks that an agent says it has. A report that comes with one is taken note of.
func (m *master) heldTasks(agent cluster.AgentID, tasks []*ctlpb.TaskUpdate) (out []plane.HeldTask) {
	for _, up := range tasks {
		state, ok := ctl.State(up.GetState())
		if !ok || up.GetId() == nil {
			m.log.Warn("ignored a task of an agent that registers", "agent", agent, "task", ctl.Execution(up.GetId()), "state", up.GetState())
			continue
		}
		t := plane.HeldTask{
			TaskChanged: sched.TaskChanged{ID: ctl.Execution(up.GetId()), State: state},
			Slot:        int(up.GetSlot()), Allocation: cluster.AllocationID(up.GetAllocation()),
		}
		if state == cluster.Failed || state == cluster.Canceled && up.GetError() != nil {
			t.Failure = ctl.Failure(up.GetError())
		}
		if r := up.GetReport(); r != nil && m.runs(agent, t.ID) {
			m.onReport(r)
		}
		out = append(out, t)
	}
	return out
}

// mismatch says why an agent's program is not this one's, or "".
func (m *master) mismatch(reg *ctlpb.Register) string {
	switch {
	case reg.GetFingerprint() == "":
		return "it could not build the job; its log says why"
	case reg.GetFingerprint() != m.cfg.Graph.Fingerprint:
		return "it built another job than the ApplicationMaster: main() must build the same job in every process," +
			" so it must not depend on time, chance, environment or files that differ"
	}
	return ""
}

func (m *master) refuse(s *session, reason string) {
	if m.strangers.seen("agent "+string(s.agent)+" of "+hostOf(s.peer.Addr), time.Now()) {
		m.log.Warn("refused an agent", "agent", s.agent, "peer", s.peer.Addr, "container", s.peer.Container, "attempt", s.peer.Attempt, "reason", reason)
	}
	s.send(&ctlpb.FromMaster{M: &ctlpb.FromMaster_Refused{Refused: &ctlpb.Refused{Reason: reason}}})
	s.finish()
}

// accept tells an agent that it is in. The answer goes before any order, since the session's queue keeps the order.
func (m *master) accept(e slotmgr.Accept) {
	id := e.Agent
	a := m.agents[id]
	if a.session == nil {
		return // it broke meanwhile
	}
	a.session.accepted = true
	m.life.registered(id, a.started)
	a.session.send(&ctlpb.FromMaster{M: &ctlpb.FromMaster_Registered{Registered: &ctlpb.Registered{
		JobId: string(m.job), HeartbeatMs: m.cfg.HeartbeatInterval.Milliseconds(), TimeoutMs: m.cfg.Agents.HeartbeatTimeout.Milliseconds(),
		Attempt: m.cfg.Attempt, RejoinMs: m.cfg.Rejoin.Milliseconds(),
	}}})
	m.firstCertificate(a)
	m.handTokens(a)
	if groups := m.aligned.all(); groups != nil {
		a.session.send(&ctlpb.FromMaster{M: &ctlpb.FromMaster_Alignment{Alignment: &ctlpb.Alignment{Groups: groups}}})
	}
	m.log.Info("an agent is there", "agent", id, "pid", a.pid)
	if w, ok := m.cfg.Driver.(Witness); ok {
		w.Joined(id)
	}
	if e.Back {
		m.resendSplits(id)
	}
	m.dirty = true
}

// current reports whether a session is its agent's present one: messages of others are too late.
func (m *master) current(s *session) (*agentRecord, bool) {
	a := m.agents[s.agent]
	return a, a != nil && a.session == s
}

// onMessage handles any but an agent's first message.
func (m *master) onMessage(s *session, msg *ctlpb.FromAgent) {
	a, ok := m.current(s)
	if !ok {
		return
	}
	now := time.Now()
	m.plane.SlotEvent(now, slotmgr.Heard{Agent: s.agent})
	switch msg := msg.M.(type) {
	case *ctlpb.FromAgent_Heartbeat:
		a.stats = msg.Heartbeat.GetAgent()
		m.dirty = m.dirty || m.young()
		m.tookTokens(a, string(s.agent), msg.Heartbeat.GetTokens())
		m.tookCertificate(a, msg.Heartbeat.GetCertificateEnds())
		for _, r := range msg.Heartbeat.GetTasks() {
			m.onReport(r)
		}
		s.send(&ctlpb.FromMaster{M: &ctlpb.FromMaster_Ack{Ack: &ctlpb.HeartbeatAck{Seq: msg.Heartbeat.GetSeq()}}})
	case *ctlpb.FromAgent_Task:
		m.onTask(now, s.agent, msg.Task)
	case *ctlpb.FromAgent_HeldBack:
		m.onHeldBack(s.agent, msg.HeldBack)
	case *ctlpb.FromAgent_Profile:
		p := msg.Profile
		m.profiles.part(string(s.agent), p.GetId(), p.GetData(), p.GetLast(), p.GetError(), now)
	case *ctlpb.FromAgent_Goodbye:
		m.plane.SlotEvent(now, slotmgr.Left{Agent: s.agent, Reason: msg.Goodbye.GetReason()})
		if w, ok := m.cfg.Driver.(Witness); ok {
			w.Parted(s.agent, msg.Goodbye.GetReason())
		}
	}
}

// onTask handles the new state of a task. An agent can speak only for its own.
func (m *master) onTask(now time.Time, agent cluster.AgentID, up *ctlpb.TaskUpdate) {
	id := ctl.Execution(up.GetId())
	state, ok := ctl.State(up.GetState())
	if ok && id.Attempt>>attemptBits < int(m.cfg.Attempt) { // an earlier attempt's
		if state.Final() {
			m.plane.Ended(now, agent, 0, id)
		}
		return
	}
	if !ok || up.GetId() == nil || !m.runs(agent, id) {
		m.log.Warn("ignored an update", "agent", agent, "task", id, "state", up.GetState())
		return
	}
	if r := up.GetReport(); r != nil {
		m.onReport(r)
	}
	ev := sched.TaskChanged{ID: id, State: state}
	if state == cluster.Failed {
		ev.Failure = ctl.Failure(up.GetError())
		m.log.Warn("a task failed", "task", m.taskName(id), "agent", agent, "kind", ev.Failure.Kind.String(), "error", ev.Failure.ForLog())
	}
	if state == cluster.Canceled && up.GetError() != nil {
		ev.Failure = ctl.Failure(up.GetError())
	}
	if state == cluster.Canceling && up.GetError() != nil {
		m.warn(fmt.Sprintf("%s on %s: %s", m.taskName(id), agent, ctl.Failure(up.GetError()).Error()))
	}
	m.dirty = true
	m.life.task(id, state)
	m.schedEvent(now, ev)
}

// runs reports whether the scheduler put a task on an agent.
func (m *master) runs(agent cluster.AgentID, id cluster.ExecutionID) bool {
	if id.Vertex < 0 || id.Vertex >= len(m.reports) || id.Subtask < 0 || id.Subtask >= len(m.reports[id.Vertex]) {
		return false
	}
	return m.job0().Execution(id.Vertex, id.Subtask).Slot.Agent == agent
}

func (m *master) taskName(id cluster.ExecutionID) string {
	return fmt.Sprintf("%s %d/%d", m.cfg.Graph.Vertices[id.Vertex].Name, id.Subtask+1, m.cfg.Graph.Vertices[id.Vertex].Parallelism)
}

// onSessionEnd handles the end of a session, whoever ended it.
func (m *master) onSessionEnd(s *session, reason string) {
	a, ok := m.current(s)
	if !ok {
		return
	}
	a.session = nil
	m.profiles.lost(string(s.agent), "the agent's session with the ApplicationMaster broke: "+reason, time.Now())
	m.plane.SlotEvent(time.Now(), slotmgr.SessionBroken{Agent: s.agent, Reason: reason})
}

// onSourceFailed ends the job, since one of its sources can't go on.
func (m *master) onSourceFailed(f cluster.Failure) {
	m.log.Error("a source failed", "error", f.Error())
	m.schedEvent(time.Now(), sched.Fail{Failure: f})
}
