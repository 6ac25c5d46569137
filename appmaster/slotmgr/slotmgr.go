package slotmgr

import (
	"fmt"
	"slices"
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
)

// maxSlots bounds what an agent may offer, so that a wrong number can't fill the memory.
const maxSlots = 10_000

// State is where an agent stands.
type State uint8

// States of an agent.
const (
	Starting  State = iota // granted by the driver, not registered yet
	Alive                  // registered and heard of
	Probation              // silent for a while, or its session broke: keeps its slots, gets no new ones
	gone                   // its place in the table is free
)

func (s State) String() string {
	return [...]string{"starting", "alive", "probation", "gone"}[s]
}

// agent is one row of the table.
type agent struct {
	id        cluster.AgentID
	container cluster.ContainerID
	node      string // where the driver started it: what is excluded
	host      string // what it calls that host itself
	rack      string
	addr      string
	state     State
	class     int // index in classes
	home      int // index in nodes
	total     cluster.Profile
	most      int             // slots that it was cut into; with Cut, those of the equal size that it can have
	left      cluster.Profile // with Cut: of total, what slots in use have not
	equal     int             // with Cut: slots in use that are of the equal size
	slots     []slot          // by index
	firstFree int32           // 1 + index of the first free slot; 0 is none
	free      int             // number of free slots; with Cut: 0
	used      int             // number of slots in use
	since     time.Time       // when it came into its state
	heard     time.Time       // last sign of life
	idle      time.Time       // when its last used slot was freed
	broken    bool            // its session broke: it is lost SessionGrace after since
	exitBy    time.Time       // zero, or its process is gone: it is lost by then, whether its driver has said why or not
	barred    bool            // its host is excluded or going away, or it is wanted back: it gets no new slots, and goes once it is free
	claimed   time.Time       // until when it counts as wanted back; zero: it is not
	ranked    bool            // it is in its class's ranking, and its free slots count as free
	former    bool            // an attempt before this one has started it
	holds     int             // slots in use for that attempt
	stopBy    time.Time       // when they must be free
	refusals  int             // connections that its host has refused since its session broke
	why       string          // of Probation
}

type slot struct {
	allocation cluster.AllocationID // 0 is free
	job        int32                // index in jobs
	link       int32                // of a free one: as firstFree; of one in use, with Cut: index in sizes, or ^index if it is of the equal size
}

// class is a set of agents that are alike in what one slot of theirs can be, ranked by how many they have free, by agent and by
// node. With Cut they are alike in all that is left of them, and each counts 1. Only agents that may give slots are ranked.
type class struct {
	classKey
	ranking cluster.Spread
	agents  int // ranked
	whole   int // of them, with Cut, those with no slot in use
}

type classKey struct {
	profile cluster.Profile // of a slot; with Cut: left
	equal   int             // with Cut: slots of the equal size that may still be cut; else 0
}

type job struct {
	id   cluster.JobID
	reqs []req
	held int       // slots it has
	wait time.Time // since when it lacks slots; zero if it lacks none
	over bool      // it has lacked them for SpreadWait: nothing is held back any more
}

type req struct {
	cluster.Requirement
	have int
}

type place struct {
	agent, slot int32
	req         int32
}

// Machine is the slot manager's state.
type Machine struct {
	cfg Config

	agents  []agent                 // dense; rows of gone agents are reused
	byID    map[cluster.AgentID]int // the not gone ones
	vacant  []int                   // rows to reuse
	nodes   map[string]int          // by name, numbered from 0
	classes []class                 // few
	byKey   map[classKey]int        // index in classes
	sizes   []cluster.Profile       // with Cut: of slots; few
	jobs    []job                   // in order of arrival; a job that needs nothing keeps its row
	held    map[cluster.AllocationID]place
	next    cluster.AllocationID

	more      bool      // the last Due has left grants for the next, which is due at once
	asked     int       // the total of the last Ask
	granted   int       // Granted events so far
	count     [gone]int // agents by state
	free      int       // free slots of ranked agents
	barred    int       // agents that are barred
	claims    int       // agents that are wanted back
	slots     int       // slots of agents Alive or in Probation
	limit     int       // of agents; 0: none
	limitBy   Limit
	failures  []failure
	excluded  map[string]*exclusion // by host
	draining  map[string]bool       // hosts that are going away
	returned  []time.Time           // when agents were given back because they were wanted back, lately
	starved   string
	starvedAt time.Time
	scanAt    time.Time // when to look at every agent again
}

// New returns a Machine without agents.
func New(cfg Config) *Machine {
	cfg = cfg.defaults()
	limit, by := cfg.limit()
	return &Machine{
		limit: limit, limitBy: by,
		cfg: cfg, byID: map[cluster.AgentID]int{}, nodes: map[string]int{}, byKey: map[classKey]int{}, held: map[cluster.AllocationID]place{}, excluded: map[string]*exclusion{}, draining: map[string]bool{},
		next: cluster.AllocationID(cfg.Attempt)<<48 + 1, // no two attempts give the same
	}
}

