package task

import (
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/flow"
)

// operator is one node of the chain; it is the flow.Runtime of its instance.
type operator struct {
	// Immutable after New.
	task *Task
	node *flow.Node
	log  *slog.Logger
	max  int

	// Owned by the task's goroutine.
	op      flow.Operator
	flusher flow.Flusher // nil unless op is one
	outs    []any        // by output port, as given to the factory
	inputs  []any
	opened  bool
	timer   int64 // when op.Timer is due; MaxTime: never

	mu       sync.Mutex
	counters map[string]*flow.Counter // guarded by mu; the counters themselves are atomic
}

// place says which operator it is, and where the job's author made it.
func (o *operator) place() string {
	if o.node.Where == "" {
		return "operator " + o.node.Title()
	}
	return "operator " + o.node.Title() + " (" + o.node.Where + ")"
}

// JobName implements flow.Runtime.
func (o *operator) JobName() string { return o.task.spec.Plan.Name }

// Node implements flow.Runtime.
func (o *operator) Node() *flow.Node { return o.node }

// Subtask implements flow.Runtime.
func (o *operator) Subtask() int { return o.task.spec.ID.Subtask }

// Parallelism implements flow.Runtime.
func (o *operator) Parallelism() int { return o.task.vertex.Parallelism }

// MaxParallelism implements flow.Runtime.
func (o *operator) MaxParallelism() int { return o.task.vertex.MaxParallelism }

// Now implements flow.Runtime.
func (o *operator) Now() int64 { return o.task.env.Clock().UnixMilli() }

// SetTimer implements flow.Runtime.
func (o *operator) SetTimer(at int64) {
	o.timer = at
	o.task.timersMoved()
}

// Tracer implements flow.Traced.
func (o *operator) Tracer() *flow.Tracer {
	if o.task.follow == nil {
		return nil
	}
	return o.task.follow.tracer
}

// Substitute implements flow.Substituter.
func (o *operator) Substitute() any {
	if o.task.env.Substitute == nil {
		return nil
	}
	return o.task.env.Substitute(o.node, o.Subtask())
}

// HeldBack implements flow.Aligning.
func (o *operator) HeldBack() func() { return o.task.env.OnHeldBack }

// Wake implements flow.Runtime.
func (o *operator) Wake() { o.task.Wake() }

// An operator has at most maxCounters, since all of them travel with every heartbeat. What is counted under more names than
// that, by a function that makes one of every record's key for example, is counted together as moreCounters.
const (
	maxCounters  = 1000
	moreCounters = "other counters"
)

// Counter implements flow.Runtime.
func (o *operator) Counter(name string) *flow.Counter {
	name = cluster.Clip(name, cluster.MaxName)
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.counters[name]
	if c == nil && len(o.counters) >= maxCounters {
		name = moreCounters
		c = o.counters[name]
	}
	if c == nil {
		c = &flow.Counter{}
		o.counters[name] = c
	}
	return c
}

// Option implements flow.Runtime.
func (o *operator) Option(name string) (string, bool) { return o.task.env.Option(name) }

// Logger implements flow.Runtime.
func (o *operator) Logger() *slog.Logger { return o.log }

// FlushTimeout implements flow.Runtime.
func (o *operator) FlushTimeout() time.Duration { return o.task.env.FlushTimeout }

// read returns the counters' values.
func (o *operator) read() map[string]int64 {
	o.mu.Lock()
	all := maps.Clone(o.counters)
	o.mu.Unlock()
	values := make(map[string]int64, len(all))
	for name, c := range all {
		values[name] = c.Load()
	}
	return values
}
