package sched

import (
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
)

// Event is something that happened: one of the types below.
type Event interface{ event() }

// Start begins the job.
type Start struct {
	Held bool // no task is deployed before Checked has come: slots are asked for meanwhile
}

// Checked says that what the job needs from outside is there, so that a job that was started as Held may be deployed.
type Checked struct{}

// Near says where a subtask of a source reads best, for requests to come. Before Checked, it counts for the first attempt too.
type Near struct {
	Vertex, Subtask int
	Hosts, Racks    []string // best first
}

// Available says how many slots there are for the job: those that it has and those that are free. It is for a Mode.
type Available struct{ Slots int }

// Granted answers RequestSlots: Slots[i] is for Slots[i] of the request.
type Granted struct {
	Bulk  int
	Slots []cluster.Slot
}

// Refused answers RequestSlots: there are none.
type Refused struct {
	Bulk    int
	Failure cluster.Failure
}

// TaskChanged is an agent's report of a task's new state.
type TaskChanged struct {
	ID      cluster.ExecutionID
	State   cluster.TaskState
	Failure cluster.Failure // of Failed; and of Canceled, if the agent stopped the task by itself: why
}

// AgentReturned says that an agent is back whose session had broken, with the state of every task that it knows: messages
// to it and from it may have been lost.
type AgentReturned struct {
	Agent cluster.AgentID
	Tasks []TaskChanged
}

// AgentLost says that an agent is gone, with all its tasks and slots.
type AgentLost struct {
	Agent  cluster.AgentID
	Reason string
}

// Fail ends the job for a reason outside of its tasks.
type Fail struct{ Failure cluster.Failure }

// Cancel ends the job because somebody asked for it.
type Cancel struct{ Reason string }

func (Start) event()         {}
func (Checked) event()       {}
func (Near) event()          {}
func (Available) event()     {}
func (Granted) event()       {}
func (Refused) event()       {}
func (TaskChanged) event()   {}
func (AgentReturned) event() {}
func (AgentLost) event()     {}
func (Fail) event()          {}
func (Cancel) event()        {}

// Effect is something to be done: one of the types below. Effects are performed in order.
type Effect interface{ effect() }

// RequestSlots asks for a slot for each element, all of them or none.
type RequestSlots struct {
	Bulk     int
	Replaces int // an earlier request that was not answered, whose place and age this one takes; 0: none
	Slots    []SharedSlot
}

// SharedSlot is a slot that subtasks of one slot sharing group share, at most one of each vertex.
type SharedSlot struct {
	Group    string
	Index    int
	Profile  cluster.Profile // what it must have; zero: any
	Previous cluster.SlotID  // where it was in the attempt before
	Hosts    []string        // where its sources read best, best first
	Racks    []string
}

// WithdrawSlots takes a request back.
type WithdrawSlots struct{ Bulk int }

// ReleaseSlots gives slots back.
type ReleaseSlots struct{ Allocations []cluster.AllocationID }

// Deploy sends tasks to an agent, producers before their consumers. One that it has already must not start a second time.
type Deploy struct {
	Agent cluster.AgentID
	Tasks []Task
}

// Task is one execution with all that its agent must know.
type Task struct {
	ID         cluster.ExecutionID
	Slot       int
	Allocation cluster.AllocationID
	Inputs     []Input  // in the order of Vertex.In
	Outputs    []Output // in the order of Vertex.Out
}

// Input is where a task reads an in-edge.
type Input struct {
	Edge     int
	Channels []Channel
}

// Channel is one subpartition that a task reads.
type Channel struct {
	Partition    string
	Subpartition int
	Addr         string // of the producer's exchange
	ConnIndex    uint32 // spreads the channels between two agents over their connections
	Producer     int    // subtask
}

// Output is the partition that a task writes for an out-edge.
type Output struct {
	Edge          int
	Partition     string
	Subpartitions int
}

// CancelTasks tells an agent to stop tasks, perhaps some that are not the job's any more.
type CancelTasks struct {
	Agent  cluster.AgentID
	IDs    []cluster.ExecutionID
	Reason string
}

// GiveUp says that an agent did not stop its tasks in time. AgentLost must follow in the same turn.
type GiveUp struct {
	Agent  cluster.AgentID
	Reason string
}

// StateChanged says that the job came into another state. After a final one nothing more happens.
type StateChanged struct{ From, To State }

func (RequestSlots) effect()  {}
func (WithdrawSlots) effect() {}
func (ReleaseSlots) effect()  {}
func (Deploy) effect()        {}
func (CancelTasks) effect()   {}
func (GiveUp) effect()        {}
func (StateChanged) effect()  {}

// State is where the job stands. States from Finished on are final.
type State uint8

// States of a job.
const (
	Created    State = iota // nothing was done yet
	Waiting                 // for slots, and to be checked
	Running                 // every task was deployed
	Failing                 // stops its tasks after a failure
	Restarting              // waits until it may try again
	Canceling               // stops its tasks because somebody asked for it
	Finished                // every task finished
	Failed                  // Machine.Cause says why
	Canceled                // every task stopped
)

// Final reports whether a job in this state is over.
func (s State) Final() bool { return s >= Finished }

func (s State) String() string {
	return [...]string{"created", "waiting", "running", "failing", "restarting", "canceling", "finished", "failed", "canceled"}[s]
}

// Cause is why a job failed.
type Cause struct {
	cluster.Failure
	At     time.Time
	Task   cluster.ExecutionID // the task that failed, if OfTask
	OfTask bool
	Agent  cluster.AgentID // where the task ran, or the agent that was lost; "" if neither

	// secondary marks a failure that somebody else's is behind: a better cause replaces it.
	secondary bool
}

// Restart decides whether a job that failed is tried again.
type Restart interface {
	// Next returns how long to wait before the next attempt, and whether there is one. attempt counts from 0: the one that failed.
	Next(attempt int, cause Cause) (time.Duration, bool)
}

// Never does not restart.
type Never struct{}

// Next implements Restart.
func (Never) Next(int, Cause) (time.Duration, bool) { return 0, false }

// FixedDelay restarts a number of times, with a pause before each.
type FixedDelay struct {
	Times int
	Delay time.Duration
}

// Next implements Restart.
func (r FixedDelay) Next(attempt int, _ Cause) (time.Duration, bool) {
	return r.Delay, attempt < r.Times
}
