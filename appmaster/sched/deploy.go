package sched

import (
	"fmt"
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/flow"
)

// deploy makes one order for each agent. Vertices are in topological order, so producers come before consumers.
func (m *Machine) deploy(now time.Time) []Effect {
	orders := map[cluster.AgentID]int{}
	var out []Deploy
	for i := range m.execs {
		slot := &m.slots[m.execs[i].slot]
		n, ok := orders[slot.ID.Agent]
		if !ok {
			n = len(out)
			orders[slot.ID.Agent] = n
			out = append(out, Deploy{Agent: slot.ID.Agent})
		}
		out[n].Tasks = append(out[n].Tasks, m.task(i, slot))
		m.byAgent[slot.ID.Agent] = append(m.byAgent[slot.ID.Agent], i)
		m.set(now, i, cluster.Deploying)
	}
	effects := make([]Effect, len(out))
	for i := range out {
		effects[i] = out[i]
	}
	return effects
}

func (m *Machine) task(i int, slot *cluster.Slot) Task {
	id := m.execs[i].id
	v := &m.graph.Vertices[id.Vertex]
	t := Task{ID: id, Slot: slot.ID.Index, Allocation: slot.Allocation}
	for _, e := range v.In {
		t.Inputs = append(t.Inputs, Input{Edge: e, Channels: m.channels(e, id.Subtask)})
	}
	for _, e := range v.Out {
		t.Outputs = append(t.Outputs, Output{Edge: e, Partition: m.partition(e, id.Subtask), Subpartitions: m.subpartitions(e, id.Subtask)})
	}
	return t
}

// partition names what a producer subtask writes for an edge. No two attempts write the same.
func (m *Machine) partition(edge, producer int) string {
	return fmt.Sprintf("%d.%d#%d", edge, producer, m.attempt)
}

// all reports whether every producer of an edge reaches every consumer, which need not be worked out one by one.
func all(k flow.PartitionKind) bool { return k != flow.Forward && k != flow.Rescale }

func (m *Machine) subpartitions(edge, producer int) int {
	e := &m.graph.Edges[edge]
	consumers := m.graph.Vertices[e.To].Parallelism
	if all(e.Kind) {
		return consumers
	}
	return len(e.Targets(producer, m.graph.Vertices[e.From].Parallelism, consumers))
}

func (m *Machine) channels(edge, consumer int) []Channel {
	e := &m.graph.Edges[edge]
	producers := m.graph.Vertices[e.From].Parallelism
	if all(e.Kind) {
		out := make([]Channel, producers)
		for p := range out {
			out[p] = m.channel(edge, p, consumer, consumer)
		}
		return out
	}
	from, subs := e.Sources(consumer, producers, m.graph.Vertices[e.To].Parallelism)
	out := make([]Channel, len(from))
	for i, p := range from {
		out[i] = m.channel(edge, p, subs[i], consumer)
	}
	return out
}

func (m *Machine) channel(edge, producer, sub, consumer int) Channel {
	slot := m.execs[m.first[m.graph.Edges[edge].From]+producer].slot
	return Channel{
		Partition: m.partition(edge, producer), Subpartition: sub, Addr: m.slots[slot].Addr,
		ConnIndex: uint32(edge + producer + consumer), Producer: producer,
	}
}
