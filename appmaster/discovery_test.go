package appmaster

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
)

// TestFailedDiscoveries: looks for new splits never overlap, however long one takes, and those that come to nothing cost another try and a count.
func TestFailedDiscoveries(t *testing.T) {
	var inside, overlaps atomic.Int32
	src := &fakeSource{discover: func(call int) (flow.Discovery, error) {
		if inside.Add(1) > 1 {
			overlaps.Add(1)
		}
		defer inside.Add(-1)
		d := flow.Discovery{Next: time.Millisecond, Failed: call == 1 || call == 2, Final: call == 4}
		if call == 0 || call == 4 {
			d.Added = []flow.Split{{ID: "split-" + string(rune('0'+call))}}
		} else {
			time.Sleep(5 * time.Millisecond) // it takes longer than the interval
		}
		return d, nil
	}}
	d := &fakeDriver{behave: func(a *fakeAgent) { a.onTask = hang }}
	m, out := start(t, t.Context(), config(t, src, d))
	await(t, m, "two failed discoveries and both splits", func(s *Snapshot) bool {
		return len(s.Sources) == 1 && s.Sources[0].Failed == 2 && len(s.Sources[0].Splits) == 2 && s.Sources[0].Final && running(s)
	})
	for _, f := range Figures(m.Snapshot()) {
		if f.Name == "heddle.source.discovery.failures" && f.Points[0].Value != 2 {
			t.Errorf("the figure is %v, want 2", f.Points[0].Value)
		}
	}
	m.Cancel("the test is over")
	if r := <-out; r.State != "canceled" {
		t.Errorf("the job is %s: %+v", r.State, r.Cause)
	}
	if n := overlaps.Load(); n > 0 {
		t.Errorf("%d discoveries began before the one before them had ended", n)
	}
}
