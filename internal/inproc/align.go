package inproc

import (
	"github.com/heddle-stream/heddle/agent/task"
	"github.com/heddle-stream/heddle/internal/flow"
)

// heldBack makes watch look at once how far sources are. Any goroutine may call it; it never blocks.
func (r *run) heldBack() {
	select {
	case r.held <- struct{}{}:
	default:
	}
}

// passAlignment tells the subtasks of sources that wait for each other how far the slowest of them is.
func (r *run) passAlignment() {
	groups := map[string][]*task.Task{}
	for i := range r.cfg.Compiled.Vertices {
		v := &r.cfg.Compiled.Vertices[i]
		if v.Source < 0 {
			continue
		}
		if g := r.cfg.Graph.Nodes[v.Source].Align.Group; g != "" {
			groups[g] = append(groups[g], r.tasks[i]...)
		}
	}
	for _, tasks := range groups {
		least, ok := flow.LeastMark(r.readers(tasks))
		if !ok {
			continue
		}
		for _, t := range tasks {
			t.Align(least)
		}
	}
}

// readers are where tasks stand.
func (r *run) readers(tasks []*task.Task) []flow.ReaderMark {
	ended := map[*task.Task]bool{}
	r.mu.Lock()
	for _, t := range r.ended {
		ended[t] = true
	}
	r.mu.Unlock()
	out := make([]flow.ReaderMark, len(tasks))
	for i, t := range tasks {
		out[i].Mark, out[i].Known = t.AlignMark()
		out[i].Ended = ended[t]
	}
	return out
}
