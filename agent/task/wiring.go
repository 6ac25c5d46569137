package task

import (
	"fmt"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/jobgraph"
)

// Wire returns the inputs and outputs of an execution when all of the job's executions have the same attempt number.
// addr is the exchange address of the agent that runs a subtask; nil where all run in one process.
func Wire(plan *jobgraph.Graph, id cluster.ExecutionID, addr func(vertex, subtask int) string) ([]Input, []Output) {
	v := &plan.Vertices[id.Vertex]
	var inputs []Input
	for _, edge := range v.In {
		e := &plan.Edges[edge]
		in := Input{Edge: edge}
		producers, subs := e.Sources(id.Subtask, plan.Vertices[e.From].Parallelism, v.Parallelism)
		for i, p := range producers {
			c := Channel{Partition: partitionID(edge, p, id.Attempt), Subpartition: subs[i], ConnIndex: uint32(edge), Producer: p}
			if addr != nil {
				c.Addr = addr(e.From, p)
			}
			in.Channels = append(in.Channels, c)
		}
		inputs = append(inputs, in)
	}
	var outputs []Output
	for _, edge := range v.Out {
		e := &plan.Edges[edge]
		targets := e.Targets(id.Subtask, v.Parallelism, plan.Vertices[e.To].Parallelism)
		outputs = append(outputs, Output{Edge: edge, Partition: partitionID(edge, id.Subtask, id.Attempt), Subpartitions: len(targets)})
	}
	return inputs, outputs
}

func partitionID(edge, subtask, attempt int) string {
	return fmt.Sprintf("%d.%d#%d", edge, subtask, attempt)
}
