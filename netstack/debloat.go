package netstack

import (
	"context"
	"time"

	"github.com/heddle-stream/heddle/netstack/credit"
	"github.com/heddle-stream/heddle/netstack/wire"
)

// debloatPeriod is how often segments are sized. minRoom is the least size.
const (
	debloatPeriod = 200 * time.Millisecond
	minRoom       = 1024
)

// Debloat are the figures of a gate whose in-flight data is sized by Config.DebloatTarget.
type Debloat struct {
	Room     int           // bytes that producers put into a segment at most
	Rate     float64       // consumed, in bytes a second
	Segments int           // in flight: queued at both ends, and credited
	Delay    time.Duration // how long the consumer will take for them at most; 0: nothing waits
}

// Debloat returns the figures. They are zero without a target.
func (g *Gate) Debloat() Debloat {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.debloatLocked()
}

func (g *Gate) debloatLocked() Debloat {
	return Debloat{Room: g.debloat.Size(), Rate: g.debloat.Rate(), Segments: g.debloat.Load().Segments, Delay: g.debloat.Delay()}
}

// debloat sizes every gate's segments, a period apart.
func (s *Stack) debloat(ctx context.Context) {
	tick := time.NewTicker(debloatPeriod)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			for _, g := range s.allGates() {
				g.resize(now.Sub(last))
			}
			last = now
		}
	}
}

func (s *Stack) allGates() []*Gate {
	s.mu.Lock()
	defer s.mu.Unlock()
	gates := make([]*Gate, 0, len(s.gates))
	for g := range s.gates {
		gates = append(gates, g)
	}
	return gates
}

// resize samples what the consumer did since the last call, and tells producers the size that follows.
func (g *Gate) resize(elapsed time.Duration) {
	l := credit.Load{Elapsed: elapsed, Taken: int64(g.taken.Swap(0))}
	g.mu.Lock()
	for i := range g.channels {
		ch := &g.channels[i]
		if ch.view == nil && !ch.dead {
			l.Segments += ch.ledger.InFlight()
		}
	}
	l.Queued = int64(g.queued) * int64(g.debloat.Size())
	g.mu.Unlock()
	for i := range g.channels {
		if v := g.channels[i].view; v != nil {
			if p := v.part.Load(); p != nil {
				n := p.waitingFor(v)
				l.Segments += n
				l.Queued += int64(n)
			}
		}
	}
	g.mu.Lock()
	if g.closed || !g.debloat.Sample(l) {
		g.mu.Unlock()
		return
	}
	size := g.debloat.Size()
	var conns []*conn
	var ids []uint32
	for i := range g.channels {
		if ch := &g.channels[i]; ch.conn != nil && !ch.dead {
			conns, ids = append(conns, ch.conn), append(ids, ch.id)
		}
	}
	g.mu.Unlock()
	for i, c := range conns {
		if c.lock() {
			c.control = wire.AppendResize(c.control, ids[i], uint32(size))
			c.unlock()
		}
	}
	for i := range g.channels {
		if v := g.channels[i].view; v != nil {
			v.resize(uint32(size))
		}
	}
}

// resizeLate tells the producer of a channel that has just been connected a size that is not its own.
func (g *Gate) resizeLate(c *conn, id uint32) {
	g.mu.Lock()
	size := g.debloat.Size()
	g.mu.Unlock()
	if size < g.stack.pool.SegmentBytes() && c.lock() {
		c.control = wire.AppendResize(c.control, id, uint32(size))
		c.unlock()
	}
}

// waitingFor is how many segments are queued for a local consumer.
func (p *Partition) waitingFor(v *view) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if v.closed || v.sub >= len(p.subs) {
		return 0
	}
	return p.subs[v.sub].segments
}

// Room is how many bytes the producer should put into a segment of subpartition sub: SegmentRoom, or less if its consumer is slow.
// It is a multiple of 8.
func (p *Partition) Room(sub int) int { return int(p.rooms[sub].Load()) }

func (p *Partition) setRoom(sub int, n uint32) {
	if sub < len(p.rooms) {
		most := uint32(p.SegmentRoom())
		p.rooms[sub].Store(int32(min(max(n, min(minRoom, most)), most) &^ 7))
	}
}