// Handle applies ev and returns its direct consequences. What follows from the new state, Due says.
func (m *Machine) Handle(now time.Time, ev Event) []Effect {
	switch ev := ev.(type) {
	case Granted:
		return m.onGranted(now, ev)
	case Registered:
		return m.onRegistered(now, ev)
	case Heard:
		return m.onHeard(now, ev)
	case SessionBroken:
		return m.onSessionBroken(now, ev)
	case PortClosed:
		return m.onPortClosed(now, ev)
	case Recovered:
		m.onRecovered(now, ev)
	case Left:
		return m.lose(now, ev.Agent, "it left: "+ev.Reason, true)
	case Exited:
		return m.lose(now, ev.Agent, ev.Reason, ev.Blame)
	case AskRefused:
		return m.starve(now, ev.Reason)
	case Drain:
		return m.onDrain(now, ev)
	case Reclaim:
		return m.onReclaim(now, ev)
	case Declare:
		m.onDeclare(now, ev)
	case Release:
		for _, a := range ev.Allocations {
			m.release(now, a)
		}
	default:
		panic(fmt.Sprintf("slotmgr: unknown event %T", ev))
	}
	return nil
}

func (m *Machine) onGranted(now time.Time, ev Granted) []Effect {
	if _, known := m.byID[ev.Agent]; known {
		return nil // doubled message
	}
	m.granted++
	if m.granted > m.asked {
		m.asked = m.granted
		return []Effect{Return{ev.Agent, "nobody asked for it"}}
	}
	if m.draining[ev.Host] {
		return []Effect{Return{ev.Agent, fmt.Sprintf("its host %s is going away", ev.Host)}}
	}
	var out []Effect
	if x := m.excluded[ev.Host]; x != nil {
		if x.defied++; x.defied <= defiance {
			return []Effect{Return{ev.Agent, fmt.Sprintf("its host %s is excluded", ev.Host)}}
		}
		out = m.admit(ev.Host)
	}
	m.expect(agent{id: ev.Agent, container: ev.Container, node: ev.Host, host: ev.Host, since: now})
	if m.cfg.RegisterTimeout > 0 {
		m.scanBy(now.Add(m.cfg.RegisterTimeout))
	}
	return out
}

// expect makes room for an agent that is Starting.
func (m *Machine) expect(a agent) {
	row := len(m.agents)
	if n := len(m.vacant); n > 0 {
		row, m.vacant = m.vacant[n-1], m.vacant[:n-1]
	} else {
		m.agents = append(m.agents, agent{})
	}
	a.state = Starting
	m.agents[row] = a
	m.byID[a.id] = row
	m.count[Starting]++
	if m.excluded[a.node] != nil {
		m.agents[row].barred = true
		m.barred++
	}
}

func (m *Machine) onRegistered(now time.Time, ev Registered) []Effect {
	row, ok := m.byID[ev.Agent]
	if !ok {
		return []Effect{Refuse{ev.Agent, "no such agent is expected: it was given up, or belongs to another application"}}
	}
	a := &m.agents[row]
	switch {
	case ev.Attempt != m.cfg.Attempt && !(a.former && ev.Attempt < m.cfg.Attempt):
		return []Effect{Refuse{ev.Agent, fmt.Sprintf("it was started by attempt %d, this is attempt %d", ev.Attempt, m.cfg.Attempt)}}
	case a.state != Starting:
		return m.onReturned(now, row, ev)
	case ev.Slots < 1 || ev.Slots > maxSlots:
		why := fmt.Sprintf("it offers %d slots: 1 to %d are possible", ev.Slots, maxSlots)
		return append([]Effect{Refuse{ev.Agent, why}}, m.lose(now, ev.Agent, why, true)...)
	}
	a.addr, a.rack = ev.Addr, ev.Rack
	if ev.Host != "" {
		a.host = ev.Host
	}
	a.home = m.nodeOf(a.host)
	a.total, a.most = ev.Total, ev.Slots
	m.divide(row)
	if m.occupy(row, ev.Held); a.holds > 0 {
		a.stopBy = now.Add(m.cfg.RecoverTimeout)
		m.scanBy(a.stopBy)
	}
	a.heard, a.idle = now, now
	m.become(row, Alive, now)
	m.scanBy(now.Add(m.cfg.HeartbeatTimeout / 2))
	return []Effect{Accept{Agent: ev.Agent, Former: a.former}}
}

