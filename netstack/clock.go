package netstack

import (
	"time"

	"github.com/heddle-stream/heddle/netstack/wire"
)

// Offset compares the clock of a peer with this process's. Both clocks are wall clocks as they stood when the stack was made,
// carried on by monotonic time: they make no steps.
type Offset struct {
	Ahead   time.Duration // this process's clock minus the peer's: what to add to its times
	Within  time.Duration // Ahead is right within so much; it grows slowly between two samples
	Samples int           // 0: not known
}

// likely is what to take the difference for. Hosts mostly keep the time, so none is likeliest where the samples allow it; clocks that certainly
// differ do so by what the samples say, which is right where the ways there and back take equally long.
func (o Offset) likely() time.Duration {
	if o.Ahead >= -o.Within && o.Ahead <= o.Within {
		return 0
	}
	return o.Ahead
}

// clockDrift is how far two clocks may part, a second, between samples: 100 parts in a million.
const clockDrift = 10_000

// eagerSamples are asked for one after the other when a connection is new.
const eagerSamples = 4

// clockEstimate is the offset of a peer's clock as far as questions and answers have shown it. All times are in ns.
type clockEstimate struct {
	ahead, within int64 // when the best sample was taken
	at            int64 // when that was
	samples       int
}

// sample enters a question that was sent at asked, heard by the peer at heard, answered by it at answered (both by its clock) and
// whose answer came at now. The best sample is the one that has the least error now.
func (e *clockEstimate) sample(asked, heard, answered, now int64) {
	trip := (now - asked) - (answered - heard)
	if now < asked || answered < heard || trip < 0 {
		return // not an answer to any question of ours
	}
	within := (trip + 1) / 2
	if e.samples == 0 || within <= e.error(now) {
		e.ahead, e.within, e.at = asked+(now-asked)/2-(heard+(answered-heard)/2), within, now
	}
	e.samples++
}

// error is how wrong ahead may be at now.
func (e *clockEstimate) error(now int64) int64 { return e.within + max(0, now-e.at)/clockDrift }

func (e *clockEstimate) offset(now int64) Offset {
	if e.samples == 0 {
		return Offset{}
	}
	return Offset{Ahead: time.Duration(e.ahead), Within: time.Duration(e.error(now)), Samples: e.samples}
}

// ask sends a question for the peer's clock.
func (c *conn) ask() {
	if c.traces && c.lock() {
		c.control = wire.AppendClock(c.control, wire.Clock{Asked: c.stack.clock()})
		c.unlock()
	}
}

// keepalive handles what a keepalive brings: nothing, a question, or an answer.
func (c *conn) keepalive(payload []byte) error {
	if !c.traces || len(payload) == 0 {
		return nil
	}
	now := c.stack.clock()
	q, err := wire.ParseClock(payload)
	if err != nil || !c.lock() {
		return err
	}
	if !q.Answer {
		c.control = wire.AppendClock(c.control, wire.Clock{Asked: q.Asked, Heard: now, Answered: c.stack.clock(), Answer: true})
		c.unlock()
		return nil
	}
	c.peerClock.sample(q.Asked, q.Heard, q.Answered, now)
	more := c.peerClock.samples < eagerSamples
	c.mu.Unlock()
	if more {
		c.ask()
	}
	return nil
}

// offset is the peer's clock as it is known now.
func (c *conn) offset() Offset {
	now := c.stack.clock()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.peerClock.offset(now)
}

// PeerClock is the clock at the other end of a connection.
type PeerClock struct {
	Peer   string // identity and address
	Dialed bool   // by this process
	Offset
}

// PeerClocks returns the clocks at the other ends of all open connections.
func (s *Stack) PeerClocks() []PeerClock {
	s.mu.Lock()
	conns := s.connsLocked()
	s.mu.Unlock()
	clocks := make([]PeerClock, 0, len(conns))
	for _, c := range conns {
		clocks = append(clocks, PeerClock{Peer: c.peer, Dialed: c.dialed, Offset: c.offset()})
	}
	return clocks
}
