package cli

import (
	"fmt"
	"strings"

	"github.com/heddle-stream/heddle/appmaster/plane"
	"github.com/heddle-stream/heddle/conf"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/jobgraph"
)

// showPlacement draws which tasks would share which slots, an agent after the other.
func (s *session) showPlacement(g *jobgraph.Graph, c *conf.Config, strategy string) error {
	if strategy != "" {
		if err := c.Set("slot.selection", strategy, conf.FromFlag, "--strategy"); err != nil {
			return usage(err)
		}
	}
	if err := checkResources(g, c); err != nil {
		return err
	}
	agents, err := plane.Preview(g, agentsConfig(c), slotsConfig(c))
	if err != nil {
		return precondition(err)
	}
	return s.printPlan(drawPlacement(g, agents, c.Text("slot.selection")))
}

func drawPlacement(g *jobgraph.Graph, agents []plane.AgentPreview, strategy string) []string {
	used, all := 0, 0
	for _, a := range agents {
		for _, slot := range a.Slots {
			all++
			if len(slot) > 0 {
				used++
			}
		}
	}
	out := []string{"", fmt.Sprintf("placement on %s, %s: %d of %s used", plane.Count(len(agents), "agent"), strategy, used, plane.Count(all, "slot"))}
	for _, a := range agents {
		name := string(a.Agent)
		for i, slot := range a.Slots {
			var tasks []string
			if a.Profiles[i] != (cluster.Profile{}) {
				tasks = append(tasks, "{"+a.Profiles[i].String()+"}")
			}
			for _, id := range slot {
				v := &g.Vertices[id.Vertex]
				tasks = append(tasks, fmt.Sprintf("%s %d/%d", v.Name, id.Subtask+1, v.Parallelism))
			}
			line := fmt.Sprintf("  %-10s [%d] %s", name, i, strings.Join(tasks, " | "))
			out = append(out, strings.TrimRight(line, " "))
			name = ""
		}
	}
	return out
}
