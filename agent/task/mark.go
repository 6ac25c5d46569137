package task

import "github.com/heddle-stream/heddle/internal/flow"

// Delivered says that everything before a mark has left every sink of the job. Any goroutine may call it.
func (t *Task) Delivered(mark uint64) {
	for {
		was := t.delivered.Load()
		if mark <= was {
			return
		}
		if t.delivered.CompareAndSwap(was, mark) {
			t.Wake()
			return
		}
	}
}

// tellDelivered passes on to the source what is delivered. In a task without outputs that is what it has marked: its
// sinks, being in the same chain, have flushed when the mark has passed them.
func (t *Task) tellDelivered() {
	s, ok := t.source.(flow.DeliveredTo)
	if !ok {
		return
	}
	mark := t.delivered.Load()
	if len(t.outs) == 0 {
		mark = max(mark, s.LastMark())
	}
	if mark > t.told {
		t.told = mark
		s.Delivered(mark)
	}
}
