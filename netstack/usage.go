package netstack

// Usage returns how many segments the partition has in use, from being filled until they are written or, by a consumer in this
// process, recycled; and how many it could have now: more than that would hold its producer back.
func (p *Partition) Usage() (used, most int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.released {
		return 0, 0
	}
	for i := range p.subs {
		used += p.subs[i].held
	}
	return used, max(used, min(len(p.subs)+p.account.Reach(), len(p.subs)*p.cap))
}

// Credit returns how many segments the consumers in other processes would take of the partition now, and how many of those consumers have no credit
// left while segments wait for it.
func (p *Partition) Credit() (credit, starved int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.subs {
		s := &p.subs[i]
		if s.view == nil || s.view.local != nil {
			continue
		}
		n := int(s.view.window.Credit())
		credit += n
		if n == 0 && s.segments > 0 {
			starved++
		}
	}
	return credit, starved
}

// Credit returns how many segments the producers in other processes may yet send.
func (g *Gate) Credit() (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.channels {
		if ch := &g.channels[i]; ch.view == nil && !g.closed {
			n += ch.ledger.Granted()
		}
	}
	return n
}

// Usage returns how many segments received from other processes the consumer has not recycled, and how many it could have now:
// then its producers have no credit left. Channels within the process use their partition's segments, and don't count.
func (g *Gate) Usage() (used, most int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || g.account == nil {
		return 0, 0
	}
	own, bound := 0, 0
	for i := range g.channels {
		ch := &g.channels[i]
		if ch.view == nil {
			used += ch.ledger.Held()
			own += g.stack.cfg.ExclusivePerChannel
			bound += max(g.stack.cfg.ExclusivePerChannel, g.stack.cfg.MaxPerChannel)
		}
	}
	return used, max(used, min(own+g.account.Reach(), bound))
}
