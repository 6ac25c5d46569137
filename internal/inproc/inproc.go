// Package inproc runs a compiled job in one process: real tasks, one goroutine each, real enumerators and the wall clock,
// with an exchange in memory between them. It is what --target inproc does, for debugging a job.
package inproc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/heddle-stream/heddle/agent/task"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/jobgraph"
)

// Config is what to run. Zero values are defaults.
type Config struct {
	Graph        *flow.Graph
	Compiled     *jobgraph.Graph
	Options      func(name string) (string, bool) // nil: none is set
	Logger       *slog.Logger                     // nil: discard
	FlushTimeout time.Duration
	SegmentBytes int           // 0: 32 KiB
	StopGrace    time.Duration // how long tasks that are to stop may take for it; 0: 10 s
	// Progress is called about once a second, and once at the end, with a report of every task. It may be nil.
	Progress func([]task.Report)
}

// segmentsPerChannel may be in flight between two tasks.
const segmentsPerChannel = 8

// run is the state of Run.
type run struct {
	cfg    Config
	tasks  [][]*task.Task // by vertex and subtask
	held   chan struct{}  // one slot: a source waits to hear how far others are
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	splits   map[int][]flow.Split // guarded by mu: found, by vertex
	failures []error              // guarded by mu: in order of time
	ended    []*task.Task         // guarded by mu
}

