package netstack

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/netstack/bufpool"
	"github.com/heddle-stream/heddle/netstack/wire"
)

// PartitionConfig describes a partition.
type PartitionConfig struct {
	ID            string // unique in the application: edge, producer subtask and attempt
	Subpartitions int    // one for each consumer
	MaxSegments   int    // most segments in all that wait to be sent or are being filled; 0: 1 for each subpartition and FloatingPerGate more
	// Wake is called when a segment may be had after TryGet returned nil, and when the partition fails.
	// It must not block; it may be nil.
	Wake func()
}

// Partition is the output of one producer. It is pipelined and bounded: segments wait in it until
// their consumer has given credit and they are written, or until a consumer in this process has recycled them.
//
// One goroutine, the producer's, calls Get, TryGet, Put, Event and Finish; any may call the others.
type Partition struct {
	// Immutable after NewPartition.
	id      string
	stack   *Stack
	account *bufpool.Account
	cap     int // segments for one subpartition
	wake    func()
	rooms   []atomic.Int32 // by subpartition: see Room
	shy     []shyness      // by subpartition, with compression; the producer's
	free    chan struct{}  // 1 slot: a segment came back, or the partition failed or was consumed

	// Guarded by mu.
	mu        sync.Mutex
	subs      []subpartition
	waiting   bool  // the producer wants to know when a segment comes back
	remaining int   // subpartitions not yet consumed
	queued    int   // segments in all queues
	err       error // why the producer can't go on
	down      bool  // failed or released: consumers get fault
	fault     wire.Fault
	released  bool
	events    arena
	spare     []*noted // that went along with segments which were sent
}

// subpartition is what one consumer will get. Guarded by its partition's mu.
type subpartition struct {
	queue    queue[outItem]
	view     *view // its consumer, once there
	segments int   // in queue
	bytes    int   // of those
	held     int   // segments that count for it: being filled, queued, being written, with a local consumer
	priority int   // priority events at the front of queue
	noted    int   // noted segments in queue
	told     int   // backlog last told to the consumer
	ended    bool  // the end is queued
	gone     bool  // consumed or cancelled: what is put is dropped
}

// outItem is a segment or, with seg nil, an event.
type outItem struct {
	seg   *bufpool.Segment
	noted *noted // mostly nil
	event []byte
	n     int32
	flags uint8
}

// NewPartition registers a partition, so that its consumers find it. It fails at once if the stack can't
// set aside one segment for each subpartition and one more.
func (s *Stack) NewPartition(cfg PartitionConfig) (*Partition, error) {
	op := "create partition " + cfg.ID
	if cfg.Subpartitions < 1 || cfg.ID == "" || len(cfg.ID) > wire.MaxPartition {
		return nil, &LocalError{Op: op, Kind: cluster.Invalid, Err: fmt.Errorf("%d subpartitions, id of %d bytes", cfg.Subpartitions, len(cfg.ID))}
	}
	floating := s.cfg.FloatingPerGate
	if cfg.MaxSegments > 0 {
		floating = cfg.MaxSegments - cfg.Subpartitions
	}
	exclusive, own := s.cfg.partitionSegments(cfg.Subpartitions)
	account, err := s.pool.Open("partition "+cfg.ID, exclusive, own, floating)
	if err != nil {
		return nil, &LocalError{Op: op, Kind: cluster.Invalid, Err: err}
	}
	p := &Partition{
		id: cfg.ID, stack: s, account: account, cap: s.cfg.MaxPerSubpartition, wake: cfg.Wake, free: make(chan struct{}, 1),
		subs: make([]subpartition, cfg.Subpartitions), rooms: make([]atomic.Int32, cfg.Subpartitions), remaining: cfg.Subpartitions,
	}
	for i := range p.rooms {
		p.rooms[i].Store(int32(p.SegmentRoom()))
	}
	if s.cfg.Compression != "" {
		p.shy = make([]shyness, cfg.Subpartitions)
	}
	if err := s.register(p); err != nil {
		account.Close()
		return nil, &LocalError{Op: op, Kind: cluster.Invalid, Err: err}
	}
	return p, nil
}

// SegmentRoom is how many bytes a segment holds: a multiple of 8.
func (p *Partition) SegmentRoom() int { return p.stack.pool.SegmentBytes() }

