package plane

import (
	"time"

	"github.com/heddle-stream/heddle/appmaster/sched"
	"github.com/heddle-stream/heddle/appmaster/slotmgr"
	"github.com/heddle-stream/heddle/internal/cluster"
)

// HeldTask is a task that an agent says it has, when it registers.
type HeldTask struct {
	Job int // index in Plane.Jobs
	sched.TaskChanged
	Slot       int
	Allocation cluster.AllocationID
}

// formerTasks are the tasks that an agent still runs for an attempt of the master before this one, with the slots they hold.
type formerTasks map[formerKey]cluster.AllocationID

type formerKey struct {
	job int
	id  cluster.ExecutionID
}

// Register gives the slot manager an agent's registration with what it runs, and returns what it answers. An agent that was in
// before, and one of an earlier attempt, is brought to one view with each job: tasks that no job has there are stopped.
func (p *Plane) Register(now time.Time, ev slotmgr.Registered, tasks []HeldTask) []slotmgr.Effect {
	seen := map[cluster.AllocationID]bool{}
	for _, t := range tasks {
		if !t.State.Final() && !seen[t.Allocation] {
			seen[t.Allocation] = true
			ev.Held = append(ev.Held, slotmgr.Held{Slot: t.Slot, Allocation: t.Allocation})
		}
	}
	effects := p.SlotEvent(now, ev)
	for _, e := range effects {
		a, ok := e.(slotmgr.Accept)
		if !ok || !a.Back && !a.Former {
			continue
		}
		if a.Former {
			p.former[ev.Agent] = formerTasks{}
		}
		p.witness(now, ev.Agent, tasks, a.Former)
		for j := range p.Jobs {
			back := sched.AgentReturned{Agent: ev.Agent}
			for _, t := range tasks {
				if t.Job == j {
					back.Tasks = append(back.Tasks, t.TaskChanged)
				}
			}
			p.JobEvent(now, j, back)
		}
	}
	return effects
}

// witness notes which of an agent's tasks hold slots for an earlier attempt. On coming back it says what is left of them.
func (p *Plane) witness(now time.Time, agent cluster.AgentID, tasks []HeldTask, first bool) {
	f, ok := p.former[agent]
	if !ok {
		return
	}
	runs := map[formerKey]bool{}
	for _, t := range tasks {
		k := formerKey{t.Job, t.ID}
		if _, known := f[k]; t.State.Final() || !known && !first {
			continue
		}
		f[k], runs[k] = t.Allocation, true
	}
	for k := range f {
		if !runs[k] {
			p.formerEnded(now, agent, k)
		}
	}
}

// Ended says that a task of an agent has ended, as the agent reports it. It matters for slots that the task
// held for an attempt of the master before this one, which are free then.
func (p *Plane) Ended(now time.Time, agent cluster.AgentID, job int, id cluster.ExecutionID) {
	p.formerEnded(now, agent, formerKey{job, id})
}

func (p *Plane) formerEnded(now time.Time, agent cluster.AgentID, k formerKey) {
	f := p.former[agent]
	alloc, ok := f[k]
	if !ok {
		return
	}
	delete(f, k)
	for _, other := range f {
		if other == alloc {
			return // it shares its slot with one that still runs
		}
	}
	p.SlotEvent(now, slotmgr.Release{Allocations: []cluster.AllocationID{alloc}})
}
