package inproc_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/agent/task"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/inproc"
	"github.com/heddle-stream/heddle/internal/jobgraph"
	"github.com/heddle-stream/heddle/internal/testjob"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func words(splits, each int) *testjob.Source[string] {
	return &testjob.Source[string]{Splits: splits, Each: each, At: func(split, i int) string {
		return fmt.Sprint("word-", i%97)
	}}
}

type count = heddle.Windowed[string, int64]

func wordCount(src *testjob.Source[string], sink *testjob.Sink[count]) *heddle.Job {
	job := heddle.NewJob("word-count")
	in := heddle.FromSource(job, src)
	counts := heddle.Aggregate(heddle.Global(heddle.KeyBy(in, func(w string) string { return w })), heddle.Count[string]())
	heddle.ToSink(counts, sink)
	return job
}

func run(ctx context.Context, t *testing.T, job *heddle.Job, parallelism int, progress func([]task.Report)) error {
	t.Helper()
	plan, err := jobgraph.Compile(job.Graph(), jobgraph.Options{Parallelism: parallelism})
	if err != nil {
		t.Fatal(err)
	}
	return inproc.Run(ctx, inproc.Config{Graph: job.Graph(), Compiled: plan, FlushTimeout: 5 * time.Millisecond, Progress: progress})
}

func TestWordCount(t *testing.T) {
	for _, parallelism := range []int{1, 3} {
		sink := &testjob.Sink[count]{}
		var last []task.Report
		err := run(t.Context(), t, wordCount(words(5, 9700), sink), parallelism, func(r []task.Report) { last = r })
		if err != nil {
			t.Fatal(err)
		}
		got := sink.Records()
		if len(got) != 97 {
			t.Fatalf("parallelism %d: %d words, want 97", parallelism, len(got))
		}
		for _, c := range got {
			if c.Value != 500 {
				t.Errorf("parallelism %d: %s was counted %d times, want 500", parallelism, c.Key, c.Value)
			}
		}
		if sink.Open() != 0 {
			t.Errorf("%d sink writers were not closed", sink.Open())
		}
		var out, in int64
		for _, r := range last {
			for _, o := range r.Operators {
				if r.ID.Vertex == 0 {
					out += o.Counters[task.RecordsOut]
				} else if o.Node == 1 {
					in += o.Counters[task.RecordsIn]
				}
			}
		}
		if out != 5*9700 || in != out {
			t.Errorf("source counted %d records out and the window %d in, want %d", out, in, 5*9700)
		}
	}
}

func TestPanicNamesOperator(t *testing.T) {
	job := heddle.NewJob("boom")
	in := heddle.FromSource(job, words(4, -1)).Rebalance()
	mapped := heddle.Map(in, func(w string) string {
		if w == "word-50" {
			panic("fifty")
		}
		return w
	}).Name("shaky")
	sink := &testjob.Sink[string]{}
	heddle.ToSink(mapped, sink)
	err := run(t.Context(), t, job, 2, nil)
	f, ok := errors.AsType[cluster.Failure](err)
	if !ok || f.Operator != "shaky" || f.Kind != cluster.Invalid || !strings.Contains(f.Message, "fifty") || !strings.Contains(f.Message, `"word-50"`) {
		t.Errorf("failed with %#v, want a failure of operator shaky", err)
	}
	if sink.Open() != 0 {
		t.Errorf("%d sink writers were not closed", sink.Open())
	}
}

// A function that ends its goroutine must not leave the job waiting for ever.
func TestGoexitFailsTheJob(t *testing.T) {
	job := heddle.NewJob("exits")
	in := heddle.FromSource(job, words(1, -1)).Rebalance()
	sink := &testjob.Sink[string]{}
	heddle.ToSink(heddle.Map(in, func(w string) string {
		if w == "word-50" {
			runtime.Goexit()
		}
		return w
	}), sink)
	err := run(t.Context(), t, job, 2, nil)
	if f, ok := errors.AsType[cluster.Failure](err); !ok || f.Kind != cluster.Invalid || !strings.Contains(f.Message, "runtime.Goexit") {
		t.Errorf("failed with %#v", err)
	}
	if sink.Open() != 0 {
		t.Errorf("%d sink writers were not closed", sink.Open())
	}
}

// odd is a source whose enumerator ends in an odd way.
type odd struct {
	*testjob.Source[string]
	end func()
}

func (s odd) Enumerator(ctx context.Context, env flow.EnumeratorEnv) (flow.Enumerator, error) {
	e, err := s.Source.Enumerator(ctx, env)
	return oddEnumerator{e, s.end}, err
}

type oddEnumerator struct {
	flow.Enumerator
	end func()
}

