package agent_test

import (
	"testing"
	"time"

	heddle "github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl"
	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
	"github.com/heddle-stream/heddle/internal/testjob"
)

// TestFirstFiguresComeEarly has a master that wants heartbeats once an hour: the first figures of a task that runs are told nevertheless.
func TestFirstFiguresComeEarly(t *testing.T) {
	m := newMaster(t)
	m.heartbeat, m.timeout = time.Hour, 2*time.Hour
	job := heddle.NewJob("endless")
	heddle.ToSink(heddle.FromSource(job, words(1, -1)), &testjob.Sink[string]{})
	plan := compile(t, job, 1)
	m.start(t.Context(), t, "agent-1", job, plan, nil)
	m.deploy(t, plan, 1, "agent-1")
	m.await(t, "the first figures", func() bool {
		for _, r := range m.beats["agent-1"].GetTasks() {
			for _, o := range r.GetOperators() {
				if o.GetCounters()["records_out"] > 0 {
					return true
				}
			}
		}
		return false
	})
	m.order("agent-1", &ctlpb.FromMaster{M: &ctlpb.FromMaster_Cancel{Cancel: &ctlpb.Cancel{Ids: []*ctlpb.ExecutionID{ctl.PBExecution(cluster.ExecutionID{})}, Reason: "test"}}})
	m.awaitFinal(t, plan)
	m.order("agent-1", &ctlpb.FromMaster{M: &ctlpb.FromMaster_Shutdown{Shutdown: &ctlpb.Shutdown{Reason: "done"}}})
}
