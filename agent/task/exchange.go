package task

import (
	"context"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/netstack"
	"github.com/heddle-stream/heddle/netstack/bufpool"
)

// Exchange moves segments and events from partitions to gates.
type Exchange interface {
	// NewPartition registers the output of one edge, so that consumers find it. wake is called, by any goroutine,
	// when a TryGet that said no may succeed.
	NewPartition(cfg PartitionConfig, wake func()) (Partition, error)
	// NewGate requests all channels. name is for errors; wake is called, by any goroutine, when a Next that said no may succeed.
	NewGate(name string, channels []Channel, wake func()) (Gate, error)
}

// PartitionConfig describes the output of a task into one edge.
type PartitionConfig struct {
	ID            string
	Subpartitions int
}

// Channel is one subpartition that a gate reads.
type Channel struct {
	Partition    string
	Subpartition int
	Addr         string // exchange address of the producer's agent; "" in the same process
	ConnIndex    uint32 // which of the pooled connections
	Producer     int    // subtask of the producer, for errors
}

// Partition is the producer's end. Only the task's goroutine calls its methods, but for Queued and Usage.
type Partition interface {
	// TryGet opens a segment for sub and returns its room, or nil if there is none now.
	TryGet(sub int) ([]byte, error)
	// Get is TryGet that waits for a segment, or until done is closed.
	Get(done <-chan struct{}, sub int) ([]byte, error)
	// Put sends the first n bytes of the open segment of sub; for n = 0 it gives the segment back.
	Put(sub, n int) error
	// PutNoted is Put with a note of at most netstack.MaxNote bytes, which the consumer gets as a Hop beside the segment. Without a note it is Put.
	PutNoted(sub, n int, note []byte) error
	// Event sends payload, which it copies, after what was put before. coalesce says that it may replace a
	// coalescable event that is the last not yet sent.
	Event(sub int, payload []byte, coalesce bool) error
	// Finish returns when the consumers have taken everything.
	Finish(ctx context.Context) error
	// Fail tells the consumers that the producer failed and why.
	Fail(err error)
	// Release gives everything back. It may be called in any state, more than once.
	Release()
	// Queued is how many segments wait to be taken; any goroutine may ask.
	Queued() int
	// Usage is how many segments it has in use, and how many it could have; any goroutine may ask.
	Usage() (used, most int)
}

// Gate is the consumer's end of all channels of one in-edge. Only the task's goroutine calls its methods, but for Queued.
type Gate interface {
	// Next returns the next item of any channel, fairly, without waiting.
	Next() (Item, bool, error)
	// Recycle gives an item's segment back.
	Recycle(Item)
	Close() error
	// Queued is how many items wait; any goroutine may ask.
	Queued() int
	// Usage is how many of its own segments it has in use, and how many it could have; any goroutine may ask.
	Usage() (used, most int)
}

// Item is what a gate delivers: one of Payload, Event and End.
type Item struct {
	Channel int    // index into the gate's channels
	Payload []byte // of a data segment, 8-byte aligned; valid until Recycle
	Event   []byte // valid until Recycle
	End     bool   // the producer finished; nothing follows on this channel

	Hop *netstack.Hop // the way of a data segment that was put with a note, else nil

	// The gate's own: its segment. One field for each Exchange, so that an item is made without an allocation.
	Segment *bufpool.Segment
	memory  []byte
}

// edgeOut is the flow.SegmentOut of one out-edge: it adds to a Partition what the task wants to know.
type edgeOut struct {
	part  Partition
	task  *Task
	ended []bool // by channel: Control End was sent
	buf   []byte // of Control and note, reused
	index int    // among the task's outputs

	marks  map[int][]mark // by channel: followed records in its open segment
	marked int            // channels with such records
}

// Get implements flow.SegmentOut.
func (o *edgeOut) Get(ch int) ([]byte, error) {
	b, err := o.part.TryGet(ch)
	if b != nil || err != nil {
		return b, err
	}
	o.task.meter.enter(blocked)
	defer o.task.meter.leave()
	if f := o.task.follow; f != nil && f.trail.Recording() {
		defer f.blocked(f.now(), o.index)
	}
	return o.part.Get(o.task.done, ch)
}

// overdrawer is a Partition that may go beyond its limits, by a few segments, in the midst of a record.
type overdrawer interface {
	// Overdraw is TryGet beyond the limits.
	Overdraw(sub int) []byte
}

// GetMore implements flow.SegmentLender.
func (o *edgeOut) GetMore(ch int) ([]byte, error) {
	if p, ok := o.part.(overdrawer); ok {
		if b := p.Overdraw(ch); b != nil {
			return b, nil
		}
	}
	return o.Get(ch)
}

// Put implements flow.SegmentOut.
func (o *edgeOut) Put(ch, n int) error {
	if o.marked > 0 && len(o.marks[ch]) > 0 {
		return o.part.PutNoted(ch, n, o.note(ch))
	}
	return o.part.Put(ch, n)
}

// Control implements flow.SegmentOut.
func (o *edgeOut) Control(ch int, c flow.Control) error {
	switch c.Kind {
	case flow.End:
		o.ended[ch] = true
	case flow.Watermark:
		if ch == 0 {
			o.task.sawOutput(c.Time)
		}
	}
	o.buf = flow.AppendControl(o.buf[:0], c)
	return o.part.Event(ch, o.buf, c.Kind == flow.Watermark)
}
