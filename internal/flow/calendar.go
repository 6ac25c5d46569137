package flow

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // a container need not have the zones
)

// CalendarUnit is a stretch of a calendar.
type CalendarUnit uint8

// Days and longer, as people count them in their time zone: a day has 23, 24 or 25 hours.
const (
	Day  CalendarUnit = iota + 1
	Week              // from Monday
	Month
	Quarter
	Year
)

func (u CalendarUnit) String() string {
	if u < Day || u > Year {
		return fmt.Sprintf("unit(%d)", uint8(u))
	}
	return [...]string{"", "day", "week", "month", "quarter", "year"}[u]
}

// Bounds of what a calendar can name; event times beyond them fall into the first and last stretch.
const (
	minCalendar = -62135596800000 // year 1
	maxCalendar = 253402300799999 // year 9999
)

// calendarSpan returns the unit that holds t, start included and end not.
// The units of a zone leave no gap and don't overlap, whatever its clocks do.
func calendarSpan(t int64, unit CalendarUnit, loc *time.Location) (start, end int64) {
	if t < minCalendar {
		return MinTime, minCalendar
	}
	if t > maxCalendar {
		return maxCalendar + 1, MaxTime
	}
	y, m, d := unitOf(time.UnixMilli(t).In(loc), unit)
	start, end = firstInstant(y, m, d, loc), nextUnit(y, m, d, unit, loc)
	// Where clocks go back over midnight, a moment can read as the day before the one it belongs to.
	for t >= end {
		y, m, d = stepUnit(y, m, d, unit)
		start, end = end, nextUnit(y, m, d, unit, loc)
	}
	if start <= minCalendar {
		start = minCalendar
	}
	if end > maxCalendar {
		end = maxCalendar + 1
	}
	return start, end
}

// unitOf returns the date on which the unit that holds t begins.
func unitOf(t time.Time, unit CalendarUnit) (int, time.Month, int) {
	y, m, d := t.Date()
	switch unit {
	case Week:
		d -= (int(t.Weekday()) + 6) % 7
	case Month:
		d = 1
	case Quarter:
		m, d = (m-1)/3*3+1, 1
	case Year:
		m, d = time.January, 1
	}
	return y, m, d
}

func stepUnit(y int, m time.Month, d int, unit CalendarUnit) (int, time.Month, int) {
	switch unit {
	case Week:
		d += 7
	case Month:
		m++
	case Quarter:
		m += 3
	case Year:
		y++
	default:
		d++
	}
	return y, m, d
}

func nextUnit(y int, m time.Month, d int, unit CalendarUnit, loc *time.Location) int64 {
	y, m, d = stepUnit(y, m, d, unit)
	return firstInstant(y, m, d, loc)
}

// firstInstant returns when a date begins in loc: at midnight, or where the clocks skip midnight, right after that.
// A midnight that comes twice counts the first time.
func firstInstant(y int, m time.Month, d int, loc *time.Location) int64 {
	want := time.Date(y, m, d, 0, 0, 0, 0, time.UTC) // normalized
	c := time.Date(y, m, d, 0, 0, 0, 0, loc)
	from, to := c.ZoneBounds()
	switch got := wallClock(c); {
	case got.Before(want): // midnight was skipped, and c lies before that
		return to.UnixMilli()
	case got.After(want): // … and c lies after
		return from.UnixMilli()
	}
	if !from.IsZero() {
		_, offset := from.Add(-1).Zone()
		if first := want.Add(-time.Duration(offset) * time.Second); first.Before(from) {
			return first.UnixMilli()
		}
	}
	return c.UnixMilli()
}

// wallClock is what the clocks show at t, as if that were UTC.
func wallClock(t time.Time) time.Time {
	y, m, d := t.Date()
	return time.Date(y, m, d, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// LoadZone returns the time zone of that name, such as "Europe/Berlin".
// "" is an error, and so is "Local": neither means the same everywhere.
func LoadZone(name string) (*time.Location, error) {
	if name == "" || name == "Local" {
		return nil, fmt.Errorf("time zone %q is not the same everywhere: name one, such as UTC or Europe/Berlin", name)
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("cannot load time zone %q: %w", name, err)
	}
	return loc, nil
}

// TimeParser reads timestamps written as text.
type TimeParser struct {
	layouts []string
	loc     *time.Location // of timestamps that name no zone; nil: these are errors
}

// NewTimeParser returns a parser of the given layouts (see package time), which it tries in order; none means RFC 3339
// and the same without zone or with a blank for the T. zone is for timestamps that name none; "" makes those an error.
func NewTimeParser(zone string, layouts ...string) (*TimeParser, error) {
	p := &TimeParser{layouts: layouts}
	if len(layouts) == 0 {
		p.layouts = []string{time.RFC3339Nano, "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04:05", time.DateTime, time.DateOnly}
	}
	if zone != "" {
		var err error
		if p.loc, err = LoadZone(zone); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Parse returns s in milliseconds since the Unix epoch.
func (p *TimeParser) Parse(s string) (int64, error) {
	loc := p.loc
	if loc == nil {
		loc = time.UTC
	}
	for _, layout := range p.layouts {
		t, err := time.ParseInLocation(layout, s, loc)
		if err != nil {
			continue
		}
		if !namesZone(layout) && p.loc == nil {
			return 0, fmt.Errorf("timestamp %q has no time zone: set the option timezone, such as timezone: Europe/Berlin", s)
		}
		if name, offset := t.Zone(); strings.Contains(layout, "MST") && offset == 0 && !zeroZone(name) {
			return 0, fmt.Errorf("timestamp %q has a time zone that is not known: %s; write an offset such as +01:00", s, name)
		}
		return t.UnixMilli(), nil
	}
	return 0, fmt.Errorf("timestamp %q does not look like %s", s, strings.Join(p.layouts, " or "))
}

// namesZone reports whether timestamps of that layout carry their zone or offset.
func namesZone(layout string) bool {
	return strings.Contains(layout, "Z07") || strings.Contains(layout, "-07") || strings.Contains(layout, "MST")
}

// zeroZone reports whether a zone abbreviation stands for UTC.
func zeroZone(name string) bool {
	return name == "UTC" || name == "GMT" || name == "WET" || name == "Z"
}
