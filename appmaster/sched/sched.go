package sched

import (
	"fmt"
	"slices"
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/jobgraph"
)

// Config is how a Machine behaves. It must not change after New.
type Config struct {
	FirstAttempt  int           // number of the first attempt to run the job; executions of lower ones are an earlier master's
	Mode          Mode          // how wide the job is made; nil: Fixed
	Restart       Restart       // nil: Never
	CancelTimeout time.Duration // how long agents have to stop their tasks before they are given up; 0 means 30 s
}

// execution is one subtask's present attempt.
type execution struct {
	id      cluster.ExecutionID
	state   cluster.TaskState
	since   time.Time
	slot    int // in Machine.slots; -1: none
	failure cluster.Failure
}

// Machine is the scheduler of one job.
type Machine struct {
	// Immutable after New.
	cfg Config
	job *jobgraph.Graph // as its author made it

	// Of an attempt.
	graph  *jobgraph.Graph // job, as wide as it is made
	groups []group         // in order of their first vertex
	first  []int           // by vertex: index of its subtask 0 in execs; and one more: their number

	near      map[[2]int]Near // by vertex and subtask
	wished    bool            // the last request had no regard for all that is in near
	available int             // slots

	state    State
	since    time.Time
	attempt  int
	execs    []execution
	open     int                       // executions that are not final
	byState  [][cluster.Failed + 1]int // by vertex
	slots    []cluster.Slot            // those granted, in the order of the request
	byAgent  map[cluster.AgentID][]int // executions deployed to an agent
	pending  []int                     // by group: executions that have not finished
	freed    []bool                    // by group: its slots were given back
	previous []cluster.SlotID          // slots of the attempt before
	shared   [][]int                   // by vertex and subtask: index in slots; the same in all attempts
	bulk     int                       // of the last request
	cause    *Cause
	deadline time.Time // when to give up agents, or to restart
	gaveUp   bool
	held     bool // Checked has not come: nothing is deployed
}

// group is a slot sharing group: as many slots as its widest vertex has subtasks.
type group struct {
	name     string
	vertices []int
	width    int
	first    int             // its slot 0 in Machine.slots
	profile  cluster.Profile // of each slot
}

// New returns a Machine for a compiled job that has not started.
func New(cfg Config, g *jobgraph.Graph) (*Machine, error) {
	if cfg.Restart == nil {
		cfg.Restart = Never{}
	}
	if cfg.CancelTimeout == 0 {
		cfg.CancelTimeout = 30 * time.Second
	}
	if cfg.Mode == nil {
		cfg.Mode = Fixed{}
	}
	m := &Machine{cfg: cfg, job: g, attempt: cfg.FirstAttempt, near: map[[2]int]Near{}}
	if err := m.take(g); err != nil {
		return nil, err
	}
	m.reset(time.Time{})
	return m, nil
}

// take makes g the graph of the attempts to come.
func (m *Machine) take(g *jobgraph.Graph) error {
	if g == m.graph {
		return nil
	}
	m.graph, m.groups, m.shared, m.previous = g, nil, nil, nil
	m.first = make([]int, len(g.Vertices)+1)
	for v := range g.Vertices {
		m.first[v+1] = m.first[v] + g.Vertices[v].Parallelism
	}
	return m.makeGroups()
}

func (m *Machine) makeGroups() error {
	where := map[string]int{} // co-location group: its slot sharing group
	for v := range m.graph.Vertices {
		x := &m.graph.Vertices[v]
		i := slices.IndexFunc(m.groups, func(g group) bool { return g.name == x.SlotGroup })
		if i < 0 {
			i = len(m.groups)
			m.groups = append(m.groups, group{name: x.SlotGroup, profile: m.graph.Profiles[x.SlotGroup]})
		}
		m.groups[i].vertices = append(m.groups[i].vertices, v)
		m.groups[i].width = max(m.groups[i].width, x.Parallelism)
		if x.CoLocation == "" {
			continue
		}
		if other, ok := where[x.CoLocation]; ok && other != i {
			return fmt.Errorf("cannot co-locate %s in group %s: its slot sharing group is %q, others of the group have %q",
				x.Name, x.CoLocation, x.SlotGroup, m.groups[other].name)
		}
		where[x.CoLocation] = i
	}
	n := 0
	for i := range m.groups {
		m.groups[i].first = n
		n += m.groups[i].width
	}
	return nil
}

