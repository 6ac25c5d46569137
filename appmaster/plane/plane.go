// Package plane joins the master's pure machines into one: the slot manager, and a slot pool and a scheduler for each job.
// What one of them wants of another is done here; what concerns the world comes out. It is pure, so that the whole control
// plane runs in a simulation exactly as in production.
//
//	                Declare, Release                Request, Withdraw, Release
//	┌─────────┐ <────────────────── ┌──────────┐ <───────────────────────── ┌───────┐
//	│ slotmgr │                     │ slotpool │                            │ sched │
//	└─────────┘ ──────────────────> └──────────┘ ─────────────────────────> └───────┘
//	             Grant, Lost, Starved             Fulfilled, Failed; AgentLost
package plane

import (
	"fmt"
	"time"

	"github.com/heddle-stream/heddle/appmaster/sched"
	"github.com/heddle-stream/heddle/appmaster/slotmgr"
	"github.com/heddle-stream/heddle/appmaster/slotpool"
	"github.com/heddle-stream/heddle/internal/cluster"
)

// Job is one job with its machines.
type Job struct {
	ID    cluster.JobID
	Pool  *slotpool.Machine
	Sched *sched.Machine
}

// Plane is the machines together. Events change them; Settle then brings them to rest.
type Plane struct {
	Slots *slotmgr.Machine
	Jobs  []Job

	former map[cluster.AgentID]formerTasks
	told   []int // slots that each job was last told to be Available

	queue []Effect // to be performed, in order
	ask   int      // what the slot manager wants of the driver
	asked int      // what came out of Settle
}

// Effect is something to be done in the world. Of is one of slotmgr's Accept, Refuse, Ask, Return, Lost, Suspect, Trusted,
// Starved, Exclude, or one of sched's Deploy, CancelTasks, StateChanged for Jobs[Job].
type Effect struct {
	Job int
	Of  any
}

// New returns a Plane of machines that nothing has happened to.
func New(slots *slotmgr.Machine, jobs ...Job) *Plane {
	return &Plane{Slots: slots, Jobs: jobs, former: map[cluster.AgentID]formerTasks{}, told: make([]int, len(jobs))}
}

// SlotEvent gives the slot manager an event. The effects that it returns come out of Settle too.
func (p *Plane) SlotEvent(now time.Time, ev slotmgr.Event) []slotmgr.Effect {
	effects := p.Slots.Handle(now, ev)
	push(p, 0, effects)
	return effects
}

// JobEvent gives a job's scheduler an event.
func (p *Plane) JobEvent(now time.Time, job int, ev sched.Event) {
	push(p, job, p.Jobs[job].Sched.Handle(now, ev))
}

func (p *Plane) poolEvent(now time.Time, job int, ev slotpool.Event) {
	push(p, job, p.Jobs[job].Pool.Handle(now, ev))
}

func push[E any](p *Plane, job int, effects []E) bool {
	for _, e := range effects {
		p.queue = append(p.queue, Effect{job, e})
	}
	return len(effects) > 0
}

// Settle lets the machines do what is due until none wants anything more, and returns what is to be done in the world, in order.
//
// Where that would take long, since many slots are to be given at once, it does a part and leaves More. The caller may see to
// something else before it calls Settle again, but should do so at once.
func (p *Plane) Settle(now time.Time) (out []Effect) {
	for {
		out = p.performAll(now, out)
		before := p.More()
		if !p.due(now) || before && p.More() {
			break
		}
	}
	out = p.performAll(now, out)
	if p.ask != p.asked {
		p.asked = p.ask
		out = append(out, Effect{Of: slotmgr.Ask{Total: p.ask}})
	}
	return out
}

// performAll empties the queue, and adds what concerns the world to out.
func (p *Plane) performAll(now time.Time, out []Effect) []Effect {
	for i := 0; i < len(p.queue); i++ { // it grows
		if e := p.queue[i]; !p.within(now, e) {
			out = append(out, e)
		}
	}
	p.queue = p.queue[:0]
	return out
}

// More reports whether Settle has left something that is due at once.
func (p *Plane) More() bool {
	if p.Slots.More() {
		return true
	}
	for i := range p.Jobs {
		if p.Jobs[i].Pool.More() {
			return true
		}
	}
	return false
}

// due asks the machines in their fixed order: what one wants may change what is due for the next.
func (p *Plane) due(now time.Time) bool {
	if push(p, 0, p.Slots.Due(now)) {
		return true
	}
	for i := range p.Jobs {
		j := &p.Jobs[i]
		if next := j.Pool.Next(); !next.IsZero() && !now.Before(next) {
			j.Pool.Handle(now, slotpool.Outlook{Text: p.Outlook(now)}) // it is about to give up, and says why
		}
		p.tell(now, i)
		if push(p, i, j.Pool.Due(now)) || push(p, i, j.Sched.Due(now)) {
			return true
		}
	}
	return false
}

