package heddletest

import (
	"context"
	"reflect"
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
)

// Timed is a record with its event time; the zero time where the stream has none.
type Timed[T any] struct {
	Record T
	At     time.Time
}

// Results is what a sink under test is given by all its subtasks, in the order it comes.
type Results[T any] struct {
	all   []Timed[T]
	taken int
}

// Output replaces the connector of a sink, which is meant by its name or uid; "" will do where the job has one sink.
// T is the type of the sink's records, before they are encoded to messages.
// The records of sinks for which Output isn't called are dropped.
func Output[T any](h *Harness, name string) *Results[T] {
	h.t.Helper()
	h.beforeStart("Output")
	node := h.find(name, "sink", func(n *flow.Node) bool { return n.Sink })
	from := node.In[0]
	checkType[T](h, node, from.From.Outputs[from.FromPort].Name())
	r := &Results[T]{}
	h.sinks[node.ID] = r
	return r
}

// checkType fails the test if a connector's records are not of type T.
func checkType[T any](h *Harness, node *flow.Node, have string) {
	h.t.Helper()
	if want := reflect.TypeFor[T]().String(); have != want {
		h.t.Fatalf("the records of %s are of type %s, not %s", node.Title(), have, want)
	}
}

// All returns everything that came so far.
func (r *Results[T]) All() []T { return records(r.all) }

// Take returns what came since the last Take.
func (r *Results[T]) Take() []T {
	recs := records(r.all[r.taken:])
	r.taken = len(r.all)
	return recs
}

// TakeTimed is Take with event times.
func (r *Results[T]) TakeTimed() []Timed[T] {
	recs := append([]Timed[T](nil), r.all[r.taken:]...)
	r.taken = len(r.all)
	return recs
}

func records[T any](timed []Timed[T]) []T {
	recs := make([]T, len(timed))
	for i, t := range timed {
		recs[i] = t.Record
	}
	return recs
}

func (r *Results[T]) writer() any { return resultWriter[T]{r} }

// resultWriter is the writer of one subtask.
type resultWriter[T any] struct{ r *Results[T] }

// Write implements flow.SinkWriter.
func (w resultWriter[T]) Write(b flow.Batch[T]) error {
	for i, rec := range b.Recs {
		t := Timed[T]{Record: clone(rec)}
		if b.Times != nil {
			t.At = time.UnixMilli(b.Times[i]).UTC()
		}
		w.r.all = append(w.r.all, t)
	}
	return nil
}

// Flush implements flow.SinkWriter.
func (w resultWriter[T]) Flush(context.Context) error { return nil }

// Close implements flow.SinkWriter.
func (w resultWriter[T]) Close() error { return nil }
