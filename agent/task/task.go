package task

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/jobgraph"
)

// Spec says what to run: one execution of a subtask, and where its input comes from and its output goes to.
type Spec struct {
	ID      cluster.ExecutionID
	Graph   *flow.Graph
	Plan    *jobgraph.Graph
	Inputs  []Input  // in the order of Vertex.In
	Outputs []Output // in the order of Vertex.Out

	Splits       []flow.Split // of a source: those known already
	NoMoreSplits bool
}

// Input is what one in-edge reads.
type Input struct {
	Edge     int
	Channels []Channel
}

// Output is what one out-edge writes.
type Output struct {
	Edge          int
	Partition     string
	Subpartitions int
}

// Env is what a task runs in.
type Env struct {
	Exchange     Exchange
	Clock        func() time.Time                 // nil: time.Now
	Option       func(name string) (string, bool) // nil: none is set
	Logger       *slog.Logger                     // nil: discard
	FlushTimeout time.Duration                    // 0: flush after every segment and poll
	Follow       Follow                           // zero: no record is followed
	// Substitute returns what replaces the connector of a source or sink (see flow.Substituter), or nil. It may be nil.
	Substitute func(node *flow.Node, subtask int) any
	// OnRunning is called by the task's goroutine when all operators are open. It may be nil.
	OnRunning func()
	// OnHeldBack is called by the task's goroutine when its source waits to hear how far others are: see AlignMark and Align. nil: nobody tells, and
	// sources don't wait for each other.
	OnHeldBack func()
	// OnFirst is called by the task's goroutine, once, when it has read the first records. It may be nil.
	OnFirst func()
}

// Task is one execution of a subtask. Make it with New, run it with Run (or, one step after the other and without
// a goroutine, with Start, Step, Finish and Abort).
type Task struct {
	// Immutable after New.
	spec   Spec
	env    Env
	vertex *jobgraph.Vertex
	done   chan struct{} // closed when the task is cancelled
	wake   chan struct{} // holds one token when there may be something to do
	outs   []*edgeOut    // in the order of spec.Outputs
	follow *follower     // nil: no record is followed

	// Owned by the task's goroutine.
	ops          []*operator // the head first
	byNode       map[int]*operator
	writers      []flow.Writer
	inputs       []*input
	ports        []*valve
	source       flow.SourceDriver // nil unless the head is a source
	told         uint64            // the last mark that the source knows to be delivered
	aligned      int64             // what the source last heard of its group; flow.MinTime: nothing
	openPorts    int               // ports that have not ended
	openChannels int               // channels whose producer has not finished: after the end of its records, since it may still fail
	nextInput    int               // where polling goes on
	nextTimer    int64             // earliest of all operators; MaxTime: none
	stepped      time.Time         // when the present step began
	flushed      time.Time         // when everything was last flushed
	dirty        bool              // something was handled since
	first        bool              // OnFirst is still to be called
	current      *operator         // whose method runs, for errors; nil: not known

	meter     meter        // moved by the task's goroutine, read by all
	watermark atomic.Int64 // of the input (of a source: of the output); read by all
	cancelled atomic.Bool
	delivered atomic.Uint64 // the last mark before which everything has left every sink
	least     atomic.Int64  // how far the slowest subtask of its group is; flow.MinTime: not heard
	goroutine atomic.Int64  // id of the goroutine, for Stack
	wantSplit atomic.Bool   // somebody wants newer split states
	splits    atomic.Pointer[[]flow.SplitStatus]
	stop      sync.Once

	gatesMu sync.Mutex // guards the gate field of inputs against Report; only the task's goroutine changes it

	mu        sync.Mutex
	added     []flow.Split // guarded by mu: splits to be handed to the source
	noMore    bool         // guarded by mu
	cancelRun func()       // guarded by mu: cancels the context of Run; nil before

	pending atomic.Bool // added or noMore changed
}