func (m *Machine) nodeOf(host string) int {
	n, ok := m.nodes[host]
	if !ok {
		n = len(m.nodes)
		m.nodes[host] = n
	}
	return n
}

// onReturned takes an agent back whose session broke, perhaps unnoticed here. It keeps its slots: they are as it left them.
func (m *Machine) onReturned(now time.Time, row int, ev Registered) []Effect {
	a := &m.agents[row]
	if ev.Addr != a.addr || ev.Slots != a.most {
		return []Effect{Refuse{ev.Agent, fmt.Sprintf("another process has registered by this name: it has %d slots and its exchange is at %s", a.most, a.addr)}}
	}
	a.heard, a.broken, a.refusals, a.exitBy = now, false, 0, time.Time{}
	out := []Effect{Accept{Agent: ev.Agent, Back: true}}
	if a.state == Probation {
		m.become(row, Alive, now)
		out = append(out, Trusted{a.id})
	}
	return out
}

func (m *Machine) onHeard(now time.Time, ev Heard) []Effect {
	row, ok := m.byID[ev.Agent]
	if !ok {
		return nil
	}
	a := &m.agents[row]
	a.heard = now
	if a.state == Probation && !a.broken {
		m.become(row, Alive, now)
		return []Effect{Trusted{a.id}}
	}
	return nil
}

func (m *Machine) onSessionBroken(now time.Time, ev SessionBroken) []Effect {
	row, ok := m.byID[ev.Agent]
	if !ok || m.agents[row].state == Starting {
		return nil // the registration timeout deals with those
	}
	a := &m.agents[row]
	if a.broken {
		return nil
	}
	if a.state == Alive {
		m.become(row, Probation, now)
	}
	a.broken, a.since, a.why, a.refusals = true, now, "its session broke: "+ev.Reason, 0
	m.scanBy(now.Add(m.cfg.SessionGrace))
	return []Effect{Suspect{Agent: a.id, Reason: a.why, Addr: a.addr}}
}

// refusals is how often a host must refuse a connection until nobody is believed to be there.
const refusals = 2

func (m *Machine) onPortClosed(now time.Time, ev PortClosed) []Effect {
	row, ok := m.byID[ev.Agent]
	if !ok || !m.agents[row].broken {
		return nil // it is back, or out
	}
	a := &m.agents[row]
	if a.refusals++; a.refusals < refusals {
		return nil
	}
	why := a.why + ", and its host refuses connections to " + a.addr
	if m.cfg.ExitWait > 0 {
		if a.exitBy.IsZero() {
			a.why, a.exitBy = why, now.Add(m.cfg.ExitWait)
			m.scanBy(a.exitBy)
		}
		return nil
	}
	return append(m.lose(now, ev.Agent, why, true), Return{ev.Agent, why})
}

// become moves an agent from state to state and keeps the sums over states.
func (m *Machine) become(row int, to State, now time.Time) {
	a := &m.agents[row]
	m.count[a.state]--
	a.state, a.since = to, now
	if to != gone {
		m.count[to]++
	}
	if to == Alive {
		a.why = ""
	}
	m.rank(row)
}

// rank puts an agent into the ranking or takes it out, after its state or its host's has changed.
func (m *Machine) rank(row int) {
	a := &m.agents[row]
	may := a.state == Alive && !a.barred
	switch {
	case may && !a.ranked:
		m.free += a.free
		m.enter(row)
	case !may && a.ranked:
		m.free -= a.free
		m.leave(row)
	}
	a.ranked = may
}

// enter puts an agent into its class, which leave took it out of.
func (m *Machine) enter(row int) {
	a := &m.agents[row]
	n := a.free
	if m.cfg.Cut {
		a.class, n = m.classOf(classKey{a.left, max(0, a.most-a.equal)}), 1
	}
	c := &m.classes[a.class]
	c.agents++
	if m.cfg.Cut && a.used == 0 {
		c.whole++
	}
	c.ranking.Set(row, a.home, n)
}

func (m *Machine) leave(row int) {
	a := &m.agents[row]
	c := &m.classes[a.class]
	c.agents--
	if m.cfg.Cut && a.used == 0 {
		c.whole--
	}
	c.ranking.Remove(row)
}

// lose takes an agent out, with its slots. blame counts it as a failure.
func (m *Machine) lose(now time.Time, id cluster.AgentID, reason string, blame bool) []Effect {
	row, ok := m.byID[id]
	if !ok {
		return nil
	}
	a := &m.agents[row]
	lost := Lost{Agent: id, Host: a.host, Reason: reason}
	for i := range a.slots {
		if s := a.slots[i]; s.allocation != 0 {
			if id := m.jobs[s.job].id; id != "" { // else it was held for an attempt that is over
				lost.Slots = append(lost.Slots, LostSlot{id, s.allocation})
			}
			m.forget(s.allocation, s.job)
		}
	}
	node := a.node
	m.remove(row)
	effects := []Effect{lost}
	if blame {
		effects = append(effects, m.blame(now, node, fmt.Sprintf("agent %s was lost: %s", id, reason))...)
	}
	return effects
}

