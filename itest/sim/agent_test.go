package sim

import (
	"fmt"
	"time"

	"github.com/heddle-stream/heddle/appmaster/sched"
	"github.com/heddle-stream/heddle/internal/cluster"
)

// Messages of a session, in both directions.
type (
	register struct {
		attempt uint32
		slots   int
		tasks   []report
	}
	heartbeat struct{ seq int }
	report    struct {
		job   int
		ev    sched.TaskChanged
		slot  int
		alloc cluster.AllocationID
	}
	goodbye struct{ reason string }

	accepted struct{ attempt uint32 }
	refused  struct{}
	deploy   struct {
		job   int
		tasks []sched.Task
	}
	cancel struct {
		job int
		ids []cluster.ExecutionID
	}
	ack      struct{ seq int }
	shutdown struct{}
)

// link is a session's connection: it keeps the order of messages, and loses those under way when it breaks.
type link struct {
	w          *world
	agent      *agent
	master     *master
	dead       bool
	hole       bool      // what is sent does not arrive, and nobody notices
	upAt, toAt time.Time // when the last message arrives
}

const latency = 5 * time.Millisecond

func (l *link) up(msg any) {
	l.upAt = l.carry(l.upAt, func() {
		if l.master.current() {
			l.master.receive(l, msg)
		}
	})
}

func (l *link) down(msg any) {
	l.toAt = l.carry(l.toAt, func() { l.agent.wake(func() { l.agent.receive(l, msg) }) })
}

func (l *link) carry(last time.Time, arrive func()) time.Time {
	at := l.w.now.Add(l.w.delay(latency))
	if at.Before(last) {
		at = last
	}
	l.w.after(at.Sub(l.w.now), func() {
		if !l.dead && !l.hole {
			arrive()
		}
	})
	return at
}

// cut breaks the link: both ends notice, some time.
func (l *link) cut() {
	if l == nil || l.dead {
		return
	}
	l.dead = true
	l.w.after(l.w.delay(20*time.Millisecond), func() { l.master.onBroken(l) })
	l.w.after(l.w.delay(20*time.Millisecond), func() { l.agent.wake(func() { l.agent.onBroken(l) }) })
}

// finish is the master's end of a session, after what was sent before.
func (l *link) finish() {
	at := l.toAt
	if at.Before(l.w.now) {
		at = l.w.now
	}
	l.w.after(at.Sub(l.w.now), l.cut)
}

type key struct {
	job int
	id  cluster.ExecutionID
}

// era is the attempt of the master that an execution is of.
func era(id cluster.ExecutionID) uint32 { return uint32(id.Attempt >> eraBits) }

const eraBits = 16

// task is an execution at its agent.
type task struct {
	key
	state    cluster.TaskState
	slot     int
	alloc    cluster.AllocationID
	failure  cluster.Failure
	toldWith int
	deaf     bool // does not stop when it is cancelled
}

// held is a slot of an agent: the allocation that its tasks belong to.
type held struct {
	alloc cluster.AllocationID
	tasks map[key]bool
}

// agent does what package agent does, in short.
type agent struct {
	w       *world
	id      cluster.AgentID
	host    string
	attempt uint32
	size    int // slots that it says it has
	slots   []held
	tasks   map[key]*task
	order   []*task
	link    *link
	in      bool // the session was accepted
	seq     int
	heard   time.Time
	frozen  bool
	waiting []func() // what happened while it was frozen
	dead    bool
	given   bool // the master gave it up: it must not get in again
}

// wake runs f as the agent, once it is not frozen.
func (a *agent) wake(f func()) {
	switch {
	case a.dead:
	case a.frozen:
		a.waiting = append(a.waiting, f)
	default:
		f()
	}
}

func (a *agent) later(d time.Duration, f func()) { a.w.after(a.w.delay(d), func() { a.wake(f) }) }

func (a *agent) thaw() {
	a.frozen = false
	waiting := a.waiting
	a.waiting = nil
	for _, f := range waiting {
		a.wake(f)
	}
}

func (a *agent) start() {
	if a.dead {
		return
	}
	a.heard = a.w.now
	a.join()
	a.beat()
}

// join opens a session, and tells what runs.
func (a *agent) join() {
	a.link, a.in = &link{w: a.w, agent: a, master: a.w.master}, false
	a.link.up(register{a.attempt, a.size, a.reports()})
}

func (a *agent) reports() (out []report) {
	for _, t := range a.order {
		out = append(out, t.report())
	}
	return out
}

func (t *task) report() report {
	return report{t.job, sched.TaskChanged{ID: t.id, State: t.state, Failure: t.failure}, t.slot, t.alloc}
}

const beatInterval = 2 * time.Second

