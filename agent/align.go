package agent

import (
	"maps"

	"github.com/heddle-stream/heddle/agent/task"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl"
	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
)

// groupMarks is how far the slowest subtasks of groups of sources are, as the master last said. It is never changed, but replaced.
type groupMarks map[string]int64

// tell tells a task of its group.
func (g groupMarks) tell(t *task.Task) {
	if least, ok := g[t.AlignGroup()]; ok {
		t.Align(least)
	}
}

// taskHeldBack says that a source waits to hear how far others are.
type taskHeldBack struct{ e *execution }

// align takes note of how far groups are, for all tasks there are and will be.
func (a *agent) align(msg *ctlpb.Alignment) {
	least := maps.Clone(a.least)
	if least == nil {
		least = groupMarks{}
	}
	for _, g := range msg.GetGroups() {
		least[g.GetGroup()] = g.GetLeast()
	}
	a.least = least
	for _, e := range a.executions {
		e.align(least)
	}
}

// align passes on how far groups are, or keeps it until the task is built.
func (e *execution) align(least groupMarks) {
	e.mu.Lock()
	defer e.mu.Unlock() // it tells so as not to be overtaken by what came before
	if e.task == nil {
		e.least = least
		return
	}
	least.tell(e.task)
}

// heldBack tells the master where a source stands that waits for its group. Without a session the next one's first heartbeat says so.
func (a *agent) heldBack(e *execution) {
	t := e.running()
	if t == nil || e.state != cluster.Deploying && e.state != cluster.Running {
		return
	}
	if mark, ok := t.AlignMark(); ok {
		a.send(&ctlpb.FromAgent{M: &ctlpb.FromAgent_HeldBack{HeldBack: &ctlpb.HeldBack{Id: ctl.PBExecution(e.id), Mark: mark}}})
	}
}
