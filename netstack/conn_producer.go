package netstack

import (
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/netstack/credit"
	"github.com/heddle-stream/heddle/netstack/wire"
)

// stepProducer reads one frame at the end that listens, and acts on it.
func (c *conn) stepProducer() error {
	h, err := c.rd.header()
	if err != nil {
		return err
	}
	if h.Type == wire.Data { // never sent this way
		return wire.ErrFrame
	}
	payload, err := c.rd.control(h)
	if err != nil {
		return err
	}
	switch h.Type {
	case wire.Request:
		return c.request(h.Channel, payload)
	case wire.Credit:
		return c.credit(payload)
	case wire.Resize:
		n, err := wire.ParseResize(payload)
		if err != nil {
			return err
		}
		c.mu.Lock()
		v := c.views[h.Channel]
		c.mu.Unlock()
		if v == nil {
			c.stack.stray.Add(1)
			return nil
		}
		v.resize(n)
		return nil
	case wire.Cancel, wire.Done:
		if v := c.removeView(h.Channel); v != nil {
			c.stack.leave(v, nil)
		} else {
			c.stack.stray.Add(1)
		}
		return nil
	default:
		return c.common(h, payload)
	}
}

func (c *conn) request(id uint32, payload []byte) error {
	r, err := wire.ParseRequest(payload)
	if err != nil {
		return err
	}
	v := &view{conn: c, id: id, partition: r.Partition, sub: int(r.Subpartition), granted: r.Credit}
	if !c.lock() {
		return nil
	}
	if c.views[id] != nil || id == 0 {
		c.mu.Unlock()
		return wire.ErrFrame
	}
	if r.Credit > credit.MaxCredit {
		c.control = wire.AppendError(c.control, id, fault(wire.Protocol, cluster.Corrupt, credit.ErrOverflow))
		c.unlock()
		return nil
	}
	c.views[id] = v
	c.mu.Unlock()
	c.stack.request(v)
	return nil
}

func (c *conn) credit(payload []byte) error {
	for len(payload) > 0 {
		g, rest, err := wire.ParseGrant(payload)
		if err != nil {
			return err
		}
		payload = rest
		c.mu.Lock()
		v := c.views[g.Channel]
		c.mu.Unlock()
		if v == nil || v.part.Load() == nil {
			c.stack.stray.Add(1)
			continue
		}
		if err := v.part.Load().addCredit(v, g.Credit); err != nil {
			f := fault(wire.Protocol, cluster.Corrupt, err)
			c.dropView(v, &f)
			c.stack.leave(v, &RemoteError{Peer: c.peer, Op: "send partition " + v.partition, Kind: cluster.Corrupt, Err: err})
		}
	}
	return nil
}

// removeView forgets a view and returns it, or nil.
func (c *conn) removeView(id uint32) *view {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.views[id]
	delete(c.views, id)
	return v
}

// dropView forgets v and sends its consumer why.
func (c *conn) dropView(v *view, f *wire.Fault) {
	if !c.lock() {
		return
	}
	if c.views[v.id] == v {
		delete(c.views, v.id)
		c.control = wire.AppendError(c.control, v.id, *f)
	}
	c.unlock()
}
