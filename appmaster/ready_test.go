package appmaster

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
	"github.com/heddle-stream/heddle/internal/flow"
)

// TestNotReady deploys nothing before every connector and format has said that it is ready, and fails the job by what one lacks, as bad input of its operator.
func TestNotReady(t *testing.T) {
	for _, c := range []struct {
		ready func() error
		kind  cluster.ErrorKind
		want  string
	}{
		{func() error { return errors.New("no such subject") }, cluster.Invalid, "no such subject"},
		{func() error { panic("a bug") }, cluster.Internal, "a bug"},
	} {
		answer := make(chan struct{})
		src := &fakeSource{discover: func(int) (flow.Discovery, error) { return flow.Discovery{Final: true}, nil }}
		d := &fakeDriver{behave: func(a *fakeAgent) {
			a.onTask = func(a *fakeAgent, task *ctlpb.Task) { t.Error("a task was deployed") }
		}}
		cfg := config(t, src, d)
		sink := cfg.Job.Nodes[len(cfg.Job.Nodes)-1]
		sink.Ready = func(context.Context, func(string) (string, bool)) error {
			<-answer
			return c.ready()
		}
		m, out := start(t, t.Context(), cfg)
		await(t, m, "slots taken", func(s *Snapshot) bool { return s.Slots.Total == 2 && s.Slots.Free == 0 })
		await(t, m, "said what is waited for", func(s *Snapshot) bool { return s.Waiting == "sink "+sink.Title()+" to say that it is ready" })
		close(answer)
		r := <-out
		if r.State != "failed" || r.Cause == nil || r.Cause.Kind != c.kind.String() || r.Cause.Operator != sink.Title() || r.Cause.Subtask != nil || !strings.Contains(r.Cause.Message, c.want) {
			t.Errorf("state %s, cause %+v", r.State, r.Cause)
		}
	}
}
