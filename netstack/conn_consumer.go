package netstack

import (
	"fmt"
	"runtime"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/netstack/credit"
	"github.com/heddle-stream/heddle/netstack/wire"
)

// attach makes c the connection of ch, validating and counting in one step, and requests ch's partition.
// It reports false if c can't take channels any more.
func (c *conn) attach(ch *channel) bool {
	if !c.lock() {
		return false
	}
	if c.closing {
		c.mu.Unlock()
		return false
	}
	c.lastID++
	id := c.lastID
	c.channels[id] = ch
	c.mu.Unlock()

	if !ch.gate.connected(ch, c, id) {
		c.detach(ch, id, 0)
		return true
	}
	if c.lock() {
		c.control = wire.AppendRequest(c.control, id, wire.PartitionRequest{
			Subpartition: uint32(ch.sub), Credit: uint32(c.stack.cfg.ExclusivePerChannel), Partition: ch.partition,
		})
		c.unlock()
	}
	if c.stack.cfg.DebloatTarget > 0 {
		ch.gate.resizeLate(c, id)
	}
	return true
}

// detach ends channel id of ch and sends last, Cancel or Done, to its producer; with last 0, nothing.
func (c *conn) detach(ch *channel, id uint32, last wire.Type) {
	if !c.lock() {
		return
	}
	if c.channels[id] == ch {
		delete(c.channels, id)
		if last != 0 {
			c.control = wire.AppendHeader(c.control, wire.Header{Type: last, Channel: id})
		}
	}
	c.unlock()
}

func (c *conn) channel(id uint32) *channel {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.channels[id]
}

// stepConsumer reads one frame at the end that dialed, and acts on it.
func (c *conn) stepConsumer() error {
	h, err := c.rd.header()
	if err != nil {
		return err
	}
	if h.Type == wire.Data {
		return c.readData(h)
	}
	payload, err := c.rd.control(h)
	if err != nil {
		return err
	}
	switch h.Type {
	case wire.Trace:
		return c.traced(h, payload)
	case wire.Event:
		if ch := c.channel(h.Channel); ch != nil {
			ch.gate.receiveEvent(ch, h, payload)
		} else {
			c.stack.stray.Add(1)
		}
	case wire.Backlog:
		if ch := c.channel(h.Channel); ch != nil {
			ch.gate.receiveBacklog(ch, h.Backlog)
		} else {
			c.stack.stray.Add(1)
		}
	default:
		return c.common(h, payload)
	}
	return nil
}

// yieldAfter is how many segments may wait to be taken before the read loop makes way for their consumers, so that these find
// them in the processor's caches.
const yieldAfter = 8

// readData reads a data frame's payload into a segment and hands it to its channel. A frame without
// credit fails the channel before a segment is taken for it: memory stays within what was granted.
func (c *conn) readData(h wire.Header) error {
	if h.Flags != 0 && c.stack.cfg.Compression == "" {
		return wire.ErrFlags // nobody was told that this end decompresses
	}
	ch := c.channel(h.Channel)
	if ch == nil {
		c.stack.stray.Add(1)
		return c.rd.discard(h)
	}
	if ch.window.Add(-1) < 0 {
		ch.gate.breach(ch, credit.ErrNoCredit)
		return c.rd.discard(h)
	}
	seg := c.stack.pool.Get()
	if err := c.rd.data(seg, h); err != nil {
		c.stack.pool.Put(seg)
		return err
	}
	var hop *Hop
	if c.arriving.there {
		hop = c.hop(h, seg)
	}
	ch.gate.receive(ch, h, seg, hop)
	if c.unyielded++; c.unyielded >= yieldAfter && c.stack.untaken.Load() >= yieldAfter {
		c.unyielded = 0
		runtime.Gosched()
	}
	return nil
}

// common handles the frames that either end may send. Unknown ones are counted and skipped.
func (c *conn) common(h wire.Header, payload []byte) error {
	switch h.Type {
	case wire.Keepalive:
		return c.keepalive(payload)
	case wire.Goodbye:
		return errPeerClosed
	case wire.Error:
		f, err := wire.ParseError(payload)
		if err != nil {
			return err
		}
		if h.Channel == 0 {
			return fmt.Errorf("the peer gave up the connection: %s", f.Message)
		}
		c.channelFault(h.Channel, f)
	case wire.Hello, wire.Challenge, wire.Proof, wire.Accept:
		return fmt.Errorf("%w: %s after the handshake", wire.ErrFrame, h.Type)
	default:
		c.stack.stray.Add(1)
	}
	return nil
}

// channelFault handles an Error frame for one channel; it leaves the others alone.
func (c *conn) channelFault(id uint32, f wire.Fault) {
	if c.dialed {
		ch := c.channel(id)
		if ch == nil {
			c.stack.stray.Add(1)
			return
		}
		c.detach(ch, id, 0)
		ch.gate.failChannel(ch, remote(c.peer, "read partition "+ch.partition, f))
		return
	}
	if v := c.removeView(id); v != nil {
		c.stack.leave(v, remote(c.peer, "send partition "+v.partition, f))
	}
}

// reject ends a channel whose producer broke the protocol.
func (c *conn) reject(ch *channel, id uint32, cause error) {
	c.detach(ch, id, 0)
	if c.lock() {
		c.control = wire.AppendError(c.control, id, fault(wire.Protocol, cluster.Corrupt, cause))
		c.unlock()
	}
}
