package agent

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/heddle-stream/heddle/agent/task"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl"
	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
	"github.com/heddle-stream/heddle/internal/flow"
)

// execution is one task from its deployment until the master knows how it ended.
type execution struct {
	// Immutable.
	id         cluster.ExecutionID
	slot       int
	allocation cluster.AllocationID
	cancel     context.CancelFunc

	// Owned by the agent's loop.
	state    cluster.TaskState
	failure  *cluster.Failure
	report   *ctlpb.TaskReport // the last one, with a final state
	asked    time.Time         // when it was told to stop
	stuck    bool              // that it does not stop was reported
	toldWith uint64            // number of the first heartbeat after its final state was sent
	seen     map[string]bool   // splits that it was given: those given again are not new

	mu     sync.Mutex
	task   *task.Task   // guarded by mu; nil until it is built
	splits []flow.Split // guarded by mu: came before that
	noMore bool         // guarded by mu: came before that
	least  groupMarks   // guarded by mu: what it is to know once it is built
}

// addSplits hands splits that are new to the task, or keeps them until it is built.
func (e *execution) addSplits(splits []flow.Split, noMore bool) {
	splits = e.unseen(splits)
	e.mu.Lock()
	t := e.task
	if t == nil {
		e.splits = append(e.splits, splits...)
		e.noMore = e.noMore || noMore
	}
	e.mu.Unlock()
	if t != nil {
		t.AddSplits(splits, noMore)
	}
}

// delivered passes a mark on. One that comes before the task is built would be followed by others.
func (e *execution) delivered(mark uint64) {
	if t := e.running(); t != nil {
		t.Delivered(mark)
	}
}

// unseen returns the splits that were not given before. The agent's loop calls it.
func (e *execution) unseen(splits []flow.Split) []flow.Split {
	if e.seen == nil {
		e.seen = make(map[string]bool, len(splits))
	}
	return slices.DeleteFunc(splits, func(s flow.Split) bool {
		was := e.seen[s.ID]
		e.seen[s.ID] = true
		return was
	})
}

// built makes the task known and gives it what came before.
func (e *execution) built(t *task.Task) {
	e.mu.Lock()
	e.task = t
	splits, noMore, least := e.splits, e.noMore, e.least
	e.splits, e.least = nil, nil
	least.tell(t)
	e.mu.Unlock()
	t.AddSplits(splits, noMore)
}

func (e *execution) running() *task.Task {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.task
}

// update is the execution's state for the master.
func (e *execution) update() *ctlpb.TaskUpdate {
	u := &ctlpb.TaskUpdate{
		Id: ctl.PBExecution(e.id), State: int32(e.state), Slot: int32(e.slot), Allocation: uint64(e.allocation), Report: e.report,
	}
	if e.failure != nil {
		u.Error = ctl.PBFailure(*e.failure)
	}
	return u
}

// run builds and runs a task. It is the task's goroutine, which need not outlive it: end holds how the task ended then too.
func (e *execution) run(ctx context.Context, spec task.Spec, env task.Env, end *taskEnded) {
	returned := false
	end.result = task.Result{State: cluster.Failed, Failure: task.FailureOf(task.ErrExited)}
	defer func() {
		if p := recover(); p != nil {
			end.result.State = cluster.Failed
			end.result.Failure = cluster.Failure{Kind: cluster.Internal, Message: fmt.Sprintf("panic while ending task %v: %v", e.id, p)}
			env.Logger.Error("a task panicked while it ended", "task", e.id, "panic", p, "stack", string(debug.Stack()))
		} else if t := e.running(); !returned && t != nil {
			end.result = t.Exited()
			end.report = reportOf(t)
		}
	}()
	t, err := task.New(spec, env)
	if err != nil {
		end.result.Failure = task.FailureOf(err)
		returned = true
		return
	}
	e.built(t)
	end.result = t.Run(ctx)
	end.report = reportOf(t)
	returned = true
}

// specOf translates a deployment, and checks it against this process's job.
func (a *agent) specOf(d *ctlpb.Task) (task.Spec, error) {
	id := ctl.Execution(d.GetId())
	if a.cfg.Plan == nil {
		return task.Spec{}, fmt.Errorf("this agent could not build the job")
	}
	if id.Vertex < 0 || id.Vertex >= len(a.cfg.Plan.Vertices) {
		return task.Spec{}, fmt.Errorf("the job has no vertex %d", id.Vertex)
	}
	spec := task.Spec{ID: id, Graph: a.cfg.Graph, Plan: a.cfg.Plan, Splits: splitsOf(d.GetSplits()), NoMoreSplits: d.GetNoMoreSplits()}
	for _, in := range d.GetInputs() {
		input := task.Input{Edge: int(in.GetEdge())}
		for _, c := range in.GetChannels() {
			input.Channels = append(input.Channels, task.Channel{
				Partition: c.GetPartition(), Subpartition: int(c.GetSubpartition()),
				Addr: c.GetAddr(), ConnIndex: c.GetConnIndex(), Producer: int(c.GetProducer()),
			})
		}
		spec.Inputs = append(spec.Inputs, input)
	}
	for _, out := range d.GetOutputs() {
		if out.GetSubpartitions() < 0 {
			return spec, fmt.Errorf("output %d has %d subpartitions", out.GetEdge(), out.GetSubpartitions())
		}
		spec.Outputs = append(spec.Outputs, task.Output{Edge: int(out.GetEdge()), Partition: out.GetPartition(), Subpartitions: int(out.GetSubpartitions())})
	}
	return spec, nil
}

func splitsOf(splits []*ctlpb.Split) []flow.Split {
	out := make([]flow.Split, 0, len(splits))
	for _, s := range splits {
		out = append(out, flow.Split{ID: string(s.GetId()), State: s.GetState()})
	}
	return out
}
