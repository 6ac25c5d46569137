package plane

import (
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/appmaster/slotmgr"
	"github.com/heddle-stream/heddle/appmaster/slotpool"
	"github.com/heddle-stream/heddle/internal/jobgraph"
)

// graph is a job of vertices of these widths, all in one slot sharing group.
func graph(widths ...int) *jobgraph.Graph {
	g := &jobgraph.Graph{}
	for i, w := range widths {
		g.Vertices = append(g.Vertices, jobgraph.Vertex{ID: i, Parallelism: w, SlotGroup: "default"})
	}
	return g
}

// TestPreview is S-02 (FLINK-33386, FLINK-30895) among others: narrow vertices are not piled up, and no agent is left out.
func TestPreview(t *testing.T) {
	for _, c := range []struct {
		name          string
		widths        []int
		agents, slots int
		evenly        bool
		slotsUsed     []int // by agent
		tasks         []int // by agent
	}{
		{"default fills one after the other", []int{3}, 3, 2, false, []int{2, 1, 0}, []int{2, 1, 0}},
		{"evenly spread", []int{3}, 3, 2, true, []int{1, 1, 1}, []int{1, 1, 1}},
		{"wide and narrow over five slots", []int{5, 1}, 5, 1, true, []int{1, 1, 1, 1, 1}, []int{2, 1, 1, 1, 1}},
		{"many narrow ones", []int{8, 1, 4, 1, 2}, 4, 2, true, []int{2, 2, 2, 2}, []int{4, 4, 4, 4}},
		{"more agents than slots are needed", []int{2}, 4, 2, true, []int{1, 1, 0, 0}, []int{1, 1, 0, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s slotpool.Strategy
			if c.evenly {
				s = slotpool.EvenlySpread
			}
			got, err := Preview(graph(c.widths...), slotmgr.Config{SlotsPerAgent: c.slots, MinAgents: c.agents, EvenlySpread: c.evenly}, slotpool.Config{Strategy: s})
			if err != nil || len(got) != c.agents {
				t.Fatalf("%d agents, %v", len(got), err)
			}
			for i, a := range got {
				used, tasks := 0, 0
				for _, slot := range a.Slots {
					if len(slot) > 0 {
						used++
					}
					tasks += len(slot)
				}
				if used != c.slotsUsed[i] || tasks != c.tasks[i] {
					t.Errorf("%s has %d tasks in %d slots, want %d in %d", a.Agent, tasks, used, c.tasks[i], c.slotsUsed[i])
				}
			}
		})
	}
	_, err := Preview(graph(5), slotmgr.Config{SlotsPerAgent: 2, MaxAgents: 2}, slotpool.Config{})
	if err == nil || !strings.Contains(err.Error(), "needs 5 slots") || !strings.Contains(err.Error(), "agents.max") {
		t.Errorf("too few agents: %v", err)
	}
}
