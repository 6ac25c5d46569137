package task

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/netstack"
)

// Memory is an Exchange within one process: what its partitions get, its gates hand out, segment by segment.
// A partition must be there before a gate asks for it.
type Memory struct {
	segmentBytes int // immutable
	limit        int // immutable: segments in flight of one channel; 0: any number

	mu    sync.Mutex
	parts map[string]*memoryPartition // guarded by mu
}

// NewMemory makes an exchange. Each channel may have perChannel segments in flight; 0 means any number, and then
// nothing ever waits, not even Finish: for those who run all tasks on one goroutine.
func NewMemory(segmentBytes, perChannel int) *Memory {
	return &Memory{segmentBytes: (segmentBytes + 7) &^ 7, limit: perChannel, parts: map[string]*memoryPartition{}}
}

// poison is what a segment is filled with when it is given back, in an exchange for tests on one goroutine.
const poison = 0xdb

// NewPartition implements Exchange.
func (m *Memory) NewPartition(cfg PartitionConfig, _ func()) (Partition, error) {
	p := &memoryPartition{
		memory: m, id: cfg.ID, open: make([][]byte, cfg.Subpartitions),
		room: make(chan struct{}, 1), subs: make([]memoryQueue, cfg.Subpartitions),
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.parts[cfg.ID] != nil {
		return nil, fmt.Errorf("partition %s exists already", cfg.ID)
	}
	m.parts[cfg.ID] = p
	return p, nil
}

// NewGate implements Exchange.
func (m *Memory) NewGate(_ string, channels []Channel, wake func()) (Gate, error) {
	g := &memoryGate{}
	for i, c := range channels {
		m.mu.Lock()
		p := m.parts[c.Partition]
		m.mu.Unlock()
		if p == nil {
			return nil, cluster.Failure{Kind: cluster.NotFound, Message: fmt.Sprintf("partition %s is not there", c.Partition)}
		}
		if err := p.attach(c.Subpartition, wake); err != nil {
			return nil, err
		}
		g.channels = append(g.channels, memoryChannel{part: p, sub: c.Subpartition, index: i})
	}
	return g, nil
}

// memoryItem is what a queue holds: a segment (with n bytes used), an event, or neither for the end.
type memoryItem struct {
	segment  []byte
	n        int
	event    []byte
	coalesce bool
	hop      *netstack.Hop // of a segment with a note
}

// memoryQueue is one subpartition.
type memoryQueue struct {
	items    []memoryItem
	free     [][]byte
	out      int // segments open, queued or being read
	wake     func()
	attached bool
	closed   bool // the consumer went away
	taken    bool // the consumer has taken the end
}

type memoryPartition struct {
	memory *Memory // immutable
	id     string  // immutable
	room   chan struct{}

	open [][]byte // owned by the producer, by subpartition

	mu       sync.Mutex
	subs     []memoryQueue // guarded by mu
	err      error         // guarded by mu: set by Fail
	released bool          // guarded by mu
}

func (p *memoryPartition) attach(sub int, wake func()) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if sub < 0 || sub >= len(p.subs) {
		return cluster.Failure{Kind: cluster.NotFound, Message: fmt.Sprintf("partition %s has no subpartition %d", p.id, sub)}
	}
	if p.subs[sub].attached {
		return fmt.Errorf("subpartition %d of %s has a reader already", sub, p.id)
	}
	p.subs[sub].attached, p.subs[sub].wake = true, wake
	return nil
}

// TryGet implements Partition.
func (p *memoryPartition) TryGet(sub int) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[sub] != nil {
		return nil, fmt.Errorf("a segment of subpartition %d of %s is open already", sub, p.id)
	}
	q := &p.subs[sub]
	if p.memory.limit > 0 && q.out >= p.memory.limit && !q.closed {
		return nil, nil
	}
	var b []byte
	if n := len(q.free); n > 0 {
		b, q.free = q.free[n-1], q.free[:n-1]
	} else {
		b = make([]byte, p.memory.segmentBytes)
	}
	q.out++
	p.open[sub] = b
	return b, nil
}

// Get implements Partition.
func (p *memoryPartition) Get(done <-chan struct{}, sub int) ([]byte, error) {
	for {
		b, err := p.TryGet(sub)
		if b != nil || err != nil {
			return b, err
		}
		select {
		case <-p.room:
		case <-done:
			return nil, ErrCancelled
		}
	}
}

// Put implements Partition.
func (p *memoryPartition) Put(sub, n int) error { return p.PutNoted(sub, n, nil) }

// PutNoted implements Partition.
func (p *memoryPartition) PutNoted(sub, n int, note []byte) error {
	b := p.open[sub]
	if b == nil || n < 0 || n > len(b) {
		return fmt.Errorf("cannot put %d bytes into subpartition %d of %s: no segment of that size is open", n, sub, p.id)
	}
	p.open[sub] = nil
	if n == 0 {
		p.recycle(sub, b)
		return nil
	}
	it := memoryItem{segment: b, n: n}
	if len(note) > 0 {
		now := time.Now()
		it.hop = &netstack.Hop{Note: append([]byte(nil), note...), Local: true, Put: now, Credited: now, Written: now, Received: now}
	}
	p.send(sub, it)
	return nil
}

// Event implements Partition.
func (p *memoryPartition) Event(sub int, payload []byte, coalesce bool) error {
	p.send(sub, memoryItem{event: append([]byte{}, payload...), coalesce: coalesce})
	return nil
}

