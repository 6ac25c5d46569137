// Package jobgraph compiles the operators of a flow.Graph into vertices (chains of operators
// that share a goroutine) and edges between them, and validates the result.
// It does no I/O; a Graph is plain data that can be shown, sent and compared.
package jobgraph

import (
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/flow"
)

// Graph is a compiled job. Vertices are in topological order, producers first.
type Graph struct {
	Name     string   `json:"name"`
	Vertices []Vertex `json:"vertices"`
	Edges    []Edge   `json:"edges"`
	// Profiles are what a slot must have, of the slot sharing groups that ask for something.
	Profiles    map[string]cluster.Profile `json:"-"`
	Fingerprint string                     `json:"fingerprint"` // SHA-256 over all that must agree between processes, hex
}

// Vertex is a chain of operators, run as Parallelism subtasks.
type Vertex struct {
	ID             int    `json:"id"`    // index in Graph.Vertices
	Name           string `json:"name"`  // operator names joined by " → ", the first of them if it would be longer than flow.MaxName
	Nodes          []int  `json:"nodes"` // flow.Node ids, the head first, producers before consumers
	Parallelism    int    `json:"parallelism"`
	MaxParallelism int    `json:"max_parallelism"`
	SlotGroup      string `json:"slot_group"`
	CoLocation     string `json:"co_location,omitempty"`
	Source         int    `json:"source"` // node id of the source that heads the chain; -1 if none
	In             []int  `json:"in"`     // edge ids
	Out            []int  `json:"out"`    // edge ids

	Operators []Operator `json:"operators"` // the nodes again, for people
}

// Operator is what plans and reports tell of a node.
type Operator struct {
	ID     int    `json:"id"` // flow.Node.ID
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	UID    string `json:"uid,omitempty"`
	Detail string `json:"detail,omitempty"`
	Where  string `json:"where,omitempty"` // file:line in the job
	Align  string `json:"align,omitempty"` // of a source: how far its splits may be ahead of others
}

// Edge moves records from one vertex to another through the exchange.
type Edge struct {
	ID       int                `json:"id"` // index in Graph.Edges
	From     int                `json:"from"`
	To       int                `json:"to"`
	FromNode int                `json:"from_node"`
	FromPort int                `json:"from_port"`
	ToNode   int                `json:"to_node"`
	ToPort   int                `json:"to_port"`
	Kind     flow.PartitionKind `json:"-"`
	Part     string             `json:"partitioning"` // Kind as text
	Type     string             `json:"type"`         // of the records
}

// Options of a compilation.
type Options struct {
	Parallelism    int // where neither operator nor job sets one; 0 means 1
	MaxParallelism int // key groups where neither operator nor job sets any; 0 means 128
	NoChaining     bool
}

// Targets returns the consumer subtasks that producer subtask sub of edge e reaches, given both parallelisms.
// Subpartition i of the producer's partition is for consumer Targets(...)[i]. Consumers are ascending.
//
// Forward: the one of the same index. Rescale: a contiguous block. All others: everyone.
func (e Edge) Targets(sub, producers, consumers int) []int {
	switch e.Kind {
	case flow.Forward:
		return []int{sub}
	case flow.Rescale:
		if producers >= consumers {
			return []int{sub * consumers / producers}
		}
		return span(ceilDiv(sub*consumers, producers), ceilDiv((sub+1)*consumers, producers))
	}
	return span(0, consumers)
}

// Sources returns the producer subtasks whose partitions consumer subtask sub of e reads, ascending,
// and for each the subpartition to ask for: the inverse of Targets.
func (e Edge) Sources(sub, producers, consumers int) (subtasks, subpartitions []int) {
	for p := range producers {
		for i, c := range e.Targets(p, producers, consumers) {
			if c == sub {
				subtasks, subpartitions = append(subtasks, p), append(subpartitions, i)
			}
		}
	}
	return subtasks, subpartitions
}

func span(from, to int) []int {
	s := make([]int, 0, to-from)
	for i := from; i < to; i++ {
		s = append(s, i)
	}
	return s
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }
