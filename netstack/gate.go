package netstack

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/netstack/bufpool"
	"github.com/heddle-stream/heddle/netstack/credit"
	"github.com/heddle-stream/heddle/netstack/wire"
)

// GateConfig describes the input of one consumer.
type GateConfig struct {
	Name     string // for errors; "" will do
	Channels []ChannelConfig
	// Wake is called when Next has something again, after it returned nothing. It must not block; it may be nil.
	Wake func()
}

// ChannelConfig says where a channel comes from.
type ChannelConfig struct {
	Partition    string
	Subpartition int
	Addr         string // of the producer's stack; this stack's own means that the channel is local
	ConnIndex    uint32 // which of the connections to that peer, mod MaxConnections
}

// Gate is the input of one consumer: one channel for each producer.
// One goroutine, the consumer's, calls Next; any may call Recycle, Queued and Close.
type Gate struct {
	// Immutable after NewGate.
	stack    *Stack
	wake     func()
	account  *bufpool.Account // nil if all channels are local
	channels []channel
	taken    atomic.Uint64 // bytes that Next returned since the last sample, with a debloat target

	// Guarded by mu.
	mu      sync.Mutex
	ready   queue[*channel] // channels with items
	hungry  queue[*channel] // channels that would use floating segments but got none
	armed   bool            // the consumer wants to be woken
	debloat credit.Debloater
	blocked int // channels that are
	queued  int // segments received and not taken
	err     error
	closed  bool
	events  arena
}

// Item is what a gate gives its consumer: a segment, an event, or a channel's end.
type Item struct {
	Channel int
	Segment *bufpool.Segment // nil for an event
	Payload []byte           // of the segment: 8-byte aligned, valid until it is recycled
	Event   []byte           // of an event; may be kept
	Hop     *Hop             // of a segment that was put with a note
	Seq     uint32           // of a priority event, for Overtaken
	End     bool             // nothing follows on this channel; its producer is told that all was taken
}

// NewGate requests all channels and returns at once; what goes wrong with one comes out of Next.
// It fails if the stack can't set aside the exclusive segments of all its channels from other processes.
func (s *Stack) NewGate(cfg GateConfig) (*Gate, error) {
	name := strings.TrimSuffix("gate "+cfg.Name, " ")
	op := "open " + name
	g := &Gate{stack: s, wake: cfg.Wake, channels: make([]channel, len(cfg.Channels))}
	if s.cfg.DebloatTarget > 0 {
		g.debloat = credit.NewDebloater(s.cfg.DebloatTarget, minRoom, s.pool.SegmentBytes())
	}
	remotes := 0
	for i, cc := range cfg.Channels {
		if cc.Subpartition < 0 || cc.Partition == "" || len(cc.Partition) > wire.MaxPartition || cc.Addr == "" {
			return nil, &LocalError{Op: op, Kind: cluster.Invalid, Err: fmt.Errorf("channel %d has no proper partition and address", i)}
		}
		ch := &g.channels[i]
		ch.gate, ch.index, ch.partition, ch.sub = g, i, cc.Partition, cc.Subpartition
		ch.key = connKey{cc.Addr, cc.ConnIndex % uint32(s.cfg.MaxConnections)}
		ch.ledger = credit.NewLedger(s.cfg.ExclusivePerChannel, s.cfg.MaxPerChannel)
		ch.window.Store(int32(s.cfg.ExclusivePerChannel))
		if cc.Addr == s.Addr() {
			ch.view = &view{local: ch, partition: cc.Partition, sub: cc.Subpartition}
		} else {
			remotes++
		}
	}
	if remotes > 0 {
		exclusive, own := s.cfg.gateSegments(remotes)
		account, err := s.pool.Open(fmt.Sprintf("%s of %d channels", name, remotes), exclusive, own, s.cfg.FloatingPerGate)
		if err != nil {
			return nil, &LocalError{Op: op, Kind: cluster.Invalid, Err: err}
		}
		g.account = account
	}
	if !s.adopt(g) {
		if g.account != nil {
			g.account.Close()
		}
		return nil, &LocalError{Op: op, Kind: cluster.Cancelled, Err: ErrClosed}
	}
	for i := range g.channels {
		ch := &g.channels[i]
		if ch.view != nil {
			s.request(ch.view)
		} else {
			s.connect(ch)
		}
	}
	return g, nil
}

// Next returns the next item, and whether there is one. It does not block: when it returns none, Wake is
// called once there is. An error is final for the gate; items received before may be lost with it.
func (g *Gate) Next() (Item, bool, error) {
	for {
		g.mu.Lock()
		if g.err != nil || g.ready.len() == 0 {
			g.armed = g.err == nil
			err := g.err
			g.mu.Unlock()
			return Item{}, false, err
		}
		ch := g.ready.pop()
		if ch.view != nil {
			blocked := ch.blocked
			g.mu.Unlock()
			if it, ok := g.nextLocal(ch, blocked); ok {
				return it, true, nil
			}
			continue
		}
		if ch.queue.len() == 0 || ch.closedLocked() {
			ch.inReady = false
			g.mu.Unlock()
			continue
		}
		in := ch.queue.pop()
		ch.inReady = ch.queue.len() > 0 && !ch.closedLocked()
		if ch.inReady {
			g.ready.push(ch)
		}
		if in.seg != nil {
			g.queued--
			g.stack.untaken.Add(-1)
		}
		end := in.flags&wire.FlagEnd != 0
		ch.dead = ch.dead || end
		c, id := ch.conn, ch.id
		g.mu.Unlock()
		if end && c != nil {
			c.detach(ch, id, wire.Done)
		}
		if in.flags&compressed != 0 {
			if err := g.plain(&in); err != nil {
				g.Recycle(Item{Channel: ch.index, Segment: in.seg})
				g.breach(ch, err)
				continue
			}
		}
		return ch.item(in), true, nil
	}
}

