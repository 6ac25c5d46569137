package agent_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/testjob"
)

// A function that ends its goroutine must not leave the job waiting for ever.
func TestGoexitFailsTheTask(t *testing.T) {
	for _, where := range []string{"function", "sink's close"} {
		t.Run(where, func(t *testing.T) {
			m := newMaster(t)
			job := heddle.NewJob("exits")
			in := heddle.FromSource(job, words(1, 100)).Rebalance()
			mapped := heddle.Map(in, func(w string) string {
				if where == "function" && w == "word-50" {
					runtime.Goexit()
				}
				return w
			}).Name("quitter")
			heddle.ToSink(mapped, &exitingSink{exits: where != "function"})
			plan := compile(t, job, 1)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			end := m.start(ctx, t, "agent-1", job, plan, nil)
			m.deploy(t, plan, 1, "agent-1")
			id := cluster.ExecutionID{Vertex: 1}
			m.await(t, "the failure", func() bool {
				us := m.updates[id]
				return len(us) > 0 && us[len(us)-1].GetState() == int32(cluster.Failed)
			})
			m.mu.Lock()
			f := ctl.Failure(m.updates[id][len(m.updates[id])-1].GetError())
			m.mu.Unlock()
			if f.Kind != cluster.Invalid || !strings.Contains(f.Message, "runtime.Goexit") {
				t.Errorf("failed by %#v", f)
			}
			cancel()
			if err := end(); err != nil {
				t.Error(err)
			}
		})
	}
}

// exitingSink ends the goroutine when it is closed.
type exitingSink struct {
	testjob.Sink[string]
	exits bool
}

func (s *exitingSink) NewWriter(ctx context.Context, rt flow.Runtime) (flow.SinkWriter[string], error) {
	w, err := s.Sink.NewWriter(ctx, rt)
	return exitingWriter{w, s.exits}, err
}

type exitingWriter struct {
	flow.SinkWriter[string]
	exits bool
}

func (w exitingWriter) Close() error {
	err := w.SinkWriter.Close()
	if w.exits {
		runtime.Goexit()
	}
	return err
}

// Whoever is told to end by a signal says so of its tasks: for the master, nobody else has a better reason.
func TestTaskOfAnEndedAgentSaysWhy(t *testing.T) {
	m := newMaster(t)
	job := wordCount(words(1, -1), &testjob.Sink[count]{})
	plan := compile(t, job, 1)
	ctx, cancel := context.WithCancelCause(t.Context())
	end := m.start(ctx, t, "agent-1", job, plan, nil)
	m.deploy(t, plan, 1, "agent-1")
	source := cluster.ExecutionID{}
	m.await(t, "the source", func() bool { return len(m.updates[source]) > 1 })
	cancel(errors.New("terminated signal received"))
	for id, u := range m.awaitFinal(t, plan) {
		want := "agent agent-1 was told to end: terminated signal received"
		if u.GetState() != int32(cluster.Canceled) || u.GetError().GetMessage() != want {
			t.Errorf("task %v ended as %v, want %s", id, u, want)
		}
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	m.await(t, "its farewell", func() bool { return m.goodbyes["agent-1"] == "told to end: terminated signal received" })
}
