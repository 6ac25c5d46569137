package flow

import (
	"math"
	"time"
)

// Generator works out the watermark of a stream from its records. There is one for every split of a source.
type Generator[T any] interface {
	// Observe sees a batch, borrowed for the call; times holds a time for each record.
	Observe(recs []T, times []int64)
	// Watermark is the time at or before which no more records are expected, MinTime while unknown. now is the processing time.
	Watermark(now int64) int64
}

// Watermarks says how a stream gets event times and watermarks.
type Watermarks[T any] struct {
	Time     func(T) time.Time   // event time of a record; nil: the source's
	New      func() Generator[T] // nil: no watermark but the last
	Idle     time.Duration       // a split without records for so long holds nothing back; 0: it does for ever
	Interval time.Duration       // the least processing time between watermarks; 0: WatermarkInterval
	MaxDrift time.Duration       // how far a split's watermark may be ahead of the subtask's slowest before it is not read for a while; 0: any
	Group    string              // sources whose subtasks all wait for each other so; "": only the splits of a subtask do
}

// WatermarkInterval is the default of Watermarks.Interval. A watermark sends every segment that is being filled, so more costs throughput.
const WatermarkInterval = 200 * time.Millisecond

// WithIdle makes a split (away from a source: the stream) without records for d hold no watermark back.
func (w Watermarks[T]) WithIdle(d time.Duration) Watermarks[T] { w.Idle = d; return w }

// WithInterval sets the least processing time between watermarks.
func (w Watermarks[T]) WithInterval(d time.Duration) Watermarks[T] { w.Interval = d; return w }

// WithMaxDrift makes the splits of a subtask wait that are further than d of event time ahead of the slowest one, so that what
// is held for their windows stays small. It has an effect where the source can leave a split alone, as Kafka's can.
func (w Watermarks[T]) WithMaxDrift(d time.Duration) Watermarks[T] { w.MaxDrift = d; return w }

// WithAlignment makes all subtasks of all sources of the job that name the same group wait for each other: no split is read further than
// maxDrift of event time ahead of the slowest of them, so that what is held for windows and joins stays small. Splits that are idle, have ended or had no
// record (for five seconds, when the job starts) are not waited for. A source that can't leave a split alone waits as a whole. Readers hear of each other about once a second, and
// at once where all wait.
func (w Watermarks[T]) WithAlignment(group string, maxDrift time.Duration) Watermarks[T] {
	w.Group, w.MaxDrift = group, maxDrift
	return w
}

// Enabled reports whether the stream gets event times at all.
func (w Watermarks[T]) Enabled() bool { return w.New != nil }

func (w Watermarks[T]) interval() int64 {
	if w.Interval > 0 {
		return max(1, w.Interval.Milliseconds())
	}
	return WatermarkInterval.Milliseconds()
}

// BoundedDelay makes generators that expect no record more than delay behind the latest.
func BoundedDelay[T any](delay time.Duration) func() Generator[T] {
	ms := delay.Milliseconds()
	return func() Generator[T] { return &boundedDelay[T]{delay: ms, latest: MinTime} }
}

type boundedDelay[T any] struct{ delay, latest int64 }

func (g *boundedDelay[T]) Observe(_ []T, times []int64) {
	for _, t := range times {
		g.latest = max(g.latest, t)
	}
}

func (g *boundedDelay[T]) Watermark(int64) int64 { return before(g.latest, g.delay) }

// before is the last millisecond before t - delay, without overflow. MinTime stays what it is: unknown.
func before(t, delay int64) int64 {
	if t < MinTime+delay+1 {
		return MinTime
	}
	return t - delay - 1
}

// millis is the event time of t. Times out of range are clamped.
func millis(t time.Time) int64 {
	switch s := t.Unix(); {
	case s > math.MaxInt64/1000-1:
		return MaxTime - 1
	case s < math.MinInt64/1000+1:
		return MinTime + 1
	}
	return t.UnixMilli()
}

// fillTimes appends the event time of each record.
func fillTimes[T any](times []int64, recs []T, at func(T) time.Time, n *Node) (_ []int64, err error) {
	i := 0
	defer func() {
		if p := recover(); p != nil {
			err = panicError(n, p, recs[i])
		}
	}()
	for i = range recs {
		times = append(times, millis(at(recs[i])))
	}
	return times, nil
}
