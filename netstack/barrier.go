package netstack

import (
	"github.com/heddle-stream/heddle/netstack/bufpool"
	"github.com/heddle-stream/heddle/netstack/wire"
)

// What checkpoints need. An aligned barrier blocks each channel that has brought it until all have. An unaligned one
// is a priority event, which overtakes: what it has overtaken is read out at both ends and kept with the checkpoint.

// Overtaken is a segment or event that a priority event has passed. It stays as it is until Release.
type Overtaken struct {
	Event []byte // of an event

	seg   *bufpool.Segment
	n     int
	flags uint8
	pool  *bufpool.Pool
}

// IsEvent reports whether it is an event.
func (o *Overtaken) IsEvent() bool { return o.seg == nil }

// Append appends the payload of a segment to b.
func (o *Overtaken) Append(b []byte) ([]byte, error) {
	payload := o.seg.Read(0, o.n)
	if o.flags&compressed == 0 {
		return append(b, payload...), nil
	}
	room := make([]byte, o.pool.SegmentBytes())
	n, err := expand(room, payload, o.flags)
	return append(b, room[:n]...), err
}

// Release lets go of it. It must be called once.
func (o *Overtaken) Release() {
	if o.seg != nil {
		o.pool.Put(o.seg)
	}
}

// Overtake sends a priority event to subpartition sub and returns what it overtakes here, in order: all that
// was put before and is not yet sent. It takes no copies: each Overtaken must be released, and until then
// its segment is memory beyond what the partition may use, by at most MaxPerSubpartition segments.
func (p *Partition) Overtake(sub int, payload []byte) ([]Overtaken, error) {
	var passed []Overtaken
	err := p.send(sub, payload, wire.FlagPriority, func(s *subpartition) {
		for i := s.priority; i < s.queue.len(); i++ {
			it := s.queue.at(i)
			if it.flags&wire.FlagEnd == 0 || it.seg != nil {
				passed = append(passed, p.stack.overtaken(inItem{seg: it.seg, n: int(it.n), event: it.event, flags: it.flags}))
			}
		}
	})
	return passed, err
}

func (s *Stack) overtaken(it inItem) Overtaken {
	o := Overtaken{seg: it.seg, n: it.n, flags: it.flags, pool: s.pool}
	if it.seg != nil {
		it.seg.Retain()
	} else {
		o.Event = append([]byte(nil), it.event...) // a coalescing one may be replaced
	}
	return o
}

// Overtaken returns what the priority event it, which Next returned, has overtaken on its channel at this end, in order: what its
// producer sent before it and Next has not returned yet. The items still come out of Next. Each must be released.
// On a channel within the process the producer's Overtake has returned everything.
func (g *Gate) Overtaken(it Item) []Overtaken {
	ch := &g.channels[it.Channel]
	g.mu.Lock()
	defer g.mu.Unlock()
	var passed []Overtaken
	for i := range ch.queue.len() {
		in := ch.queue.at(i)
		if int32(in.seq-it.Seq) < 0 && in.flags&(wire.FlagPriority|wire.FlagEnd) == 0 {
			passed = append(passed, g.stack.overtaken(*in))
		}
	}
	return passed
}

// Block has Next return nothing but priority events of a channel, until Resume. What comes meanwhile waits, as far as there is credit.
//
// Without exclusive segments, a blocked channel would keep floating ones that the others need to come to the
// same barrier; so what it has is counted beyond the gate's, and while any is blocked the others get one at a time:
// at most one segment a channel and FloatingPerGate more in all.
func (g *Gate) Block(channel int) {
	ch := &g.channels[channel]
	g.mu.Lock()
	if ch.blocked || g.closed {
		g.mu.Unlock()
		return
	}
	ch.blocked, ch.blockedAt = true, g.stack.clock()
	g.blocked++
	var fed []grant
	if ch.view == nil && g.stack.cfg.ExclusivePerChannel == 0 {
		n := ch.ledger.Floating() - ch.excess
		ch.excess += n
		g.account.Repay(n)
		fed = g.feedAllLocked()
	}
	g.mu.Unlock()
	for _, gr := range fed {
		gr.send()
	}
}

// Resume ends Block.
func (g *Gate) Resume(channel int) {
	ch := &g.channels[channel]
	g.mu.Lock()
	if !ch.blocked {
		g.mu.Unlock()
		return
	}
	ch.blocked, ch.resumedAt = false, g.stack.clock()
	g.blocked--
	if ch.view != nil {
		g.mu.Unlock()
		if p := ch.view.part.Load(); p != nil {
			p.recheck(ch.view)
		}
		return
	}
	var fed []grant
	if !g.closed {
		g.borrowLocked(ch)
		fed = append(fed, ch.announceLocked())
		if ch.queue.len() > 0 {
			ch.enterLocked()
		}
	}
	g.unlockAndWake()
	for _, gr := range fed {
		gr.send()
	}
}

// feedAllLocked lends what can be lent to the channels that wait.
func (g *Gate) feedAllLocked() (all []grant) {
	for range g.hungry.len() {
		ch := g.feedLocked()
		if ch == nil {
			break
		}
		all = append(all, ch.announceLocked())
	}
	return all
}

// repayLocked gives a floating segment of ch back, unless it was counted beyond the gate's.
func (g *Gate) repayLocked(ch *channel, n int) {
	beyond := min(n, ch.excess)
	ch.excess -= beyond
	if n > beyond {
		g.account.Repay(n - beyond)
	}
}

// recheck has a local consumer that was blocked look again.
func (p *Partition) recheck(v *view) {
	p.mu.Lock()
	r := (*view)(nil)
	if !v.closed && v.sub < len(p.subs) {
		r = p.subs[v.sub].readyLocked()
	}
	p.mu.Unlock()
	r.notify(false)
}

// Overdraft is TryGet for a producer in the midst of a record, which cannot stop there: beyond its limits, it may have up to
// Config.Overdraft segments more, of memory that nobody has set aside. It returns nil if there are none.
func (p *Partition) Overdraft(sub int) *bufpool.Segment {
	if seg, err := p.tryGet(sub); seg != nil || err != nil {
		return seg
	}
	p.mu.Lock()
	s := &p.subs[sub] // which holds none if its connection held it back: its first is guaranteed, as in tryGet
	if p.err != nil || (s.held > 0 && !p.account.Overdraw(p.stack.cfg.Overdraft)) {
		p.mu.Unlock()
		return nil
	}
	s.held++
	p.mu.Unlock()
	return p.stack.pool.Get()
}