// reset makes new executions for the present attempt.
func (m *Machine) reset(now time.Time) {
	m.execs = make([]execution, m.first[len(m.graph.Vertices)])
	m.byState = make([][cluster.Failed + 1]int, len(m.graph.Vertices))
	m.byAgent = map[cluster.AgentID][]int{}
	m.open = len(m.execs)
	m.slots = nil
	m.gaveUp = false
	m.pending, m.freed = make([]int, len(m.groups)), make([]bool, len(m.groups))
	for i, g := range m.groups {
		for _, v := range g.vertices {
			m.pending[i] += m.graph.Vertices[v].Parallelism
		}
	}
	for v := range m.graph.Vertices {
		p := m.graph.Vertices[v].Parallelism
		m.byState[v][cluster.Created] = p
		for s := range p {
			m.execs[m.first[v]+s] = execution{id: cluster.ExecutionID{Vertex: v, Subtask: s, Attempt: m.attempt}, since: now, slot: -1}
		}
	}
}

// Handle applies ev and returns what follows from it.
func (m *Machine) Handle(now time.Time, ev Event) []Effect {
	if m.state.Final() {
		return nil
	}
	switch ev := ev.(type) {
	case Start:
		if m.state == Created {
			m.held = ev.Held
			return m.request(now)
		}
	case Checked:
		if m.held {
			m.held = false
			return m.onChecked(now)
		}
	case Near:
		m.near[[2]int{ev.Vertex, ev.Subtask}] = ev
		m.wished = true
	case Available:
		m.available = ev.Slots
	case Granted:
		return m.onGranted(now, ev)
	case Refused:
		if m.state == Waiting && ev.Bulk == m.bulk {
			return m.fail(now, Cause{Failure: ev.Failure, At: now})
		}
	case TaskChanged:
		return m.onTaskChanged(now, ev)
	case AgentReturned:
		return m.onAgentReturned(now, ev)
	case AgentLost:
		return m.onAgentLost(now, ev)
	case Fail:
		return m.fail(now, Cause{Failure: ev.Failure, At: now})
	case Cancel:
		return m.onCancel(now, ev)
	default:
		panic(fmt.Sprintf("sched: unknown event %T", ev))
	}
	return nil
}

// Due returns what is due now.
func (m *Machine) Due(now time.Time) []Effect {
	if m.deadline.IsZero() || now.Before(m.deadline) {
		return nil
	}
	m.deadline = time.Time{}
	if m.state == Restarting {
		return m.restart(now)
	}
	return m.giveUp()
}

// restart begins the next attempt. The slots of the one before are held until now, so that nobody else gets them meanwhile.
// If the job gets other widths, they are let go first: where it is spread best is decided anew.
func (m *Machine) restart(now time.Time) (out []Effect) {
	next := m.cfg.Mode.Graph(m.job, m.available)
	if len(m.slots) > 0 {
		out = append(out, m.release()...)
		if m.slots = nil; next != m.graph {
			m.deadline = now // the request follows once that was done
			return out
		}
	}
	m.attempt++
	m.cause = nil
	if err := m.take(next); err != nil {
		panic("sched: a mode made a graph that can't be: " + err.Error()) // a job that is valid stays so at any width
	}
	m.reset(now)
	return append(out, m.request(now)...)
}

// Next returns when Due has something to do even if nothing happens before, or the zero time.
func (m *Machine) Next() time.Time { return m.deadline }

func (m *Machine) become(now time.Time, to State) StateChanged {
	from := m.state
	m.state, m.since, m.deadline = to, now, time.Time{}
	return StateChanged{from, to}
}

func (m *Machine) request(now time.Time) []Effect {
	r := m.requestSlots()
	if len(r.Slots) == 0 { // a job without operators
		return []Effect{m.become(now, Finished)}
	}
	return []Effect{m.become(now, Waiting), r}
}

func (m *Machine) requestSlots() RequestSlots {
	m.bulk++
	m.wished = false
	r := RequestSlots{Bulk: m.bulk, Slots: make([]SharedSlot, 0, m.Slots())}
	for _, g := range m.groups {
		for i := range g.width {
			s := SharedSlot{Group: g.name, Index: i, Profile: g.profile}
			if m.previous != nil {
				s.Previous = m.previous[g.first+i]
			}
			r.Slots = append(r.Slots, s)
		}
	}
	m.addWishes(r.Slots)
	return r
}

// onChecked begins, since what the job reads is there. If it became known meanwhile where that is, other slots may be better.
func (m *Machine) onChecked(now time.Time) []Effect {
	switch {
	case m.state != Waiting || !m.wished:
		return m.begin(now)
	case m.slots != nil:
		return m.again(now)
	}
	last := m.bulk
	r := m.requestSlots()
	r.Replaces = last
	return []Effect{r}
}

