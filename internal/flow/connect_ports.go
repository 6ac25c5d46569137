package flow

import "math"

// ports merges the controls of an operator's inputs into those of its output. It is two ports' state and no more:
//
//	watermark  the least of the ports that are neither idle nor ended; it never goes back
//	idle       when no port is active, and one has yet to end
//	barrier    when it has come on every port that has not ended
//	end        when every port has ended
type ports struct {
	port [2]struct {
		wm      int64
		barrier uint64
		idle    bool
		ended   bool
	}
	wm      int64
	barrier uint64
	idle    bool
	ended   bool
	out     []Control // scratch
}

func newPorts() ports {
	p := ports{wm: MinTime}
	for i := range p.port {
		p.port[i].wm = MinTime
	}
	return p
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
	case End:
		in.ended = true
	}
	p.out = p.out[:0]
	p.settle()
	return p.out
}

// settle appends to out what has become due.
func (p *ports) settle() {
	wm, barrier, active, ended := MaxTime, uint64(math.MaxUint64), 0, 0
	for _, in := range p.port {
		switch {
		case in.ended:
			ended++
			continue
		case !in.idle:
			active++
			wm = min(wm, in.wm)
		}
		barrier = min(barrier, in.barrier)
	}
	all := ended == len(p.port)
	if all {
		wm = p.lastWatermark()
	}
	if idle := active == 0 && !all; idle != p.idle {
		p.idle = idle
		kind := Active
		if idle {
			kind = Idle
		}
		p.out = append(p.out, Control{Kind: kind})
	}
	if (active > 0 || all) && wm > p.wm {
		p.wm = wm
		p.out = append(p.out, Control{Kind: Watermark, Time: wm})
	}
	if !all && barrier > p.barrier {
		p.barrier = barrier
		p.out = append(p.out, Control{Kind: Barrier, ID: barrier})
	}
	if all && !p.ended {
		p.ended = true
		p.out = append(p.out, Control{Kind: End})
	}
}

// lastWatermark is the watermark when all ports have ended: the least of them.
func (p *ports) lastWatermark() int64 {
	wm := MaxTime
	for _, in := range p.port {
		wm = min(wm, in.wm)
	}
	return wm
}
