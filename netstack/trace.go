package netstack

import (
	"fmt"
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/netstack/bufpool"
	"github.com/heddle-stream/heddle/netstack/wire"
)

// MaxNote is the longest note of a segment.
const MaxNote = wire.MaxNote

// Hop tells the way of one segment that was put with a note, from its producer to its consumer. All times are by the consumer's
// process: those of the producer are translated. Each is no earlier than the one before it, so that they bound four spans:
//
//	Put → Credited      waiting for credit: the consumer is slow, or its news are on their way
//	Credited → Written  in the send queue: the connection is busy with others
//	Written → Received  in the socket and on the wire
//	Received → Taken    in the receive queue
//
// A segment that never left the process has Put, and Taken; Credited, Written and Received are Put. It is valid until the segment is recycled.
type Hop struct {
	Note  []byte // as it was put
	Local bool   // it never left the process

	Put      time.Time // Partition.PutNoted
	Credited time.Time // there was credit for it, and for all before it
	Written  time.Time // its write began
	Received time.Time // it was read whole
	Taken    time.Time // Gate.Next returned it

	Held    time.Duration // of the time from Received to Taken: while its channel was blocked (Gate.Block), for an alignment
	Credit  int           // segments that the producer could yet send on the channel, when this one was received; 0 if Local
	Backlog int           // segments of the channel that were behind it at the producer, when it left

	Clock Offset // by which the producer's times were translated
}

// noted is what goes along with a segment that has a note, until it leaves the producer.
type noted struct {
	note          []byte
	put, credited int64 // credited is 0 until there is credit
	backlog       int   // segments behind it when it was popped
}

// clock is the time in ns since the Unix epoch, without the steps that a wall clock makes.
func (s *Stack) clock() int64 { return s.epoch + int64(time.Since(s.began)) }

func clockTime(ns int64) time.Time { return time.Unix(0, ns) }

// PutNoted is Put with a note of 1 to MaxNote bytes, which it copies: the consumer gets it with the segment's Item, as a Hop. A peer that
// doesn't take notes gets the segment without it. Without n or note it is Put.
func (p *Partition) PutNoted(sub int, seg *bufpool.Segment, n int, note []byte) error {
	if len(note) > MaxNote {
		err := fmt.Errorf("its note has %d bytes, at most %d are allowed", len(note), MaxNote)
		_ = p.Put(sub, seg, 0) // only gives it back
		return &LocalError{Op: "send segment", Kind: cluster.Internal, Err: err}
	}
	return p.put(sub, seg, n, note)
}

// maxSpareNoted bounds Partition.spare.
const maxSpareNoted = 16

// notedLocked makes what goes along with a segment that is put now, of what was used before if it can.
func (p *Partition) notedLocked(note []byte) *noted {
	var nt *noted
	if last := len(p.spare) - 1; last >= 0 {
		nt, p.spare = p.spare[last], p.spare[:last]
	} else {
		nt = new(noted)
	}
	*nt = noted{note: append(nt.note[:0], note...), put: p.stack.clock()}
	return nt
}

// creditedLocked enters that there is credit now for the noted segments that v's window covers.
func (p *Partition) creditedLocked(v *view, s *subpartition) {
	now := int64(0)
	left := int(v.window.Credit())
	for i := 0; i < s.queue.len() && left > 0; i++ {
		it := s.queue.at(i)
		if it.seg == nil {
			continue
		}
		left--
		if it.noted != nil && it.noted.credited == 0 {
			if now == 0 {
				now = p.stack.clock()
			}
			it.noted.credited = now
		}
	}
}

// sentLocked takes back what went along with a segment to another process.
func (p *Partition) sentLocked(nt *noted) {
	if len(p.spare) < maxSpareNoted {
		p.spare = append(p.spare, nt)
	}
}

// addTrace adds the frame that goes before a noted segment's, if the consumer takes it.
func (b *batch) addTrace(v *view, nt *noted) {
	if !v.conn.traces {
		return
	}
	now := v.conn.stack.clock()
	if nt.credited == 0 {
		nt.credited = now
	}
	b.scratch = wire.AppendTrace(b.scratch, v.id, v.seq, wire.Traced{Put: nt.put, Credited: nt.credited, Written: now, Note: nt.note})
	b.frames++
}

// localHop is the Hop of a segment that stays in the process.
func (s *Stack) localHop(nt *noted) *Hop {
	if nt == nil {
		return nil
	}
	put := clockTime(nt.put)
	return &Hop{Note: nt.note, Local: true, Put: put, Credited: put, Written: put, Received: put, Backlog: nt.backlog}
}

// taken completes the Hop of a segment that is taken now.
func (ch *channel) taken(h *Hop) {
	now := ch.gate.stack.clock()
	h.Taken = clockTime(now)
	ch.gate.mu.Lock()
	defer ch.gate.mu.Unlock()
	h.Held = time.Duration(max(0, min(now, ch.resumedAt)-max(ch.blockedAt, h.Received.UnixNano())))
}

// arrivingHop is what a trace frame promises of the data frame that follows. The read loop owns it.
type arrivingHop struct {
	there        bool
	channel, seq uint32
	traced       wire.Traced
}

// traced handles a trace frame.
func (c *conn) traced(h wire.Header, payload []byte) error {
	t, err := wire.ParseTrace(payload)
	if err != nil {
		return err
	}
	t.Note = append(c.arriving.traced.Note[:0], t.Note...)
	c.arriving = arrivingHop{true, h.Channel, h.Seq, t}
	return nil
}

// hop makes the Hop of data frame h, which has been read into seg, if the trace frame that came directly before is its.
func (c *conn) hop(h wire.Header, seg *bufpool.Segment) *Hop {
	a := &c.arriving
	a.there = false
	if a.channel != h.Channel || a.seq != h.Seq {
		return nil
	}
	hop, ok := seg.Aside.(*Hop)
	if !ok {
		hop = new(Hop)
		seg.Aside = hop
	}
	now := c.stack.clock()
	off := c.offset()
	ahead := int64(off.likely())
	put, credited, written := a.traced.Put+ahead, a.traced.Credited+ahead, a.traced.Written+ahead
	if early := written - now; early > 0 { // as far as the clocks can't be compared
		put, credited, written = put-early, credited-early, now
	}
	credited = min(credited, written)
	*hop = Hop{
		Note: append(hop.Note[:0], a.traced.Note...), Put: clockTime(min(put, credited)), Credited: clockTime(credited), Written: clockTime(written),
		Received: clockTime(now), Clock: off,
	}
	return hop
}