// Err returns why the partition can't go on, or nil.
func (p *Partition) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// Queued returns how many segments wait to be sent.
func (p *Partition) Queued() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queued
}

// Get returns an empty segment to fill for subpartition sub. It blocks until there is one, or ctx is done:
// then it fails even if there is one, so that a producer whose consumers have all left, and which
// is never held back, ends too.
// The segment must be Put to the same subpartition.
func (p *Partition) Get(ctx context.Context, sub int) (*bufpool.Segment, error) {
	for ctx.Err() == nil {
		seg, err := p.tryGet(sub)
		if seg != nil || err != nil {
			return seg, err
		}
		select {
		case <-p.free:
		case <-ctx.Done():
		}
	}
	return nil, &LocalError{Op: "get a segment of partition " + p.id, Kind: cluster.Cancelled, Err: context.Cause(ctx)}
}

// TryGet is Get, but returns nil where Get would block or fail. Then Wake is called once it is worth trying again.
func (p *Partition) TryGet(sub int) *bufpool.Segment {
	seg, _ := p.tryGet(sub)
	return seg
}

func (p *Partition) tryGet(sub int) (*bufpool.Segment, error) {
	p.mu.Lock()
	if p.err != nil {
		p.mu.Unlock()
		return nil, p.err
	}
	s := &p.subs[sub]
	if v := s.view; v != nil && v.conn != nil && v.conn.admit.full(p) {
		p.waiting = true
		p.mu.Unlock()
		return nil, nil
	}
	// The first segment of each subpartition is guaranteed: no other can take it. More are floating.
	if s.held > 0 && (s.held >= p.cap || p.account.Borrow(1) == 0) {
		p.waiting = true
		p.mu.Unlock()
		return nil, nil
	}
	s.held++
	p.mu.Unlock()
	return p.stack.pool.Get(), nil
}

// unholdLocked gives n segments of s back to the account.
func (p *Partition) unholdLocked(s *subpartition, n int) {
	p.account.Repay(min(n, s.held-1))
	s.held -= n
}

// wakeLocked returns whether the producer must be signalled after mu is unlocked.
func (p *Partition) wakeLocked() bool {
	w := p.waiting
	p.waiting = false
	return w
}

func (p *Partition) signal() {
	select {
	case p.free <- struct{}{}:
	default:
	}
	if p.wake != nil {
		p.wake()
	}
}

// Put queues the first n bytes of seg for subpartition sub; seg was gotten for it and is no longer the caller's.
// With n 0, or when the consumer wants no more, it only gives seg back.
func (p *Partition) Put(sub int, seg *bufpool.Segment, n int) error {
	return p.put(sub, seg, n, nil)
}

func (p *Partition) put(sub int, seg *bufpool.Segment, n int, note []byte) error {
	var flags uint8
	if p.shy != nil && n > 0 {
		n, flags = p.shrink(sub, seg, n)
	}
	p.mu.Lock()
	s := &p.subs[sub]
	if p.err != nil || n == 0 || s.gone {
		p.unholdLocked(s, 1)
		err := p.err
		p.mu.Unlock()
		p.stack.pool.Put(seg)
		return err
	}
	it := outItem{seg: seg, n: int32(n), flags: flags}
	if len(note) > 0 {
		it.noted = p.notedLocked(note)
	}
	s.queue.push(it)
	s.segments++
	s.bytes += n
	p.queued++
	s.recountLocked(s.view)
	if it.noted != nil {
		s.noted++
		if s.view != nil && s.view.conn != nil {
			p.creditedLocked(s.view, s)
		}
	}
	v := s.readyLocked()
	p.mu.Unlock()
	v.notify(n <= directMost)
	return nil
}

// EventOptions say how an event travels.
type EventOptions struct {
	Priority bool // overtakes what is queued, at both ends
	Coalesce bool // replaces an event with Coalesce that is directly before it and not yet sent, or not yet taken
}

// MaxEvent is the longest event.
const MaxEvent = wire.MaxControl

// Event queues an event for subpartition sub. It needs neither a segment nor credit, and never blocks.
func (p *Partition) Event(sub int, payload []byte, opt EventOptions) error {
	if len(payload) > MaxEvent {
		return &LocalError{Op: "send event", Kind: cluster.Internal, Err: fmt.Errorf("%d bytes, at most %d allowed", len(payload), MaxEvent)}
	}
	var flags uint8
	if opt.Priority {
		flags |= wire.FlagPriority
	} else if opt.Coalesce {
		flags |= wire.FlagCoalesce
	}
	return p.event(sub, payload, flags)
}

