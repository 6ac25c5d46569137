package task

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/flow"
)

// Result is how a task ended: Finished, Canceled or Failed, with the reason for the last.
type Result struct {
	State   cluster.TaskState
	Failure cluster.Failure
}

// Run runs the task until it ends, is cancelled (by Cancel or ctx) or fails. It is the task's goroutine; the caller owns it.
func (t *Task) Run(ctx context.Context) Result {
	t.goroutine.Store(goroutineID())
	defer context.AfterFunc(ctx, t.Cancel)()
	given := ctx
	ctx, cancel := context.WithCancel(given)
	defer cancel()
	t.mu.Lock()
	t.cancelRun = cancel
	t.mu.Unlock()
	if t.cancelled.Load() {
		cancel() // Cancel may have come too early to find it
	}
	err := t.run(ctx)
	if err == nil {
		return Result{State: cluster.Finished}
	}
	// Functions may have seen the context's end before the task did; so may another task of the same context, whose partition failed ours, and that
	// before the end has got as far as the context derived from it.
	if given.Err() != nil {
		t.Cancel()
	}
	return t.ended(failureOf(err, t.current))
}

// ErrExited is why a task fails whose goroutine ended before its work was done: no panic shows that, so whoever owns a
// task's goroutine finds it out by a deferred function, and calls Exited there.
var ErrExited error = cluster.Failure{Kind: cluster.Invalid, Message: "a function of the job ended its goroutine " +
	"(runtime.Goexit, which FailNow and Fatal of a test call too): it must return an error instead"}

// Exited ends a task whose goroutine ends although Run did not return, and returns what Run would have returned.
func (t *Task) Exited() Result {
	f := FailureOf(ErrExited)
	if t.current != nil {
		f.Operator = t.current.node.Title()
		f.Message = t.current.place() + ": " + f.Message
	}
	return t.ended(f)
}

// ended aborts the task because of a failure, which does not count if it was cancelled.
func (t *Task) ended(failure cluster.Failure) Result {
	t.follow.abandon()
	cancelled := t.cancelled.Load()
	cause := error(failure)
	if cancelled {
		cause = ErrCancelled
	}
	closeErr := t.Abort(cause)
	t.follow.giveUp()
	switch {
	case cancelled:
		if closeErr != nil {
			t.env.Logger.Warn("closing a cancelled task", "err", flow.Logged(closeErr))
		}
		return Result{State: cluster.Canceled}
	case closeErr != nil:
		t.env.Logger.Warn("closing a failed task", "err", flow.Logged(closeErr))
	}
	return Result{State: cluster.Failed, Failure: failure}
}

// run is Run without the end. A panic becomes an error.
func (t *Task) run(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			where := "chain " + t.vertex.Name
			if t.current != nil {
				where = t.current.place()
			}
			f := panicFailure(p, where)
			if t.current != nil {
				f.Operator = t.current.node.Title()
			}
			err = f
			t.env.Logger.Error("a task panicked", "err", f.ForLog(), "stack", ownStack())
		}
	}()
	if err := t.Start(ctx); err != nil {
		return err
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		status, err := t.Step()
		if err != nil {
			return err
		}
		switch status {
		case Ended:
			return t.Finish(ctx)
		case Waiting:
			t.wait(timer)
		}
	}
}

// wait returns when the task was woken or cancelled, or a timer is due.
func (t *Task) wait(timer *time.Timer) {
	select {
	case <-t.wake:
		return
	default:
	}
	t.meter.enter(idle)
	defer t.meter.leave()
	if t.nextTimer == flow.MaxTime {
		select {
		case <-t.wake:
		case <-t.done:
		}
		return
	}
	timer.Reset(t.untilTimer())
	select {
	case <-t.wake:
	case <-t.done:
	case <-timer.C:
	}
}

// maxWait bounds one wait for a timer: a clock that is set back must not make it much longer.
const maxWait = time.Minute

// untilTimer is how long it takes until the next timer is due: rounded up, so that it is not found early.
func (t *Task) untilTimer() time.Duration {
	now := t.env.Clock()
	ms := t.nextTimer - now.UnixMilli()
	if ms >= int64(maxWait/time.Millisecond) {
		return maxWait
	}
	return max(0, time.UnixMilli(t.nextTimer).Sub(now))
}

// goroutineID returns the number of the calling goroutine as stacks show it.
func goroutineID() int64 {
	var buf [64]byte
	fields := strings.Fields(string(buf[:runtime.Stack(buf[:], false)]))
	if len(fields) < 2 {
		return 0
	}
	id, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return id
}

func ownStack() string {
	buf := make([]byte, 16<<10)
	return string(buf[:runtime.Stack(buf, false)])
}

// Stack returns the stack of the task's goroutine, to show what a task does that does not stop; "" if it has none.
func (t *Task) Stack() string {
	prefix := fmt.Sprintf("goroutine %d [", t.goroutine.Load())
	buf := make([]byte, 1<<20)
	for n := runtime.Stack(buf, true); n == len(buf) && n < 64<<20; n = runtime.Stack(buf, true) {
		buf = make([]byte, 2*len(buf))
	}
	for s := range strings.SplitSeq(strings.TrimRight(string(buf), "\x00"), "\n\n") {
		if strings.HasPrefix(s, prefix) {
			return s
		}
	}
	return ""
}
