package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/heddle-stream/heddle/agent/task"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl"
	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
	"github.com/heddle-stream/heddle/netstack"
)

// deployAll starts the executions of one order: all of them or, if memory for all can't be set aside, none. Thus the master
// hears what all of them need, not what the first lacks that finds none left.
func (a *agent) deployAll(ctx context.Context, order []*ctlpb.Task) {
	short := a.checkMemory(order)
	for _, d := range order {
		if id := ctl.Execution(d.GetId()); short != nil && a.executions[id] == nil {
			a.refuse(&execution{id: id, slot: int(d.GetSlot()), allocation: cluster.AllocationID(d.GetAllocation()), cancel: func() {}}, short)
			continue
		}
		a.deploy(ctx, d)
	}
}

// checkMemory fails if the exchange has not the memory for all new tasks of an order.
func (a *agent) checkMemory(order []*ctlpb.Task) error {
	need, tasks := 0, 0
	for _, d := range order {
		if a.executions[ctl.Execution(d.GetId())] != nil {
			continue
		}
		spec, err := a.specOf(d)
		if err != nil {
			return nil // deploy says so
		}
		need += task.NetSegments(a.stack, &spec)
		tasks++
	}
	return a.stack.CheckMemory(fmt.Sprintf("the %d tasks of agent %s", tasks, a.cfg.Secrets.AgentID), need)
}

// deploy starts one execution. An order that comes twice is obeyed once.
func (a *agent) deploy(ctx context.Context, d *ctlpb.Task) {
	id := ctl.Execution(d.GetId())
	if a.executions[id] != nil {
		a.cfg.Logger.Debug("task is deployed already", "task", id)
		return
	}
	e := &execution{id: id, slot: int(d.GetSlot()), allocation: cluster.AllocationID(d.GetAllocation()), cancel: func() {}}
	if err := a.slots.occupy(e.slot, e.allocation, id); err != nil {
		a.refuse(e, err)
		return
	}
	spec, err := a.specOf(d)
	if err != nil {
		a.slots.vacate(e.slot, id)
		a.refuse(e, err)
		return
	}
	spec.Splits = e.unseen(spec.Splits)
	e.align(a.least)
	ctx, e.cancel = context.WithCancel(ctx)
	a.add(e)
	a.become(e, cluster.Deploying)
	birth := a.birth(d.GetTraceparent(), id)
	env := task.Env{
		Exchange: a.net, Option: a.cfg.Option, Logger: a.cfg.Logger, FlushTimeout: a.cfg.FlushTimeout, Follow: a.cfg.Follow,
		OnRunning: func() {
			birth.opened()
			a.events.put(taskRunning{e})
		},
		OnFirst:    birth.first(),
		OnHeldBack: func() { a.events.put(taskHeldBack{e}) },
	}
	a.wg.Go(func() {
		end := taskEnded{e: e}
		defer func() { a.events.put(end) }()
		e.run(ctx, spec, env, &end)
	})
}

func (a *agent) add(e *execution) {
	a.executions[e.id] = e
	a.order = append(a.order, e.id)
}

// refuse reports an execution that can't be started.
func (a *agent) refuse(e *execution, why error) {
	e.failure = &cluster.Failure{Kind: cluster.Internal, Message: fmt.Sprintf("agent %s refused task %v: %v", a.cfg.Secrets.AgentID, e.id, why)}
	if local, ok := errors.AsType[*netstack.LocalError](why); ok {
		e.failure.Kind = local.Kind
	}
	a.add(e)
	a.become(e, cluster.Failed)
}

// cancel tells one execution to stop. One that is not known, or has ended, was reported or will be.
func (a *agent) cancel(id cluster.ExecutionID, reason string) {
	e := a.executions[id]
	if e == nil || e.state.Final() || e.state == cluster.Canceling {
		return
	}
	a.cfg.Logger.Info("cancelling a task", "task", id, "reason", reason)
	e.asked = time.Now()
	a.become(e, cluster.Canceling)
	e.cancel()
}

