package credit

import "time"

// Debloater sizes segments so that what is in flight to a consumer takes it about a target time to consume: a slow
// consumer gets short segments, and events behind data arrive soon; a fast one gets full segments.
type Debloater struct {
	target   time.Duration
	min, max int

	rate float64 // bytes a second, smoothed; 0: not known
	size int
	load Load
}

// Load is what a consumer did in a period and what waits for it.
type Load struct {
	Elapsed  time.Duration
	Taken    int64 // bytes consumed in the period
	Segments int   // in flight now: queued at either end, and credited
	Queued   int64 // bytes that wait at the consumer
}

// How it follows: a change below 1/hysteresis of the size is not worth a frame; a new rate counts 1/smoothing.
const (
	hysteresis = 4
	smoothing  = 3
	sizeUnit   = 64
)

// NewDebloater returns one that begins with segments of size most; it never goes below least.
func NewDebloater(target time.Duration, least, most int) Debloater {
	return Debloater{target: target, min: min(least, most), max: most, size: most}
}

// Sample enters a period and reports whether the size has changed.
func (d *Debloater) Sample(l Load) bool {
	d.load = l
	if l.Elapsed <= 0 {
		return false
	}
	if l.Queued == 0 {
		return d.become(d.max) // it consumes as fast as things come: there is no queue to shorten
	}
	rate := float64(l.Taken) / l.Elapsed.Seconds()
	if d.rate == 0 {
		d.rate = rate
	}
	d.rate += (rate - d.rate) / smoothing
	want := int(d.rate * d.target.Seconds() / float64(max(1, l.Segments)))
	return d.become(min(max(want&^(sizeUnit-1), d.min), d.max))
}

func (d *Debloater) become(size int) bool {
	if diff := max(size-d.size, d.size-size); diff == 0 || (hysteresis*diff < d.size && size != d.max && size != d.min) {
		return false
	}
	d.size = size
	return true
}

// Size is how long segments should be.
func (d *Debloater) Size() int { return d.size }

// Rate is the smoothed rate of consumption in bytes a second.
func (d *Debloater) Rate() float64 { return d.rate }

// Load is the last sample.
func (d *Debloater) Load() Load { return d.load }

// Delay is how long the consumer would take for all that is in flight, were its segments full. 0 if nothing waits.
func (d *Debloater) Delay() time.Duration {
	if d.rate == 0 || d.load.Queued == 0 {
		return 0
	}
	return time.Duration(float64(d.load.Segments*d.size) / d.rate * float64(time.Second))
}
