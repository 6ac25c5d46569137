package task

import "github.com/heddle-stream/heddle/internal/flow"

// AlignMark is where the source stands for those that wait for it: see flow.Aligned. Any goroutine may call it.
func (t *Task) AlignMark() (int64, bool) {
	if s, ok := t.source.(flow.Aligned); ok {
		return s.AlignMark()
	}
	return 0, false
}

// AlignGroup is the group of the source at the task's head, "" if it waits for nobody.
func (t *Task) AlignGroup() string {
	if t.vertex.Source < 0 {
		return ""
	}
	return t.spec.Graph.Nodes[t.vertex.Source].Align.Group
}

// Align says how far the slowest subtask of its group is. Any goroutine may call it; the last call counts.
func (t *Task) Align(least int64) {
	if t.least.Swap(least) != least {
		t.Wake()
	}
}

// align passes on to the source what is known of its group.
func (t *Task) align() error {
	least := t.least.Load()
	if least == t.aligned {
		return nil
	}
	t.aligned = least
	if s, ok := t.source.(flow.Aligned); ok {
		return s.Align(least)
	}
	return nil
}
