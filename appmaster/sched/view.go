package sched

import (
	"iter"
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/jobgraph"
)

// State returns where the job stands and since when.
func (m *Machine) State() (State, time.Time) { return m.state, m.since }

// Attempt returns how often the job was restarted by this machine.
func (m *Machine) Attempt() int { return m.attempt - m.cfg.FirstAttempt }

// Graph returns the job as wide as the present attempt makes it.
func (m *Machine) Graph() *jobgraph.Graph { return m.graph }

// Adaptive reports whether the job's mode wants to know how many slots are Available.
func (m *Machine) Adaptive() bool { return m.cfg.Mode != Mode(Fixed{}) }

// Cause returns why the job failed or is failing, as far as is known; nil if it does not fail.
func (m *Machine) Cause() *Cause {
	if m.cause == nil {
		return nil
	}
	c := *m.cause
	return &c
}

// Counts returns how many tasks of a vertex are in each state.
func (m *Machine) Counts(vertex int) [cluster.Failed + 1]int { return m.byState[vertex] }

// HasSlots reports whether the present attempt has its slots.
func (m *Machine) HasSlots() bool { return len(m.slots) > 0 }

// Needs returns how many slots the job needs now: those of its groups that have not finished.
func (m *Machine) Needs() int {
	n := 0
	for i, g := range m.groups {
		if !m.freed[i] {
			n += g.width
		}
	}
	return n
}

// Slots returns how many slots the job needs for all that it does.
func (m *Machine) Slots() int {
	n := 0
	for _, g := range m.groups {
		n += g.width
	}
	return n
}

// Execution is a task as seen from outside.
type Execution struct {
	ID      cluster.ExecutionID
	State   cluster.TaskState
	Since   time.Time
	Slot    cluster.SlotID // zero: none yet
	Failure cluster.Failure
}

// Executions goes through the present attempt's tasks of a vertex, by subtask.
func (m *Machine) Executions(vertex int) iter.Seq[Execution] {
	return func(yield func(Execution) bool) {
		for i := m.first[vertex]; i < m.first[vertex+1]; i++ {
			if !yield(m.view(i)) {
				return
			}
		}
	}
}

// Execution returns a task of the present attempt.
func (m *Machine) Execution(vertex, subtask int) Execution { return m.view(m.first[vertex] + subtask) }

func (m *Machine) view(i int) Execution {
	e := &m.execs[i]
	v := Execution{ID: e.id, State: e.state, Since: e.since, Failure: e.failure}
	if e.slot >= 0 {
		v.Slot = m.slots[e.slot].ID
	}
	return v
}