// again asks for other slots than those that are there, of which some were lost.
func (m *Machine) again(now time.Time) []Effect {
	release := ReleaseSlots{allocations(m.slots)}
	m.slots = nil
	return append([]Effect{release}, m.request(now)[1:]...) // it stays Waiting
}

func (m *Machine) onGranted(now time.Time, ev Granted) []Effect {
	if m.state != Waiting || ev.Bulk != m.bulk {
		return []Effect{ReleaseSlots{allocations(ev.Slots)}} // withdrawn meanwhile
	}
	m.slots = ev.Slots
	return m.begin(now)
}

// begin deploys every task, once the slots are there and the job is not held.
func (m *Machine) begin(now time.Time) []Effect {
	if m.held || m.state != Waiting || m.slots == nil {
		return nil
	}
	m.previous = make([]cluster.SlotID, len(m.slots))
	for i := range m.slots {
		m.previous[i] = m.slots[i].ID
	}
	m.share()
	for i := range m.execs {
		m.set(now, i, cluster.Scheduled)
	}
	out := m.deploy(now)
	return append(out, m.become(now, Running))
}

func allocations(slots []cluster.Slot) []cluster.AllocationID {
	ids := make([]cluster.AllocationID, len(slots))
	for i := range slots {
		ids[i] = slots[i].Allocation
	}
	return ids
}

// set moves an execution to a state.
func (m *Machine) set(now time.Time, i int, to cluster.TaskState) {
	e := &m.execs[i]
	by := &m.byState[e.id.Vertex]
	by[e.state]--
	by[to]++
	if to.Final() {
		m.open--
	}
	e.state, e.since = to, now
}

// find returns the index of an execution of the present attempt, or -1.
func (m *Machine) find(id cluster.ExecutionID) int {
	if id.Vertex < 0 || id.Vertex >= len(m.graph.Vertices) || id.Subtask < 0 || id.Subtask >= m.graph.Vertices[id.Vertex].Parallelism || id.Attempt != m.attempt {
		return -1
	}
	return m.first[id.Vertex] + id.Subtask
}

func (m *Machine) onTaskChanged(now time.Time, ev TaskChanged) []Effect {
	i := m.find(ev.ID)
	if i < 0 || ev.State <= m.execs[i].state || m.execs[i].state.Final() || m.execs[i].slot < 0 {
		return nil
	}
	e := &m.execs[i]
	stopping := e.state == cluster.Canceling
	m.set(now, i, ev.State)
	switch {
	case ev.State == cluster.Failed:
		e.failure = ev.Failure
		return m.fail(now, m.causeOf(now, i, ev.Failure))
	case ev.State == cluster.Canceled && (!stopping || ev.Failure.Message != ""):
		return m.fail(now, m.stoppedUnasked(now, i, ev.Failure))
	case ev.State == cluster.Finished:
		return append(m.finished(i), m.settle(now)...)
	case ev.State.Final():
		return m.settle(now)
	}
	return nil
}

// finished gives the slots of a group back whose last task has finished: all that they emitted was consumed, so nobody needs
// them any more. Before the last task of the job has, that is: settle sees to the rest.
func (m *Machine) finished(i int) []Effect {
	name := m.graph.Vertices[m.execs[i].id.Vertex].SlotGroup
	g := slices.IndexFunc(m.groups, func(g group) bool { return g.name == name })
	if m.pending[g]--; m.pending[g] > 0 || m.open == 0 || m.state != Running {
		return nil
	}
	m.freed[g] = true
	return []Effect{ReleaseSlots{allocations(m.slots[m.groups[g].first:][:m.groups[g].width])}}
}

