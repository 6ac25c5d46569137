package netstack

import (
	"context"
	"fmt"
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/netstack/wire"
)

// watch does all that depends on time, a quarter of the shortest period apart.
func (s *Stack) watch(ctx context.Context) {
	period := min(s.cfg.KeepaliveInterval, s.cfg.KeepaliveTimeout, s.cfg.PartitionRequestTimeout, s.cfg.IdleTimeout) / 4
	tick := time.NewTicker(max(period, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			s.expireRequests(now)
			s.mu.Lock()
			conns := s.connsLocked()
			s.mu.Unlock()
			for _, c := range conns {
				c.check(now)
			}
		}
	}
}

// expireRequests fails those that have waited too long for a partition.
func (s *Stack) expireRequests(now time.Time) {
	var late []*view
	s.mu.Lock()
	for id, views := range s.waiting {
		keep := views[:0]
		for _, v := range views {
			if now.Before(v.deadline) {
				keep = append(keep, v)
			} else {
				v.cancelled = true
				late = append(late, v)
			}
		}
		if s.waiting[id] = keep; len(keep) == 0 {
			delete(s.waiting, id)
		}
	}
	s.mu.Unlock()
	for _, v := range late {
		v.fail(wire.Fault{Code: wire.NotFound, Kind: uint8(cluster.NotFound), Message: fmt.Sprintf("%s did not appear at %s within %v", v.partition, s.identity(), s.cfg.PartitionRequestTimeout)})
	}
}

// check holds a connection against the clock: it fails one that brought nothing for too long, sends
// a keepalive where nothing else was sent, and closes a dialed one that nobody has used for long.
func (c *conn) check(now time.Time) {
	w, cfg := &c.watch, &c.stack.cfg
	if n := c.rd.bytes.Load(); n != w.read {
		w.read, w.readAt = n, now
	} else if silent := now.Sub(w.readAt); silent >= cfg.KeepaliveTimeout {
		c.fail(fmt.Errorf("nothing was received for %v (exchange.keepalive-timeout)", silent.Round(time.Millisecond)))
		return
	}
	if n := c.written.Load(); n != w.written {
		w.written, w.wrote = n, now
	} else if now.Sub(w.wrote) >= cfg.KeepaliveInterval && c.lock() {
		w.wrote = now
		c.control = wire.AppendHeader(c.control, wire.Header{Type: wire.Keepalive})
		c.unlock()
	}
	if now.Sub(w.asked) >= cfg.KeepaliveInterval {
		w.asked = now
		c.ask()
	}
	if c.users() > 0 || !c.dialed {
		w.idleSince = now
	} else if now.Sub(w.idleSince) >= cfg.IdleTimeout {
		c.closeIdle()
	}
}

// closeIdle closes the connection unless a channel has just come: validated under the lock that attach takes.
func (c *conn) closeIdle() {
	if !c.lock() {
		return
	}
	c.closing = c.closing || len(c.channels) == 0
	closing := c.closing
	c.unlock()
	if closing {
		c.stack.dials.evict(c)
	}
}
