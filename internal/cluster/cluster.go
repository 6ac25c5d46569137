// Package cluster is the vocabulary that the master's pure machines share:
// identities of agents, slots, allocations and executions, and resource profiles.
package cluster

import (
	"fmt"
	"strings"
)

// JobID names a job: one an application, for now.
type JobID string

// AgentID names one agent process; a restarted agent has a new one. It begins with the container's id.
type AgentID string

// ContainerID names the container (on YARN) or child process that an agent runs in.
type ContainerID string

// AllocationID names one grant of a slot to a job. It is never used twice.
type AllocationID uint64

// SlotID is one slot of an agent.
type SlotID struct {
	Agent AgentID
	Index int // 0 ≤ Index < the agent's slots
}

func (s SlotID) String() string { return fmt.Sprintf("%s/%d", s.Agent, s.Index) }

// ExecutionID names one attempt to run one subtask of a vertex.
type ExecutionID struct {
	Vertex  int // jobgraph.Vertex.ID
	Subtask int
	Attempt int // from 0
}

func (e ExecutionID) String() string { return fmt.Sprintf("%d.%d#%d", e.Vertex, e.Subtask, e.Attempt) }

// TaskState is where an execution stands. The order is that of progress: states from Finished on are final.
// The numbers cross the wire.
type TaskState uint8

const (
	Created   TaskState = iota // known to the scheduler, no slot yet
	Scheduled                  // has a slot, not yet sent to its agent
	Deploying                  // sent to its agent, operators are being opened
	Running                    // processes records
	Canceling                  // told to stop, not yet stopped
	Finished                   // ended by itself, everything it emitted is consumed
	Canceled                   // ended because it was told to
	Failed                     // ended by an error
)

// Final reports whether an execution in this state will never run again.
func (s TaskState) Final() bool { return s >= Finished }

func (s TaskState) String() string {
	if int(s) < len(taskStates) {
		return taskStates[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

var taskStates = [...]string{"created", "scheduled", "deploying", "running", "canceling", "finished", "canceled", "failed"}

// ErrorKind classes an error for those who decide on it: a closed list, never reordered, since the numbers cross the wire.
type ErrorKind uint8

const (
	Internal    ErrorKind = iota // our fault
	Cancelled                    // somebody asked for it
	Invalid                      // bad input: graph, option, record, user function
	NotFound                     // partition, topic, file is not there
	Denied                       // not allowed
	Unavailable                  // outside service does not answer
	Corrupt                      // bytes that cannot be right
	Lost                         // the other side went away: its own failure is the cause, not ours
)

func (k ErrorKind) String() string {
	if int(k) < len(errorKinds) {
		return errorKinds[k]
	}
	return fmt.Sprintf("error(%d)", uint8(k))
}

var errorKinds = [...]string{"internal", "cancelled", "invalid", "not found", "denied", "unavailable", "corrupt", "lost"}

// Failure is why a task, an agent or a job ended, as it travels between processes: a kind to decide on and a text for people.
type Failure struct {
	Kind     ErrorKind
	Message  string
	Operator string // where it happened, "" if not in an operator
	Peer     string // for Lost: the address or agent that went away
	Logged   string // what logs may tell, where Message shows what a record holds; else ""
}

// ForLog is what logs may tell of f.
func (f Failure) ForLog() string {
	if f.Logged != "" {
		return f.Logged
	}
	return f.Error()
}

func (f Failure) Error() string {
	if f.Operator != "" && !strings.Contains(f.Message, f.Operator) {
		return "operator " + f.Operator + ": " + f.Message
	}
	return f.Message
}

// Secondary reports whether somebody else's failure or wish is behind f, so that it explains nothing itself.
func (f Failure) Secondary() bool { return f.Kind == Lost || f.Kind == Cancelled }

// Slot is a slot of an agent as granted to a job.
type Slot struct {
	ID         SlotID
	Allocation AllocationID
	Profile    Profile
	Host, Addr string // where the agent is; Addr is its exchange's host:port
	Rack       string // "": not known
}

// Requirement is a number of slots of at least a profile.
type Requirement struct {
	Profile Profile
	Count   int
}