// release gives back the slots that the attempt still has.
func (m *Machine) release() []Effect {
	var ids []cluster.AllocationID
	for g := range m.groups {
		if !m.freed[g] {
			m.freed[g] = true
			ids = append(ids, allocations(m.slots[m.groups[g].first:][:m.groups[g].width])...)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return []Effect{ReleaseSlots{ids}}
}

func (m *Machine) causeOf(now time.Time, i int, f cluster.Failure) Cause {
	e := &m.execs[i]
	return Cause{Failure: f, At: now, Task: e.id, OfTask: true, Agent: m.slots[e.slot].ID.Agent, secondary: f.Secondary()}
}

// stoppedUnasked is the cause when an agent stopped a task by itself: because it was told to end, for example. It explains
// the lost connections of others, of which the news may come first, even after those have made us stop the task too.
func (m *Machine) stoppedUnasked(now time.Time, i int, f cluster.Failure) Cause {
	if f.Message == "" {
		f = cluster.Failure{Kind: cluster.Cancelled, Message: "its agent stopped it without being asked to"}
	}
	c := m.causeOf(now, i, f)
	c.secondary = false
	return c
}

func (m *Machine) onAgentLost(now time.Time, ev AgentLost) []Effect {
	if m.state == Waiting && slices.ContainsFunc(m.slots, func(s cluster.Slot) bool { return s.ID.Agent == ev.Agent }) {
		return m.again(now) // nothing ran yet: others will do
	}
	f := cluster.Failure{Kind: cluster.Lost, Message: fmt.Sprintf("agent %s was lost: %s", ev.Agent, ev.Reason), Peer: string(ev.Agent)}
	hit := false
	for _, i := range m.byAgent[ev.Agent] {
		if e := &m.execs[i]; !e.state.Final() {
			e.failure = f
			m.set(now, i, cluster.Failed)
			hit = true
		}
	}
	if !hit {
		return nil // it had nothing to do with us any more
	}
	return m.fail(now, Cause{Failure: f, At: now, Agent: ev.Agent})
}

// fail notes c as the job's cause if it is the first that explains itself, and stops what still runs.
func (m *Machine) fail(now time.Time, c Cause) []Effect {
	c.Failure = c.Failure.Fit()
	if m.state != Canceling && (m.cause == nil || m.cause.secondary && !c.secondary) {
		m.cause = &c
	}
	if m.state == Failing || m.state == Canceling {
		return m.settle(now)
	}
	return m.stop(now, Failing, "the job failed")
}

func (m *Machine) onCancel(now time.Time, ev Cancel) []Effect {
	if m.state == Failing || m.state == Canceling {
		return nil
	}
	m.cause = nil
	return m.stop(now, Canceling, ev.Reason)
}

// stop tells every task to end.
func (m *Machine) stop(now time.Time, to State, reason string) (out []Effect) {
	if m.state == Waiting {
		out = append(out, WithdrawSlots{m.bulk})
	}
	out = append(out, m.become(now, to))
	m.deadline = now.Add(m.cfg.CancelTimeout)
	for i := range m.execs {
		switch s := m.execs[i].state; {
		case s < cluster.Deploying:
			m.set(now, i, cluster.Canceled)
		case s < cluster.Canceling:
			m.set(now, i, cluster.Canceling)
		}
	}
	for _, agent := range m.agentsInOrder() {
		if ids := m.canceling(agent); len(ids) > 0 {
			out = append(out, CancelTasks{agent, ids, reason})
		}
	}
	return append(out, m.settle(now)...)
}

// agentsInOrder returns the agents that have slots of the job, in the order of the slots.
func (m *Machine) agentsInOrder() (ids []cluster.AgentID) {
	seen := map[cluster.AgentID]bool{}
	for i := range m.slots {
		if id := m.slots[i].ID.Agent; !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids
}

func (m *Machine) canceling(agent cluster.AgentID) (ids []cluster.ExecutionID) {
	for _, i := range m.byAgent[agent] {
		if m.execs[i].state == cluster.Canceling {
			ids = append(ids, m.execs[i].id)
		}
	}
	return ids
}

// giveUp ends the wait for agents that don't stop their tasks.
func (m *Machine) giveUp() (out []Effect) {
	if m.gaveUp {
		return nil
	}
	m.gaveUp = true
	for _, agent := range m.agentsInOrder() {
		if n := len(m.canceling(agent)); n > 0 {
			out = append(out, GiveUp{agent, fmt.Sprintf("it did not stop %d of its tasks within %v", n, m.cfg.CancelTimeout)})
		}
	}
	return out
}

// settle ends the job, or its attempt, when the last task has ended.
func (m *Machine) settle(now time.Time) []Effect {
	if m.open > 0 {
		return nil
	}
	if m.state == Failing {
		if delay, again := m.cfg.Restart.Next(m.Attempt(), *m.cause); again {
			out := []Effect{m.become(now, Restarting)} // with its slots
			m.deadline = now.Add(delay)
			return out
		}
	}
	var out []Effect
	if len(m.slots) > 0 {
		out = m.release()
	}
	switch m.state {
	case Running:
		return append(out, m.become(now, Finished))
	case Canceling:
		return append(out, m.become(now, Canceled))
	}
	return append(out, m.become(now, Failed))
}
