package inproc

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/agent/task"
)

// StuckError is Run's error when tasks do not stop though their context has ended: a function of the job ignores it. Their
// goroutines are left behind.
type StuckError struct {
	Err   error // why they were to stop
	Grace time.Duration
	Tasks []Stuck // none if it is an enumerator that does not end
}

// Stuck is a task that does not stop.
type Stuck struct {
	Name  string
	Stack string // of its goroutine
}

func (e *StuckError) Error() string {
	names := make([]string, len(e.Tasks))
	for i, t := range e.Tasks {
		names[i] = t.Name
	}
	what := "task " + strings.Join(names, ", ")
	if len(names) == 0 {
		what = "discovery of a source's splits"
	}
	return fmt.Sprintf("%v; %s did not stop within %v: a function ignores its context", e.Err, what, e.Grace)
}

// Unwrap returns why the tasks were to stop.
func (e *StuckError) Unwrap() error { return e.Err }

// stuck describes the tasks that run.
func (r *run) stuck(err error) error {
	r.mu.Lock()
	ended := slices.Clone(r.ended)
	r.mu.Unlock()
	e := &StuckError{Err: err, Grace: r.cfg.StopGrace}
	for v, subtasks := range r.tasks {
		for i, t := range subtasks {
			if !slices.Contains(ended, t) {
				e.Tasks = append(e.Tasks, Stuck{fmt.Sprintf("%s, subtask %d", r.cfg.Compiled.Vertices[v].Name, i), t.Stack()})
			}
		}
	}
	return e
}

// end notes that a task has ended.
func (r *run) end(t *task.Task) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = append(r.ended, t)
}
