package flow

import "time"

// Timer is a moment that an author's function asked to be called at.
type Timer struct {
	At         Instant
	Processing bool // by the clock of the machine, not by event time
}

// ProcessContext is what an author's function on keyed records may ask of its operator. It is valid during the call only.
// It is the Env of the operator's side outputs.
type ProcessContext[K comparable, U any] struct {
	Env
	op *processCore[K, U]
}

// sideBase makes side outputs work; see EmitFrom.
func (c *ProcessContext[K, U]) sideBase() *base { return &c.op.base }

// Key is the key of the record or timer at hand.
func (c *ProcessContext[K, U]) Key() K { return c.op.keys.key }

// Time is the event time of the record or event timer at hand; false if the stream has none.
func (c *ProcessContext[K, U]) Time() (Instant, bool) { return Instant(c.op.time), c.op.timed }

// Watermark is the event time that has been reached: it passes every event timer before this.
// At the end of a bounded input it is the last Instant there is.
func (c *ProcessContext[K, U]) Watermark() Instant { return Instant(c.op.wm) }

// Ended reports whether the input has ended, and the last timers fire.
func (c *ProcessContext[K, U]) Ended() bool { return c.op.wm == MaxTime || c.op.ended }

// Emit puts out a record, with the time of the record or timer at hand.
func (c *ProcessContext[K, U]) Emit(u U) { c.op.emit(u, c.op.time, c.op.timed) }

// EmitAt puts out a record with an event time of its own. What lies behind the watermark is late for the windows that follow.
func (c *ProcessContext[K, U]) EmitAt(u U, at Instant) { c.op.emit(u, int64(at), true) }

// SetEventTimer asks for a call when the watermark has reached at, for the key at hand. Timers of a key with equal times are one.
// A time that has been passed fires with the next watermark. All that are set fire at the end of a bounded input.
func (c *ProcessContext[K, U]) SetEventTimer(at Instant) { c.op.setTimer(c.op.events, int64(at)) }

// DeleteEventTimer takes back SetEventTimer.
func (c *ProcessContext[K, U]) DeleteEventTimer(at Instant) { c.op.deleteTimer(c.op.events, int64(at)) }

// SetProcessingTimer asks for a call when the clock has reached at, for the key at hand. Timers of a key with equal times are one.
// All that are set fire at the end of a bounded input; none can be set from then on.
func (c *ProcessContext[K, U]) SetProcessingTimer(at Instant) {
	if !c.op.ended {
		c.op.setTimer(c.op.clock, int64(at))
	}
}

// DeleteProcessingTimer takes back SetProcessingTimer.
func (c *ProcessContext[K, U]) DeleteProcessingTimer(at Instant) {
	c.op.deleteTimer(c.op.clock, int64(at))
}

// InstantOf returns t as an Instant. Times out of range are clamped.
func InstantOf(t time.Time) Instant { return Instant(millis(t)) }

// Add returns i moved by d, which may be negative, within the bounds of time.
func (i Instant) Add(d time.Duration) Instant {
	if ms := d.Milliseconds(); ms < 0 {
		return Instant(minus(int64(i), -ms))
	}
	return Instant(plus(int64(i), d.Milliseconds()))
}

// Sub returns the time from j to i.
func (i Instant) Sub(j Instant) time.Duration { return time.Duration(i-j) * time.Millisecond }