// Run runs the job until it ends (nil), fails (the cause, a cluster.Failure) or ctx is cancelled (its cause).
// Tasks that do not stop then within StopGrace are a *StuckError.
func Run(ctx context.Context, cfg Config) error {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Options == nil {
		cfg.Options = func(string) (string, bool) { return "", false }
	}
	if cfg.SegmentBytes == 0 {
		cfg.SegmentBytes = 32 << 10
	}
	if cfg.StopGrace == 0 {
		cfg.StopGrace = 10 * time.Second
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &run{cfg: cfg, cancel: cancel, held: make(chan struct{}, 1), splits: map[int][]flow.Split{}}
	if err := r.ready(ctx); err != nil {
		return err
	}
	enums, err := r.enumerators(ctx)
	if err != nil {
		return err
	}
	if err := r.build(); err != nil {
		closeAll(enums)
		return err
	}
	var wg sync.WaitGroup
	for id, e := range enums {
		wg.Go(func() { r.feed(ctx, id, e) })
	}
	for _, vertex := range r.tasks {
		for _, t := range vertex {
			wg.Go(func() { r.run(ctx, t) })
		}
	}
	done := make(chan struct{})
	go func() { // ends with the tasks, which Run waits for while they stop as they should
		wg.Wait()
		close(done)
	}()
	if !r.watch(ctx, done) {
		return r.stuck(r.outcome(ctx))
	}
	err = r.outcome(ctx)
	if err == nil {
		r.finalize()
	}
	return err
}

// ready asks connectors and formats whether they will be able to work, which may refuse the job.
func (r *run) ready(ctx context.Context) error {
	for _, n := range r.cfg.Graph.Nodes {
		if n.Ready == nil {
			continue
		}
		if err := n.Ready(ctx, r.cfg.Options); err != nil {
			return fmt.Errorf("cannot start %s: %w", n.KindAndTitle(), err)
		}
	}
	return nil
}

// enumerators makes the enumerator of every source, which may refuse the job. The key is the vertex.
func (r *run) enumerators(ctx context.Context) (map[int]flow.Enumerator, error) {
	enums := map[int]flow.Enumerator{}
	for i := range r.cfg.Compiled.Vertices {
		v := &r.cfg.Compiled.Vertices[i]
		if v.Source < 0 {
			continue
		}
		node := r.cfg.Graph.Nodes[v.Source]
		e, err := node.Source.Enumerator(ctx, flow.EnumeratorEnv{
			JobName: r.cfg.Graph.Name, Node: node, Readers: v.Parallelism, Option: r.cfg.Options,
			Warn:  func(msg string) { r.cfg.Logger.Warn(msg, "source", node.Title()) },
			Debug: func(msg string) { r.cfg.Logger.Debug(msg, "source", node.Title()) },
		})
		if err != nil {
			closeAll(enums)
			return nil, fmt.Errorf("cannot start %s: %w", node.KindAndTitle(), err)
		}
		enums[v.ID] = e
	}
	return enums, nil
}

func closeAll(enums map[int]flow.Enumerator) {
	for _, e := range enums {
		_ = e.Close()
	}
}

// build makes all tasks, before any runs.
func (r *run) build() error {
	exchange := task.NewMemory(r.cfg.SegmentBytes, segmentsPerChannel)
	for i := range r.cfg.Compiled.Vertices {
		var subtasks []*task.Task
		for sub := range r.cfg.Compiled.Vertices[i].Parallelism {
			id := cluster.ExecutionID{Vertex: i, Subtask: sub}
			inputs, outputs := task.Wire(r.cfg.Compiled, id, nil)
			t, err := task.New(task.Spec{ID: id, Graph: r.cfg.Graph, Plan: r.cfg.Compiled, Inputs: inputs, Outputs: outputs},
				task.Env{Exchange: exchange, Option: r.cfg.Options, Logger: r.cfg.Logger, FlushTimeout: r.cfg.FlushTimeout, OnHeldBack: r.heldBack})
			if err != nil {
				r.tasks = append(r.tasks, subtasks)
				r.abort(err)
				return err
			}
			subtasks = append(subtasks, t)
		}
		r.tasks = append(r.tasks, subtasks)
	}
	return nil
}

// abort gives back tasks that never ran.
func (r *run) abort(cause error) {
	for _, vertex := range r.tasks {
		for _, t := range vertex {
			_ = t.Abort(cause)
		}
	}
}

// run is the goroutine of one task.
func (r *run) run(ctx context.Context, t *task.Task) {
	returned, res := false, task.Result{}
	defer func() {
		r.end(t)
		if !returned {
			res = t.Exited()
		}
		if res.State == cluster.Failed {
			r.fail(res.Failure)
		}
	}()
	res = t.Run(ctx)
	returned = true
}

// fail notes a failure and stops everything.
func (r *run) fail(err error) {
	r.mu.Lock()
	r.failures = append(r.failures, err)
	r.mu.Unlock()
	r.cancel(err)
}

// feed is the goroutine of one enumerator: it hands the splits it discovers to the readers that own them.
func (r *run) feed(ctx context.Context, vertex int, e flow.Enumerator) {
	readers := r.tasks[vertex]
	node := r.cfg.Graph.Nodes[r.cfg.Compiled.Vertices[vertex].Source]
	returned := false
	defer func() {
		if p := recover(); p != nil {
			r.fail(cluster.Failure{Kind: cluster.Internal, Operator: node.Title(), Message: fmt.Sprintf("panic in the enumerator of %s: %v", node.KindAndTitle(), p)}.Fit())
		} else if !returned {
			r.fail(fmt.Errorf("cannot discover splits of %s: %w", node.KindAndTitle(), task.ErrExited))
		}
	}()
	defer func() { _ = e.Close() }()
	r.discover(ctx, vertex, e, readers)
	returned = true
}

// discover is feed without the end.
func (r *run) discover(ctx context.Context, vertex int, e flow.Enumerator, readers []*task.Task) {
	node := r.cfg.Graph.Nodes[r.cfg.Compiled.Vertices[vertex].Source]
	for {
		d, err := e.Discover(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			r.fail(fmt.Errorf("cannot discover splits of %s: %w", node.KindAndTitle(), err))
			return
		}
		r.mu.Lock()
		r.splits[vertex] = append(r.splits[vertex], d.Added...)
		r.mu.Unlock()
		byReader := make([][]flow.Split, len(readers))
		for _, s := range d.Added {
			owner := e.Owner(s, len(readers))
			if owner < 0 || owner >= len(readers) {
				r.fail(fmt.Errorf("%s gives split %s to reader %d of %d", node.KindAndTitle(), s.ID, owner, len(readers)))
				return
			}
			byReader[owner] = append(byReader[owner], s)
		}
		for i, t := range readers {
			t.AddSplits(byReader[i], d.Final)
		}
		if d.Final {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(d.Next):
		}
	}
}

// watch reports progress until all tasks have ended, or ctx has and they have had their time for it: it then returns false.
func (r *run) watch(ctx context.Context, done <-chan struct{}) bool {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	over := ctx.Done()
	var late <-chan time.Time
	for {
		select {
		case <-tick.C:
			r.progress()
			r.passMark()
			r.passAlignment()
		case <-r.held:
			r.passAlignment()
		case <-over:
			over = nil
			late = time.After(r.cfg.StopGrace)
		case <-late:
			r.progress()
			return false
		case <-done:
			r.progress()
			return true
		}
	}
}

func (r *run) progress() {
	if r.cfg.Progress == nil {
		return
	}
	var reports []task.Report
	for _, vertex := range r.tasks {
		for _, t := range vertex {
			reports = append(reports, t.Report())
		}
	}
	r.cfg.Progress(reports)
}

// outcome finds the failure that explains the others.
func (r *run) outcome(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, err := range r.failures {
		if f, ok := errors.AsType[cluster.Failure](err); !ok || !f.Secondary() {
			return err
		}
	}
	if ctx.Err() != nil { // from without, or by the first failure: those that only follow from another's end say less
		return context.Cause(ctx)
	}
	return nil
}
