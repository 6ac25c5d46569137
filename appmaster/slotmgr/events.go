package slotmgr

import "github.com/heddle-stream/heddle/internal/cluster"

// Event is something that happened: one of the types below.
type Event interface{ event() }

// Granted says that the driver starts an agent.
type Granted struct {
	Agent     cluster.AgentID
	Container cluster.ContainerID
	Host      string
}

// Registered says that an agent introduced itself: a new one, or one that comes back after its session broke.
type Registered struct {
	Agent   cluster.AgentID
	Attempt uint32 // of the application, that it was started by
	Slots   int
	Total   cluster.Profile // its resources; without Config.Cut, each slot has an equal part
	Host    string
	Rack    string
	Addr    string // where its exchange accepts
	Held    []Held // slots that it still holds for an earlier attempt: the agent is the witness
}

// Held is a slot of an agent that an earlier attempt gave away and that is still in use. It is free after a Release of its allocation.
type Held struct {
	Slot       int
	Allocation cluster.AllocationID
}

// Recovered says that an agent which an earlier attempt has started may still run: it is expected to register again.
type Recovered struct {
	Agent     cluster.AgentID
	Container cluster.ContainerID
	Host      string
}

// PortClosed says that the host of an agent refused a connection to its exchange: nobody listens there. Where the
// agent's session broke too, its process is gone, and need not be waited for.
type PortClosed struct{ Agent cluster.AgentID }

// Heard says that an agent gave a sign of life.
type Heard struct{ Agent cluster.AgentID }

// SessionBroken says that an agent's session ended without a goodbye. Either it comes back, or its exit follows with the true cause.
type SessionBroken struct {
	Agent  cluster.AgentID
	Reason string
}

// Left says that an agent said goodbye.
type Left struct {
	Agent  cluster.AgentID
	Reason string
}

// Exited says that the driver saw an agent's process or container end.
type Exited struct {
	Agent  cluster.AgentID
	Reason string
	Blame  bool // counts against the failure budget: it ended by its own fault
}

// AskRefused says that the driver can't get agents, and that asking again is no use.
type AskRefused struct{ Reason string }

// Drain sets the hosts that are going away, in place of those before: they get no new agents and slots. Agents there that are free
// go at once, others once they are.
type Drain struct{ Hosts []string }

// Reclaim says that the driver's resource manager wants agents back. Agents will be taken for certain; beside that, Count in
// all would do, whichever they are.
type Reclaim struct {
	Agents []cluster.AgentID
	Count  int
}

// Declare sets what a job needs, in place of what it declared before. No requirements: it needs nothing any more.
type Declare struct {
	Job          cluster.JobID
	Requirements []cluster.Requirement
}

// Release gives slots back. Allocations that are not held are ignored: they went with their agent.
type Release struct{ Allocations []cluster.AllocationID }

func (Granted) event()       {}
func (Recovered) event()     {}
func (PortClosed) event()    {}
func (Registered) event()    {}
func (Heard) event()         {}
func (SessionBroken) event() {}
func (Left) event()          {}
func (Exited) event()        {}
func (AskRefused) event()    {}
func (Drain) event()         {}
func (Reclaim) event()       {}
func (Declare) event()       {}
func (Release) event()       {}

// Effect is something to be done: one of the types below. Effects are performed in order.
type Effect interface{ effect() }

// Accept answers Registered: the agent is in.
type Accept struct {
	Agent  cluster.AgentID
	Back   bool // it was in before, and has its slots still
	Former bool // an earlier attempt has started it: it must be told this attempt's number, and to stop what it runs
}

// Refuse answers Registered: the agent must exit at once.
type Refuse struct {
	Agent  cluster.AgentID
	Reason string
}

// Grant gives slots to a job. They are the job's until it releases them or their agent is lost.
type Grant struct {
	Job   cluster.JobID
	Slots []cluster.Slot
}

// Ask sets how many agents the driver shall have granted in all, since its start. It is absolute, so that a
// repeated or late Ask asks for nothing twice.
type Ask struct{ Total int }

// Return asks the driver to end an agent, started or starting.
type Return struct {
	Agent  cluster.AgentID
	Reason string
}

// Lost says that an agent is gone against our will, with every slot it had. Slots are those that were given to jobs.
type Lost struct {
	Agent  cluster.AgentID
	Host   string
	Reason string
	Slots  []LostSlot
}

// LostSlot is a slot that went with its agent.
type LostSlot struct {
	Job        cluster.JobID
	Allocation cluster.AllocationID
}

// Suspect says that an agent is on probation: it gets no new slots. Trusted takes that back.
type Suspect struct {
	Agent  cluster.AgentID
	Reason string
	Addr   string // of its exchange, if its session broke: PortClosed, if nobody listens there; else ""
}

// Trusted says that an agent's probation ended well.
type Trusted struct{ Agent cluster.AgentID }

// Exclude sets the hosts on which the driver shall start no agents, in place of those before.
type Exclude struct{ Hosts []string }

// Starved says that no more agents will be asked for. It is emitted once.
type Starved struct{ Reason string }

func (Accept) effect()  {}
func (Refuse) effect()  {}
func (Grant) effect()   {}
func (Ask) effect()     {}
func (Return) effect()  {}
func (Lost) effect()    {}
func (Suspect) effect() {}
func (Trusted) effect() {}
func (Exclude) effect() {}
func (Starved) effect() {}
