package bench

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/heddle-stream/heddle/appmaster/slotmgr"
	"github.com/heddle-stream/heddle/appmaster/slotpool"
	"github.com/heddle-stream/heddle/internal/cluster"
)

// SlotsOptions say what Slots measures.
type SlotsOptions struct {
	Agents, Slots int  // slots of each agent
	EvenlySpread  bool // else the default selection
}

// SlotsResult is what Slots measured.
type SlotsResult struct {
	Agents        int     `json:"agents"`
	SlotsPerAgent int     `json:"slots_per_agent"`
	Slots         int     `json:"slots"`
	Strategy      string  `json:"strategy"`
	RegisterNs    float64 `json:"register_ns_per_slot"` // of all agents
	AllocateNs    float64 `json:"allocate_ns_per_slot"` // of all slots, in one bulk
	PreviousNs    float64 `json:"previous_ns_per_slot"` // of all slots again, each where it was
	LoseNs        float64 `json:"lose_ns_per_slot"`     // of a tenth of the agents at once
	ReleaseNs     float64 `json:"release_ns_per_slot"`  // one by one, of all slots
	WorstNs       float64 `json:"ns_per_slot"`          // the dearest of these
	SmallNs       float64 `json:"small_ns_per_slot"`    // the same at smallSlots slots
	Ratio         float64 `json:"ratio"`
	Events        int     `json:"events"`
	EventP99Ns    int64   `json:"event_p99_ns"`
	EventMaxNs    int64   `json:"event_max_ns"` // the turn that hands all slots over
	BytesPerSlot  float64 `json:"bytes_per_slot"`
	Unevenness    int     `json:"unevenness"` // most slots in use of an agent less the fewest

	Broken []string `json:"broken,omitempty"` // bounds that do not hold
}

// Bounds on what Slots measures.
const (
	mostPerSlot    = 2 * time.Microsecond
	mostRatio      = 4
	mostEventP99   = time.Millisecond
	mostUnevenness = 1

	smallSlots = 1000
	rounds     = 3 // the best counts: the machine has other work
)

// Check refuses what can't be measured.
func (o SlotsOptions) Check() error {
	if o.Agents < 10 || o.Slots < 1 {
		return fmt.Errorf("cannot measure %d agents of %d slots: at least 10 agents of 1 slot are needed", o.Agents, o.Slots)
	}
	return nil
}

// Slots measures the machines that give slots to jobs: a slot manager and a pool, as they work together in an ApplicationMaster. It heeds the end of
// ctx between two runs.
func Slots(ctx context.Context, o SlotsOptions) (SlotsResult, error) {
	if err := o.Check(); err != nil {
		return SlotsResult{}, err
	}
	res, err := best(ctx, o, rounds)
	if err != nil {
		return SlotsResult{}, err
	}
	small, err := best(ctx, SlotsOptions{Agents: max(10, smallSlots/o.Slots), Slots: o.Slots, EvenlySpread: o.EvenlySpread}, 10*rounds)
	if err != nil {
		return SlotsResult{}, err
	}
	res.SmallNs = small.WorstNs
	res.Ratio = res.WorstNs / res.SmallNs
	res.judge(o)
	return res, nil
}

func (r *SlotsResult) judge(o SlotsOptions) {
	bound := func(ok bool, format string, args ...any) {
		if !ok {
			r.Broken = append(r.Broken, fmt.Sprintf(format, args...))
		}
	}
	bound(r.WorstNs <= float64(mostPerSlot), "%.0f ns a slot, at most %d are allowed", r.WorstNs, mostPerSlot)
	bound(r.Ratio <= mostRatio, "a slot costs %.1f times as much as at %d slots, at most %d are allowed", r.Ratio, smallSlots, mostRatio)
	bound(r.EventP99Ns <= int64(mostEventP99), "an event takes %v at p99, at most %v are allowed", time.Duration(r.EventP99Ns), mostEventP99)
	if o.EvenlySpread {
		bound(r.Unevenness <= mostUnevenness, "slots in use differ by %d between agents, at most %d are allowed", r.Unevenness, mostUnevenness)
	}
}