// beat is due every heartbeat interval.
func (a *agent) beat() {
	a.w.after(beatInterval, func() { a.wake(a.beat) })
	timeout := a.w.cfg.agents.HeartbeatTimeout
	switch silence := a.w.now.Sub(a.heard); {
	case silence > 2*timeout:
		a.die("it lost its master", true)
	case silence > timeout && a.link != nil && a.in:
		a.link.dead = true // it does not look alive
		l := a.link
		a.w.after(a.w.delay(time.Second), func() { l.master.onBroken(l) })
		a.onBroken(l)
	case a.in:
		a.seq++
		a.link.up(heartbeat{a.seq})
	}
}

func (a *agent) onBroken(l *link) {
	if a.link == l {
		a.link, a.in = nil, false
		a.later(100*time.Millisecond, a.rejoin)
	}
}

func (a *agent) rejoin() {
	if a.link == nil {
		a.join()
	}
}

func (a *agent) receive(l *link, msg any) {
	if l != a.link {
		return
	}
	a.heard = a.w.now
	switch msg := msg.(type) {
	case accepted:
		a.in, a.attempt = true, max(a.attempt, msg.attempt)
		for _, r := range a.reports() {
			l.up(r)
		}
	case refused:
		a.die("it was refused", true)
	case deploy:
		for _, t := range msg.tasks {
			a.deploy(msg.job, t)
		}
	case cancel:
		for _, id := range msg.ids {
			a.cancel(a.tasks[key{msg.job, id}])
		}
	case ack:
		a.forget(msg.seq)
	case shutdown:
		l.up(goodbye{"it was told to"})
		a.later(10*time.Millisecond, func() { a.die("it ended", false) })
	}
}

// deploy starts a task. An order that comes twice is obeyed once.
func (a *agent) deploy(job int, t sched.Task) {
	k := key{job, t.ID}
	if a.tasks[k] != nil {
		return
	}
	if cut := a.w.cfg.agents.Cut; t.Slot < 0 || t.Slot >= len(a.slots) && !cut {
		a.w.broken("%s has no slot %d", a.id, t.Slot)
		return
	}
	for len(a.slots) <= t.Slot {
		a.slots = append(a.slots, held{})
	}
	s := &a.slots[t.Slot]
	if len(s.tasks) > 0 && s.alloc != t.Allocation {
		a.w.broken("slot %s/%d is in two hands: allocation %d's and %d's", a.id, t.Slot, s.alloc, t.Allocation)
	}
	for other := range s.tasks {
		if other.job == job && other.id.Vertex == t.ID.Vertex {
			a.w.broken("slot %s/%d runs two subtasks of one vertex: %v and %v", a.id, t.Slot, other.id, t.ID)
		}
	}
	a.w.alone(a, k)
	s.alloc = t.Allocation
	if s.tasks == nil {
		s.tasks = map[key]bool{}
	}
	s.tasks[k] = true
	x := &task{key: k, slot: t.Slot, alloc: t.Allocation, deaf: a.w.chance(200)}
	a.tasks[k] = x
	a.order = append(a.order, x)
	a.become(x, cluster.Deploying)
	a.later(50*time.Millisecond, func() {
		if x.state == cluster.Deploying {
			a.become(x, cluster.Running)
		}
	})
	if life := a.w.cfg.life; life > 0 {
		a.later(life, func() { a.end(x, a.w.chance(30)) })
	}
}

// end ends a task that runs.
func (a *agent) end(x *task, badly bool) {
	switch {
	case x.state.Final() || x.state == cluster.Canceling:
	case badly:
		x.failure = cluster.Failure{Kind: cluster.Invalid, Message: fmt.Sprintf("task %v failed", x.id)}
		a.become(x, cluster.Failed)
	default:
		a.become(x, cluster.Finished)
	}
}

func (a *agent) cancel(x *task) {
	if x == nil || x.state.Final() || x.state == cluster.Canceling {
		return
	}
	a.become(x, cluster.Canceling)
	if !x.deaf {
		a.later(100*time.Millisecond, func() {
			if x.state == cluster.Canceling {
				a.become(x, cluster.Canceled)
			}
		})
	}
}

func (a *agent) become(x *task, s cluster.TaskState) {
	x.state = s
	if s.Final() {
		x.toldWith = a.seq + 1
		delete(a.slots[x.slot].tasks, x.key)
	}
	if a.in {
		a.link.up(x.report())
	}
}

func (a *agent) forget(seq int) {
	var kept []*task
	for _, x := range a.order {
		if x.state.Final() && x.toldWith <= seq {
			delete(a.tasks, x.key)
		} else {
			kept = append(kept, x)
		}
	}
	a.order = kept
}

// die is the end of the process.
func (a *agent) die(reason string, blame bool) {
	if a.dead {
		return
	}
	a.dead = true
	a.w.log("%s ends: %s", a.id, reason)
	if a.link != nil {
		l := a.link
		a.w.after(a.w.delay(20*time.Millisecond), func() {
			l.dead = true
			l.master.onBroken(l)
		})
	}
	a.w.driver.exited(a, reason, blame)
}