// ended takes note of how a task ended.
func (a *agent) ended(ev taskEnded) {
	e := ev.e
	e.cancel()
	a.slots.vacate(e.slot, e.id)
	if ev.result.State == cluster.Failed {
		e.failure = &ev.result.Failure
	}
	if ev.result.State == cluster.Canceled && e.asked.IsZero() && a.unasked != "" {
		e.failure = &cluster.Failure{Kind: cluster.Cancelled, Message: fmt.Sprintf("agent %s was %s", a.cfg.Secrets.AgentID, a.unasked)}
	}
	e.report = ev.report
	a.become(e, ev.result.State)
}

// become is every change of an execution's state: noted, logged, and sent at once.
//
//	Deploying → Running → Finished | Failed
//	Deploying | Running → Canceling → Canceled | Finished | Failed
//	Deploying → Failed
func (a *agent) become(e *execution, s cluster.TaskState) {
	if e.state.Final() {
		panic(fmt.Sprintf("agent: task %v becomes %v after %v", e.id, s, e.state))
	}
	e.state = s
	if e.failure != nil {
		a.cfg.Logger.Warn("task state", "task", e.id, "state", s, "err", e.failure.ForLog())
	} else {
		a.cfg.Logger.Info("task state", "task", e.id, "state", s)
	}
	if s.Final() {
		e.toldWith = a.seq + 1
	}
	a.send(&ctlpb.FromAgent{M: &ctlpb.FromAgent_Task{Task: e.update()}})
}

// forget drops what ended before heartbeat number seq, which the master has: messages keep their order, so it knows.
func (a *agent) forget(seq uint64) {
	kept := a.order[:0]
	for _, id := range a.order {
		if e := a.executions[id]; e.state.Final() && e.toldWith <= seq {
			delete(a.executions, id)
			continue
		}
		kept = append(kept, id)
	}
	a.order = kept
}

// watchCancelled reports tasks that do not stop, once, with what they are doing.
func (a *agent) watchCancelled() {
	for _, id := range a.order {
		e := a.executions[id]
		if e.state != cluster.Canceling || e.stuck || time.Since(e.asked) < a.cfg.CancelTimeout {
			continue
		}
		e.stuck = true
		stack := "it is being built"
		if t := e.running(); t != nil {
			stack = t.Stack()
		}
		a.cfg.Logger.Error("a task does not stop: a function of the job ignores that its context is cancelled",
			"task", id, "since", a.cfg.CancelTimeout, "stack", stack)
		u := e.update()
		u.Error = ctl.PBFailure(cluster.Failure{Kind: cluster.Invalid, Message: fmt.Sprintf(
			"task %v does not stop %v after it was cancelled: a function ignores its context\n%s", id, a.cfg.CancelTimeout, stack)})
		a.send(&ctlpb.FromAgent{M: &ctlpb.FromAgent_Task{Task: u}})
	}
}

// shutDown stops what still runs, reports how it ended, and takes leave. Tasks have been cancelled with the loop's context.
func (a *agent) shutDown(reason string, cause error) {
	ended := make(chan struct{})
	go func() { // ends with the last task; not waited for if a task does not stop
		a.wg.Wait()
		close(ended)
	}()
	deadline := time.NewTimer(a.cfg.StopTimeout)
	defer deadline.Stop()
	for waiting := true; waiting; {
		select {
		case <-a.events.signal:
			a.drain()
		case <-ended:
			a.drain()
			waiting = false
		case <-deadline.C:
			waiting = false
			for _, id := range a.order {
				if e := a.executions[id]; !e.state.Final() {
					a.cfg.Logger.Error("ending although a task does not stop", "task", id)
				}
			}
		}
	}
	if a.link == nil {
		return
	}
	if cause == nil {
		a.send(&ctlpb.FromAgent{M: &ctlpb.FromAgent_Goodbye{Goodbye: &ctlpb.Goodbye{Reason: reason}}})
	}
	a.link.close()
}

// drain applies the events that still come while the agent ends.
func (a *agent) drain() {
	for _, ev := range a.events.take() {
		switch ev := ev.(type) {
		case taskEnded:
			a.ended(ev)
		case joined:
			if ev.sess != nil {
				newLink(ev.sess, a.events).close()
			}
		}
	}
}
