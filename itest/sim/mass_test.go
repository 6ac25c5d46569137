package sim

import (
	"fmt"
	"testing"

	"github.com/heddle-stream/heddle/appmaster/plane"
	"github.com/heddle-stream/heddle/appmaster/sched"
	"github.com/heddle-stream/heddle/appmaster/slotmgr"
	"github.com/heddle-stream/heddle/appmaster/slotpool"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/jobgraph"
)

// TestMassCancel is S-13 (FLINK-22954): 10,000 subtasks are cancelled at once, and each slot that gets free could serve one more that waits.
func TestMassCancel(t *testing.T) {
	const subtasks = 10_000
	var jobs []plane.Job
	for i := range 2 {
		g := &jobgraph.Graph{Vertices: []jobgraph.Vertex{{Name: "v", Parallelism: subtasks, SlotGroup: "default"}}}
		s, err := sched.New(sched.Config{}, g)
		if err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, plane.Job{ID: cluster.JobID(fmt.Sprint("j", i+1)), Pool: slotpool.New(slotpool.Config{}), Sched: s})
	}
	p := plane.New(slotmgr.New(slotmgr.Config{SlotsPerAgent: 10, MaxAgents: subtasks / 10, EvenlySpread: true}), jobs...)
	p.JobEvent(epoch, 0, sched.Start{})
	p.JobEvent(epoch, 1, sched.Start{})
	settleAll(p)
	for i := range subtasks / 10 {
		p.SlotEvent(epoch, slotmgr.Granted{Agent: cluster.AgentID(fmt.Sprint("a", i))})
	}
	for i := range subtasks / 10 {
		p.SlotEvent(epoch, slotmgr.Registered{Agent: cluster.AgentID(fmt.Sprint("a", i)), Slots: 10})
	}
	settleAll(p)
	p.JobEvent(epoch, 0, sched.Cancel{Reason: "ctrl-C"})
	stopped := 0
	for _, e := range settleAll(p) {
		if c, ok := e.Of.(sched.CancelTasks); ok {
			for _, id := range c.IDs {
				stopped++
				p.JobEvent(epoch, 0, sched.TaskChanged{ID: id, State: cluster.Canceled})
			}
		}
	}
	settleAll(p)
	first, _ := jobs[0].Sched.State()
	second, _ := jobs[1].Sched.State()
	if stopped != subtasks || first != sched.Canceled || second != sched.Running {
		t.Errorf("%d tasks were told to stop; the jobs are %v and %v, want the first canceled and the second running", stopped, first, second)
	}
}

// settleAll settles until there is no more.
func settleAll(p *plane.Plane) []plane.Effect {
	out := p.Settle(epoch)
	for p.More() {
		out = append(out, p.Settle(epoch)...)
	}
	return out
}
