package slotpool

import (
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
)

// Event is something that happened: one of the types below.
type Event interface{ event() }

// Request asks for a bulk of slots. Bulk is the asker's name for it, above all earlier ones.
type Request struct {
	Bulk     int
	Replaces int // the bulk, not answered yet, whose place and age in the queue this one takes; 0: none's
	Requests []SlotRequest
}

// SlotRequest is what one shared slot has to be.
type SlotRequest struct {
	Group    string          // slot sharing group, for errors
	Index    int             // of the shared slot in its group
	Profile  cluster.Profile // zero: any
	Previous cluster.SlotID  // where it was before; zero: nowhere
	Agents   []cluster.AgentID
	Hosts    []string // preferred locations, best first
	Racks    []string // if no host can be had
}

// Offer brings slots that were granted to the job.
type Offer struct{ Slots []cluster.Slot }

// Lost says that slots are gone with their agent.
type Lost struct{ Allocations []cluster.AllocationID }

// Release says that the job does not use slots any more.
type Release struct{ Allocations []cluster.AllocationID }

// Withdraw takes a bulk back that was not answered yet.
type Withdraw struct{ Bulk int }

// Starved says that no more slots will come: bulks that can't be fulfilled fail at once.
type Starved struct{ Reason string }

// Outlook describes what the resource side has and expects, for errors.
type Outlook struct{ Text string }

func (Request) event()  {}
func (Offer) event()    {}
func (Lost) event()     {}
func (Release) event()  {}
func (Withdraw) event() {}
func (Starved) event()  {}
func (Outlook) event()  {}

// Effect is something to be done: one of the types below.
type Effect interface{ effect() }

// Declare sets the job's requirement, in place of the one before.
type Declare struct{ Requirements []cluster.Requirement }

// Fulfilled answers a bulk: Slots[i] is for Requests[i].
type Fulfilled struct {
	Bulk  int
	Slots []cluster.Slot
}

// Failed answers a bulk that can't be fulfilled.
type Failed struct {
	Bulk    int
	Failure cluster.Failure
}

// Free gives slots back. The requirement was lowered before.
type Free struct{ Allocations []cluster.AllocationID }

func (Declare) effect()   {}
func (Fulfilled) effect() {}
func (Failed) effect()    {}
func (Free) effect()      {}

// Strategy says which free slot a request gets when nothing else decides.
type Strategy uint8

// Strategies.
const (
	Default      Strategy = iota // the first that fits best: fill one agent after the other
	EvenlySpread                 // of the agent with most slots free
)

// Config is how a Machine behaves. It must not change after New.
type Config struct {
	Strategy Strategy
	Timeout  time.Duration // how long a bulk may wait; 0 means 30 s, negative for ever
	// MatchBatch is how many steps of a match one Due makes at most, so that no event takes long. 0: 1,000.
	MatchBatch int
}
