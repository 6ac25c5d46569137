package heddle

import (
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
)

// Windowed is a result of one window and key. As a record it has the event time End-1ms, so that windows can follow windows.
type Windowed[K comparable, R any] = flow.Windowed[K, R]

// Instant is a moment of event time: milliseconds since the Unix epoch. As text and in JSON it is RFC 3339 in UTC.
type Instant = flow.Instant

// CalendarUnit is a stretch of a calendar: what Calendar windows last.
type CalendarUnit = flow.CalendarUnit

// Units of a calendar. A day has 23, 24 or 25 hours; a week begins on Monday.
const (
	Day     = flow.Day
	Week    = flow.Week
	Month   = flow.Month
	Quarter = flow.Quarter
	Year    = flow.Year
)

// Windows is a keyed stream cut into windows of time, to be summed up by Aggregate.
//
// Windows are cut by event time unless ProcessingTime says otherwise: a window fires, for each key that had records in it,
// when the watermark passes its end. Records that come later are dropped, counted as "late records" and found in the late stream of
// AggregateLate, unless AllowedLateness keeps windows for them. At the end of a bounded input every window fires.
type Windows[K comparable, T any] struct {
	in   Keyed[K, T]
	spec flow.WindowSpec
}

// Tumbling cuts windows of the given size, one after the other. They begin at the Unix epoch unless Offset moves them.
func Tumbling[K comparable, T any](in Keyed[K, T], size time.Duration) Windows[K, T] {
	return Windows[K, T]{in, flow.WindowSpec{Kind: flow.TumblingWindow, Size: size}}
}

// Sliding cuts windows of the given size, one of which begins every slide. A record is in size/slide of them; where that
// is no whole number, in one more or less by where it falls. The slide may not be longer than the size.
func Sliding[K comparable, T any](in Keyed[K, T], size, slide time.Duration) Windows[K, T] {
	return Windows[K, T]{in, flow.WindowSpec{Kind: flow.SlidingWindow, Size: size, Slide: slide}}
}

// Calendar cuts windows of days, weeks, months, quarters or years as a time zone has them, such as "Europe/Berlin".
func Calendar[K comparable, T any](in Keyed[K, T], unit CalendarUnit, zone string) Windows[K, T] {
	return Windows[K, T]{in, flow.WindowSpec{Kind: flow.CalendarWindow, Unit: unit, Zone: zone}}
}

// Session cuts a window for each run of a key's records that are less than gap apart. It ends a gap after its last record.
func Session[K comparable, T any](in Keyed[K, T], gap time.Duration) Windows[K, T] {
	return Windows[K, T]{in, flow.WindowSpec{Kind: flow.SessionWindow, Gap: gap}}
}

// Global has one window for everything, which fires at the end of a bounded input. It needs no event times.
func Global[K comparable, T any](in Keyed[K, T]) Windows[K, T] {
	return Windows[K, T]{in, flow.WindowSpec{Kind: flow.GlobalWindow}}
}

// Offset moves where tumbling and sliding windows begin: Offset(15*time.Minute) has hours that begin at a quarter past.
// For days in a time zone, use Calendar.
func (w Windows[K, T]) Offset(d time.Duration) Windows[K, T] {
	w.spec.Offset = d
	return w
}

// AllowedLateness keeps each window for d after the watermark passed its end. A record that comes within that time
// emits a corrected result for its key at once.
func (w Windows[K, T]) AllowedLateness(d time.Duration) Windows[K, T] {
	w.spec.Lateness = d
	return w
}

// ProcessingTime cuts by the clock of the machine at which a record arrives, not by event time.
func (w Windows[K, T]) ProcessingTime() Windows[K, T] {
	w.spec.Processing = true
	return w
}

// Aggregate sums up each window by agg; see Count, Sum, Min, Max, Avg, First, Last, Distinct, Collect, Top, Reducing and Combine.
func Aggregate[K comparable, T, A, R any](w Windows[K, T], agg Aggregator[T, A, R]) Stream[Windowed[K, R]] {
	return addWindow(w, agg, nil)
}

// AggregateLate is Aggregate, and also returns the stream of the records that came too late for every window.
func AggregateLate[K comparable, T, A, R any](w Windows[K, T], agg Aggregator[T, A, R]) (results Stream[Windowed[K, R]], late Stream[T]) {
	results = addWindow(w, agg, new(flow.Sides))
	return results, sideOutput[T](w.in.s.job, results.op, flow.LateTag)
}

func addWindow[K comparable, T, A, R any](w Windows[K, T], agg Aggregator[T, A, R], sides *flow.Sides) Stream[Windowed[K, R]] {
	j := w.in.s.job
	if err := w.spec.Check(); err != nil {
		j.errorf("%w", err)
	} else if w.spec.Kind == flow.SlidingWindow && w.spec.Slide > w.spec.Size {
		j.errorf("slide %v is longer than the windows of %v: records between two windows would be in none", w.spec.Slide, w.spec.Size)
	}
	j.needs(agg != nil, "Aggregate", "its aggregator")
	p := flow.WindowParams[K, T, A, R]{Spec: &w.spec, Key: w.in.key, Agg: agg, Sides: sides, Codecs: j.codecs}
	return addKeyed[Windowed[K, R]](w.in, nodeSpec{kind: "window", detail: w.spec.String(), sides: sides, new: flow.NewWindow(p)}, p.Check)
}
