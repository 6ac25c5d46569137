package inproc_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/internal/inproc"
	"github.com/heddle-stream/heddle/internal/jobgraph"
	"github.com/heddle-stream/heddle/internal/testjob"
)

// A task that does not stop is left behind and named, with what it is doing.
func TestStuck(t *testing.T) {
	at, release := make(chan struct{}, 1), make(chan struct{})
	job := heddle.NewJob("stuck")
	in := heddle.FromSource(job, words(1, -1))
	sink := &testjob.Sink[string]{}
	heddle.ToSink(heddle.Map(in, func(w string) string {
		select {
		case at <- struct{}{}:
		default:
		}
		<-release
		return w
	}), sink)
	plan, err := jobgraph.Compile(job.Graph(), jobgraph.Options{Parallelism: 1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	go func() {
		<-at
		cancel(why)
	}()
	err = inproc.Run(ctx, inproc.Config{Graph: job.Graph(), Compiled: plan, StopGrace: 20 * time.Millisecond})
	close(release)
	stuck, ok := errors.AsType[*inproc.StuckError](err)
	if !ok || !errors.Is(err, why) || len(stuck.Tasks) != 1 || !strings.Contains(stuck.Tasks[0].Stack, "TestStuck") {
		t.Errorf("ended with %v, want a stuck task with its stack", err)
	}
}