// New builds the chain of a task and registers its partitions, so that consumers find them. It does not open operators.
// After an error nothing is left; after success either Run or Abort must be called.
func New(spec Spec, env Env) (*Task, error) {
	if spec.ID.Vertex < 0 || spec.ID.Vertex >= len(spec.Plan.Vertices) {
		return nil, cluster.Failure{Kind: cluster.Invalid, Message: fmt.Sprintf("cannot run task %v: the job has %d vertices", spec.ID, len(spec.Plan.Vertices))}
	}
	t := &Task{
		spec: spec, env: env, vertex: &spec.Plan.Vertices[spec.ID.Vertex],
		done: make(chan struct{}), wake: make(chan struct{}, 1),
		byNode: map[int]*operator{}, nextTimer: flow.MaxTime,
	}
	t.defaults()
	t.watermark.Store(flow.MinTime)
	t.least.Store(flow.MinTime)
	t.aligned = flow.MinTime
	returned := false
	defer func() {
		if !returned { // a factory ended the goroutine
			t.release(ErrExited)
		}
	}()
	err := t.build()
	returned = true
	if err != nil {
		t.release(err)
		return nil, fmt.Errorf("cannot deploy task %v (%s): %w", spec.ID, t.vertex.Name, err)
	}
	t.AddSplits(spec.Splits, spec.NoMoreSplits)
	return t, nil
}

func (t *Task) defaults() {
	if t.env.Clock == nil {
		t.env.Clock = time.Now
	}
	if t.env.Option == nil {
		t.env.Option = func(string) (string, bool) { return "", false }
	}
	if t.env.Logger == nil {
		t.env.Logger = slog.New(slog.DiscardHandler)
	}
	t.env.Logger = t.env.Logger.With("job", t.spec.Plan.Name, "task", t.spec.ID.String(), "vertex", t.vertex.Name, "subtask", t.spec.ID.Subtask)
	t.meter.clock = t.env.Clock
	t.first = t.env.OnFirst != nil
	if t.env.Follow.on() {
		t.follow = newFollower(t, t.env.Follow)
		if t.follow.Recording() {
			t.env.Logger = slog.New(traceHandler{t.env.Logger.Handler(), t.follow})
		}
	}
}

func (t *Task) build() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicFailure(p, "the factories of "+t.vertex.Name)
		}
	}()
	if a, b := len(t.spec.Inputs), len(t.vertex.In); a != b {
		return fmt.Errorf("it has %d inputs, want %d", a, b)
	}
	if a, b := len(t.spec.Outputs), len(t.vertex.Out); a != b {
		return fmt.Errorf("it has %d outputs, want %d", a, b)
	}
	for i := range t.spec.Inputs {
		if a, b := t.spec.Inputs[i].Edge, t.vertex.In[i]; a != b {
			return fmt.Errorf("input %d is edge %d, want %d", i, a, b)
		}
	}
	for i := range t.spec.Outputs {
		o := &t.spec.Outputs[i]
		if a, b := o.Edge, t.vertex.Out[i]; a != b {
			return fmt.Errorf("output %d is edge %d, want %d", i, a, b)
		}
		out := &edgeOut{task: t, index: i, ended: make([]bool, o.Subpartitions)}
		part, err := t.env.Exchange.NewPartition(PartitionConfig{ID: o.Partition, Subpartitions: o.Subpartitions}, t.Wake)
		if err != nil {
			return fmt.Errorf("cannot open partition %s: %w", o.Partition, err)
		}
		out.part = part
		t.outs = append(t.outs, out)
	}
	if err := t.buildChain(); err != nil {
		return err
	}
	return t.buildInputs()
}

// ID returns which execution the task is.
func (t *Task) ID() cluster.ExecutionID { return t.spec.ID }

// Vertex returns what the task runs.
func (t *Task) Vertex() *jobgraph.Vertex { return t.vertex }

// Wake makes the task look again whether there is something to do. Any goroutine may call it; it never blocks.
func (t *Task) Wake() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// AddSplits gives splits to the source at the task's head; noMore says that these are the last. Any goroutine may call it.
func (t *Task) AddSplits(splits []flow.Split, noMore bool) {
	if len(splits) == 0 && !noMore {
		return
	}
	t.mu.Lock()
	t.added = append(t.added, splits...)
	t.noMore = t.noMore || noMore
	t.mu.Unlock()
	t.pending.Store(true)
	t.Wake()
}

// Cancel makes the task stop as soon as it can, whatever it waits for. It does not wait for that. Any goroutine may call it.
func (t *Task) Cancel() {
	t.stop.Do(func() {
		t.cancelled.Store(true)
		close(t.done)
		t.mu.Lock()
		cancel := t.cancelRun
		t.mu.Unlock()
		if cancel != nil {
			cancel()
		}
	})
}

// release gives everything back, telling consumers why, as far as they may log it.
func (t *Task) release(cause error) {
	if f, ok := errors.AsType[cluster.Failure](cause); ok && f.Logged != "" {
		f.Message, f.Logged = f.Logged, ""
		cause = f
	}
	_ = t.closeGates()
	for _, o := range t.outs {
		if cause != nil {
			o.part.Fail(cause)
		}
		o.part.Release()
	}
}
