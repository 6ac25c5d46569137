package netstack

import (
	"slices"

	"github.com/heddle-stream/heddle/netstack/wire"
)

// check holds the invariants against the machine.
func (m *machine) check() {
	for _, g := range m.groups {
		for i, mp := range g.parts {
			if mp.woken {
				clear(mp.denied)
			}
			for sub := range mp.denied {
				if mp.p.subs[sub].held == 0 && mp.p.err == nil && !m.waits(mp.p, sub) {
					m.t.Fatalf("step %d: producer %d is not woken though subpartition %d has its segment back", m.step, i, sub)
				}
			}
		}
		for _, mg := range g.gates {
			m.checkGate(g, mg)
		}
	}
	for _, l := range m.links {
		for _, e := range l.ends {
			if c := e.conn; e.asleep && len(c.wake) == 0 && (c.unsent || len(c.control)+len(c.grants)+c.ready.len() > 0) {
				m.t.Fatalf("step %d: a write loop sleeps with work", m.step)
			}
		}
	}
	for _, s := range []*Stack{m.a, m.b} {
		if st := s.Stats(); st.SegmentsUsed > st.SegmentsTotal || st.SegmentsReserved+st.SegmentsFloating > st.SegmentsTotal {
			m.t.Fatalf("step %d: %+v", m.step, st)
		}
	}
}

// waits reports that a producer will be woken when a connection has room.
func (m *machine) waits(p *Partition, sub int) bool {
	v := p.subs[sub].view
	return v != nil && v.conn != nil && v.conn.admit.load > v.conn.admit.few && slices.Contains(v.conn.admit.waiters, p)
}

func (m *machine) checkGate(g *group, mg *modelGate) {
	if mg.closed {
		return
	}
	for i := range mg.g.channels {
		ch := &mg.g.channels[i]
		has := ch.queue.len() > 0
		if ch.view != nil {
			has = !g.parts[i].p.down && !ch.view.closed && g.parts[i].p.subs[mg.sub].queue.len() > 0
		}
		has = has && !mg.chans[i].blocked
		if mg.asleep && !mg.woken && (has || mg.g.err != nil) {
			m.t.Fatalf("step %d: a consumer sleeps though channel %d has something", m.step, i)
		}
		if ch.view == nil && !ch.dead && !ch.whole && mg.g.err == nil {
			m.checkCredit(g.parts[i].p, mg, ch)
		}
	}
}

// checkCredit counts where every credit of a channel is.
func (m *machine) checkCredit(p *Partition, mg *modelGate, ch *channel) {
	var l *link
	for _, o := range m.links {
		if o.ends[0].conn == ch.conn {
			l = o
		}
	}
	if l == nil || p.down {
		return
	}
	v := p.subs[mg.sub].view
	cons, prod := l.ends[0], l.ends[1]
	sum := 0
	if v != nil && v.conn == prod.conn && v.id == ch.id {
		sum += int(v.window.Credit())
	} else if v == nil && p.subs[mg.sub].gone {
		return
	} else {
		sum += m.cfg.ExclusivePerChannel // its request is on the way
	}
	for _, gr := range cons.conn.grants {
		if gr.Channel == ch.id {
			sum += int(gr.Credit)
		}
	}
	for _, f := range append(pending(cons), prod.frames...) {
		for _, gr := range f.grants {
			if gr.Channel == ch.id {
				sum += int(gr.Credit)
			}
		}
	}
	for _, f := range append(pending(prod), cons.frames...) {
		if f.h.Type == wire.Data && f.h.Channel == ch.id {
			sum++
		}
	}
	if want := int(ch.window.Load()); sum != want {
		m.t.Fatalf("step %d: %d credits are with the sender or on the way, %d granted: %+v", m.step, sum, want, ch.ledger)
	}
}

// pending is the frames that were gathered at e and not yet written.
func pending(e *end) []sentFrame {
	out := &e.conn.out
	var all []byte
	pieces := out.bufs
	switch {
	case out.began: // some of it has gone
		all = append(append(all, e.peer.parts...), out.first...)
		pieces = out.vec[1:]
	case !e.loaded:
		return nil
	}
	for _, b := range pieces {
		all = append(all, b...)
	}
	fs, rest := parseFrames(append(all, out.scratch[out.mark:]...))
	if len(rest) > 0 {
		panic("a batch ends within a frame")
	}
	return fs
}
