package agent_test

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"testing"

	"github.com/heddle-stream/heddle/agent"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl"
	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
	"github.com/heddle-stream/heddle/internal/jobgraph"
	"github.com/heddle-stream/heddle/internal/testjob"
)

// deployTogether is deploy with one order for each agent, in as many parts as it has tasks.
func (m *master) deployTogether(t *testing.T, plan *jobgraph.Graph, agents ...string) {
	t.Helper()
	m.await(t, "registrations", func() bool { return len(m.sessions) == len(agents) })
	addr := func(_, subtask int) string { return m.sessions[agents[subtask%len(agents)]].reg.GetExchangeAddr() }
	orders := map[string]*ctlpb.Deploy{}
	for v := range plan.Vertices {
		for sub := range plan.Vertices[v].Parallelism {
			d := deployment(plan, cluster.ExecutionID{Vertex: v, Subtask: sub}, addr)
			d.Slot, d.Allocation = int32(sub/len(agents)), uint64(1+sub)
			d.NoMoreSplits = plan.Vertices[v].Source >= 0
			a := agents[sub%len(agents)]
			if orders[a] == nil {
				orders[a] = &ctlpb.Deploy{}
			}
			orders[a].Tasks = append(orders[a].Tasks, d)
		}
	}
	for a, o := range orders {
		for i, d := range o.Tasks {
			part := &ctlpb.Deploy{Tasks: []*ctlpb.Task{d}, More: i < len(o.Tasks)-1}
			m.order(a, &ctlpb.FromMaster{M: &ctlpb.FromMaster_Deploy{Deploy: part}})
		}
	}
}

// What an agent says that it lacks is enough for all of its tasks, so that whoever follows the advice need not do so again.
func TestMemoryAdviceIsEnough(t *testing.T) {
	const segment = 4096
	run := func(t *testing.T, segments int) (cluster.TaskState, cluster.Failure) {
		m := newMaster(t)
		job := wordCount(words(0, 0), &testjob.Sink[count]{})
		plan := compile(t, job, 4)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for _, id := range []string{"agent-1", "agent-2"} {
			m.start(ctx, t, id, job, plan, func(c *agent.Config) {
				c.Exchange.SegmentBytes, c.Exchange.MemorySegments, c.Exchange.FloatingPerGate = segment, segments, -1
			})
		}
		m.deployTogether(t, plan, "agent-1", "agent-2")
		var state cluster.TaskState
		var f cluster.Failure
		for _, u := range m.awaitFinal(t, plan) {
			if state = max(state, cluster.TaskState(u.GetState())); u.GetError() != nil {
				f = ctl.Failure(u.GetError())
			}
		}
		return state, f
	}
	state, f := run(t, 4)
	advice := regexp.MustCompile(`for the 4 tasks of agent agent-[12]: needs \d+ segments .* at least (\d+)KiB`).FindStringSubmatch(f.Message)
	if state != cluster.Failed || f.Kind != cluster.Invalid || advice == nil {
		t.Fatalf("%v: %#v", state, f)
	}
	kib, err := strconv.Atoi(advice[1])
	if err != nil {
		t.Fatal(err)
	}
	bytes := kib << 10
	if state, f := run(t, bytes/segment); state != cluster.Finished {
		t.Errorf("with %d bytes, as advised: %v, %s", bytes, state, fmt.Sprint(f))
	}
	if state, _ := run(t, bytes/segment*9/10); state != cluster.Failed {
		t.Errorf("with a tenth less than advised: %v, so the advice is too high", state)
	}
}
