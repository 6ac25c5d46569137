package flow

// ports merges the controls of an operator's inputs into those of its output, by the rules by which a task
// merges the channels of one input:
//
//   - The watermark is the least of the active ports that have caught up with it. It never goes back.
//     It comes to MaxTime only when no port has anything more to say.
//   - It is idle when every port that has not ended is; then the watermark first rises to the greatest of those.
//   - A barrier or mark goes on when it has come on every port that has not ended.
//   - A port that has ended takes no part. When all have, the end goes on.
type ports struct {
	port    [2]portState
	wm      int64
	barrier uint64
	mark    uint64
	idle    bool
	ended   bool
	out     []Control // scratch
}

// portState is what a port said last.
type portState struct {
	wm      int64
	barrier uint64
	mark    uint64
	idle    bool
	ended   bool
}

func newPorts() ports {
	return ports{wm: MinTime, port: [2]portState{{wm: MinTime}, {wm: MinTime}}}
}

// take returns the controls of the output that c on port i leads to, borrowed until the next call.
func (p *ports) take(i int, c Control) []Control {
	in := &p.port[i]
	switch c.Kind {
	case Watermark:
		in.wm, in.idle = max(in.wm, c.Time), false
	case Idle:
		in.idle = true
	case Active:
		in.idle = false
	case Barrier:
		in.barrier = c.ID
	case Mark:
		in.mark = c.ID
	case End:
		in.ended = true
	}
	p.out = p.out[:0]
	p.settle()
	return p.out
}

// settle appends to out what has become due.
func (p *ports) settle() {
	open, active := 0, 0
	for i := range p.port {
		if in := &p.port[i]; !in.ended {
			open++
			if !in.idle {
				active++
			}
		}
	}
	idle := active == 0 && open > 0
	if p.idle && !idle {
		p.out = append(p.out, Control{Kind: Active})
	}
	if wm := p.watermark(open, active); wm > p.wm && !(idle && p.idle) {
		p.wm = wm
		p.out = append(p.out, Control{Kind: Watermark, Time: wm})
	}
	if idle && !p.idle {
		p.out = append(p.out, Control{Kind: Idle})
	}
	p.idle = idle
	if id, ok := p.least(func(s *portState) uint64 { return s.mark }); ok && id > p.mark {
		p.mark = id
		p.out = append(p.out, Control{Kind: Mark, ID: id})
	}
	if id, ok := p.least(func(s *portState) uint64 { return s.barrier }); ok && id > p.barrier {
		p.barrier = id
		p.out = append(p.out, Control{Kind: Barrier, ID: id})
	}
	if open == 0 && !p.ended {
		p.ended = true
		p.out = append(p.out, Control{Kind: End})
	}
}

// watermark returns what the watermark may rise to.
func (p *ports) watermark(open, active int) int64 {
	least, most, complete := MaxTime, MinTime, true
	for i := range p.port {
		in := &p.port[i]
		if in.ended && open > 0 {
			continue
		}
		complete = complete && in.wm == MaxTime
		most = max(most, in.wm)
		if !in.idle && in.wm >= p.wm {
			least = min(least, in.wm)
		}
	}
	if active == 0 {
		least = most
	}
	if least == MaxTime && !complete {
		return MinTime
	}
	return least
}

// least returns the last barrier or mark that has come on every port that has not ended; false if all have ended.
func (p *ports) least(of func(*portState) uint64) (id uint64, ok bool) {
	for i := range p.port {
		in := &p.port[i]
		if in.ended {
			continue
		}
		if v := of(in); !ok || v < id {
			id, ok = v, true
		}
	}
	return id, ok
}
