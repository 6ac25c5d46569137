package telemetry

import (
	"math"
	"sync/atomic"
	"time"
)

// Kind is what a metric's figures mean.
type Kind uint8

// The kinds of metrics.
const (
	Gauge     Kind = iota // a value now
	Counter               // a sum that only grows
	Histogram             // how values are spread
)

// Family is one metric with all its figures.
type Family struct {
	Name   string // by OpenTelemetry's conventions: "heddle.subtask.records.in"
	Unit   string // UCUM, or a thing counted in braces: "s", "By", "{record}", "1" for a ratio
	Help   string
	Kind   Kind
	Points []Point
}

// Label is a dimension of a figure.
type Label struct{ Name, Value string } // by OpenTelemetry's conventions: "heddle.vertex.name"

// Point is one figure of a metric.
type Point struct {
	Labels []Label
	Value  float64
	Hist   *Buckets // of a Histogram, in place of Value
}

// Buckets are how values were spread: Counts[i] of them were at most Bounds[i] and more than the bound before, the last more than all.
type Buckets struct {
	Bounds []float64
	Counts []uint64 // one more than bounds
	Sum    float64
}

// Count is how many values there were.
func (b *Buckets) Count() uint64 {
	n := uint64(0)
	for _, c := range b.Counts {
		n += c
	}
	return n
}

// Add adds other, of the same bounds, to b.
func (b *Buckets) Add(other Buckets) {
	for i := range min(len(b.Counts), len(other.Counts)) {
		b.Counts[i] += other.Counts[i]
	}
	b.Sum += other.Sum
}

// latencyBounds are the bounds of a Latency in seconds: 1-2-5 steps from 10 µs to 50 s.
var latencyBounds = func() (b []float64) {
	for e := -5; e <= 1; e++ {
		for _, m := range []float64{1, 2, 5} {
			b = append(b, m*math.Pow(10, float64(e)))
		}
	}
	return b
}()

// latencySteps are latencyBounds as durations.
var latencySteps = func() (steps [LatencyBuckets - 1]time.Duration) {
	for i, s := range latencyBounds {
		steps[i] = time.Duration(math.Round(s * 1e9))
	}
	return steps
}()

// LatencyBuckets is the number of counts of a Latency.
const LatencyBuckets = 22

// Latency is a histogram of durations. Any goroutine may use it; it never waits.
type Latency struct {
	counts [LatencyBuckets]atomic.Uint64
	sum    atomic.Int64 // nanoseconds
}

// Observe adds a duration.
func (l *Latency) Observe(d time.Duration) {
	i := 0
	for i < len(latencySteps) && d > latencySteps[i] {
		i++
	}
	l.counts[i].Add(1)
	l.sum.Add(int64(d))
}

// Counts returns the counts by bucket and the sum. Both are nil and 0 when nothing was observed.
func (l *Latency) Counts() (counts []uint64, sum time.Duration) {
	for i := range l.counts {
		n := l.counts[i].Load()
		if n > 0 && counts == nil {
			counts = make([]uint64, LatencyBuckets)
		}
		if counts != nil {
			counts[i] = n
		}
	}
	return counts, time.Duration(l.sum.Load())
}

// LatencyOf makes buckets of what Counts returned.
func LatencyOf(counts []uint64, sum time.Duration) *Buckets {
	b := &Buckets{Bounds: latencyBounds, Counts: make([]uint64, LatencyBuckets), Sum: sum.Seconds()}
	copy(b.Counts, counts)
	return b
}

// Quantile estimates the value below which a share q of the values lies, by the upper bound of its bucket; 0 without values.
func (b *Buckets) Quantile(q float64) float64 {
	want := uint64(math.Ceil(q * float64(b.Count())))
	for i, n := uint64(0), 0; n < len(b.Counts); n++ {
		if i += b.Counts[n]; i >= want && i > 0 {
			return b.Bounds[min(n, len(b.Bounds)-1)]
		}
	}
	return 0
}