// nextLocal takes an item straight from the partition.
func (g *Gate) nextLocal(ch *channel, blocked bool) (Item, bool) {
	p := ch.view.part.Load()
	out, ok, more := p.take(ch.view, blocked)
	if more {
		g.localReady(ch)
	}
	if !ok {
		return Item{}, false
	}
	if out.flags&wire.FlagEnd != 0 {
		g.mu.Lock()
		ch.dead = true
		g.mu.Unlock()
		g.stack.leave(ch.view, nil)
	}
	return ch.item(inItem{seg: out.seg, n: int(out.n), event: out.event, flags: out.flags, hop: g.stack.localHop(out.noted)}), true
}

func (ch *channel) item(in inItem) Item {
	if in.seg == nil {
		return Item{Channel: ch.index, Event: in.event, Seq: in.seq, End: in.flags&wire.FlagEnd != 0}
	}
	if ch.gate.stack.cfg.DebloatTarget > 0 {
		ch.gate.taken.Add(uint64(in.n))
	}
	if in.hop != nil {
		ch.taken(in.hop)
	}
	return Item{Channel: ch.index, Segment: in.seg, Payload: in.seg.Read(0, in.n), Hop: in.hop}
}

// localReady enters a local channel whose partition has something.
func (g *Gate) localReady(ch *channel) {
	g.mu.Lock()
	g.ready.push(ch)
	g.unlockAndWake()
}

// unlockAndWake unlocks mu and wakes the consumer, if it asked for it.
func (g *Gate) unlockAndWake() {
	w := g.armed
	g.armed = false
	g.mu.Unlock()
	if w && g.wake != nil {
		g.wake()
	}
}

// Recycle gives an item's segment back. It is credit for the channel again. Items without segment may be recycled too.
func (g *Gate) Recycle(it Item) {
	if it.Segment == nil {
		return
	}
	ch := &g.channels[it.Channel]
	if ch.view != nil {
		ch.view.part.Load().recycle(ch.view.sub, it.Segment)
		return
	}
	g.stack.pool.Put(it.Segment)
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return
	}
	var hungry *channel
	waiting := g.hungry.len() > 0
	over := ch.excess > 0
	if ch.ledger.Recycle(waiting || over) {
		g.repayLocked(ch, 1)
	}
	if waiting || over {
		hungry = g.feedLocked()
		g.borrowLocked(ch)
	}
	grants := [2]grant{ch.announceLocked()}
	if hungry != nil && hungry != ch {
		grants[1] = hungry.announceLocked()
	}
	g.mu.Unlock()
	grants[0].send()
	grants[1].send()
}

// failChannel makes err what Next returns from now on, unless the channel has ended.
func (g *Gate) failChannel(ch *channel, err error) {
	g.mu.Lock()
	if ch.dead || ch.whole || g.closed {
		g.mu.Unlock()
		return
	}
	ch.dead = true
	if g.err == nil {
		g.err = err
	}
	g.unlockAndWake()
}

// connected tells ch its connection, and reports false if it needs none any more.
func (g *Gate) connected(ch *channel, c *conn, id uint32) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	ch.conn, ch.id = c, id
	return true
}

// Queued returns how many segments were received and not taken.
func (g *Gate) Queued() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.queued
}

// Close gives up the gate: producers are told that it wants no more, what is queued is dropped, and
// its memory is given back. Items taken before may still be recycled. It may be called twice.
func (g *Gate) Close() error {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return nil
	}
	g.closed = true
	if g.err == nil {
		g.err = &LocalError{Op: "read from gate", Kind: cluster.Cancelled, Err: ErrClosed}
	}
	var segs []*bufpool.Segment
	for i := range g.channels {
		ch := &g.channels[i]
		for ch.queue.len() > 0 {
			if it := ch.queue.pop(); it.seg != nil {
				segs = append(segs, it.seg)
			}
		}
	}
	g.stack.untaken.Add(-int64(g.queued))
	g.queued = 0
	g.unlockAndWake()
	g.stack.pool.Put(segs...)
	for i := range g.channels {
		ch := &g.channels[i]
		if ch.view != nil {
			g.stack.leave(ch.view, nil)
		} else if ch.conn != nil { // set before closed or not at all
			ch.conn.detach(ch, ch.id, wire.Cancel)
		}
	}
	if g.account != nil {
		g.account.Close()
	}
	g.stack.disown(g)
	return nil
}
