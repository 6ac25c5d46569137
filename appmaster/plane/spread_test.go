package plane

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/heddle-stream/heddle/appmaster/sched"
	"github.com/heddle-stream/heddle/appmaster/slotmgr"
	"github.com/heddle-stream/heddle/appmaster/slotpool"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/jobgraph"
)

// TestSpread: slots and tasks are even over agents that register one after the other, for vertices of any widths, and so they are
// after the loss of an agent and a restart that is wider or narrower.
func TestSpread(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		agents, slots := rapid.IntRange(2, 6).Draw(t, "agents"), rapid.IntRange(1, 3).Draw(t, "slots")
		widths := func(label string, most int) (w []int) {
			for range rapid.IntRange(1, 4).Draw(t, label) {
				w = append(w, rapid.IntRange(1, most).Draw(t, "width"))
			}
			return w
		}
		first, second := graph(widths("first", agents*slots)...), graph(widths("second", (agents-1)*slots)...)
		s, err := sched.New(sched.Config{Restart: sched.FixedDelay{Times: 9, Delay: time.Second}, Mode: modes{second}}, first)
		if err != nil {
			t.Fatal(err)
		}
		p := New(slotmgr.New(slotmgr.Config{SlotsPerAgent: slots, MinAgents: agents, MaxAgents: agents, EvenlySpread: true, FailureBudget: 9, HeartbeatTimeout: time.Hour}),
			Job{ID: "j", Pool: slotpool.New(slotpool.Config{Strategy: slotpool.EvenlySpread, Timeout: -1}), Sched: s})
		now := epoch
		p.JobEvent(now, 0, sched.Start{})
		p.settleAll(now)
		for i := range agents {
			p.up(now, slots, cluster.Profile{}, fmt.Sprint("a", i))
		}
		checkSpread(t, p, first, agents)
		// One is lost, and comes back as another; the job is made as wide as its mode says.
		p.SlotEvent(now, slotmgr.Exited{Agent: "a0", Reason: "killed"})
		end(p, now)
		p.up(now, slots, cluster.Profile{}, "b")
		now = now.Add(time.Second)
		p.settleAll(now)
		if p.Jobs[0].Sched.Graph() != second {
			t.Fatal("the restarted job is not as wide as its mode says")
		}
		checkSpread(t, p, second, agents)
	})
}

// modes makes a job, when it restarts, another one.
type modes struct{ next *jobgraph.Graph }

func (m modes) Graph(*jobgraph.Graph, int) *jobgraph.Graph { return m.next }

// end stops every task that shall.
func end(p *Plane, now time.Time) {
	for _, e := range p.settleAll(now) {
		if c, ok := e.Of.(sched.CancelTasks); ok {
			for _, id := range c.IDs {
				p.JobEvent(now, 0, sched.TaskChanged{ID: id, State: cluster.Canceled})
			}
		}
	}
	p.settleAll(now)
}

func checkSpread(t *rapid.T, p *Plane, g *jobgraph.Graph, agents int) {
	if state, _ := p.Jobs[0].Sched.State(); state != sched.Running {
		t.Fatalf("the job is %v: %s", state, p.Outlook(epoch))
	}
	used, tasks := map[cluster.AgentID]map[int]bool{}, map[cluster.AgentID]int{}
	for v := range g.Vertices {
		for e := range p.Jobs[0].Sched.Executions(v) {
			if used[e.Slot.Agent] == nil {
				used[e.Slot.Agent] = map[int]bool{}
			}
			used[e.Slot.Agent][e.Slot.Index] = true
			tasks[e.Slot.Agent]++
		}
	}
	count := func(of func(cluster.AgentID) int) (least, most int) {
		least = 1 << 30
		for a := range p.Slots.Agents() {
			n := of(a.ID)
			least, most = min(least, n), max(most, n)
		}
		return least, most
	}
	if least, most := count(func(id cluster.AgentID) int { return len(used[id]) }); most-least > 1 {
		t.Fatalf("agents have %d to %d slots in use", least, most)
	}
	// Tasks can't be spread better than slots: a wide vertex has one in each or nearly each, and an agent without a slot none.
	wide := 0
	for _, v := range g.Vertices {
		wide = max(wide, v.Parallelism)
	}
	slack := 1
	for _, v := range g.Vertices {
		if v.Parallelism > agents && v.Parallelism%agents != 0 || v.Parallelism == wide && wide%agents != 0 {
			slack++
		}
	}
	if least, most := count(func(id cluster.AgentID) int { return tasks[id] }); wide >= agents && most-least > slack {
		t.Fatalf("agents have %d to %d tasks", least, most)
	}
}
