package heddletest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/agent/task"
	"github.com/heddle-stream/heddle/conf"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/jobgraph"
)

// TB is the part of testing.TB that a Harness uses.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// Epoch is what a Harness's clock shows at first, unless StartAt says otherwise.
var Epoch = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// segmentBytes is small, so that records often cross from one segment to the next.
const segmentBytes = 4 << 10

// Option sets up a Harness.
type Option func(*Harness)

// Parallelism is that of operators for which the job sets none; 1 by default.
func Parallelism(n int) Option { return func(h *Harness) { h.compile.Parallelism = n } }

// Unchained makes every operator a task of its own, so that records are encoded between any two of them.
func Unchained() Option { return func(h *Harness) { h.compile.NoChaining = true } }

// StartAt sets what the clock shows at first.
func StartAt(t time.Time) Option { return func(h *Harness) { h.now = t } }

// Set gives a configuration option a value, as operators see it.
func Set(name, value string) Option { return func(h *Harness) { h.options[name] = value } }

// Harness runs a job. It is for one goroutine.
type Harness struct {
	t       TB
	graph   *flow.Graph
	plan    *jobgraph.Graph
	compile jobgraph.Options
	options map[string]string
	now     time.Time

	sources map[int]source // by node
	sinks   map[int]sink   // by node
	tasks   []*running     // nil until the first input
	trying  bool           // a failure is Try's
	failure error
	over    bool // all tasks have ended or were stopped
}

// running is a task with how far it is.
type running struct {
	*task.Task
	ended bool
}

// source and sink are inputs and outputs whatever their record type.
type source interface {
	reader(subtask int) any
	splits(subtask int) []flow.Split
	endAll()
}

type sink interface{ writer() any }

// New compiles a job for a test. It fails the test if the job is not valid. What the job holds open is closed when the test ends.
func New(t TB, job *heddle.Job, opts ...Option) *Harness {
	t.Helper()
	h := &Harness{
		t: t, graph: job.Graph(), compile: jobgraph.Options{Parallelism: 1}, options: map[string]string{}, now: Epoch,
		sources: map[int]source{}, sinks: map[int]sink{},
	}
	for _, opt := range opts {
		opt(h)
	}
	plan, err := jobgraph.Compile(h.graph, h.compile)
	if err != nil {
		t.Fatalf("%v", err)
	}
	h.plan = plan
	t.Cleanup(func() { h.stop(context.Canceled) })
	return h
}

// Now is what the clock shows.
func (h *Harness) Now() time.Time { return h.now }

// Advance moves the clock by d. Timers that come due on the way run in order, each at its own time.
func (h *Harness) Advance(d time.Duration) {
	h.t.Helper()
	h.start()
	end := h.now.Add(d)
	for !h.over {
		at := flow.MaxTime
		for _, t := range h.tasks {
			if !t.ended {
				at = min(at, t.NextTimer())
			}
		}
		if at > end.UnixMilli() {
			break
		}
		if due := time.UnixMilli(at); due.After(h.now) {
			h.now = due
		}
		h.run()
	}
	h.now = end
	h.run()
}

// End ends every input and runs the job to its end. Outputs can still be read.
func (h *Harness) End() {
	h.t.Helper()
	h.start()
	for _, s := range h.sources {
		s.endAll()
	}
	for _, t := range h.tasks {
		if t.Vertex().Source >= 0 && !t.ended {
			t.AddSplits(nil, true)
		}
	}
	h.run()
	for _, t := range h.tasks {
		if !t.ended && h.failure == nil {
			h.t.Fatalf("the job does not end: task %v (%s) waits for something", t.ID(), t.Vertex().Name)
		}
	}
}

// Try runs f and returns how the job failed meanwhile, nil if it did not. Without Try, a failure of the job fails the test.
func (h *Harness) Try(f func()) error {
	h.trying = true
	defer func() { h.trying = false }()
	f()
	return h.failure
}

// Counter returns a counter of an operator (by name, uid or kind), added up over its subtasks: "records_in", "records_out",
// or one that a function made by Env.Counter.
func (h *Harness) Counter(operator, counter string) int64 {
	h.t.Helper()
	h.start()
	node := h.find(operator, "operator", func(*flow.Node) bool { return true })
	var n int64
	for _, t := range h.tasks {
		for _, o := range t.Report().Operators {
			if o.Node == node.ID {
				n += o.Counters[counter]
			}
		}
	}
	return n
}

