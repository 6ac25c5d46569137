package task

import (
	"fmt"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/jobgraph"
	"github.com/heddle-stream/heddle/internal/telemetry"
)

// input is one in-edge of the chain's head. Owned by the task's goroutine, but for gate.Queued.
type input struct {
	edge   *jobgraph.Edge
	spec   *Input
	base   int // number of the first channel within its port
	gate   Gate
	reader flow.SegmentReader // of all channels: it keeps what several segments make up apart by their writers
	bytes  *flow.Counter
	hops   [telemetry.Phases]telemetry.Latency // of followed records
	traced []telemetry.Fixed                   // by channel: what all spans of its hops have
}

// take handles one item of in, and gives it back however that ends.
func (t *Task) take(in *input, it Item) error {
	defer in.gate.Recycle(it) // also when an operator panics: the segment belongs to the whole process
	if it.Channel < 0 || it.Channel >= len(in.spec.Channels) {
		return cluster.Failure{Kind: cluster.Internal, Message: fmt.Sprintf("an item for channel %d of %d", it.Channel, len(in.spec.Channels))}
	}
	var err error
	switch {
	case it.Payload != nil:
		in.bytes.Add(int64(len(it.Payload)))
		if it.Hop != nil && t.follow != nil {
			t.follow.arriving(in, &it)
			defer t.follow.arrived()
		}
		err = in.reader.Consume(it.Payload)
		if t.first {
			t.sawFirst()
		}
	case it.Event != nil:
		err = t.event(in, it)
	}
	if err == nil && it.End {
		t.openChannels--
		err = t.control(in, it.Channel, flow.Control{Kind: flow.End}) // the valve knows if it came before
	}
	return err
}

// sawFirst notes that the first records were handled.
func (t *Task) sawFirst() {
	t.first = false
	t.env.OnFirst()
}

func (t *Task) event(in *input, it Item) error {
	c, err := flow.ParseControl(it.Event)
	if err != nil {
		return cluster.Failure{Kind: cluster.Corrupt, Message: fmt.Sprintf("cannot read an event of partition %s: %v", in.spec.Channels[it.Channel].Partition, err)}
	}
	return t.control(in, it.Channel, c)
}

// control passes a control of one channel through its port's valve.
func (t *Task) control(in *input, channel int, c flow.Control) error {
	v := t.ports[in.edge.ToPort]
	was := v.ended
	if err := v.control(in.base+channel, c); err != nil {
		if err == errUnexpected {
			return cluster.Failure{Kind: cluster.Corrupt, Message: fmt.Sprintf("partition %s sent a %v, which this version does not handle", in.spec.Channels[channel].Partition, c.Kind)}
		}
		return err
	}
	if v.ended && !was {
		t.openPorts--
	}
	t.sawInput()
	return nil
}

// sawInput publishes the least watermark of all ports.
func (t *Task) sawInput() {
	w := flow.MaxTime
	for _, v := range t.ports {
		w = min(w, v.last)
	}
	if w != t.watermark.Load() {
		t.watermark.Store(w)
	}
}

// sawOutput publishes the watermark that a source's task emits, since it has no input.
func (t *Task) sawOutput(w int64) {
	if t.source != nil {
		t.watermark.Store(w)
	}
}

// openGates requests the channels of all inputs.
func (t *Task) openGates() error {
	name := fmt.Sprintf("%s (%d/%d)", t.vertex.Name, t.spec.ID.Subtask+1, t.vertex.Parallelism)
	for _, in := range t.inputs {
		g, err := t.env.Exchange.NewGate(name, in.spec.Channels, t.Wake)
		if err != nil {
			return fmt.Errorf("cannot open input %d: %w", in.edge.ID, err)
		}
		t.gatesMu.Lock()
		in.gate = g
		t.gatesMu.Unlock()
	}
	return nil
}

// closeGates gives back what the gates hold.
func (t *Task) closeGates() error {
	var first error
	for _, in := range t.inputs {
		t.gatesMu.Lock()
		g := in.gate
		in.gate = nil
		t.gatesMu.Unlock()
		if g == nil {
			continue
		}
		if err := g.Close(); err != nil && first == nil {
			first = fmt.Errorf("cannot close input %d: %w", in.edge.ID, err)
		}
	}
	return first
}
