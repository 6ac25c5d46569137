package flow

import (
	"errors"
	"fmt"
	"time"
)

// WindowKind says how windows are cut.
type WindowKind uint8

// Kinds of windows.
const (
	GlobalWindow   WindowKind = iota // one window; fires at the end of a bounded input
	TumblingWindow                   // Size long, one after the other
	SlidingWindow                    // Size long, one begins every Slide
	CalendarWindow                   // Unit of the calendar in Zone
	SessionWindow                    // a key's records with less than Gap between them
)

// WindowSpec describes windows. The graph's builder may change it until the job runs.
type WindowSpec struct {
	Kind   WindowKind
	Size   time.Duration // tumbling, sliding
	Slide  time.Duration // sliding
	Offset time.Duration // tumbling, sliding: windows begin at it, counted from the Unix epoch, modulo Size or Slide
	Gap    time.Duration // session
	Unit   CalendarUnit  // calendar
	Zone   string        // calendar: name of the time zone

	Processing bool          // by the clock of the machine, not by event time
	Lateness   time.Duration // how far behind the watermark records still count; each then emits a corrected result
}

// LateTag is the side output for records that came too late for every window.
const LateTag = "late"

// String describes the windows in a few words, such as "tumbling 1m0s".
func (s *WindowSpec) String() string {
	var d string
	switch s.Kind {
	case GlobalWindow:
		return "global"
	case TumblingWindow:
		d = "tumbling " + s.Size.String()
	case SlidingWindow:
		d = "sliding " + s.Size.String() + " every " + s.Slide.String()
	case CalendarWindow:
		d = s.Unit.String() + " in " + s.Zone
	case SessionWindow:
		d = "session gap " + s.Gap.String()
	}
	if s.Offset != 0 {
		d += " offset " + s.Offset.String()
	}
	if s.Processing {
		d += " by processing time"
	}
	if s.Lateness != 0 {
		d += " lateness " + s.Lateness.String()
	}
	return d
}

// Check returns what is wrong with s.
func (s *WindowSpec) Check() error {
	if s.Lateness < 0 {
		return fmt.Errorf("allowed lateness %v is negative", s.Lateness)
	}
	if s.Lateness > 0 && s.Processing {
		return errors.New("allowed lateness on windows by processing time: nothing can be late there")
	}
	if s.Offset != 0 && s.Kind != TumblingWindow && s.Kind != SlidingWindow {
		return fmt.Errorf("offset on %s windows: only tumbling and sliding ones have it", s)
	}
	for _, d := range []time.Duration{s.Offset, s.Lateness} {
		if d%time.Millisecond != 0 {
			return fmt.Errorf("%v is no whole number of milliseconds", d)
		}
	}
	switch s.Kind {
	case TumblingWindow:
		return checkSpan("window size", s.Size)
	case SlidingWindow:
		return errors.Join(checkSpan("window size", s.Size), checkSpan("slide", s.Slide))
	case SessionWindow:
		return checkSpan("session gap", s.Gap)
	case CalendarWindow:
		if s.Unit < Day || s.Unit > Year {
			return fmt.Errorf("%s is no unit of the calendar", s.Unit)
		}
		_, err := LoadZone(s.Zone)
		return err
	}
	return nil
}

func checkSpan(what string, d time.Duration) error {
	if d <= 0 || d%time.Millisecond != 0 {
		return fmt.Errorf("%s %v is not a positive whole number of milliseconds", what, d)
	}
	return nil
}

// cutter cuts time into slices such that a window consists of whole slices, and knows the windows of each slice.
// Records are added to slices; windows that overlap share them. Where windows don't overlap, a slice is a window.
type cutter struct {
	kind        WindowKind
	size, slide int64 // sliding: slide is the distance of windows' starts; tumbling: both the size
	offset      int64 // 0 ≤ offset < slide
	rest        int64 // size modulo slide: windows end at that distance from a start
	unit        CalendarUnit
	loc         *time.Location
	lateness    int64
}

func newCutter(s *WindowSpec) (cutter, error) {
	c := cutter{kind: s.Kind, size: s.Size.Milliseconds(), slide: s.Slide.Milliseconds(), unit: s.Unit, lateness: s.Lateness.Milliseconds()}
	if err := s.Check(); err != nil {
		return c, err
	}
	switch s.Kind {
	case TumblingWindow:
		c.slide = c.size
	case CalendarWindow:
		var err error
		if c.loc, err = LoadZone(s.Zone); err != nil {
			return c, err
		}
	}
	if c.slide > 0 {
		c.offset = modulo(s.Offset.Milliseconds(), c.slide)
		c.rest = c.size % c.slide
	}
	return c, nil
}

// slice returns the slice that holds t; false if t lies between windows.
func (c *cutter) slice(t int64) (start, end int64, ok bool) {
	switch c.kind {
	case CalendarWindow:
		start, end = calendarSpan(t, c.unit, c.loc)
		return start, end, true
	case TumblingWindow, SlidingWindow:
	default:
		return MinTime, MaxTime, true
	}
	in := modulo(modulo(t, c.slide)-c.offset, c.slide) // t is that much after a start
	if c.size < c.slide && in >= c.size {
		return 0, 0, false
	}
	start, end = minus(t, in), plus(t, c.slide-in)
	if c.rest > 0 {
		if in < c.rest {
			end = plus(t, c.rest-in)
		} else {
			start = minus(t, in-c.rest)
		}
	}
	return start, end, true
}

// ends returns the ends of the first and the last window that hold the slice; between them, windows end every slide.
func (c *cutter) ends(start, end int64) (first, last int64) {
	if c.kind != SlidingWindow {
		return end, end
	}
	return c.endFrom(end), max(c.endFrom(end), c.endUpTo(plus(start, c.size)))
}

// endFrom returns the first end of a window at or after t.
func (c *cutter) endFrom(t int64) int64 {
	if after := c.afterEnd(t); after > 0 {
		return plus(t, c.slide-after)
	}
	return t
}

// endUpTo returns the last end of a window at or before t.
func (c *cutter) endUpTo(t int64) int64 {
	if t == MaxTime {
		return t
	}
	return minus(t, c.afterEnd(t))
}

// afterEnd is how long before t a window ended.
func (c *cutter) afterEnd(t int64) int64 {
	return modulo(modulo(t, c.slide)-modulo(c.offset+c.size, c.slide), c.slide)
}

// begin returns the start of the window that ends at end and holds the slice that begins at slice.
func (c *cutter) begin(slice, end int64) int64 {
	if c.kind != SlidingWindow {
		return slice
	}
	return min(slice, minus(end, c.size))
}

// plus is t+d, at most MaxTime; d ≥ 0.
func plus(t, d int64) int64 {
	if t > MaxTime-d {
		return MaxTime
	}
	return t + d
}

// minus is t-d, at least MinTime; d ≥ 0.
func minus(t, d int64) int64 {
	if t < MinTime+d {
		return MinTime
	}
	return t - d
}

// modulo is the remainder of t by m that isn't negative; m > 0.
func modulo(t, m int64) int64 {
	if r := t % m; r >= 0 {
		return r
	}
	return t%m + m
}