func (p *memoryPartition) send(sub int, it memoryItem) {
	p.mu.Lock()
	q := &p.subs[sub]
	if last := len(q.items) - 1; it.coalesce && last >= 0 && q.items[last].coalesce {
		q.items[last] = it
	} else {
		q.items = append(q.items, it)
	}
	wake := q.wake
	if q.closed {
		p.dropLocked(q)
		wake = nil
	}
	p.mu.Unlock()
	if wake != nil {
		wake()
	}
}

// dropLocked empties the queue of a consumer that went away.
func (p *memoryPartition) dropLocked(q *memoryQueue) {
	for _, it := range q.items {
		if it.segment != nil {
			q.out--
		} else if it.event == nil {
			q.taken = true
		}
	}
	q.items = nil
	p.signalRoom()
}

func (p *memoryPartition) signalRoom() {
	select {
	case p.room <- struct{}{}:
	default:
	}
}

func (p *memoryPartition) recycle(sub int, b []byte) {
	if p.memory.limit == 0 {
		for i := range b {
			b[i] = poison // who keeps what was borrowed shall see it
		}
	}
	p.mu.Lock()
	q := &p.subs[sub]
	q.out--
	q.free = append(q.free, b)
	p.mu.Unlock()
	p.signalRoom()
}

// Finish implements Partition.
func (p *memoryPartition) Finish(ctx context.Context) error {
	for sub := range p.subs {
		p.send(sub, memoryItem{})
	}
	for p.memory.limit > 0 && !p.allTaken() {
		select {
		case <-p.room:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (p *memoryPartition) allTaken() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.subs {
		if !p.subs[i].taken && !p.subs[i].closed {
			return false
		}
	}
	return true
}

// Fail implements Partition.
func (p *memoryPartition) Fail(err error) {
	if err == nil {
		err = errors.New("unknown reason")
	}
	p.mu.Lock()
	if p.err == nil && !p.released {
		p.err = err
	}
	var wakes []func()
	for i := range p.subs {
		if w := p.subs[i].wake; w != nil {
			wakes = append(wakes, w)
		}
	}
	p.mu.Unlock()
	for _, wake := range wakes {
		wake()
	}
}

// Release implements Partition. What consumers have not taken they can still take; of a failure they still learn.
func (p *memoryPartition) Release() {
	p.mu.Lock()
	p.released = true
	failed := p.err != nil
	p.mu.Unlock()
	p.memory.mu.Lock()
	defer p.memory.mu.Unlock()
	if p.memory.parts[p.id] == p && p.memory.limit > 0 && !failed {
		delete(p.memory.parts, p.id)
	}
}

// Usage implements Partition. Without a limit there is no most, and so nothing to be near of.
func (p *memoryPartition) Usage() (used, most int) {
	if p.memory.limit == 0 {
		return 0, 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.subs {
		used += p.subs[i].out
	}
	return used, len(p.subs) * p.memory.limit
}

// Queued implements Partition.
func (p *memoryPartition) Queued() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for i := range p.subs {
		n += len(p.subs[i].items)
	}
	return n
}

// next takes the next item of a subpartition.
func (p *memoryPartition) next(sub int) (memoryItem, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := &p.subs[sub]
	if p.err != nil {
		return memoryItem{}, false, cluster.Failure{Kind: cluster.Lost, Peer: p.id, Message: fmt.Sprintf("the producer of partition %s failed: %v", p.id, p.err)}
	}
	if len(q.items) == 0 {
		return memoryItem{}, false, nil
	}
	it := q.items[0]
	q.items = q.items[1:]
	if it.segment == nil && it.event == nil {
		q.taken = true
		p.signalRoom()
	}
	return it, true, nil
}

// detach is the consumer going away.
func (p *memoryPartition) detach(sub int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.subs[sub].closed, p.subs[sub].wake = true, nil
	p.dropLocked(&p.subs[sub])
}

type memoryGate struct {
	channels []memoryChannel
	at       int // where Next goes on
	closed   bool
}

type memoryChannel struct {
	part  *memoryPartition
	sub   int
	index int
}

// Next implements Gate.
func (g *memoryGate) Next() (Item, bool, error) {
	for range g.channels {
		c := &g.channels[g.at]
		if g.at++; g.at == len(g.channels) {
			g.at = 0
		}
		it, ok, err := c.part.next(c.sub)
		if err != nil {
			return Item{}, false, err
		}
		if !ok {
			continue
		}
		item := Item{Channel: c.index, Event: it.event, End: it.segment == nil && it.event == nil}
		if it.segment != nil {
			item.Payload, item.memory = it.segment[:it.n], it.segment
			if item.Hop = it.hop; it.hop != nil {
				it.hop.Taken = time.Now()
			}
		}
		return item, true, nil
	}
	return Item{}, false, nil
}

// Recycle implements Gate.
func (g *memoryGate) Recycle(it Item) {
	if b := it.memory; b != nil {
		c := g.channels[it.Channel]
		c.part.recycle(c.sub, b)
	}
}

// Close implements Gate.
func (g *memoryGate) Close() error {
	if g.closed {
		return nil
	}
	g.closed = true
	for _, c := range g.channels {
		c.part.detach(c.sub)
	}
	return nil
}

// Usage implements Gate: all segments are the partitions'.
func (g *memoryGate) Usage() (used, most int) { return 0, 0 }

// Queued implements Gate.
func (g *memoryGate) Queued() int {
	n := 0
	for _, c := range g.channels {
		c.part.mu.Lock()
		n += len(c.part.subs[c.sub].items)
		c.part.mu.Unlock()
	}
	return n
}
