package appmaster

import (
	"fmt"
	"math"
	"time"

	"github.com/heddle-stream/heddle/appmaster/sched"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/jobgraph"
)

// passMark tells the agents how far sources have been dealt with: up to the last mark that every sink has delivered.
func (m *master) passMark() {
	if !m.marked {
		return
	}
	mark := m.delivered().least(m.executionOf)
	if mark <= m.mark || mark == math.MaxInt64 {
		return
	}
	m.mark = mark
	for id, a := range m.agents {
		if a.session != nil {
			m.toAgent(id, &ctlpb.FromMaster{M: &ctlpb.FromMaster_Delivered{Delivered: &ctlpb.Delivered{Mark: uint64(mark)}}})
		}
	}
}

// executionOf says what runs a subtask now.
func (m *master) executionOf(vertex, subtask int) (attempt int, state cluster.TaskState) {
	e := m.job0().Execution(vertex, subtask)
	return e.ID.Attempt, e.State
}

// deliveries are what the subtasks of a job's sinks have reported of marks.
type deliveries struct {
	job     *flow.Graph
	graph   *jobgraph.Graph
	reports [][]report // by vertex and subtask
}

func (m *master) delivered() deliveries { return deliveries{m.cfg.Job, m.cfg.Graph, m.reports} }

// least is the least mark of all subtasks of all sinks. Those that have finished have delivered everything: where all have, or there are none, it is
// math.MaxInt64. While one has not reported in its present attempt it is 0.
func (d deliveries) least(execution func(vertex, subtask int) (int, cluster.TaskState)) int64 {
	mark := int64(math.MaxInt64)
	for v := range d.graph.Vertices {
		for _, n := range d.graph.Vertices[v].Nodes {
			if !d.job.Nodes[n].Sink {
				continue
			}
			for sub := range d.reports[v] {
				attempt, state := execution(v, sub)
				r := &d.reports[v][sub]
				switch {
				case state == cluster.Finished:
				case r.attempt != attempt || r.TaskReport == nil:
					return 0
				default:
					mark = min(mark, counter(r.TaskReport, n, flow.DeliveredMark))
				}
			}
		}
	}
	return mark
}

// finalizeTimeout bounds how long the sources of a finished job may take to tell the outside world.
const finalizeTimeout = 20 * time.Second

// finalize lets the sources of a job that has finished tell the outside world so. The loop has ended; what fails is a warning.
func (m *master) finalize() {
	if !m.marked || m.Snapshot().State != sched.Finished.String() {
		return
	}
	for _, src := range m.sources {
		f, ok := src.node.Source.(flow.Finalizer)
		if !ok {
			continue
		}
		var splits []flow.Split
		for _, s := range src.splits {
			splits = append(splits, s...)
		}
		done := make(chan error, 1) // it is the connector's code, perhaps a user's: one that hangs is left behind
		go func() {
			done <- f.Finalize(flow.EnumeratorEnv{JobName: m.cfg.Job.Name, Node: src.node, Readers: src.readers, Option: m.cfg.Option, Warn: func(string) {}}, splits)
		}()
		var err error
		select {
		case err = <-done:
		case <-time.After(finalizeTimeout):
			err = fmt.Errorf("it takes longer than %v", finalizeTimeout)
		}
		if err != nil {
			m.log.Warn("a source can't say that its input was dealt with", "source", src.node.Title(), "err", err)
		}
	}
}
