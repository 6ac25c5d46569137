package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/heddle-stream/heddle/appmaster/plane"
	"github.com/heddle-stream/heddle/appmaster/sched"
	"github.com/heddle-stream/heddle/appmaster/slotmgr"
	"github.com/heddle-stream/heddle/internal/cluster"
)

// master is the loop of an ApplicationMaster around a real plane: it does what package appmaster's does, with messages for gRPC.
type master struct {
	w       *world
	attempt uint32
	plane   *plane.Plane
	links   map[cluster.AgentID]*link // the present session of each agent
	told    []told                    // reports of tasks, to be told again
	arrived []int                     // jobs in the order in which they first asked for slots
	short   []int                     // jobs that lacked slots after the step before
	held    map[cluster.JobID]int     // slots that jobs had then
}

// told is a report of a task's state.
type told report

// current reports whether this master is the one that runs.
func (m *master) current() bool { return m.w.master == m }

// slotEvent gives the plane an event, sometimes twice: not a registration, which is answered, nor a grant, which drivers report once.
func (m *master) slotEvent(ev slotmgr.Event) []slotmgr.Effect {
	effects := m.plane.SlotEvent(m.w.now, ev)
	switch ev.(type) {
	case slotmgr.Registered, slotmgr.Granted, slotmgr.PortClosed:
	default:
		if m.w.chance(30) {
			m.plane.SlotEvent(m.w.now, ev)
		}
	}
	return effects
}

func (m *master) settle() {
	for _, e := range m.plane.Settle(m.w.now) {
		m.perform(e)
	}
}

func (m *master) perform(e plane.Effect) {
	w := m.w
	switch of := e.Of.(type) {
	case slotmgr.Accept:
		w.log("accept %s%s", of.Agent, map[bool]string{true: " back"}[of.Back])
		if of.Former {
			w.log("%s is of an earlier attempt", of.Agent)
			w.adopted++
		}
		m.send(of.Agent, accepted{m.attempt})
	case slotmgr.Refuse:
		w.log("refuse %s: %s", of.Agent, of.Reason)
	case slotmgr.Ask:
		w.log("ask %d", of.Total)
		w.driver.ask(of.Total)
	case slotmgr.Return:
		w.log("return %s: %s", of.Agent, of.Reason)
		m.send(of.Agent, shutdown{})
		w.driver.end(of.Agent, false)
	case slotmgr.Lost:
		w.log("lost %s: %s", of.Agent, of.Reason)
		if l := m.links[of.Agent]; l != nil {
			l.finish()
			delete(m.links, of.Agent)
		}
		w.driver.end(of.Agent, true)
	case slotmgr.Suspect:
		w.log("suspect %s: %s", of.Agent, of.Reason)
		if of.Addr != "" {
			m.probe(of.Agent)
		}
	case slotmgr.Trusted:
		w.log("trusted %s", of.Agent)
	case slotmgr.Exclude:
		w.log("exclude %v", of.Hosts)
		w.driver.excluded = of.Hosts
	case slotmgr.Starved:
		w.log("starved: %s", of.Reason)
	case sched.Deploy:
		w.log("j%d deploy %s: %v", e.Job+1, of.Agent, ids(of.Tasks))
		m.send(of.Agent, deploy{e.Job, of.Tasks})
	case sched.CancelTasks:
		w.log("j%d cancel %s: %v", e.Job+1, of.Agent, of.IDs)
		m.send(of.Agent, cancel{e.Job, of.IDs})
	case sched.StateChanged:
		why := ""
		if c := m.plane.Jobs[e.Job].Sched.Cause(); c != nil {
			why = ": " + c.Message
		}
		if of.To == sched.Waiting && !slices.Contains(m.arrived, e.Job) {
			m.arrived = append(m.arrived, e.Job)
		}
		w.log("j%d %v -> %v%s", e.Job+1, of.From, of.To, why)
	default:
		panic(fmt.Sprintf("unknown effect %T", e.Of))
	}
}

func ids(tasks []sched.Task) (out []cluster.ExecutionID) {
	for _, t := range tasks {
		out = append(out, t.ID)
	}
	return out
}

// send gives an agent a message, if it has a session.
func (m *master) send(id cluster.AgentID, msg any) {
	if l := m.links[id]; l != nil {
		l.down(msg)
	}
}

// receive handles an agent's message.
func (m *master) receive(l *link, msg any) {
	id := l.agent.id
	if reg, ok := msg.(register); ok {
		m.onRegister(l, reg)
		return
	}
	if m.links[id] != l {
		return // of a session before
	}
	m.slotEvent(slotmgr.Heard{Agent: id})
	switch msg := msg.(type) {
	case heartbeat:
		l.down(ack(msg))
	case report:
		m.onReport(id, msg)
	case goodbye:
		m.slotEvent(slotmgr.Left{Agent: id, Reason: msg.reason})
	}
}

func (m *master) onRegister(l *link, reg register) {
	id := l.agent.id
	var tasks []plane.HeldTask
	for _, t := range reg.tasks {
		tasks = append(tasks, plane.HeldTask{Job: t.job, TaskChanged: t.ev, Slot: t.slot, Allocation: t.alloc})
	}
	effects := m.plane.Register(m.w.now, slotmgr.Registered{
		Agent: id, Attempt: reg.attempt, Slots: reg.slots, Addr: string(id) + ":9", Host: l.agent.host, Total: m.w.cfg.agents.AgentTotal,
	}, tasks)
	for _, e := range effects {
		switch e.(type) {
		case slotmgr.Refuse:
			l.down(refused{})
			l.finish()
		case slotmgr.Accept:
			if old := m.links[id]; old != nil {
				old.finish()
			}
			m.links[id] = l
			if l.agent.given {
				m.w.broken("%s was taken back after it had been given up", id)
			}
		}
	}
}

