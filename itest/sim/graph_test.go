package sim

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/jobgraph"
)

func connect(g *jobgraph.Graph, from, to int) {
	e := jobgraph.Edge{ID: len(g.Edges), From: from, To: to, Kind: flow.Hash}
	g.Edges = append(g.Edges, e)
	g.Vertices[from].Out = append(g.Vertices[from].Out, e.ID)
	g.Vertices[to].In = append(g.Vertices[to].In, e.ID)
}

// parseJob makes a job of words such as "src:2 map:4:group". Each vertex reads the one before.
func parseJob(words []string) (*jobgraph.Graph, error) {
	g := &jobgraph.Graph{}
	for _, w := range words {
		parts := strings.Split(w, ":")
		if len(parts) < 2 {
			return nil, fmt.Errorf("%q is not NAME:PARALLELISM[:GROUP]", w)
		}
		p, err := strconv.Atoi(parts[1])
		if err != nil {
			return nil, err
		}
		v := jobgraph.Vertex{ID: len(g.Vertices), Name: parts[0], Parallelism: p, SlotGroup: "default"}
		if len(parts) > 2 {
			v.SlotGroup = parts[2]
		}
		g.Vertices = append(g.Vertices, v)
		if v.ID > 0 {
			connect(g, v.ID-1, v.ID)
		}
	}
	return g, nil
}