// find returns the one node that name means among those that fit.
func (h *Harness) find(name, what string, fits func(*flow.Node) bool) *flow.Node {
	h.t.Helper()
	var found []*flow.Node
	var all []string
	for _, n := range h.graph.Nodes {
		if !fits(n) {
			continue
		}
		all = append(all, n.Title())
		if name == "" || n.Name == name || n.UID == name || n.Title() == name {
			found = append(found, n)
		}
	}
	if len(found) == 1 {
		return found[0]
	}
	if len(found) == 0 && name != "" {
		for _, n := range h.graph.Nodes {
			if fits(n) && n.Kind == name {
				found = append(found, n)
			}
		}
	}
	if len(found) == 0 && name != "" {
		hint := ""
		if near := conf.Nearest(name, all); near != "" {
			hint = fmt.Sprintf(" did you mean %q?", near)
		}
		h.t.Fatalf("the job has no %s %q;%s there are: %s", what, name, hint, strings.Join(all, ", "))
	}
	if len(found) != 1 {
		h.t.Fatalf("%q means %d %ss of the job, want one; there are: %s", name, len(found), what, strings.Join(all, ", "))
	}
	return found[0]
}

// beforeStart fails the test if the job runs already.
func (h *Harness) beforeStart(what string) {
	h.t.Helper()
	if h.tasks != nil {
		h.t.Fatalf("call %s before anything is sent", what)
	}
}

// start builds and opens all tasks, once.
func (h *Harness) start() {
	h.t.Helper()
	if h.tasks != nil {
		return
	}
	h.checkSources()
	env := task.Env{
		Exchange: task.NewMemory(segmentBytes, 0), Clock: h.Now,
		Option: h.option, Substitute: h.substitute,
	}
	h.tasks = []*running{}
	for i := range h.plan.Vertices {
		v := &h.plan.Vertices[i]
		for sub := range v.Parallelism {
			id := cluster.ExecutionID{Vertex: i, Subtask: sub}
			spec := task.Spec{ID: id, Graph: h.graph, Plan: h.plan}
			spec.Inputs, spec.Outputs = task.Wire(h.plan, id, nil)
			if v.Source >= 0 {
				spec.Splits = h.sources[v.Source].splits(sub)
			}
			t, err := task.New(spec, env)
			if err != nil {
				h.fail(err)
				return
			}
			h.tasks = append(h.tasks, &running{Task: t})
		}
	}
	for _, t := range h.tasks {
		if err := t.Start(context.Background()); err != nil {
			h.fail(err)
			return
		}
	}
	h.run()
}

// option is the value that the test has Set, or the default that its connector declared.
func (h *Harness) option(name string) (string, bool) {
	if v, ok := h.options[name]; ok {
		return v, true
	}
	for _, o := range heddle.DeclaredOptions() {
		if o.Name == name && o.Default != "" {
			return o.Default, true
		}
	}
	return "", false
}

func (h *Harness) checkSources() {
	h.t.Helper()
	for _, n := range h.graph.Nodes {
		if n.Source != nil && h.sources[n.ID] == nil {
			h.t.Fatalf("source %s has no input: call heddletest.Input[%s](h, %q)", n.Title(), n.Outputs[0].Name(), n.Title())
		}
	}
}

// substitute replaces every source by its input and every sink by its output, or by nothing.
func (h *Harness) substitute(n *flow.Node, subtask int) any {
	if s := h.sources[n.ID]; s != nil {
		return s.reader(subtask)
	}
	if s := h.sinks[n.ID]; s != nil {
		return s.writer()
	}
	if n.Sink {
		return flow.Nowhere{}
	}
	return nil
}

// run steps through all tasks until none has anything to do.
func (h *Harness) run() {
	h.t.Helper()
	for worked := true; worked && !h.over; {
		worked = false
		for _, t := range h.tasks {
			for !t.ended {
				status, err := t.Step()
				if err == nil && status == task.Ended {
					t.ended = true
					err = t.Finish(context.Background())
				}
				if err != nil {
					h.fail(err)
					return
				}
				if status == task.Waiting {
					break
				}
				worked = true
			}
		}
	}
}

// fail stops the job and, outside of Try, the test.
func (h *Harness) fail(err error) {
	h.t.Helper()
	if h.failure == nil {
		h.failure = fmt.Errorf("the job failed: %w", task.FailureOf(err))
	}
	h.stop(err)
	if !h.trying {
		h.t.Fatalf("%v", h.failure)
	}
}

// stop closes the operators of tasks that have not ended.
func (h *Harness) stop(cause error) {
	h.over = true
	for _, t := range h.tasks {
		if !t.ended {
			t.ended = true
			_ = t.Abort(cause)
		}
	}
}