// onReport handles the new state of a task, of an agent's own only.
func (m *master) onReport(id cluster.AgentID, r report) {
	if era(r.ev.ID) < m.attempt {
		if r.ev.State.Final() {
			m.plane.Ended(m.w.now, id, r.job, r.ev.ID)
		}
		return
	}
	if m.plane.Jobs[r.job].Sched.Execution(r.ev.ID.Vertex, r.ev.ID.Subtask).Slot.Agent != id {
		return
	}
	m.plane.JobEvent(m.w.now, r.job, r.ev)
	m.told = append(m.told, told(r))
	if m.w.chance(10) { // told again, perhaps much later than what followed it
		t := m.told[m.w.rng.IntN(len(m.told))]
		m.plane.JobEvent(m.w.now, t.job, t.ev)
	}
}

// onBroken handles the end of a session.
func (m *master) onBroken(l *link) {
	if m.current() && m.links[l.agent.id] == l {
		delete(m.links, l.agent.id)
		m.slotEvent(slotmgr.SessionBroken{Agent: l.agent.id, Reason: "reset by peer"})
	}
}

// probe is what the host of an agent says, whose session broke, to who connects to its exchange.
func (m *master) probe(id cluster.AgentID) {
	for try := range 3 {
		m.w.after(time.Duration(try)*300*time.Millisecond+m.w.delay(latency), func() {
			if a := m.w.agents[id]; m.current() && !m.w.driver.away && (a.dead || m.w.chance(50)) {
				m.slotEvent(slotmgr.PortClosed{Agent: id})
			}
		})
	}
}

// recover tells the master of agents that an earlier attempt has started and that still run.
func (d *driver) recover(a *agent) {
	d.w.log("recovered %s", a.id)
	a.given = false
	d.master.slotEvent(slotmgr.Recovered{Agent: a.id, Container: cluster.ContainerID(a.id), Host: a.host})
}

// driver starts agents, as well as its faults let it.
type driver struct {
	w        *world
	master   *master
	total    int // of the last ask
	granted  int
	underway int // grants that are being made
	most     int // refuses more; 0: no limit
	surplus  int // grants so many more than were asked for
	slow     time.Duration
	mute     bool // agents don't come up
	away     bool // agents can't be reached: they are not ended
	excluded []string
	host     int
	refused  bool
}

func (d *driver) ask(total int) {
	d.total = total
	for range max(0, total-d.granted-d.underway) + d.surplus {
		d.underway++
		d.w.after(d.w.delay(100*time.Millisecond)+d.slow, d.grant)
	}
	d.surplus = 0
	if d.most > 0 && total > d.most && !d.refused {
		d.refused = true
		d.w.after(d.w.delay(100*time.Millisecond), func() {
			if d.master.current() {
				d.master.slotEvent(slotmgr.AskRefused{Reason: "the cluster is full"})
			}
		})
	}
}

// grant is one container: perhaps one that is not wanted any more, since it was under way.
func (d *driver) grant() {
	d.underway--
	if !d.master.current() || d.most > 0 && d.granted >= d.most {
		return
	}
	d.granted++
	host := fmt.Sprint("h", d.host%max(1, d.w.cfg.hosts)+1)
	d.host++
	if slices.Contains(d.excluded, host) && !d.w.chance(3) {
		host = fmt.Sprint("h", d.host%max(1, d.w.cfg.hosts)+1)
	}
	a := &agent{
		w: d.w, id: cluster.AgentID(fmt.Sprintf("a%d", len(d.w.order)+1)), host: host,
		attempt: d.master.attempt, size: d.w.cfg.agents.SlotsPerAgent, tasks: map[key]*task{},
	}
	d.w.agents[a.id] = a
	d.w.order = append(d.w.order, a)
	d.w.log("granted %s on %s", a.id, host)
	d.master.slotEvent(slotmgr.Granted{Agent: a.id, Container: cluster.ContainerID(a.id), Host: host})
	if d.w.chance(15) { // the wrong size
		a.size = 1 + d.w.rng.IntN(4)
	}
	a.slots = make([]held, a.size)
	if d.mute || d.w.chance(25) {
		return
	}
	d.w.after(d.w.delay(200*time.Millisecond), a.start)
}

// end ends an agent's process: a lost one at once, if it can be reached.
func (d *driver) end(id cluster.AgentID, lost bool) {
	a := d.w.agents[id]
	if a == nil {
		return
	}
	a.given = true
	if d.away {
		return
	}
	wait := d.w.delay(50 * time.Millisecond)
	if !lost {
		wait = d.w.delay(time.Second) // time to go by itself
	}
	if d.w.chance(4) {
		wait += 20 * time.Second // its host can't be reached
	}
	d.w.after(wait, func() { a.die("it was ended", false) })
}

// exited tells the master that a process has ended, sometimes late and twice.
func (d *driver) exited(a *agent, reason string, blame bool) {
	tell := func() {
		if d.master.current() {
			d.master.slotEvent(slotmgr.Exited{Agent: a.id, Reason: reason, Blame: blame})
		}
	}
	d.w.after(d.w.delay(50*time.Millisecond), tell)
	if d.w.chance(10) {
		d.w.after(d.w.delay(5*time.Second), tell)
	}
}
