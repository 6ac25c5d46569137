package heddletest

import (
	"strconv"
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
)

// Feed is one split of a source under test: what is sent comes out of the source in order.
type Feed[T any] struct {
	h     *Harness
	in    *input[T]
	split int
	ended bool
}

// input replaces the connector of one source.
type input[T any] struct {
	h           *Harness
	node        *flow.Node
	parallelism int
	readers     []*feedReader[T]
	feeds       map[int]*Feed[T]
}

// Input replaces the connector of a source, which is meant by its name or uid; "" will do where the job has one source.
// T is the type of the source's records. What the job does right after the source, such as finding
// watermarks, is not replaced; decoding messages is.
func Input[T any](h *Harness, name string) *Feed[T] {
	h.t.Helper()
	h.beforeStart("Input")
	node := h.find(name, "source", func(n *flow.Node) bool { return n.Source != nil })
	checkType[T](h, node, node.Outputs[0].Name())
	in := &input[T]{h: h, node: node, feeds: map[int]*Feed[T]{}}
	for i := range h.plan.Vertices {
		if v := &h.plan.Vertices[i]; v.Source == node.ID {
			in.parallelism = v.Parallelism
		}
	}
	for range in.parallelism {
		in.readers = append(in.readers, &feedReader[T]{})
	}
	h.sources[node.ID] = in
	return in.feed(0)
}

// Split returns the feed of another split of the source, which it adds if it is new. Split number 0 is the Feed that
// Input returned. Split n is read by subtask n modulo the source's parallelism.
func (f *Feed[T]) Split(n int) *Feed[T] {
	f.h.t.Helper()
	if n < 0 {
		f.h.t.Fatalf("there is no split %d", n)
	}
	return f.in.feed(n)
}

func (in *input[T]) feed(n int) *Feed[T] {
	if f := in.feeds[n]; f != nil {
		return f
	}
	f := &Feed[T]{h: in.h, in: in, split: n}
	in.feeds[n] = f
	if in.h.tasks != nil { // a split that appears while the job runs
		for _, t := range in.h.tasks {
			if t.Vertex().Source == in.node.ID && t.ID().Subtask == n%in.parallelism {
				t.AddSplits([]flow.Split{{ID: strconv.Itoa(n)}}, false)
			}
		}
		in.h.run()
	}
	return f
}

// Send emits records without event times of the source's; the stream's Watermark may take them from the records.
func (f *Feed[T]) Send(recs ...T) {
	f.h.t.Helper()
	f.do("Send", func(r *feedReader[T]) error {
		return r.emit(f.id(), flow.Batch[T]{Recs: recs}, false)
	})
}

// SendAt emits records that have the event time at, as a source gives it with its messages.
func (f *Feed[T]) SendAt(at time.Time, recs ...T) {
	f.h.t.Helper()
	times := make([]int64, len(recs))
	for i := range times {
		times[i] = at.UnixMilli()
	}
	f.do("SendAt", func(r *feedReader[T]) error {
		return r.emit(f.id(), flow.Batch[T]{Recs: recs, Times: times}, false)
	})
}

// Watermark says that no record at or before at follows from this split's subtask, whatever the stream's own strategy has found so far.
func (f *Feed[T]) Watermark(at time.Time) {
	f.h.t.Helper()
	f.do("Watermark", func(r *feedReader[T]) error {
		return r.steer(flow.Control{Kind: flow.Watermark, Time: at.UnixMilli()})
	})
}

// Idle says that this split's subtask is silent and holds no watermark back until it sends again.
func (f *Feed[T]) Idle() {
	f.h.t.Helper()
	f.do("Idle", func(r *feedReader[T]) error { return r.steer(flow.Control{Kind: flow.Idle}) })
}

// End ends the split. The source ends with Harness.End, since splits may be added until then.
func (f *Feed[T]) End() {
	f.h.t.Helper()
	if f.ended {
		return
	}
	f.do("End", func(r *feedReader[T]) error { return r.emit(f.id(), flow.Batch[T]{}, true) })
	f.ended = true
}

func (f *Feed[T]) id() string { return strconv.Itoa(f.split) }

// do puts an action into the reader and runs the job until it has nothing to do.
func (f *Feed[T]) do(what string, action func(*feedReader[T]) error) {
	f.h.t.Helper()
	switch {
	case f.ended:
		f.h.t.Fatalf("%s on a split that has ended", what)
	case f.h.over:
		f.h.t.Fatalf("%s on a job that has ended: %v", what, f.h.failure)
	}
	f.h.start()
	r := f.in.readers[f.split%f.in.parallelism]
	r.todo = append(r.todo, action)
	f.h.run()
}

// endAll ends all splits; Harness.End runs the job afterwards.
func (in *input[T]) endAll() {
	for _, f := range in.feeds {
		if f.ended {
			continue
		}
		f.ended = true
		r := in.readers[f.split%in.parallelism]
		r.todo = append(r.todo, func(r *feedReader[T]) error { return r.emit(f.id(), flow.Batch[T]{}, true) })
	}
}

func (in *input[T]) reader(subtask int) any { return in.readers[subtask] }

func (in *input[T]) splits(subtask int) []flow.Split {
	var splits []flow.Split
	for n := range in.feeds {
		if n%in.parallelism == subtask {
			splits = append(splits, flow.Split{ID: strconv.Itoa(n)})
		}
	}
	return splits
}

// feedReader is the reader of one subtask: it does what tests have put into it, in order.
type feedReader[T any] struct {
	todo   []func(*feedReader[T]) error
	emit   flow.Emit[T] // set while polled
	steer  func(flow.Control) error
	noMore bool
}

// Steer implements flow.Steered.
func (r *feedReader[T]) Steer(f func(flow.Control) error) { r.steer = f }

// AddSplits implements flow.Reader.
func (r *feedReader[T]) AddSplits([]flow.Split) error { return nil }

// NoMoreSplits implements flow.Reader.
func (r *feedReader[T]) NoMoreSplits() error {
	r.noMore = true
	return nil
}

// Poll implements flow.Reader.
func (r *feedReader[T]) Poll(emit flow.Emit[T]) (flow.SourceStatus, error) {
	if len(r.todo) == 0 {
		if r.noMore {
			return flow.SourceEnd, nil
		}
		return flow.SourceWait, nil
	}
	action := r.todo[0]
	r.todo = r.todo[1:]
	r.emit = emit
	return flow.SourceMore, action(r)
}

// Splits implements flow.Reader.
func (r *feedReader[T]) Splits() []flow.SplitStatus { return nil }

// Close implements flow.Reader.
func (r *feedReader[T]) Close() error { return nil }