func (e oddEnumerator) Discover(context.Context) (flow.Discovery, error) {
	e.end()
	return flow.Discovery{}, nil
}

func TestEnumeratorThatDoesNotReturn(t *testing.T) {
	for want, end := range map[string]func(){"runtime.Goexit": runtime.Goexit, "panic in the enumerator": func() { panic("boom") }} {
		job := heddle.NewJob("odd")
		heddle.ToSink(heddle.FromSource[string](job, odd{words(1, 10), end}), &testjob.Sink[string]{})
		if err := run(t.Context(), t, job, 2, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("failed with %v, want %s", err, want)
		}
	}
}

func TestCancel(t *testing.T) {
	for name, sink := range map[string]*testjob.Sink[count]{"flowing": {}, "blocked": {Block: true}} {
		t.Run(name, func(t *testing.T) {
			job := heddle.NewJob("endless")
			in := heddle.FromSource(job, words(3, -1)).Rebalance()
			heddle.ToSink(heddle.Map(in, func(w string) count { return count{Key: w} }), sink)
			ctx, cancel := context.WithCancelCause(t.Context())
			why := errors.New("enough")
			time.AfterFunc(50*time.Millisecond, func() { cancel(why) })
			if err := run(ctx, t, job, 2, nil); !errors.Is(err, why) {
				t.Errorf("cancelled run ended with %v, want %v", err, why)
			}
			if sink.Open() != 0 {
				t.Errorf("%d sink writers were not closed", sink.Open())
			}
		})
	}
}

func TestEnumeratorFails(t *testing.T) {
	src := words(3, 10)
	src.Fail = errors.New("no such topic")
	err := run(t.Context(), t, wordCount(src, &testjob.Sink[count]{}), 2, nil)
	if err == nil || !strings.Contains(err.Error(), "no such topic") {
		t.Errorf("run ended with %v, want the enumerator's error", err)
	}
}

// TestPartitionings sends records by every partitioning between every pair of parallelisms, and counts what arrives.
func TestPartitionings(t *testing.T) {
	const splits, each = 3, 4000
	kinds := map[string]func(heddle.Stream[string]) heddle.Stream[string]{
		"auto":      func(s heddle.Stream[string]) heddle.Stream[string] { return s },
		"rebalance": heddle.Stream[string].Rebalance,
		"rescale":   heddle.Stream[string].Rescale,
		"broadcast": heddle.Stream[string].Broadcast,
		"custom": func(s heddle.Stream[string]) heddle.Stream[string] {
			return s.PartitionBy(func(w string, n int) int { return len(w) % n })
		},
		"union": func(s heddle.Stream[string]) heddle.Stream[string] { return heddle.Union(s, s.Rebalance()) },
	}
	for name, part := range kinds {
		for _, par := range [][2]int{{1, 1}, {1, 3}, {3, 1}, {2, 3}, {3, 2}, {3, 3}} {
			t.Run(fmt.Sprint(name, par), func(t *testing.T) {
				sink := &testjob.Sink[string]{}
				job := heddle.NewJob("partitionings")
				in := heddle.FromSource(job, words(splits, each)).Parallelism(par[0])
				heddle.ToSink(heddle.Map(part(in), func(w string) string { return w }).Parallelism(par[1]), sink).Parallelism(par[1])
				if err := run(t.Context(), t, job, 1, nil); err != nil {
					t.Fatal(err)
				}
				want := splits * each
				switch name {
				case "broadcast":
					want *= par[1]
				case "union":
					want *= 2
				}
				counts := map[string]int{}
				for _, w := range sink.Records() {
					counts[w]++
				}
				total := 0
				for i := range 97 {
					w := fmt.Sprint("word-", i)
					n := each / 97
					if i < each%97 {
						n++
					}
					if got := counts[w]; got != n*want/each {
						t.Errorf("%s arrived %d times, want %d", w, got, n*want/each)
					}
					total += counts[w]
				}
				if total != want {
					t.Errorf("%d records arrived, want %d", total, want)
				}
			})
		}
	}
}

// TestTee has a stream read twice, once in the chain and once through the exchange.
func TestTee(t *testing.T) {
	chained, afar := &testjob.Sink[string]{}, &testjob.Sink[string]{}
	job := heddle.NewJob("tee")
	in := heddle.FromSource(job, words(2, 1000))
	heddle.ToSink(in, chained)
	heddle.ToSink(in.Rebalance(), afar)
	if err := run(t.Context(), t, job, 2, nil); err != nil {
		t.Fatal(err)
	}
	if a, b := len(chained.Records()), len(afar.Records()); a != 2000 || b != 2000 {
		t.Errorf("%d records in the chain and %d afar, want 2000 each", a, b)
	}
}