func (p *Partition) event(sub int, payload []byte, flags uint8) error {
	return p.send(sub, payload, flags, nil)
}

// send queues an event; see, if not nil, looks at the queue before.
func (p *Partition) send(sub int, payload []byte, flags uint8, see func(*subpartition)) error {
	p.mu.Lock()
	s := &p.subs[sub]
	if p.err != nil || s.gone || s.ended {
		defer p.mu.Unlock()
		return p.err
	}
	s.ended = flags&wire.FlagEnd != 0
	if see != nil {
		see(s)
	}
	n := s.queue.len()
	if flags&wire.FlagCoalesce != 0 && n > 0 && s.queue.at(n-1).flags&wire.FlagCoalesce != 0 {
		it := s.queue.at(n - 1)
		it.event = append(it.event[:0], payload...)
		p.mu.Unlock()
		return nil
	}
	it := outItem{event: p.events.copy(payload), flags: flags}
	if flags&wire.FlagPriority != 0 {
		s.queue.insert(s.priority, it)
		s.priority++
	} else {
		s.queue.push(it)
	}
	v := s.readyLocked()
	p.mu.Unlock()
	v.notify(true)
	return nil
}

// Finish queues the end of every subpartition and returns when all consumers have taken everything, or want no more.
func (p *Partition) Finish(ctx context.Context) error {
	for sub := range p.subs {
		if err := p.event(sub, nil, wire.FlagEnd); err != nil {
			return err
		}
	}
	for {
		p.mu.Lock()
		left, err := p.remaining, p.err
		p.waiting = true
		p.mu.Unlock()
		if err != nil || left == 0 {
			return err
		}
		select {
		case <-p.free:
		case <-ctx.Done():
			return &LocalError{Op: "finish partition " + p.id, Kind: cluster.Cancelled, Err: fmt.Errorf("%d consumers have not taken everything: %w", left, context.Cause(ctx))}
		}
	}
}

// Fail tells every consumer that the producer has failed, and why. What is queued is dropped.
// It does not release the partition.
func (p *Partition) Fail(err error) {
	p.close(err, fault(wire.Failed, kindOf(err, cluster.Internal), err), false)
}

// Release unregisters the partition and gives its memory back. Consumers that have not taken
// everything are told that it is gone. It may be called twice.
func (p *Partition) Release() {
	err := &LocalError{Op: "use partition " + p.id, Kind: cluster.Cancelled, Err: ErrClosed}
	p.close(err, wire.Fault{Code: wire.Gone, Kind: uint8(cluster.Lost), Message: p.id + " was released by its producer at " + p.stack.identity()}, true)
}

func (p *Partition) close(err error, f wire.Fault, release bool) {
	p.mu.Lock()
	again, first := p.released, !p.down
	if first {
		p.down, p.fault = true, f
	}
	if p.err == nil {
		p.err = err
	}
	p.released = p.released || release
	var views []*view
	var room []*Partition
	var segs []*bufpool.Segment
	for i := range p.subs {
		s := &p.subs[i]
		if s.view != nil && first {
			s.view.closed = true
			room = append(room, s.recountLocked(s.view)...)
			views = append(views, s.view)
		}
		segs = p.dropLocked(s, segs)
	}
	p.mu.Unlock()
	p.stack.pool.Put(segs...)
	p.signal()
	signalAll(room)
	for _, v := range views {
		v.fail(f)
	}
	if !first {
		f = p.fault
	}
	if release && !again {
		p.stack.unregister(p, f)
		p.account.Close()
	}
}

// dropLocked empties the queue of s and appends its segments to segs.
func (p *Partition) dropLocked(s *subpartition, segs []*bufpool.Segment) []*bufpool.Segment {
	n := 0
	for s.queue.len() > 0 {
		if it := s.queue.pop(); it.seg != nil {
			segs = append(segs, it.seg)
			n++
		}
	}
	if n > 0 {
		p.unholdLocked(s, n)
	}
	p.queued -= n
	s.segments, s.bytes, s.priority, s.noted = 0, 0, 0, 0
	return segs
}
