package netstack

import "sync"

// admitMost is what a batch holds, and half of the cache that a core has for itself on many machines.
const admitMost = maxBatchBytes

// admission bounds how many bytes with credit wait to be written on a connection. Beyond that, producers get no more: what
// they would fill meanwhile would wait, and leave the processor's caches, before the connection comes to it.
// Segments without credit don't count, so that a slow consumer holds up nobody but its own producer; and those
// that count are written whatever happens, so nobody waits for good.
type admission struct {
	most, few int // bytes at most; producers that wait are woken when there are few

	mu      sync.Mutex // a leaf
	load    int
	waiters []*Partition
}

// full reports whether p has to wait. Then it is returned by an add to come.
func (a *admission) full(p *Partition) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.load < a.most {
		return false
	}
	for _, w := range a.waiters {
		if w == p {
			return true
		}
	}
	a.waiters = append(a.waiters, p)
	return true
}

// add changes the load and returns whom to signal, once no lock is held.
func (a *admission) add(n int) []*Partition {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.load += n
	if n >= 0 || a.load > a.few || len(a.waiters) == 0 {
		return nil
	}
	w := a.waiters
	a.waiters = nil
	return w
}

// recountLocked enters in the connection of s how many of its bytes have credit (in proportion: segments differ little), and returns whom to signal
// once mu is unlocked. It follows every change of the queue, the credit or the view.
func (s *subpartition) recountLocked(v *view) []*Partition {
	if v == nil || v.conn == nil {
		return nil
	}
	n := 0
	if !v.closed && s != nil && s.view == v {
		n = s.bytes
		if c := int(v.window.Credit()); c < s.segments {
			n = n * c / s.segments
		}
	}
	d := n - v.counted
	if d == 0 {
		return nil
	}
	v.counted = n
	return v.conn.admit.add(d)
}

func signalAll(ps []*Partition) {
	for _, p := range ps {
		p.readmit()
	}
}

// readmit tells the producer that a connection has room again.
func (p *Partition) readmit() {
	p.mu.Lock()
	w := p.wakeLocked()
	p.mu.Unlock()
	if w {
		p.signal()
	}
}
