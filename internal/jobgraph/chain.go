package jobgraph

import (
	"slices"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/flow"
)

// Link is one reader of an output port inside a task: a node of the same chain, or an edge to another vertex.
type Link struct {
	Node int // of the chain, or -1
	Port int // input port of Node
	Edge int // id of the out-edge, or -1
}

// Links returns who reads output port of node in vertex v: the chained nodes in order of the chain,
// then the out-edges in order of Vertex.Out. src is the graph that g was compiled from.
func (g *Graph) Links(src *flow.Graph, v *Vertex, node, port int) []Link {
	var links []Link
	for _, id := range v.Nodes[1:] {
		if e := src.Nodes[id].In[0]; e.From.ID == node && e.FromPort == port {
			links = append(links, Link{Node: id, Port: e.ToPort, Edge: -1})
		}
	}
	for _, id := range v.Out {
		if e := g.Edges[id]; e.FromNode == node && e.FromPort == port {
			links = append(links, Link{Node: -1, Edge: id})
		}
	}
	return links
}

// BuildOrder returns the nodes of v from tail to head: each after all that read it.
func (v *Vertex) BuildOrder() []int {
	order := slices.Clone(v.Nodes)
	slices.Reverse(order)
	return order
}

// SlotsNeeded is how many slots one slot sharing group needs: as many as its widest vertex has subtasks.
type SlotsNeeded struct {
	Group    string          `json:"group"`
	Slots    int             `json:"slots"`
	Vertices []int           `json:"vertices"`
	Profile  cluster.Profile `json:"resources,omitzero"` // of each slot; zero: any
}

// SlotsNeeded returns the need of every slot sharing group, in order of their first vertex.
func (g *Graph) SlotsNeeded() []SlotsNeeded {
	var need []SlotsNeeded
	for _, v := range g.Vertices {
		i := slices.IndexFunc(need, func(s SlotsNeeded) bool { return s.Group == v.SlotGroup })
		if i < 0 {
			i = len(need)
			need = append(need, SlotsNeeded{Group: v.SlotGroup, Profile: g.Profiles[v.SlotGroup]})
		}
		need[i].Slots = max(need[i].Slots, v.Parallelism)
		need[i].Vertices = append(need[i].Vertices, v.ID)
	}
	return need
}

// Slots returns how many slots the whole job needs.
func (g *Graph) Slots() int {
	n := 0
	for _, s := range g.SlotsNeeded() {
		n += s.Slots
	}
	return n
}

// Subtasks returns how many tasks the job runs.
func (g *Graph) Subtasks() int {
	n := 0
	for _, v := range g.Vertices {
		n += v.Parallelism
	}
	return n
}
