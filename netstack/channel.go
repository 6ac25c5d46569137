package netstack

import (
	"fmt"
	"sync/atomic"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/netstack/bufpool"
	"github.com/heddle-stream/heddle/netstack/credit"
	"github.com/heddle-stream/heddle/netstack/wire"
)

// channel is one input of a gate.
type channel struct {
	// Immutable after NewGate.
	gate      *Gate
	index     int
	partition string
	sub       int
	key       connKey
	view      *view // if local

	// window is the credit that the sender has or will have: what ledger.granted is, for the read loop to spend without a lock.
	window atomic.Int32

	// Guarded by gate.mu.
	conn    *conn // nil until connected, and if local
	id      uint32
	ledger  credit.Ledger
	queue   queue[inItem]
	nextSeq uint32
	inReady bool
	waits   bool // is in hungry
	blocked bool // by Block
	excess  int  // of its floating segments, those that don't count as the gate's
	whole   bool // its end has been received: it can't fail any more
	dead    bool // its end has been taken, or it has failed

	// When Block and Resume were last called, by the stack's clock; 0: never.
	blockedAt, resumedAt int64
}

// inItem is a received segment or, with seg nil, an event.
type inItem struct {
	seg   *bufpool.Segment
	n     int
	hop   *Hop // mostly nil
	event []byte
	seq   uint32
	flags uint8
}

// receive enters a data frame whose payload is in seg. hop is nil but for one with a note.
func (g *Gate) receive(ch *channel, h wire.Header, seg *bufpool.Segment, hop *Hop) {
	g.mu.Lock()
	if g.closed || ch.dead {
		g.mu.Unlock()
		g.stack.pool.Put(seg)
		return
	}
	err := ch.sequenceLocked(h)
	if err == nil {
		err = ch.ledger.Receive(h.Backlog) // refuses what comes after the end, too: no credit is left
	}
	if err != nil {
		g.mu.Unlock()
		g.stack.pool.Put(seg)
		g.breach(ch, err)
		return
	}
	g.borrowLocked(ch)
	gr := ch.announceLocked()
	if hop != nil {
		hop.Credit, hop.Backlog = ch.ledger.Granted(), int(h.Backlog)
	}
	g.queued++
	g.stack.untaken.Add(1)
	g.pushLocked(ch, inItem{seg: seg, n: int(h.Length), flags: h.Flags, seq: h.Seq, hop: hop})
	g.unlockAndWake()
	gr.send()
}

// receiveEvent enters an event. Its sequence number counts with those of data.
func (g *Gate) receiveEvent(ch *channel, h wire.Header, payload []byte) {
	g.mu.Lock()
	if g.closed || ch.dead {
		g.mu.Unlock()
		return
	}
	err := ch.sequenceLocked(h)
	if err == nil && ch.queue.len() >= maxQueue {
		err = fmt.Errorf("%d events wait to be taken: more than a producer may send", ch.queue.len())
	}
	if err != nil {
		g.mu.Unlock()
		g.breach(ch, err)
		return
	}
	ch.ledger.Backlog(h.Backlog)
	g.borrowLocked(ch)
	gr := ch.announceLocked()
	n := ch.queue.len()
	if h.Flags&wire.FlagEnd != 0 {
		ch.whole = true
		ch.window.Store(0)
		g.repayLocked(ch, ch.ledger.End())
	}
	switch {
	case h.Flags&wire.FlagPriority != 0:
		i := 0
		for i < n && ch.queue.at(i).flags&wire.FlagPriority != 0 {
			i++
		}
		ch.queue.insert(i, inItem{event: g.events.copy(payload), flags: h.Flags, seq: h.Seq})
		ch.enterLocked()
	case h.Flags&wire.FlagCoalesce != 0 && n > 0 && ch.queue.at(n-1).flags&wire.FlagCoalesce != 0:
		it := ch.queue.at(n - 1)
		it.event = append(it.event[:0], payload...)
	default:
		g.pushLocked(ch, inItem{event: g.events.copy(payload), flags: h.Flags, seq: h.Seq})
	}
	g.unlockAndWake()
	gr.send()
}

// receiveBacklog enters that a sender without credit has data.
func (g *Gate) receiveBacklog(ch *channel, n uint32) {
	g.mu.Lock()
	if g.closed || ch.dead {
		g.mu.Unlock()
		return
	}
	ch.ledger.Backlog(n)
	g.borrowLocked(ch)
	gr := ch.announceLocked()
	g.mu.Unlock()
	gr.send()
}

// maxQueue bounds what a channel holds, since events need no credit.
const maxQueue = 1 << 14

func (ch *channel) sequenceLocked(h wire.Header) error {
	if h.Seq != ch.nextSeq {
		return fmt.Errorf("frame %d came where %d was due", h.Seq, ch.nextSeq)
	}
	ch.nextSeq++
	return nil
}

func (g *Gate) pushLocked(ch *channel, it inItem) {
	ch.queue.push(it)
	ch.enterLocked()
}

func (ch *channel) enterLocked() {
	if !ch.inReady && !ch.closedLocked() {
		ch.inReady = true
		ch.gate.ready.push(ch)
	}
}

// closedLocked reports that a blocked channel lets nothing through.
func (ch *channel) closedLocked() bool {
	return ch.blocked && (ch.queue.len() == 0 || ch.queue.at(0).flags&wire.FlagPriority == 0)
}

// breach fails a channel whose producer broke the protocol. Others on the connection go on.
func (g *Gate) breach(ch *channel, cause error) {
	g.mu.Lock()
	c, id := ch.conn, ch.id
	g.mu.Unlock()
	if c == nil { // a frame came before the request was even sent
		g.failChannel(ch, &RemoteError{Peer: ch.key.addr, Op: "read partition " + ch.partition, Kind: cluster.Corrupt, Err: cause})
		return
	}
	g.failChannel(ch, &RemoteError{Peer: c.peer, Op: "read partition " + ch.partition, Kind: cluster.Corrupt, Err: cause})
	c.reject(ch, id, cause)
}

// grant is credit to be announced once no lock is held.
type grant struct {
	conn *conn
	id   uint32
	n    int
}

func (gr grant) send() {
	if gr.n > 0 {
		gr.conn.grant(gr.id, gr.n)
	}
}

func (ch *channel) announceLocked() grant {
	if ch.dead || ch.conn == nil {
		return grant{}
	}
	n := ch.ledger.Announce()
	if n > 0 {
		ch.window.Add(int32(n))
	}
	return grant{ch.conn, ch.id, n}
}

// borrowLocked gets floating segments for what the sender of ch has waiting.
func (g *Gate) borrowLocked(ch *channel) {
	want := ch.ledger.Want()
	if g.blocked > 0 && g.stack.cfg.ExclusivePerChannel == 0 {
		want = min(want, 1-ch.ledger.Floating())
	}
	if want <= 0 || ch.blocked {
		return
	}
	got := g.account.Borrow(want)
	ch.ledger.Lend(got)
	if got < want && !ch.waits {
		ch.waits = true
		g.hungry.push(ch)
	}
}

// feedLocked gives a floating segment that came back to the channel that waits longest for one.
func (g *Gate) feedLocked() *channel {
	for g.hungry.len() > 0 {
		ch := g.hungry.pop()
		ch.waits = false
		if ch.dead {
			continue
		}
		before := ch.ledger.Floating()
		g.borrowLocked(ch)
		if ch.ledger.Floating() > before {
			return ch
		}
		if ch.waits {
			return nil
		}
	}
	return nil
}
