package appmaster

import (
	"math"
	"time"

	"github.com/heddle-stream/heddle/internal/ctl"
	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
	"github.com/heddle-stream/heddle/internal/jobgraph"
	"github.com/heddle-stream/heddle/internal/telemetry"
)

// report is the last report of a subtask's task.
type report struct {
	attempt int
	*ctlpb.TaskReport
	now taskShares // between this report and the one before
}

// taskShares are the parts of a span of time that a task was busy, idle and blocked. They add up to 1, or are all 0.
type taskShares struct{ busy, idle, blocked float64 }

// sharesBetween are the shares since the report before, or since the start.
func sharesBetween(before, r *ctlpb.TaskReport) taskShares {
	busy, idle, blocked := r.GetBusyNs()-before.GetBusyNs(), r.GetIdleNs()-before.GetIdleNs(), r.GetBlockedNs()-before.GetBlockedNs()
	busy, idle, blocked = max(0, busy), max(0, idle), max(0, blocked) // the meter is read while it moves
	all := float64(busy + idle + blocked)
	if all == 0 {
		return taskShares{}
	}
	return taskShares{float64(busy) / all, float64(idle) / all, float64(blocked) / all}
}

// onReport keeps a task's figures, unless they are of an attempt before.
func (m *master) onReport(r *ctlpb.TaskReport) {
	id := ctl.Execution(r.GetId())
	if r.GetId() == nil || id.Vertex < 0 || id.Vertex >= len(m.reports) || id.Subtask < 0 || id.Subtask >= len(m.reports[id.Vertex]) {
		return
	}
	if id.Attempt>>attemptBits != int(m.cfg.Attempt) {
		return // of what an earlier master had deployed
	}
	old := &m.reports[id.Vertex][id.Subtask]
	if id.Attempt < old.attempt {
		return
	}
	if r.AlignMark != nil {
		m.aligned.stands(id, r.GetAlignMark())
	}
	before := old.TaskReport
	if id.Attempt > old.attempt {
		before = nil
	}
	*old = report{attempt: id.Attempt, TaskReport: r, now: sharesBetween(before, r)}
	if len(m.cfg.Graph.Vertices[id.Vertex].In) > 0 {
		for _, o := range r.GetOperators() {
			if o.GetCounters()[recordsIn] > 0 {
				m.life.flows()
				break
			}
		}
	}
}

// Names of counters that every operator has.
const (
	recordsIn  = "records_in"
	recordsOut = "records_out"
	bytesIn    = "bytes_in"
	bytesOut   = "bytes_out"
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

func seconds(ns int64) float64 { return time.Duration(ns).Seconds() }

// measure fills in what a report says of a subtask of v.
func (s *Subtask) measure(v *jobgraph.Vertex, r *report) {
	for _, n := range v.Nodes {
		s.BytesIn += counter(r.TaskReport, n, bytesIn)
		s.BytesOut += counter(r.TaskReport, n, bytesOut)
	}
	s.Time = TaskTime{Busy: seconds(r.GetBusyNs()), Idle: seconds(r.GetIdleNs()), Blocked: seconds(r.GetBlockedNs())}
	s.Recent = TaskShares{Busy: r.now.busy, Idle: r.now.idle, Blocked: r.now.blocked}
	for _, h := range r.GetHops() {
		if int(h.GetPhase()) >= len(telemetry.PhaseNames) || h.GetPhase() < 0 {
			continue // of a later version
		}
		b := telemetry.LatencyOf(h.GetCounts(), time.Duration(h.GetSumNs()))
		n := b.Count()
		s.Hops = append(s.Hops, Hop{
			Edge: int(h.GetEdge()), Phase: telemetry.PhaseNames[h.GetPhase()], Count: n, Mean: b.Sum / float64(max(1, n)),
			P50: b.Quantile(0.5), P99: b.Quantile(0.99), Buckets: b,
		})
	}
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
