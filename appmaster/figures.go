package appmaster

import (
	"math"
	"time"

	"github.com/heddle-stream/heddle/internal/ctl"
	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
)

// report is the last report of a subtask's task.
type report struct {
	attempt int
	*ctlpb.TaskReport
}

// onReport keeps a task's figures, unless they are of an attempt before.
func (m *master) onReport(r *ctlpb.TaskReport) {
	id := ctl.Execution(r.GetId())
	if r.GetId() == nil || id.Vertex < 0 || id.Vertex >= len(m.reports) || id.Subtask < 0 || id.Subtask >= len(m.reports[id.Vertex]) {
		return
	}
	if old := &m.reports[id.Vertex][id.Subtask]; id.Attempt >= old.attempt {
		*old = report{id.Attempt, r}
	}
}

// Names of counters that every operator has.
const (
	recordsIn  = "records_in"
	recordsOut = "records_out"
)

func counter(r *ctlpb.TaskReport, node int, name string) int64 {
	for _, o := range r.GetOperators() {
		if int(o.GetNode()) == node {
			return o.GetCounters()[name]
		}
	}
	return 0
}

// shares returns which parts of its running time a task was busy and blocked.
func shares(r *ctlpb.TaskReport) (busy, blocked float64) {
	all := float64(r.GetBusyNs() + r.GetIdleNs() + r.GetBlockedNs())
	if all <= 0 {
		return 0, 0
	}
	return float64(r.GetBusyNs()) / all, float64(r.GetBlockedNs()) / all
}

// watermark returns a task's watermark, nil while it has none.
func watermark(r *ctlpb.TaskReport) *int64 {
	if r == nil || r.GetWatermark() == math.MinInt64 {
		return nil
	}
	w := r.GetWatermark()
	return &w
}

// window is how far back rates look.
const window = 5 * time.Second

// rateMeter turns two growing counters into rates.
type rateMeter struct{ samples []sample }

type sample struct {
	at      time.Time
	in, out int64
}

// add notes counters and returns their rates over the window. Counters that fall, since the job was restarted, begin anew.
func (r *rateMeter) add(now time.Time, in, out int64) (inRate, outRate float64) {
	if n := len(r.samples); n > 0 && (in < r.samples[n-1].in || out < r.samples[n-1].out) {
		r.samples = nil
	}
	for len(r.samples) > 2 && now.Sub(r.samples[1].at) >= window {
		r.samples = r.samples[1:]
	}
	if n := len(r.samples); n < 2 || now.Sub(r.samples[n-2].at) >= window/10 {
		r.samples = append(r.samples, sample{now, in, out})
	} else {
		r.samples[n-1] = sample{now, in, out} // too soon for one more
	}
	first, last := r.samples[0], r.samples[len(r.samples)-1]
	seconds := last.at.Sub(first.at).Seconds()
	if seconds <= 0 {
		return 0, 0
	}
	return float64(last.in-first.in) / seconds, float64(last.out-first.out) / seconds
}
