package task

import "github.com/heddle-stream/heddle/internal/flow"

// valve merges the controls of all channels of one input port into one stream of controls.
//
//   - The watermark is the least of all active channels that have caught up with it. It never goes back.
//   - The port is idle when every channel that has not ended is idle; then the watermark first rises to the greatest
//     that was held back by the last of them.
//   - A channel that becomes active with an older watermark than the port's takes part again once it has caught up.
//   - A mark goes on when it, or a later one, has come on every channel that has not ended.
//   - A channel that has ended takes no part. When all have, the port ends.
//
// Those are the rules of Flink's StatusWatermarkValve, with ended channels added.
type valve struct {
	out      flow.Controller
	channels []channelState
	last     int64  // watermark passed on; MinTime: none
	mark     uint64 // passed on
	idle     bool   // passed on
	ended    bool   // passed on
}

// channelState is what a channel said last.
type channelState struct {
	watermark int64
	mark      uint64
	idle      bool
	ended     bool
	aligned   bool // takes part in the minimum: active, not ended, and not behind the port
}

func newValve(out flow.Controller, channels int) *valve {
	v := &valve{out: out, channels: make([]channelState, channels), last: flow.MinTime}
	for i := range v.channels {
		v.channels[i] = channelState{watermark: flow.MinTime, aligned: true}
	}
	return v
}

// control takes a control of channel ch and passes on what follows from it.
func (v *valve) control(ch int, c flow.Control) error {
	s := &v.channels[ch]
	if s.ended {
		return nil
	}
	switch c.Kind {
	case flow.Watermark:
		return v.watermark(s, c.Time)
	case flow.Idle:
		return v.becomeIdle(s)
	case flow.Active:
		return v.becomeActive(s)
	case flow.Mark:
		s.mark = c.ID
		return v.passMark()
	case flow.End:
		return v.end(s)
	}
	return errUnexpected
}

func (v *valve) watermark(s *channelState, t int64) error {
	if err := v.becomeActive(s); err != nil {
		return err
	}
	if t <= s.watermark {
		return nil
	}
	held := s.watermark == v.last // only a channel at the minimum holds it back: the least of the aligned ones is last
	s.watermark = t
	if !s.aligned { // it was behind
		if t < v.last {
			return nil
		}
		s.aligned, held = true, true
	}
	if !held {
		return nil
	}
	return v.raise(v.least())
}

func (v *valve) becomeIdle(s *channelState) error {
	if s.idle {
		return nil
	}
	s.idle, s.aligned = true, false
	return v.withdrawn(s)
}

func (v *valve) becomeActive(s *channelState) error {
	if !s.idle {
		return nil
	}
	s.idle = false
	s.aligned = s.watermark >= v.last
	if v.idle {
		v.idle = false
		if err := v.out.Control(flow.Control{Kind: flow.Active}); err != nil {
			return err
		}
	}
	if s.aligned {
		return v.raise(v.least()) // it may be ahead, and the only one that takes part
	}
	return nil
}

func (v *valve) end(s *channelState) error {
	s.ended, s.aligned = true, false
	if err := v.withdrawn(s); err != nil {
		return err
	}
	if err := v.passMark(); err != nil {
		return err
	}
	for i := range v.channels {
		if !v.channels[i].ended {
			return nil
		}
	}
	v.ended = true
	return v.out.Control(flow.Control{Kind: flow.End})
}

// passMark passes on the least of the channels' marks.
func (v *valve) passMark() error {
	least, most, open := uint64(1<<64-1), uint64(0), false
	for i := range v.channels {
		c := &v.channels[i]
		most = max(most, c.mark)
		if !c.ended {
			least, open = min(least, c.mark), true
		}
	}
	if !open {
		least = most
	}
	if least <= v.mark {
		return nil
	}
	v.mark = least
	return v.out.Control(flow.Control{Kind: flow.Mark, ID: least})
}

// withdrawn passes on what follows from s taking no part any more.
func (v *valve) withdrawn(s *channelState) error {
	active, open := false, false
	for i := range v.channels {
		c := &v.channels[i]
		open = open || !c.ended
		active = active || !c.ended && !c.idle
	}
	if active {
		if s.watermark == v.last {
			return v.raise(v.least())
		}
		return nil
	}
	if s.watermark == v.last || !open {
		if err := v.raise(v.greatest(open)); err != nil {
			return err
		}
	}
	if !open || v.idle {
		return nil
	}
	v.idle = true
	return v.out.Control(flow.Control{Kind: flow.Idle})
}

// least is the lowest watermark of the aligned channels; MinTime if there is none.
func (v *valve) least() int64 {
	t, any := flow.MaxTime, false
	for i := range v.channels {
		if c := &v.channels[i]; c.aligned {
			t, any = min(t, c.watermark), true
		}
	}
	if !any {
		return flow.MinTime
	}
	return t
}

// greatest is the highest watermark of the channels that have not ended, or, where none is open, of all: an input that
// ended at MaxTime must not carry an idle one there, which may still have much to say.
func (v *valve) greatest(open bool) int64 {
	t := flow.MinTime
	for i := range v.channels {
		if c := &v.channels[i]; !open || !c.ended {
			t = max(t, c.watermark)
		}
	}
	return t
}

// complete reports whether every channel has come to its end: one that is idle may still have much to say,
// so that others alone, which ended, must not carry it there.
func (v *valve) complete() bool {
	for i := range v.channels {
		if c := &v.channels[i]; !c.ended && c.watermark < flow.MaxTime {
			return false
		}
	}
	return true
}

func (v *valve) raise(t int64) error {
	if t <= v.last || t == flow.MaxTime && !v.complete() {
		return nil
	}
	v.last = t
	return v.out.Control(flow.Control{Kind: flow.Watermark, Time: t})
}
