package netstack

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/netstack/bufpool"
	"github.com/heddle-stream/heddle/netstack/credit"
	"github.com/heddle-stream/heddle/netstack/wire"
)

// view is a consumer as its producer sees it: at the other end of a connection, or a channel of a gate in this process.
type view struct {
	// Immutable.
	partition string
	sub       int
	conn      *conn    // nil if local
	id        uint32   // channel number on conn
	local     *channel // nil if remote
	granted   uint32   // initial credit

	// Set once, before the view is attached; nil until the partition is there.
	part atomic.Pointer[Partition]

	room atomic.Uint32 // how long the consumer wants segments to be; 0: as they are

	// Guarded by Stack.mu.
	deadline  time.Time // the request waits until
	cancelled bool      // the consumer has left: never attach

	// Guarded by Partition.mu.
	window  credit.Window
	seq     uint32
	ready   bool // in a ready list, or being served
	closed  bool // detached: serves nothing more
	counted int  // of its bytes, in conn.admit
}

// supply is all that connections, gates and the stack ask of the producer's end of a view. Partition, which is pipelined and
// bounded, is the one kind there is; a blocking one, which is spilled and read again, would be another behind the same
// methods, and a view would hold either.
type supply interface {
	attach(v *view)                                         // v's consumer has come
	detach(v *view, lost error)                             // it has taken everything, or is lost
	addCredit(v *view, n uint32) error                      // it grants n more segments
	setRoom(sub int, n uint32)                              // it wants segments of n bytes
	fill(v *view, b *batch) (more bool)                     // gather what can be sent to it
	take(v *view, blocked bool) (it outItem, ok, more bool) // the same within the process
	recycle(sub int, seg *bufpool.Segment)                  // it is done with a segment within the process
	recheck(v *view)                                        // it takes ordinary items again
	waitingFor(v *view) int                                 // segments queued for it
	Fail(err error)
	Release()
}

var _ supply = (*Partition)(nil)

// readyLocked returns the view of s to notify, once mu is unlocked, if it has become servable; else nil.
func (s *subpartition) readyLocked() *view {
	v := s.view
	if v == nil || v.ready || !v.servableLocked(s) {
		return nil
	}
	v.ready = true
	return v
}

// servableLocked reports whether something can be sent now: an event is next in line, or data that has
// credit or whose lack of credit the consumer doesn't know of.
func (v *view) servableLocked(s *subpartition) bool {
	if s.queue.len() == 0 || v.closed {
		return false
	}
	return v.local != nil || s.queue.at(0).seg == nil || v.window.Credit() > 0 || s.told == 0
}

// notify enters v into the ready list of whoever serves it. v may be nil. direct: the caller may write what v has.
func (v *view) notify(direct bool) {
	switch {
	case v == nil:
	case v.local != nil:
		v.local.gate.localReady(v.local)
	default:
		v.conn.enqueue(v, direct)
	}
}

// fail tells the consumer that it will get nothing more.
func (v *view) fail(f wire.Fault) {
	if v.local != nil {
		g := v.local.gate
		g.failChannel(v.local, remote(g.stack.identity(), "read partition "+v.partition, f))
		return
	}
	v.conn.dropView(v, &f)
}

// resize enters how long the consumer wants segments to be, also before the partition is there.
func (v *view) resize(n uint32) {
	v.room.Store(n)
	if p := v.part.Load(); p != nil {
		p.setRoom(v.sub, n)
	}
}

// attach makes v the consumer of its subpartition.
func (p *Partition) attach(v *view) {
	p.mu.Lock()
	var bad string
	switch s := v.sub; {
	case v.closed:
		p.mu.Unlock()
		return
	case p.down:
		f := p.fault
		v.closed = true
		p.mu.Unlock()
		v.fail(f)
		return
	case s >= len(p.subs):
		bad = fmt.Sprintf("partition %s has %d subpartitions, asked for number %d", p.id, len(p.subs), s)
	case p.subs[s].view != nil || p.subs[s].gone:
		bad = fmt.Sprintf("subpartition %d of partition %s has a consumer already", s, p.id)
	}
	if bad != "" {
		v.closed = true
		p.mu.Unlock()
		v.fail(wire.Fault{Code: wire.Invalid, Kind: uint8(cluster.Internal), Message: bad})
		return
	}
	s := &p.subs[v.sub]
	s.view = v
	if n := v.room.Load(); n > 0 {
		p.setRoom(v.sub, n)
	}
	if err := v.window.Add(v.granted); err != nil {
		v.window = credit.Window{}
	}
	if s.noted > 0 && v.conn != nil {
		p.creditedLocked(v, s)
	}
	s.recountLocked(v)
	r := s.readyLocked()
	p.mu.Unlock()
	r.notify(false)
}

