package plane

import (
	"fmt"
	"time"

	"github.com/heddle-stream/heddle/appmaster/sched"
	"github.com/heddle-stream/heddle/appmaster/slotmgr"
	"github.com/heddle-stream/heddle/appmaster/slotpool"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/jobgraph"
)

// AgentPreview is an agent as Preview places tasks on it.
type AgentPreview struct {
	Agent    cluster.AgentID
	Slots    [][]cluster.ExecutionID // by index; a slot without tasks is free
	Profiles []cluster.Profile       // of those slots, where the job asks for some
}

// Preview places a job as its ApplicationMaster would if every agent that it asks for came up at once.
func Preview(g *jobgraph.Graph, agents slotmgr.Config, slots slotpool.Config) ([]AgentPreview, error) {
	s, err := sched.New(sched.Config{}, g)
	if err != nil {
		return nil, err
	}
	agents.Attempt, agents.Cut = 0, len(g.Profiles) > 0
	if err := CheckProfiles(g, agents.AgentTotal); err != nil {
		return nil, err
	}
	p := New(slotmgr.New(agents), Job{ID: "job", Pool: slotpool.New(slots), Sched: s})
	now := time.Time{}.Add(time.Hour)
	p.JobEvent(now, 0, sched.Start{})
	total := 0
	for _, e := range p.settleAll(now) {
		if ask, ok := e.Of.(slotmgr.Ask); ok {
			total = ask.Total
		}
	}
	ids := make([]cluster.AgentID, total)
	for i := range ids {
		ids[i] = cluster.AgentID(fmt.Sprint("agent-", i+1))
		p.SlotEvent(now, slotmgr.Granted{Agent: ids[i]})
	}
	for _, id := range ids {
		p.SlotEvent(now, slotmgr.Registered{Agent: id, Slots: max(1, agents.SlotsPerAgent), Total: agents.AgentTotal})
	}
	p.settleAll(now)
	if state, _ := s.State(); state == sched.Waiting {
		return nil, fmt.Errorf("cannot place the job: it needs %s, there would be %s", Count(s.Slots(), "slot"), p.Outlook(now))
	}
	return p.preview(g), nil
}

// settleAll settles until there is no more.
func (p *Plane) settleAll(now time.Time) []Effect {
	out := p.Settle(now)
	for p.More() {
		out = append(out, p.Settle(now)...)
	}
	return out
}

func (p *Plane) preview(g *jobgraph.Graph) []AgentPreview {
	at := map[cluster.SlotID][]cluster.ExecutionID{}
	for v := range g.Vertices {
		for e := range p.Jobs[0].Sched.Executions(v) {
			at[e.Slot] = append(at[e.Slot], e.ID)
		}
	}
	var out []AgentPreview
	for a := range p.Slots.Agents() {
		x := AgentPreview{Agent: a.ID, Slots: make([][]cluster.ExecutionID, len(a.Slots)), Profiles: make([]cluster.Profile, len(a.Slots))}
		for i := range x.Slots {
			x.Slots[i] = at[cluster.SlotID{Agent: a.ID, Index: i}]
			if len(g.Profiles) > 0 {
				x.Profiles[i] = a.Slots[i].Profile
			}
		}
		out = append(out, x)
	}
	return out
}
