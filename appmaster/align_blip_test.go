package appmaster_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/internal/jobgraph"
	"github.com/heddle-stream/heddle/internal/testjob"
)

// TestAlignedSources runs a fast and a slow source of one group on real agents, and cuts their sessions meanwhile: the fast one stays near the slow
// one, waits while nothing is heard, and both come to their ends.
func TestAlignedSources(t *testing.T) {
	const drift, each, batch = 100, 4000, 10
	var slow, ahead atomic.Int64
	at := func(_, i int) int64 { return int64(i) }
	millis := func(v int64) time.Time { return time.UnixMilli(v) }
	w := heddle.BoundedDelay(0, millis).WithAlignment("g", drift*time.Millisecond)
	job := heddle.NewJob("aligned")
	slowly := heddle.FromSource(job, &testjob.Source[int64]{Splits: 2, Each: each, Batch: batch, Pause: time.Millisecond, At: at}).Watermark(w).Name("slow").Parallelism(1)
	fast := heddle.FromSource(job, &testjob.Source[int64]{Splits: 2, Each: each, Batch: batch, At: at}).Watermark(w).Name("fast").Parallelism(1)
	seen := &testjob.Sink[int64]{}
	a := heddle.Map(slowly, func(v int64) int64 { slow.Store(v); return v })
	b := heddle.Map(fast, func(v int64) int64 {
		if d := v - slow.Load(); d > ahead.Load() {
			ahead.Store(d)
		}
		return v
	})
	heddle.ToSink(heddle.Union(a, b), seen)
	plan, err := jobgraph.Compile(job.Graph(), jobgraph.Options{Parallelism: 2})
	if err != nil {
		t.Fatal(err)
	}
	wire, d := newWire(t), &agents{job: job, plan: plan}
	c := appmaster.Config{
		App: "app-1", Job: job.Graph(), Graph: plan, Driver: d, Listener: wire.back, Advertise: wire.front.Addr().String(),
		HeartbeatInterval: 20 * time.Millisecond, StopGrace: time.Second,
	}
	c.Agents.MinAgents, c.Agents.HeartbeatTimeout = 2, time.Minute
	var shown, waited atomic.Bool
	c.Front = front(func(view appmaster.View) {
		until(func() bool {
			s := view.Snapshot()
			if len(s.Alignment) == 1 && s.Alignment[0].Mark != nil && s.Alignment[0].Slowest != "" && len(s.Alignment[0].Sources) == 2 {
				shown.Store(true)
			}
			for _, src := range s.Sources {
				for _, p := range src.Splits {
					if p.PausedNs > 0 {
						waited.Store(true)
					}
				}
			}
			return shown.Load() && waited.Load() || s.State == "finished"
		})
		wire.set(true)
		time.Sleep(20 * time.Millisecond) // the outage
		wire.set(false)
	})
	r, err := appmaster.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if r.State != "finished" {
		t.Fatalf("the job is %s: %+v", r.State, r.Cause)
	}
	if n := len(seen.Records()); n != 4*each {
		t.Errorf("%d records, want %d", n, 4*each)
	}
	// Splits are read in turn, so that the slow source's other split may be as far as the drift ahead of its slowest.
	if most := int64(2*drift + 4*batch); ahead.Load() > most {
		t.Errorf("the fast source was %d ms ahead of the slow one, want at most %d", ahead.Load(), most)
	}
	if !shown.Load() || !waited.Load() {
		t.Errorf("the snapshot showed the group: %v, and splits that waited: %v", shown.Load(), waited.Load())
	}
}
