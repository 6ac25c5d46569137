package inproc

import (
	"math"

	"github.com/heddle-stream/heddle/agent/task"
	"github.com/heddle-stream/heddle/internal/flow"
)

// passMark tells sources how far they have been dealt with: up to the last mark that every sink has delivered.
func (r *run) passMark() {
	if !r.cfg.Graph.Marked() {
		return
	}
	mark := int64(math.MaxInt64)
	r.mu.Lock()
	ended := map[*task.Task]bool{}
	for _, t := range r.ended {
		ended[t] = true
	}
	r.mu.Unlock()
	for _, vertex := range r.tasks {
		for _, t := range vertex {
			if ended[t] {
				continue
			}
			for _, o := range t.Report().Operators {
				if r.cfg.Graph.Nodes[o.Node].Sink {
					mark = min(mark, o.Counters[flow.DeliveredMark])
				}
			}
		}
	}
	if mark <= 0 || mark == math.MaxInt64 {
		return
	}
	for _, vertex := range r.tasks {
		for _, t := range vertex {
			t.Delivered(uint64(mark))
		}
	}
}

// finalize lets the sources of a job that has finished tell the outside world so.
func (r *run) finalize() {
	for i := range r.cfg.Compiled.Vertices {
		v := &r.cfg.Compiled.Vertices[i]
		if v.Source < 0 {
			continue
		}
		node := r.cfg.Graph.Nodes[v.Source]
		f, ok := node.Source.(flow.Finalizer)
		if !ok {
			continue
		}
		env := flow.EnumeratorEnv{JobName: r.cfg.Graph.Name, Node: node, Readers: v.Parallelism, Option: r.cfg.Options, Warn: func(string) {}}
		if err := f.Finalize(env, r.splits[v.ID]); err != nil {
			r.cfg.Logger.Warn("a source can't say that its input was dealt with", "source", node.Title(), "err", err)
		}
	}
}
