package appmaster

import (
	"fmt"
	"math"
	"time"

	"github.com/heddle-stream/heddle/appmaster/sched"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
	"github.com/heddle-stream/heddle/internal/flow"
)

// passMark tells the agents how far sources have been dealt with: up to the last mark that every sink has delivered.
func (m *master) passMark() {
	if !m.marked {
		return
	}
	mark := m.deliveredMark()
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

// deliveredMark is the least mark of all subtasks of all sinks. Those that have finished have delivered everything.
func (m *master) deliveredMark() int64 {
	mark := int64(math.MaxInt64)
	for v := range m.cfg.Graph.Vertices {
		for _, n := range m.cfg.Graph.Vertices[v].Nodes {
			if !m.cfg.Job.Nodes[n].Sink {
				continue
			}
			for e := range m.job0().Executions(v) {
				if e.State == cluster.Finished {
					continue
				}
				r := &m.reports[v][e.ID.Subtask]
				if r.attempt != e.ID.Attempt {
					return 0
				}
				mark = min(mark, counter(r.TaskReport, n, flow.DeliveredMark))
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