// best takes the best of some runs, figure by figure.
func best(ctx context.Context, o SlotsOptions, runs int) (res SlotsResult, err error) {
	for i := range runs {
		if ctx.Err() != nil {
			return res, context.Cause(ctx)
		}
		runtime.GC()
		r := newSlotRun(o).run()
		if i == 0 {
			res = r
			continue
		}
		for _, f := range []struct{ to, from *float64 }{
			{&res.RegisterNs, &r.RegisterNs}, {&res.AllocateNs, &r.AllocateNs}, {&res.PreviousNs, &r.PreviousNs},
			{&res.LoseNs, &r.LoseNs}, {&res.ReleaseNs, &r.ReleaseNs}, {&res.BytesPerSlot, &r.BytesPerSlot},
		} {
			*f.to = min(*f.to, *f.from)
		}
		res.EventP99Ns, res.EventMaxNs = min(res.EventP99Ns, r.EventP99Ns), min(res.EventMaxNs, r.EventMaxNs)
		res.Unevenness = max(res.Unevenness, r.Unevenness)
	}
	res.WorstNs = max(res.RegisterNs, res.AllocateNs, res.PreviousNs, res.LoseNs, res.ReleaseNs)
	return res, nil
}

// slotRun is one run: the two machines, and what was granted.
type slotRun struct {
	o       SlotsOptions
	mgr     *slotmgr.Machine
	pool    *slotpool.Machine
	ids     []cluster.AgentID
	now     time.Time
	granted []cluster.Slot
	bulk    int
	events  []time.Duration
}

func newSlotRun(o SlotsOptions) *slotRun {
	r := &slotRun{o: o, now: time.Unix(0, 0), ids: make([]cluster.AgentID, o.Agents)}
	r.mgr = slotmgr.New(slotmgr.Config{SlotsPerAgent: o.Slots, MinAgents: o.Agents, EvenlySpread: o.EvenlySpread, FailureBudget: o.Agents, MaxAgents: o.Agents})
	var s slotpool.Strategy
	if o.EvenlySpread {
		s = slotpool.EvenlySpread
	}
	r.pool = slotpool.New(slotpool.Config{Strategy: s, Timeout: -1})
	for i := range r.ids {
		r.ids[i] = cluster.AgentID(fmt.Sprint("agent-", i))
	}
	r.events = make([]time.Duration, 0, 3*o.Agents+2*o.Agents*o.Slots)
	return r
}

func (r *slotRun) run() SlotsResult {
	all := r.o.Agents * r.o.Slots
	res := SlotsResult{Agents: r.o.Agents, SlotsPerAgent: r.o.Slots, Slots: all, Strategy: "default"}
	if r.o.EvenlySpread {
		res.Strategy = "evenly-spread"
	}
	r.settle()
	before := inUse()
	res.RegisterNs = perSlot(all, r.register)
	requests := make([]slotpool.SlotRequest, all)
	res.AllocateNs = perSlot(all, func() { r.request(requests) })
	res.BytesPerSlot = float64(inUse()-before-all*int(slotSize)) / float64(all)
	// Half of the slots only, so that there is something to spread.
	r.releaseAll()
	r.request(requests[:all/2])
	res.Unevenness = r.unevenness()
	lost := r.ids[:r.o.Agents/10]
	res.LoseNs = perSlot(len(lost)*r.o.Slots, func() { r.lose(lost) })
	r.replace(lost)
	r.releaseAll()
	r.request(requests)
	former := slices.Clone(requests)
	for i, s := range r.granted {
		former[i].Previous = s.ID
	}
	slices.Reverse(former)
	r.free()
	res.PreviousNs = perSlot(all, func() { r.request(former) })
	res.ReleaseNs = perSlot(all, r.releaseAll)
	slices.Sort(r.events)
	res.Events = len(r.events)
	res.EventP99Ns, res.EventMaxNs = int64(r.events[len(r.events)*99/100]), int64(r.events[len(r.events)-1])
	return res
}

// slotSize is about what the bench itself keeps for a slot that was granted.
const slotSize = 96

func inUse() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// perSlot measures f by the clock or, where other programs have taken the processor from it, by its own time on it.
func perSlot(slots int, f func()) float64 {
	began, cpu := time.Now(), cpuTime()
	f()
	return float64(min(time.Since(began), cpuTime()-cpu)) / float64(slots)
}

// event measures one event with what follows from it. What the machines leave for the next turn, as they do where many slots are
// to be given at once, counts as an event of its own: an ApplicationMaster handles others in between.
func (r *slotRun) event(f func()) {
	for more := true; more; f = func() {} {
		began := time.Now()
		f()
		r.settle()
		r.events = append(r.events, time.Since(began))
		more = r.mgr.More() || r.pool.More()
	}
}

