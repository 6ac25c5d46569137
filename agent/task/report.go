package task

import (
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/flow"
)

// Report is where a task stands. Busy, Idle and Blocked add up to its running time.
type Report struct {
	ID        cluster.ExecutionID
	Watermark int64         // of the input, of a source of the output; flow.MinTime: none yet
	Busy      time.Duration // working
	Idle      time.Duration // waiting for input
	Blocked   time.Duration // waiting for room in the output, or for consumers at the end
	Operators []OperatorReport
	Splits    []flow.SplitStatus // of a source
	InQueued  int                // items received and not yet consumed
	OutQueued int                // segments emitted and not yet taken
	Hops      []HopReport        // of followed records
	AlignMark *int64             // of a source that waits for others: see flow.Aligned; nil: not known
}

// HopReport is how long one phase of the way through an edge took, for those records that were followed.
type HopReport struct {
	Edge, Phase int
	Counts      []uint64 // by bucket, as telemetry.Latency has them
	Sum         time.Duration
}

// OperatorReport is what one operator counted.
type OperatorReport struct {
	Node     int
	Counters map[string]int64
}

// Report returns where the task stands. Any goroutine may call it.
// The split states may be a heartbeat old: the task's goroutine publishes them when it was asked.
func (t *Task) Report() Report {
	r := Report{ID: t.spec.ID, Watermark: t.watermark.Load()}
	r.Busy, r.Idle, r.Blocked = t.meter.read()
	for _, o := range t.ops {
		r.Operators = append(r.Operators, OperatorReport{Node: o.node.ID, Counters: o.read()})
	}
	if t.source != nil {
		if s := t.splits.Load(); s != nil {
			r.Splits = *s
		}
		if mark, ok := t.AlignMark(); ok {
			r.AlignMark = &mark
		}
		t.wantSplit.Store(true)
		t.Wake()
	}
	for _, o := range t.outs {
		r.OutQueued += o.part.Queued()
	}
	r.InQueued = t.inQueued()
	for _, in := range t.inputs {
		for p := range in.hops {
			if counts, sum := in.hops[p].Counts(); counts != nil {
				r.Hops = append(r.Hops, HopReport{Edge: in.edge.ID, Phase: p, Counts: counts, Sum: sum})
			}
		}
	}
	return r
}

func (t *Task) inQueued() int {
	t.gatesMu.Lock()
	defer t.gatesMu.Unlock()
	n := 0
	for _, in := range t.inputs {
		if in.gate != nil {
			n += in.gate.Queued()
		}
	}
	return n
}

// publishSplits makes the source's split states readable by Report.
func (t *Task) publishSplits() {
	t.wantSplit.Store(false)
	if t.source == nil {
		return
	}
	s := t.source.Splits()
	t.splits.Store(&s)
}
