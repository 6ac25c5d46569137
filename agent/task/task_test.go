package task

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/jobgraph"
	"github.com/heddle-stream/heddle/internal/testjob"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// probe is an operator whose every method a test can set. Its input and output are strings.
type probe struct {
	rt    flow.Runtime
	out   flow.Out[string]
	open  func(ctx context.Context, p *probe) error
	push  func(p *probe, b flow.Batch[string]) error
	timer func(p *probe, now int64) error
	flush func(p *probe) error
	close func() error
	calls *[]string
}

func (p *probe) log(what string) {
	if p.calls != nil {
		*p.calls = append(*p.calls, p.rt.Node().Title()+"."+what)
	}
}

func (p *probe) Push(b flow.Batch[string]) error {
	if p.push != nil {
		return p.push(p, b)
	}
	return p.out.Push(b)
}

func (p *probe) Control(c flow.Control) error {
	if c.Kind != flow.Idle { // what a source without watermarks says of itself is not for these tests
		p.log(c.Kind.String())
	}
	return p.out.Control(c)
}

func (p *probe) Open(ctx context.Context) error {
	p.log("open")
	if p.open != nil {
		return p.open(ctx, p)
	}
	return nil
}

func (p *probe) Timer(now int64) error {
	if p.timer != nil {
		return p.timer(p, now)
	}
	return nil
}

func (p *probe) Flush() error {
	if p.flush != nil {
		return p.flush(p)
	}
	return nil
}

func (p *probe) Close() error {
	p.log("close")
	if p.close != nil {
		return p.close()
	}
	return nil
}

// node adds an operator with the behaviour of p to a graph.
func node(g *flow.Graph, name string, p probe, in ...flow.Edge) *flow.Node {
	return g.Add(&flow.Node{Kind: "probe", Name: name, In: in, Outputs: []flow.Type{flow.TypeOf[string](nil)},
		New: func(rt flow.Runtime, outs []any) (flow.Instance, error) {
			op := p
			op.rt, op.out = rt, outs[0].(flow.Out[string])
			return flow.Instance{Inputs: []any{flow.Out[string](&op)}, Op: &op}, nil
		}})
}

func from(n *flow.Node) flow.Edge {
	return flow.Edge{From: n, Part: flow.Partitioning{Kind: flow.Forward, Auto: true}}
}

// rig runs the tasks of a job on one exchange.
type rig struct {
	tasks  []*Task
	memory *Memory
}

