package task

import (
	"fmt"

	"github.com/heddle-stream/heddle/internal/flow"
)

// Names of the counters that every operator has where they mean something.
const (
	RecordsIn  = "records_in"
	RecordsOut = "records_out"
	BytesIn    = "bytes_in"  // through the exchange, of the head of a chain
	BytesOut   = "bytes_out" // through the exchange
)

// buildChain instantiates the operators from tail to head, so that each finds the Outs of those that read it.
func (t *Task) buildChain() error {
	for _, id := range t.vertex.BuildOrder() {
		node := t.spec.Graph.Nodes[id]
		o := &operator{
			task: t, node: node, log: t.env.Logger.With("operator", node.Title()), max: t.vertex.MaxParallelism,
			counters: map[string]*flow.Counter{}, timer: flow.MaxTime,
		}
		for port := range node.Outputs {
			out, err := t.outputOf(o, port)
			if err != nil {
				return fmt.Errorf("cannot build output %d of operator %s: %w", port, node.Title(), err)
			}
			o.outs = append(o.outs, out)
		}
		if node.New == nil {
			return fmt.Errorf("cannot build operator %s: it has no implementation", node.Title())
		}
		inst, err := node.New(o, o.outs)
		if err != nil {
			return fmt.Errorf("cannot build operator %s: %w", node.Title(), err)
		}
		o.op, o.inputs = inst.Op, inst.Inputs
		o.flusher, _ = inst.Op.(flow.Flusher)
		if inst.Source != nil {
			t.source = inst.Source
		}
		t.byNode[id] = o
		t.ops = append([]*operator{o}, t.ops...)
	}
	if (t.source != nil) != (t.vertex.Source >= 0) {
		return fmt.Errorf("cannot build chain %s: whether it has a source differs between graph and operators", t.vertex.Name)
	}
	return nil
}

// outputOf makes the Out of one output port of o: it counts, and passes on to all that read the port.
func (t *Task) outputOf(o *operator, port int) (any, error) {
	typ := o.node.Outputs[port]
	records := o.Counter(RecordsOut)
	links := t.spec.Plan.Links(t.spec.Graph, t.vertex, o.node.ID, port)
	var outs []any
	for _, l := range links {
		if l.Edge < 0 {
			next := t.byNode[l.Node]
			if l.Port < 0 || l.Port >= len(next.inputs) {
				return nil, fmt.Errorf("operator %s has no input %d", next.node.Title(), l.Port)
			}
			// The count of what a chained operator gets is kept apart from that of what this one emits,
			// since several ports may add up to the latter.
			in, err := typ.Counted(next.inputs[l.Port], next.Counter(RecordsIn))
			if err != nil {
				return nil, err
			}
			outs = append(outs, in)
			continue
		}
		out, err := t.writerOf(o, typ, l.Edge)
		if err != nil {
			return nil, err
		}
		outs = append(outs, out)
	}
	out, err := typ.Tee(outs)
	if err != nil {
		return nil, err
	}
	return typ.Counted(out, records)
}

// writerOf makes the writer of one out-edge.
func (t *Task) writerOf(o *operator, typ flow.Type, edge int) (any, error) {
	e := &t.spec.Plan.Edges[edge]
	index := t.outIndex(edge)
	if index < 0 {
		return nil, fmt.Errorf("edge %d is not among the outputs of the deployment", edge)
	}
	consumer := &t.spec.Plan.Vertices[e.To]
	part := t.outs[index]
	part.ended = make([]bool, t.spec.Outputs[index].Subpartitions)
	cfg := flow.WriterConfig{
		Part:     t.partitioning(edge),
		Channels: t.spec.Outputs[index].Subpartitions, Subtask: t.spec.ID.Subtask,
		MaxParallelism: consumer.MaxParallelism, Parallelism: consumer.Parallelism,
		Segments: part, Records: &flow.Counter{}, Bytes: o.Counter(BytesOut),
		Tracer: o.Tracer(), Edge: index,
	}
	out, w, err := typ.NewWriter(cfg)
	if err != nil {
		return nil, err
	}
	t.writers = append(t.writers, w)
	return out, nil
}

// partitioning finds the author's partitioning of an edge, and sets the kind that the compiler chose.
func (t *Task) partitioning(edge int) flow.Partitioning {
	e := &t.spec.Plan.Edges[edge]
	p := flow.Partitioning{Kind: e.Kind}
	skip := 0 // edges between the same ports, in order
	for _, id := range t.spec.Plan.Vertices[e.To].In {
		if id == edge {
			break
		}
		if o := &t.spec.Plan.Edges[id]; o.FromNode == e.FromNode && o.FromPort == e.FromPort && o.ToPort == e.ToPort {
			skip++
		}
	}
	for _, in := range t.spec.Graph.Nodes[e.ToNode].In {
		if in.From.ID != e.FromNode || in.FromPort != e.FromPort || in.ToPort != e.ToPort {
			continue
		}
		if skip == 0 {
			p.Impl = in.Part.Impl
			break
		}
		skip--
	}
	return p
}

func (t *Task) outIndex(edge int) int {
	for i := range t.spec.Outputs {
		if t.spec.Outputs[i].Edge == edge {
			return i
		}
	}
	return -1
}

// buildInputs makes the ports of the chain's head, and a reader for each in-edge.
func (t *Task) buildInputs() error {
	head := t.ops[0]
	if t.source != nil {
		return nil
	}
	channels := make([]int, len(head.inputs))
	for i := range t.spec.Inputs {
		e := &t.spec.Plan.Edges[t.spec.Inputs[i].Edge]
		if e.ToPort >= len(head.inputs) {
			return fmt.Errorf("cannot build input of operator %s: it has no input %d", head.node.Title(), e.ToPort)
		}
		in := &input{edge: e, spec: &t.spec.Inputs[i], base: channels[e.ToPort], bytes: head.Counter(BytesIn)}
		channels[e.ToPort] += len(in.spec.Channels)
		t.openChannels += len(in.spec.Channels)
		typ := t.spec.Graph.Nodes[e.FromNode].Outputs[e.FromPort]
		out, err := typ.Counted(head.inputs[e.ToPort], head.Counter(RecordsIn))
		if err != nil {
			return fmt.Errorf("cannot build input of operator %s: %w", head.node.Title(), err)
		}
		if in.reader, err = typ.NewReader(out); err != nil {
			return fmt.Errorf("cannot build input of operator %s: %w", head.node.Title(), err)
		}
		if r, ok := in.reader.(flow.TracedReader); ok {
			r.Trace(head.Tracer())
		}
		t.inputs = append(t.inputs, in)
	}
	for port, n := range channels {
		out, ok := head.inputs[port].(flow.Controller)
		if !ok {
			return fmt.Errorf("cannot build input %d of operator %s: %T takes no controls", port, head.node.Title(), head.inputs[port])
		}
		t.ports = append(t.ports, newValve(out, n))
	}
	t.openPorts = len(t.ports)
	return nil
}
