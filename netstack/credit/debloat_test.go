package credit

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestDebloater follows a consumer that slows down, idles and recovers.
func TestDebloater(t *testing.T) {
	const period = 200 * time.Millisecond
	d := NewDebloater(time.Second, 1024, 32768)
	run := func(rate float64, segments int, queued int64, periods int) {
		for range periods {
			d.Sample(Load{Elapsed: period, Taken: int64(rate * period.Seconds()), Segments: segments, Queued: queued})
		}
	}
	for _, c := range []struct {
		what     string
		rate     float64
		segments int
		queued   int64
		size     int
	}{
		{"fast: full segments", 100e6, 64, 1 << 20, 32768},
		{"slow: 640 kB in 64 segments", 640e3, 64, 1 << 20, 9984},
		{"slower than the shortest allow", 1e3, 64, 1 << 20, 1024},
		{"nothing waits: full segments", 1e3, 64, 0, 32768},
		{"stopped", 0, 64, 1 << 20, 1024},
		{"recovered", 100e6, 64, 1 << 20, 32768},
	} {
		run(c.rate, c.segments, c.queued, 30)
		if got := d.Size(); got < c.size-c.size/hysteresis || got > c.size+c.size/hysteresis {
			t.Errorf("%s: segments of %d bytes, want about %d", c.what, got, c.size)
		}
	}
	run(640e3, 64, 1<<20, 30)
	if got := d.Delay(); got < 700*time.Millisecond || got > 1300*time.Millisecond {
		t.Errorf("in flight for %v, want about 1s", got)
	}
	if d.Sample(Load{}) {
		t.Error("an empty period changed something")
	}
}

func TestDebloaterIsCalm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := NewDebloater(time.Second, 1024, 32768)
		rate := rapid.Float64Range(1e3, 1e8).Draw(t, "rate")
		segments := rapid.IntRange(1, 1000).Draw(t, "segments")
		changes := 0
		for i := range 200 {
			noise := rapid.Float64Range(0.9, 1.1).Draw(t, "noise")
			if d.Sample(Load{Elapsed: time.Second, Taken: int64(rate * noise), Segments: segments, Queued: 1}) && i > 20 {
				changes++
			}
			if s := d.Size(); s < 1024 || s > 32768 || (s%sizeUnit != 0) {
				t.Fatalf("size %d", s)
			}
		}
		if changes > 20 {
			t.Fatalf("%d changes at a rate that varies by a tenth", changes)
		}
	})
}