func newRig(t *testing.T, g *flow.Graph, env Env, perChannel int) *rig {
	t.Helper()
	plan, err := jobgraph.Compile(g, jobgraph.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{memory: NewMemory(4096, perChannel)}
	env.Exchange = r.memory
	for v := range plan.Vertices {
		for sub := range plan.Vertices[v].Parallelism {
			id := cluster.ExecutionID{Vertex: v, Subtask: sub}
			in, out := Wire(plan, id, nil)
			task, err := New(Spec{ID: id, Graph: g, Plan: plan, Inputs: in, Outputs: out}, env)
			if err != nil {
				t.Fatal(err)
			}
			r.tasks = append(r.tasks, task)
		}
	}
	return r
}

// run runs all tasks and returns how they ended.
func (r *rig) run(ctx context.Context) []Result {
	results := make([]Result, len(r.tasks))
	var wg sync.WaitGroup
	for i, task := range r.tasks {
		wg.Go(func() { results[i] = task.Run(ctx) })
	}
	wg.Wait()
	return results
}

// job is source → the probes → sink, all on one chain where cut is not set.
func job(src *testjob.Source[string], sink *testjob.Sink[string], probes ...probe) *flow.Graph {
	j := heddle.NewJob("test")
	heddle.FromSource(j, src)
	g := j.Graph()
	last := g.Nodes[0]
	for i, p := range probes {
		last = node(g, fmt.Sprint("p", i), p, from(last))
	}
	g.Add(&flow.Node{Kind: "sink", Name: "sink", Sink: true, In: []flow.Edge{from(last)}, New: flow.NewSink[string](sink)})
	return g
}

func words(splits, each int) *testjob.Source[string] {
	return &testjob.Source[string]{Splits: splits, Each: each, At: func(split, i int) string { return fmt.Sprint(split, ":", i) }}
}

func (r *rig) feed(splits int) {
	var all []flow.Split
	for i := range splits {
		all = append(all, flow.Split{ID: fmt.Sprint(i)})
	}
	r.tasks[0].AddSplits(all, true)
}

func TestLifeCycle(t *testing.T) {
	var calls []string
	sink := &testjob.Sink[string]{}
	g := job(words(1, 10), sink, probe{calls: &calls}, probe{calls: &calls})
	r := newRig(t, g, Env{}, 4)
	r.feed(1)
	if res := r.run(t.Context()); res[0].State != cluster.Finished {
		t.Fatalf("task ended as %v", res)
	}
	want := "p1.open p0.open p0.watermark p1.watermark p0.end p1.end p0.close p1.close"
	if got := strings.Join(calls, " "); got != want {
		t.Errorf("calls were\n%s, want\n%s", got, want)
	}
	if n := len(sink.Records()); n != 10 {
		t.Errorf("%d records arrived, want 10", n)
	}
	rep := r.tasks[0].Report()
	if len(rep.Splits) != 1 || rep.Splits[0].Position != 10 {
		t.Errorf("splits are reported as %v, want one at 10", rep.Splits)
	}
	if c := rep.Operators[1].Counters; c[RecordsIn] != 10 || c[RecordsOut] != 10 {
		t.Errorf("p0 counted %v, want 10 records in and out", c)
	}
}

func TestClosedOnFailure(t *testing.T) {
	boom := errors.New("boom")
	for _, tt := range []struct {
		name   string
		p      probe
		want   string
		closed bool
		kind   cluster.ErrorKind
	}{
		{"open", probe{open: func(context.Context, *probe) error { return boom }}, "boom", false, cluster.Invalid},
		{"push", probe{push: func(*probe, flow.Batch[string]) error { return boom }}, "boom", true, cluster.Invalid},
		{"flush", probe{flush: func(*probe) error { return boom }}, "boom", true, cluster.Invalid},
		{"close", probe{close: func() error { return boom }}, "boom", true, cluster.Invalid},
		{"panic in open", probe{open: func(context.Context, *probe) error { panic("boom") }}, "panic in operator p1: boom at", false, cluster.Internal},
		{"panic in push", probe{push: func(*probe, flow.Batch[string]) error { panic("boom") }}, "panic in", true, cluster.Internal},
		{"panic in close", probe{close: func() error { panic("boom") }}, "panic in Close of operator p1: boom at", true, cluster.Internal},
		{"no end", probe{push: func(p *probe, b flow.Batch[string]) error { p.out = discard{}; return nil }}, "the end of the input did not reach channel 0 of output 0", true, cluster.Internal},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var calls []string
			sink := &testjob.Sink[string]{}
			g := job(words(1, 10), sink, probe{calls: &calls}, tt.p)
			g.Nodes[3].NoChain = true // the sink is a task of its own and sees the failure from afar
			r := newRig(t, g, Env{}, 4)
			r.feed(1)
			res := r.run(t.Context())
			if f := res[0].Failure; res[0].State != cluster.Failed || f.Kind != tt.kind || !strings.Contains(f.Error(), tt.want) {
				t.Errorf("task ended as %#v, want a failure of kind %v with %q", res[0], tt.kind, tt.want)
			}
			if f := res[1].Failure; f.Kind != cluster.Lost || !strings.Contains(f.Error(), "boom") && tt.name != "no end" && !strings.Contains(f.Error(), "panic in ") {
				t.Errorf("consumer ended as %#v, want the loss of its producer with the cause", res[1])
			}
			if got := strings.Contains(strings.Join(calls, " "), "p0.close"); got != tt.closed {
				t.Errorf("p0 closed: %v, want %v; calls %v", got, tt.closed, calls)
			}
			if sink.Open() != 0 {
				t.Error("the sink was not closed")
			}
		})
	}
}

// discard is an Out that loses everything.
type discard struct{}

func (discard) Push(flow.Batch[string]) error { return nil }
func (discard) Control(flow.Control) error    { return nil }

func TestTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var fired []time.Duration
		p := probe{
			open: func(_ context.Context, p *probe) error {
				p.rt.SetTimer(p.rt.Now() + 500)
				p.rt.SetTimer(p.rt.Now() + 100)
				return nil
			},
			timer: func(p *probe, now int64) error {
				fired = append(fired, time.UnixMilli(now).Sub(start))
				if len(fired) < 3 {
					p.rt.SetTimer(now + 1000)
				}
				return p.out.Push(flow.Batch[string]{Recs: []string{"tick"}})
			},
		}
		sink := &testjob.Sink[string]{}
		g := job(words(1, 0), sink, p)
		g.Nodes[2].NoChain = true
		r := newRig(t, g, Env{FlushTimeout: time.Hour}, 4)
		done := make(chan []Result, 1)
		go func() { done <- r.run(t.Context()) }()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if fmt.Sprint(fired) != "[100ms 1.1s 2.1s]" {
			t.Errorf("timer fired after %v", fired)
		}
		// What a timer emits is flushed when nothing else is to be done, whatever the flush timeout.
		if n := len(sink.Records()); n != 3 {
			t.Errorf("%d records arrived, want 3", n)
		}
		rep := r.tasks[0].Report()
		if rep.Idle != 3*time.Second || rep.Busy != 0 {
			t.Errorf("task was idle for %v and busy for %v of 3 s", rep.Idle, rep.Busy)
		}
		r.feed(1)
		<-done
	})
}

func TestFlushTimeoutWhileBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The source is never out of input; each poll takes a millisecond.
		src := words(1, -1)
		src.Batch = 1
		p := probe{push: func(p *probe, b flow.Batch[string]) error {
			time.Sleep(time.Millisecond)
			return p.out.Push(b)
		}}
		sink := &testjob.Sink[string]{}
		g := job(src, sink, p)
		g.Nodes[2].NoChain = true
		r := newRig(t, g, Env{FlushTimeout: 20 * time.Millisecond}, 4)
		r.feed(1)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan []Result, 1)
		go func() { done <- r.run(ctx) }()
		time.Sleep(19*time.Millisecond + 500*time.Microsecond)
		synctest.Wait()
		if n := len(sink.Records()); n != 0 {
			t.Errorf("%d records arrived before the flush timeout", n)
		}
		time.Sleep(3 * time.Millisecond)
		synctest.Wait()
		if n := len(sink.Records()); n < 20 {
			t.Errorf("%d records arrived after the flush timeout, want 20", n)
		}
		cancel()
		<-done
	})
}

func TestBlockedTimeAndCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &testjob.Sink[string]{Block: true}
		g := job(words(1, -1), sink)
		g.Nodes[1].NoChain = true
		r := newRig(t, g, Env{}, 2)
		r.feed(1)
		done := make(chan []Result, 1)
		go func() { done <- r.run(t.Context()) }()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		rep := r.tasks[0].Report()
		if rep.Blocked != 5*time.Second || rep.OutQueued == 0 || rep.OutPool != 1 {
			t.Errorf("source was blocked for %v of 5 s with %d segments queued, %v of its segments in use", rep.Blocked, rep.OutQueued, rep.OutPool)
		}
		for _, task := range r.tasks {
			task.Cancel()
		}
		for i, res := range <-done {
			if res.State != cluster.Canceled {
				t.Errorf("task %d ended as %v", i, res)
			}
		}
		if rep := r.tasks[0].Report(); rep.Busy+rep.Idle+rep.Blocked != 5*time.Second {
			t.Errorf("times of %+v do not add up to 5 s", rep)
		}
	})
}

func TestCancelBeforeRun(t *testing.T) {
	r := newRig(t, job(words(1, -1), &testjob.Sink[string]{}), Env{}, 2)
	r.tasks[0].Cancel()
	if res := r.run(t.Context()); res[0].State != cluster.Canceled {
		t.Errorf("task ended as %v", res)
	}
}

// ended is a context that has ended, of which those who wait are not told yet.
type ended struct{ context.Context }

func (ended) Err() error { return context.Canceled }

// TestCancelOfAllAtOnce: one task of a context that ends is told before another, whose input fails by that before it is told itself.
func TestCancelOfAllAtOnce(t *testing.T) {
	p := probe{open: func(context.Context, *probe) error { return errors.New("the producer of my partition was cancelled") }}
	r := newRig(t, job(words(1, 0), &testjob.Sink[string]{}, p), Env{}, 2)
	if res := r.run(ended{t.Context()}); res[0].State != cluster.Canceled {
		t.Errorf("task ended as %v: %v", res[0].State, res[0].Failure)
	}
}

func TestStack(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	p := probe{open: func(context.Context, *probe) error {
		close(entered)
		<-leave
		return nil
	}}
	r := newRig(t, job(words(1, 0), &testjob.Sink[string]{}, p), Env{}, 2)
	r.feed(1)
	done := make(chan []Result, 1)
	go func() { done <- r.run(t.Context()) }()
	<-entered
	if s := r.tasks[0].Stack(); !strings.Contains(s, "TestStack.func1") {
		t.Errorf("stack of a task in Open is %q", s)
	}
	close(leave)
	<-done
}

func TestNewRefusesWhatDoesNotFit(t *testing.T) {
	g := job(words(1, 0), &testjob.Sink[string]{})
	g.Nodes[1].NoChain = true
	plan, err := jobgraph.Compile(g, jobgraph.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Spec){
		"no outputs":   func(s *Spec) { s.Outputs = nil },
		"other edge":   func(s *Spec) { s.Outputs[0].Edge = 7 },
		"an input":     func(s *Spec) { s.Inputs = []Input{{}} },
		"no vertex":    func(s *Spec) { s.ID.Vertex = 9 },
		"no channels":  func(s *Spec) { s.Outputs[0].Subpartitions = 0 },
		"no operators": func(s *Spec) { s.Graph = &flow.Graph{Nodes: []*flow.Node{{}, {}}} },
	} {
		memory := NewMemory(4096, 1)
		_, out := Wire(plan, cluster.ExecutionID{}, nil)
		spec := Spec{Graph: g, Plan: plan, Outputs: out}
		change(&spec)
		if _, err := New(spec, Env{Exchange: memory}); err == nil {
			t.Errorf("%s: deployed", name)
		}
		for id, p := range memory.parts {
			if !p.released {
				t.Errorf("%s: left partition %s behind", name, id)
			}
		}
	}
}
