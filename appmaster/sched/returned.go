package sched

import (
	"fmt"
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
)

// onAgentReturned brings the agent and the job to one view: what the agent says of its tasks is believed, orders that were lost
// are given again, and what it runs without being meant to is stopped.
func (m *Machine) onAgentReturned(now time.Time, ev AgentReturned) (out []Effect) {
	known := make(map[cluster.ExecutionID]cluster.TaskState, len(ev.Tasks))
	var stale []cluster.ExecutionID
	for _, t := range ev.Tasks {
		if i := m.find(t.ID); i >= 0 && m.execs[i].slot >= 0 && m.slots[m.execs[i].slot].ID.Agent == ev.Agent {
			known[t.ID] = t.State
		} else if !t.State.Final() {
			stale = append(stale, t.ID)
		}
	}
	if len(stale) > 0 {
		out = append(out, CancelTasks{ev.Agent, stale, "the job does not have it here"})
	}
	out = append(out, m.repeat(ev.Agent, known)...)
	for _, t := range ev.Tasks {
		if _, ok := known[t.ID]; ok {
			out = append(out, m.onTaskChanged(now, t)...)
		}
	}
	return append(out, m.missing(now, ev.Agent, known)...)
}

// repeat gives orders again that an agent has not got, as far as can be told from the tasks it knows.
func (m *Machine) repeat(agent cluster.AgentID, known map[cluster.ExecutionID]cluster.TaskState) (out []Effect) {
	again := Deploy{Agent: agent}
	for _, i := range m.byAgent[agent] {
		e := &m.execs[i]
		if _, ok := known[e.id]; !ok && e.state == cluster.Deploying {
			again.Tasks = append(again.Tasks, m.task(i, &m.slots[e.slot]))
		}
	}
	if len(again.Tasks) > 0 {
		out = append(out, again)
	}
	var stop []cluster.ExecutionID
	for _, id := range m.canceling(agent) {
		if state, ok := known[id]; ok && !state.Final() {
			stop = append(stop, id)
		}
	}
	if len(stop) > 0 {
		out = append(out, CancelTasks{agent, stop, "it was told to stop before its session broke"})
	}
	return out
}

// missing ends tasks that an agent should have and does not know: those that were to stop have not begun, others are lost.
func (m *Machine) missing(now time.Time, agent cluster.AgentID, known map[cluster.ExecutionID]cluster.TaskState) (out []Effect) {
	for _, i := range m.byAgent[agent] {
		e := &m.execs[i]
		_, ok := known[e.id]
		switch {
		case ok:
		case e.state == cluster.Canceling:
			out = append(out, m.onTaskChanged(now, TaskChanged{ID: e.id, State: cluster.Canceled})...)
		case e.state == cluster.Running:
			f := cluster.Failure{Kind: cluster.Internal, Message: fmt.Sprintf("agent %s came back without task %v", agent, e.id)}
			out = append(out, m.onTaskChanged(now, TaskChanged{ID: e.id, State: cluster.Failed, Failure: f})...)
		}
	}
	return out
}