// settle does between the machines what package plane does in a turn.
func (r *slotRun) settle() {
	for {
		before := r.mgr.More() || r.pool.More()
		mgr := r.mgr.Due(r.now)
		r.fromManager(mgr)
		if len(mgr) == 0 {
			pool := r.pool.Due(r.now)
			r.fromPool(pool)
			if len(pool) == 0 {
				return
			}
		}
		if before && (r.mgr.More() || r.pool.More()) {
			return
		}
	}
}

func (r *slotRun) fromManager(effects []slotmgr.Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case slotmgr.Grant:
			r.pool.Handle(r.now, slotpool.Offer{Slots: e.Slots})
		case slotmgr.Lost:
			ids := make([]cluster.AllocationID, len(e.Slots))
			for i, s := range e.Slots {
				ids[i] = s.Allocation
			}
			r.pool.Handle(r.now, slotpool.Lost{Allocations: ids})
		}
	}
}

func (r *slotRun) fromPool(effects []slotpool.Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case slotpool.Declare:
			r.mgr.Handle(r.now, slotmgr.Declare{Job: "job", Requirements: e.Requirements})
		case slotpool.Free:
			r.mgr.Handle(r.now, slotmgr.Release{Allocations: e.Allocations})
		case slotpool.Fulfilled:
			r.granted = append(r.granted[:0], e.Slots...)
		}
	}
}

// host is that of agent i: several share one.
func (r *slotRun) host(i int) string { return fmt.Sprint("host-", i/agentsPerHost) }

const agentsPerHost = 8

// register brings up every agent.
func (r *slotRun) register() {
	for i, id := range r.ids {
		r.event(func() { r.mgr.Handle(r.now, slotmgr.Granted{Agent: id, Host: r.host(i)}) })
	}
	for _, id := range r.ids {
		r.event(func() { r.mgr.Handle(r.now, slotmgr.Registered{Agent: id, Slots: r.o.Slots, Addr: "host:1"}) })
	}
}

// request asks for slots in one bulk, which is fulfilled.
func (r *slotRun) request(requests []slotpool.SlotRequest) {
	r.bulk++
	r.granted = r.granted[:0]
	r.event(func() { r.pool.Handle(r.now, slotpool.Request{Bulk: r.bulk, Requests: requests}) })
	if len(r.granted) != len(requests) {
		panic(fmt.Sprintf("bench: %d of %d slots were granted", len(r.granted), len(requests)))
	}
}

// releaseAll gives every slot back, each by an event of its own.
func (r *slotRun) releaseAll() {
	one := make([]cluster.AllocationID, 1)
	for _, s := range r.granted {
		one[0] = s.Allocation
		r.event(func() { r.pool.Handle(r.now, slotpool.Release{Allocations: one}) })
	}
	r.granted = r.granted[:0]
}

// free gives slots back to the pool, as a job does between two attempts: they stay its own.
func (r *slotRun) free() {
	ids := make([]cluster.AllocationID, len(r.granted))
	for i, s := range r.granted {
		ids[i] = s.Allocation
	}
	r.pool.Handle(r.now, slotpool.Release{Allocations: ids}) // and no Due: the next request follows in the same turn
}

func (r *slotRun) lose(ids []cluster.AgentID) {
	for _, id := range ids {
		r.event(func() { r.fromManager(r.mgr.Handle(r.now, slotmgr.Exited{Agent: id, Reason: "killed", Blame: true})) })
	}
	gone := make(map[cluster.AgentID]bool, len(ids))
	for _, id := range ids {
		gone[id] = true
	}
	r.granted = slices.DeleteFunc(r.granted, func(s cluster.Slot) bool { return gone[s.ID.Agent] })
}

// replace brings up new agents under new names.
func (r *slotRun) replace(lost []cluster.AgentID) {
	for i, id := range lost {
		r.ids[i] = "new-" + id
		r.event(func() { r.mgr.Handle(r.now, slotmgr.Granted{Agent: r.ids[i], Host: r.host(i)}) })
		r.event(func() { r.mgr.Handle(r.now, slotmgr.Registered{Agent: r.ids[i], Slots: r.o.Slots, Addr: "host:1"}) })
	}
}

// unevenness is the most slots in use of one agent less the fewest.
func (r *slotRun) unevenness() int {
	used := make(map[cluster.AgentID]int, len(r.ids))
	for _, s := range r.granted {
		used[s.ID.Agent]++
	}
	most, fewest := 0, r.o.Slots
	for _, id := range r.ids {
		most, fewest = max(most, used[id]), min(fewest, used[id])
	}
	return most - fewest
}