// addCredit enters credit from the consumer.
func (p *Partition) addCredit(v *view, n uint32) error {
	p.mu.Lock()
	if v.closed {
		p.mu.Unlock()
		return nil
	}
	if err := v.window.Add(n); err != nil {
		p.mu.Unlock()
		return err
	}
	s := &p.subs[v.sub]
	if s.noted > 0 {
		p.creditedLocked(v, s)
	}
	s.recountLocked(v)
	r := s.readyLocked()
	p.mu.Unlock()
	r.notify(false)
	return nil
}

// detach ends v's service. consumed: its consumer has taken the end or wants no more, and the producer goes on without it;
// else lost says how it was lost, which the producer gets to know.
func (p *Partition) detach(v *view, lost error) {
	p.mu.Lock()
	s := (*subpartition)(nil)
	if v.sub < len(p.subs) {
		s = &p.subs[v.sub]
	}
	v.closed = true
	room := s.recountLocked(v)
	if s == nil || s.view != v || s.gone {
		p.mu.Unlock()
		signalAll(room)
		return
	}
	s.view, s.gone = nil, true
	p.remaining--
	segs := p.dropLocked(s, nil)
	if p.err == nil {
		p.err = lost
	}
	p.waiting = false
	p.mu.Unlock()
	p.stack.pool.Put(segs...)
	p.signal()
	signalAll(room)
}

// take pops the next item for a local consumer, which, if blocked, takes priority events only. more: there are others behind it.
func (p *Partition) take(v *view, blocked bool) (it outItem, ok, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &p.subs[v.sub]
	if v.closed || s.queue.len() == 0 || (blocked && s.priority == 0) {
		v.ready = false
		return outItem{}, false, false
	}
	it = p.popLocked(s)
	v.ready = v.servableLocked(s)
	return it, true, v.ready
}

func (p *Partition) popLocked(s *subpartition) outItem {
	it := s.queue.pop()
	if it.seg != nil {
		s.segments--
		s.bytes -= int(it.n)
		p.queued--
		if it.noted != nil {
			s.noted--
			it.noted.backlog = s.segments
		}
	} else if s.priority > 0 {
		s.priority--
	}
	return it
}

// recycle takes back a segment that a local consumer is done with.
func (p *Partition) recycle(sub int, seg *bufpool.Segment) {
	p.stack.pool.Put(seg)
	p.mu.Lock()
	p.unholdLocked(&p.subs[sub], 1)
	w := p.wakeLocked()
	p.mu.Unlock()
	if w {
		p.signal()
	}
}

// maxTurn is how many frames a view sends before the next one has its turn.
const maxTurn = 4

// fill appends frames of v to b, as far as credit, b's room and its turn allow.
// more: v has not become unservable, and is to be entered into the ready list again.
func (p *Partition) fill(v *view, b *batch) (more bool) {
	p.mu.Lock()
	s := &p.subs[v.sub]
	for n := 0; n < maxTurn && !b.full() && !v.closed && s.queue.len() > 0; n++ {
		h := wire.Header{Channel: v.id, Seq: v.seq}
		if s.queue.at(0).seg == nil {
			it := p.popLocked(s)
			h.Type, h.Flags, h.Length, h.Backlog = wire.Event, it.flags, uint32(len(it.event)), uint32(s.segments)
			b.addEvent(h, it.event)
		} else if v.window.Spend() {
			it := p.popLocked(s)
			if it.noted != nil {
				b.addTrace(v, it.noted)
				p.sentLocked(it.noted)
			}
			h.Type, h.Flags, h.Length, h.Backlog = wire.Data, it.flags, uint32(it.n), uint32(s.segments)
			b.addData(h, it, v)
		} else {
			if s.told == 0 {
				s.told = s.segments
				b.addEvent(wire.Header{Type: wire.Backlog, Channel: v.id, Backlog: uint32(s.segments)}, nil)
			}
			break
		}
		v.seq++
		s.told = s.segments
	}
	v.ready = v.servableLocked(s)
	more = v.ready
	room := s.recountLocked(v)
	p.mu.Unlock()
	signalAll(room)
	return more
}

// written takes back the segments of a batch that was written, or lost with its connection.
func written(sent []sentSegment) {
	for i := 0; i < len(sent); {
		p := sent[i].view.part.Load()
		p.mu.Lock()
		for i < len(sent) && sent[i].view.part.Load() == p {
			p.unholdLocked(&p.subs[sent[i].view.sub], 1)
			i++
		}
		w := p.wakeLocked()
		p.mu.Unlock()
		if w {
			p.signal()
		}
	}
}