func (m *Machine) remove(row int) {
	a := &m.agents[row]
	m.slots -= a.used + a.free
	m.become(row, gone, time.Time{})
	if a.barred {
		m.barred--
	}
	if !a.claimed.IsZero() {
		m.claims--
	}
	delete(m.byID, a.id)
	*a = agent{state: gone}
	m.vacant = append(m.vacant, row)
}

func (m *Machine) starve(now time.Time, reason string) []Effect {
	if m.starved != "" {
		return nil
	}
	m.starved, m.starvedAt = reason, now
	return []Effect{Starved{reason}}
}

func (m *Machine) onDeclare(now time.Time, ev Declare) {
	i := m.jobOf(ev.Job)
	j := &m.jobs[i]
	if !j.adjust(ev.Requirements) {
		old := j.reqs
		j.reqs = make([]req, len(ev.Requirements))
		for k, r := range ev.Requirements {
			j.reqs[k] = req{Requirement: r}
		}
		m.recount(i, old)
	}
	j.wait, j.over = time.Time{}, false
	if j.missing() > 0 {
		j.wait = now
	}
	if m.count[Starting] > 0 {
		m.scanBy(now) // some of them may not be needed any more
	}
}

// adjust sets counts of a job's requirements, if nothing else differs in rs.
func (j *job) adjust(rs []cluster.Requirement) bool {
	if len(rs) != len(j.reqs) {
		return false
	}
	for k := range rs {
		if rs[k].Profile != j.reqs[k].Profile {
			return false
		}
	}
	for k := range rs {
		j.reqs[k].Count = rs[k].Count
	}
	return true
}

// jobOf returns the row of a job, a new one if it has none.
func (m *Machine) jobOf(id cluster.JobID) int {
	i := slices.IndexFunc(m.jobs, func(j job) bool { return j.id == id })
	if i < 0 {
		i = len(m.jobs)
		m.jobs = append(m.jobs, job{id: id})
	}
	return i
}

// recount spreads what job i holds over its new requirements. Only places of changed requirements move.
func (m *Machine) recount(i int, old []req) {
	j := &m.jobs[i]
	if j.held == 0 {
		return
	}
	to := make([]int32, len(old)) // where slots held for an old requirement count now
	for k, o := range old {
		to[k] = int32(slices.IndexFunc(j.reqs, func(r req) bool { return r.Profile == o.Profile }))
		if to[k] >= 0 {
			j.reqs[to[k]].have += o.have
		}
	}
	if slices.Equal(to, span(len(old))) {
		return
	}
	for a, p := range m.held {
		if int(m.agents[p.agent].slots[p.slot].job) == i && p.req >= 0 {
			p.req = to[p.req]
			m.held[a] = p
		}
	}
}

func span(n int) []int32 {
	s := make([]int32, n)
	for i := range s {
		s[i] = int32(i)
	}
	return s
}

func (j *job) missing() int {
	n := 0
	for _, r := range j.reqs {
		n += max(0, r.Count-r.have)
	}
	return n
}

func (m *Machine) release(now time.Time, id cluster.AllocationID) {
	p, ok := m.held[id]
	if !ok {
		return
	}
	a := &m.agents[p.agent]
	s := &a.slots[p.slot]
	m.forget(id, s.job)
	if m.jobs[s.job].id == "" {
		a.holds--
	}
	if m.cfg.Cut {
		m.putBack(int(p.agent), p.slot)
	} else {
		*s = slot{link: a.firstFree}
		a.firstFree = p.slot + 1
		a.free++
		a.used--
		if a.ranked {
			m.free++
			m.classes[a.class].ranking.Set(int(p.agent), a.home, a.free)
		}
	}
	if a.used == 0 {
		a.idle = now
		if a.barred {
			m.scanBy(now)
		}
	}
}

// forget takes an allocation off its job's account.
func (m *Machine) forget(id cluster.AllocationID, jobRow int32) {
	p, j := m.held[id], &m.jobs[jobRow]
	delete(m.held, id)
	j.held--
	if p.req >= 0 {
		j.reqs[p.req].have--
	}
}

func (m *Machine) classOf(k classKey) int {
	i, ok := m.byKey[k]
	if !ok {
		i = len(m.classes)
		m.classes = append(m.classes, class{classKey: k})
		m.byKey[k] = i
	}
	return i
}

func (m *Machine) scanBy(t time.Time) {
	if m.scanAt.IsZero() || t.Before(m.scanAt) {
		m.scanAt = t
	}
}
