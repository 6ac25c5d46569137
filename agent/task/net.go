package task

import (
	"context"
	"fmt"
	"time"

	"github.com/heddle-stream/heddle/netstack"
	"github.com/heddle-stream/heddle/netstack/bufpool"
)

// netExchange is the Exchange between processes.
type netExchange struct{ stack *netstack.Stack }

// NewNetExchange makes an Exchange of a process's stack.
func NewNetExchange(s *netstack.Stack) Exchange { return netExchange{s} }

// NewPartition implements Exchange.
func (x netExchange) NewPartition(cfg PartitionConfig, wake func()) (Partition, error) {
	p, err := x.stack.NewPartition(netstack.PartitionConfig{ID: cfg.ID, Subpartitions: cfg.Subpartitions, Wake: wake})
	if err != nil {
		return nil, err
	}
	return &netPartition{Partition: p, open: make([]*bufpool.Segment, cfg.Subpartitions)}, nil
}

// NewGate implements Exchange.
func (x netExchange) NewGate(name string, channels []Channel, wake func()) (Gate, error) {
	g, err := x.stack.NewGate(netstack.GateConfig{Name: name, Wake: wake, Channels: netChannels(channels)})
	if err != nil {
		return nil, err
	}
	return netGate{g}, nil
}

func netChannels(channels []Channel) []netstack.ChannelConfig {
	out := make([]netstack.ChannelConfig, len(channels))
	for i, c := range channels {
		out[i] = netstack.ChannelConfig{Partition: c.Partition, Subpartition: c.Subpartition, Addr: c.Addr, ConnIndex: c.ConnIndex}
	}
	return out
}

// NetSegments returns how many segments of a process's stack a task sets aside for its inputs and outputs.
func NetSegments(s *netstack.Stack, spec *Spec) int {
	n := 0
	for i := range spec.Inputs {
		n += s.GateSegments(netChannels(spec.Inputs[i].Channels))
	}
	for i := range spec.Outputs {
		n += s.PartitionSegments(spec.Outputs[i].Subpartitions)
	}
	return n
}

// netPartition adds to a partition which segments are open.
type netPartition struct {
	*netstack.Partition
	open []*bufpool.Segment // by subpartition
}

// TryGet implements Partition.
func (p *netPartition) TryGet(sub int) ([]byte, error) {
	if p.open[sub] != nil {
		return nil, fmt.Errorf("a segment of subpartition %d is open already", sub)
	}
	seg := p.Partition.TryGet(sub)
	if seg == nil {
		return nil, nil // of an error Get learns
	}
	return p.opened(sub, seg), nil
}

// opened enters an open segment and returns the room that is to be used of it.
func (p *netPartition) opened(sub int, seg *bufpool.Segment) []byte {
	p.open[sub] = seg
	n := p.Room(sub)
	return seg.Bytes()[:n:n]
}

// Overdraw implements overdrawer.
func (p *netPartition) Overdraw(sub int) []byte {
	if p.open[sub] != nil {
		return nil
	}
	seg := p.Partition.Overdraft(sub)
	if seg == nil {
		return nil
	}
	return p.opened(sub, seg)
}

// Get implements Partition.
func (p *netPartition) Get(done <-chan struct{}, sub int) ([]byte, error) {
	seg, err := p.Partition.Get(doneContext{done}, sub)
	if err != nil {
		return nil, err
	}
	return p.opened(sub, seg), nil
}

// Put implements Partition.
func (p *netPartition) Put(sub, n int) error { return p.PutNoted(sub, n, nil) }

// PutNoted implements Partition.
func (p *netPartition) PutNoted(sub, n int, note []byte) error {
	seg := p.open[sub]
	if seg == nil {
		return fmt.Errorf("cannot put into subpartition %d: no segment is open", sub)
	}
	p.open[sub] = nil
	return p.Partition.PutNoted(sub, seg, n, note)
}

// Event implements Partition.
func (p *netPartition) Event(sub int, payload []byte, coalesce bool) error {
	return p.Partition.Event(sub, payload, netstack.EventOptions{Coalesce: coalesce})
}

// Release implements Partition.
func (p *netPartition) Release() {
	for sub, seg := range p.open {
		if seg != nil {
			p.open[sub] = nil
			_ = p.Partition.Put(sub, seg, 0) // only gives back; what else went wrong is known
		}
	}
	p.Partition.Release()
}

// netGate adds nothing to a gate but the form of its items.
type netGate struct{ gate *netstack.Gate }

// Next implements Gate.
func (g netGate) Next() (Item, bool, error) {
	it, ok, err := g.gate.Next()
	if !ok || err != nil {
		return Item{}, false, err
	}
	item := Item{Channel: it.Channel, Payload: it.Payload, Event: it.Event, End: it.End, Hop: it.Hop}
	if it.End {
		item.Event = nil // an end carries nothing
	}
	if it.Segment != nil {
		item.Segment = it.Segment
	}
	return item, true, nil
}

// Recycle implements Gate.
func (g netGate) Recycle(it Item) {
	if it.Segment != nil {
		g.gate.Recycle(netstack.Item{Channel: it.Channel, Segment: it.Segment})
	}
}

// Close implements Gate.
func (g netGate) Close() error { return g.gate.Close() }

// Queued implements Gate.
func (g netGate) Queued() int { return g.gate.Queued() }

// Usage implements Gate.
func (g netGate) Usage() (used, most int) { return g.gate.Usage() }

// Credit implements creditor.
func (g netGate) Credit() int { return g.gate.Credit() }

// doneContext is a context that is cancelled when a channel is closed.
type doneContext struct{ done <-chan struct{} }

var _ context.Context = doneContext{}

func (c doneContext) Deadline() (time.Time, bool) { return time.Time{}, false }
func (c doneContext) Done() <-chan struct{}       { return c.done }
func (c doneContext) Value(any) any               { return nil }
func (c doneContext) Err() error {
	select {
	case <-c.done:
		return ErrCancelled
	default:
		return nil
	}
}