// tell lets a job whose mode asks for it know how many slots there are for it.
func (p *Plane) tell(now time.Time, i int) {
	if j := &p.Jobs[i]; j.Sched.Adaptive() {
		if n := p.Slots.Available(j.ID); n != p.told[i] {
			p.told[i] = n
			p.JobEvent(now, i, sched.Available{Slots: n})
		}
	}
}

// Discard forgets what the machines want.
func (p *Plane) Discard() { p.queue = nil }

// Next returns when Settle has something to do even if nothing happens before, or the zero time.
func (p *Plane) Next() time.Time {
	next := p.Slots.Next()
	sooner := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	for i := range p.Jobs {
		sooner(p.Jobs[i].Pool.Next())
		sooner(p.Jobs[i].Sched.Next())
	}
	return next
}

// within performs an effect as far as it concerns the machines, and reports whether that was all.
func (p *Plane) within(now time.Time, e Effect) bool {
	switch of := e.Of.(type) {
	case slotmgr.Effect:
		return p.ofSlots(now, of)
	case slotpool.Effect:
		p.ofPool(now, e.Job, of)
		return true
	case sched.Effect:
		return p.ofSched(now, e.Job, of)
	}
	panic(fmt.Sprintf("plane: unknown effect %T", e.Of))
}

func (p *Plane) ofSlots(now time.Time, effect slotmgr.Effect) bool {
	switch e := effect.(type) {
	case slotmgr.Grant:
		p.poolEvent(now, p.find(e.Job), slotpool.Offer{Slots: e.Slots})
		return true
	case slotmgr.Ask:
		p.ask = e.Total
		return true
	case slotmgr.Lost:
		p.lost(now, e)
	case slotmgr.Starved:
		for i := range p.Jobs {
			p.poolEvent(now, i, slotpool.Starved{Reason: e.Reason})
		}
	}
	return false
}

func (p *Plane) lost(now time.Time, e slotmgr.Lost) {
	delete(p.former, e.Agent)
	ids := make([][]cluster.AllocationID, len(p.Jobs))
	for _, s := range e.Slots {
		i := p.find(s.Job)
		ids[i] = append(ids[i], s.Allocation)
	}
	for i := range p.Jobs {
		p.poolEvent(now, i, slotpool.Lost{Allocations: ids[i]})
		p.JobEvent(now, i, sched.AgentLost{Agent: e.Agent, Reason: e.Reason})
	}
}

func (p *Plane) ofPool(now time.Time, job int, effect slotpool.Effect) {
	switch e := effect.(type) {
	case slotpool.Declare:
		p.SlotEvent(now, slotmgr.Declare{Job: p.Jobs[job].ID, Requirements: e.Requirements})
	case slotpool.Fulfilled:
		p.JobEvent(now, job, sched.Granted{Bulk: e.Bulk, Slots: e.Slots})
	case slotpool.Failed:
		p.JobEvent(now, job, sched.Refused{Bulk: e.Bulk, Failure: e.Failure})
	case slotpool.Free:
		p.SlotEvent(now, slotmgr.Release{Allocations: e.Allocations})
	}
}

func (p *Plane) ofSched(now time.Time, job int, effect sched.Effect) bool {
	switch e := effect.(type) {
	case sched.RequestSlots:
		p.poolEvent(now, job, slotpool.Request{Bulk: e.Bulk, Replaces: e.Replaces, Requests: requests(e.Slots)})
	case sched.WithdrawSlots:
		p.poolEvent(now, job, slotpool.Withdraw{Bulk: e.Bulk})
	case sched.ReleaseSlots:
		p.poolEvent(now, job, slotpool.Release{Allocations: e.Allocations})
	case sched.GiveUp:
		p.SlotEvent(now, slotmgr.Left{Agent: e.Agent, Reason: e.Reason})
	default:
		return false
	}
	return true
}

func requests(slots []sched.SharedSlot) []slotpool.SlotRequest {
	out := make([]slotpool.SlotRequest, len(slots))
	for i, s := range slots {
		out[i] = slotpool.SlotRequest{Group: s.Group, Index: s.Index, Profile: s.Profile, Previous: s.Previous, Hosts: s.Hosts, Racks: s.Racks}
	}
	return out
}

func (p *Plane) find(id cluster.JobID) int {
	for i := range p.Jobs {
		if p.Jobs[i].ID == id {
			return i
		}
	}
	panic(fmt.Sprintf("plane: no job %s", id))
}
