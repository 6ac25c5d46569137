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
	InPool    float64            // share in use of the segments its input could have from other processes; 0 without such input
	OutPool   float64            // the same of its output
	CreditIn  int                // segments that producers in other processes may yet send
	CreditOut int                // segments that consumers in other processes would take now
	Starved   int                // channels to such consumers in which segments wait for credit
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
	var out pool
	for _, o := range t.outs {
		r.OutQueued += o.part.Queued()
		out.add(o.part.Usage())
		if p, ok := o.part.(debtor); ok {
			credit, starved := p.Credit()
			r.CreditOut, r.Starved = r.CreditOut+credit, r.Starved+starved
		}
	}
	in := t.input(&r)
	r.InPool, r.OutPool = in.share(), out.share()
	for _, in := range t.inputs {
		for p := range in.hops {
			if counts, sum := in.hops[p].Counts(); counts != nil {
				r.Hops = append(r.Hops, HopReport{Edge: in.edge.ID, Phase: p, Counts: counts, Sum: sum})
			}
		}
	}
	return r
}

// debtor is a Partition, and creditor a Gate, between processes: what is sent there takes credit.
type (
	debtor   interface{ Credit() (credit, starved int) }
	creditor interface{ Credit() int }
)

// input adds what is queued in the gates, and their credit, to r, and returns the segments of all of them.
func (t *Task) input(r *Report) (in pool) {
	t.gatesMu.Lock()
	defer t.gatesMu.Unlock()
	for _, i := range t.inputs {
		if i.gate != nil {
			r.InQueued += i.gate.Queued()
			if g, ok := i.gate.(creditor); ok {
				r.CreditIn += g.Credit()
			}
			in.add(i.gate.Usage())
		}
	}
	return in
}

// pool sums up the segments of several gates or partitions, as Flink does for inPoolUsage and outPoolUsage.
type pool struct{ used, most int }

func (p *pool) add(used, most int) {
	p.used += used
	p.most += most
}

// share is the part in use, from 0 to 1.
func (p pool) share() float64 {
	if p.most == 0 {
		return 0
	}
	return float64(p.used) / float64(p.most)
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
