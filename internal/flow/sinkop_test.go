package flow

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// panicky is a sink that panics in one of its methods.
type panicky struct{ in string }

func (s panicky) maybe(method string) {
	if s.in == method {
		panic("boom")
	}
}

func (s panicky) Describe() string { return "panicky" }
func (s panicky) NewWriter(context.Context, Runtime) (SinkWriter[event], error) {
	s.maybe("open")
	return s, nil
}
func (s panicky) Write(Batch[event]) error     { s.maybe("write"); return nil }
func (s panicky) Flush(context.Context) error  { s.maybe("flush"); return nil }
func (s panicky) Finish(context.Context) error { return nil }
func (s panicky) Close() error                 { return nil }

// A panic of a sink says where in the job the sink is, though the task only knows its chain's head.
func TestSinkPanicsNameTheSink(t *testing.T) {
	for _, in := range []string{"open", "write", "flush"} {
		rt := newTestRuntime()
		inst, err := NewSink[event](panicky{in})(rt, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err = inst.Op.Open(t.Context()); err == nil {
			if err = inst.Inputs[0].(Out[event]).Push(Batch[event]{Recs: []event{{N: 1}}}); err == nil {
				err = inst.Inputs[0].(Out[event]).Control(Control{Kind: End})
			}
		}
		own, ok := errors.AsType[*OperatorError](err)
		if !ok || own.Operator != rt.Node().Title() {
			t.Fatalf("%s: got %v, want an error of operator %s", in, err, rt.Node().Title())
		}
		for _, want := range []string{"(job/main.go:7): " + in + ": panic: boom at ", "sinkop_test.go:"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %q, want %q in it", in, err, want)
			}
		}
	}
}

// An error of a sink is that of the sink: neither the head of its chain nor the source that got it back is to blame.
func TestSinkErrorsAreTheSinks(t *testing.T) {
	full := errors.New("full")
	in := start(t, NewSink[event](&scriptedSink{err: full}), newTestRuntime()).Inputs[0].(Out[event])
	for what, err := range map[string]error{"write": in.Push(Batch[event]{}), "flush": in.Control(Control{Kind: End})} {
		if own, ok := errors.AsType[*OperatorError](err); !ok || own.Operator != newTestRuntime().Node().Title() || !errors.Is(err, full) {
			t.Errorf("%s: got %#v", what, err)
		}
	}
}

// brokenOut is an operator after a source that fails.
type brokenOut struct{ err error }

func (o brokenOut) Push(Batch[event]) error { return o.err }
func (o brokenOut) Control(Control) error   { return nil }

func TestSourceDoesNotClaimOthersErrors(t *testing.T) {
	full := &OperatorError{"sink 9", errors.New("full")}
	src := &scripted{wait: SourceWait, queue: []scriptedBatch{{split: "a", times: []int64{1}}}}
	inst := start(t, NewSource[event](src, &Watermarks[event]{}, nil, nil), newTestRuntime(), Out[event](brokenOut{full}))
	if err := inst.Source.AddSplits([]Split{{ID: "a"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := inst.Source.Poll(); err == nil || err.Error() != "full" {
		t.Errorf("got %v, want the sink's error as it was", err)
	}
}

// later is a sink whose delivery fails in the background.
type later struct {
	panicky
	err error
}

func (s *later) NewWriter(context.Context, Runtime) (SinkWriter[event], error) { return s, nil }
func (s *later) Failed() error                                                 { return s.err }

// A delivery that fails when nothing more is written is told all the same, as the sink's error.
func TestSinkFailsLater(t *testing.T) {
	rt, sink := newTestRuntime(), &later{}
	op := start(t, NewSink[event](sink), rt).Op
	for range 3 {
		if err := op.Timer(rt.Now()); err != nil {
			t.Fatal(err)
		}
	}
	sink.err = errors.New("denied")
	if own, ok := errors.AsType[*OperatorError](op.Timer(rt.Now())); !ok || own.Operator != rt.Node().Title() || !errors.Is(own, sink.err) {
		t.Errorf("got %v", own)
	}
}
