package task

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/jobgraph"
	"github.com/heddle-stream/heddle/internal/telemetry"
)

// filling is a source that emits the same batch again and again.
type filling struct {
	flow.Source
	batch []uint64
	left  int
}

func (f *filling) Describe() string             { return "filling" }
func (f *filling) AddSplits([]flow.Split) error { return nil }
func (f *filling) NoMoreSplits() error          { return nil }
func (f *filling) Splits() []flow.SplitStatus   { return nil }
func (f *filling) Close() error                 { return nil }
func (f *filling) NewReader(context.Context, flow.ReaderEnv) (flow.Reader[uint64], error) {
	return f, nil
}
func (f *filling) Poll(emit flow.Emit[uint64]) (flow.SourceStatus, error) {
	if f.left <= 0 {
		return flow.SourceEnd, nil
	}
	f.left -= len(f.batch)
	return flow.SourceMore, emit("split", flow.Batch[uint64]{Recs: f.batch}, false)
}

// cpuTime is the processor time that this process has used.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkFollow measures what following records costs between two stacks over loopback. The spans go to a collector that throws them
// away, in this process too: its time counts. The last two follow one record of so many, so that their cost does not depend on how fast the
// machine is just now.
func BenchmarkFollow(b *testing.B) {
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer collector.Close()
	for _, bench := range []struct {
		name   string
		follow Follow
		traced bool
	}{{"off", Follow{}, false}, {"timed-1", Follow{Rate: 1}, false}, {"traced-1", Follow{Rate: 1}, true}, {"traced-1000", Follow{Rate: 1000}, true},
		{"traced-20000", Follow{Rate: 20000}, true}, {"traced-of-40000", Follow{Ratio: 1. / 40000}, true}, {"traced-of-400000", Follow{Ratio: 1. / 400000}, true}} {
		b.Run(bench.name, func(b *testing.B) {
			env := Env{FlushTimeout: 20 * time.Millisecond, Follow: bench.follow}
			if bench.traced {
				p, err := telemetry.New(b.Context(), telemetry.Config{Service: "bench", Settings: telemetry.Settings{Endpoint: collector.URL, Protocol: telemetry.HTTP, Traces: true}})
				if err != nil {
					b.Fatal(err)
				}
				defer func() { _ = p.Close(context.Background()) }()
				warmUp(b, p)
				env.Follow.Provider = p
			}
			benchFollow(b, env)
		})
	}
}

// warmUp has a provider export once, so that what is made at first does not count.
func warmUp(b *testing.B, p *telemetry.Provider) {
	for p.Stats().Exported == 0 && b.Context().Err() == nil {
		p.Start(telemetry.Start{Name: "warm up"}).End(time.Time{})
		time.Sleep(time.Millisecond)
	}
}

func benchFollow(b *testing.B, env Env) {
	f := &filling{batch: make([]uint64, 1024), left: b.N}
	g := &flow.Graph{Name: "bench"}
	src := g.Add(&flow.Node{Kind: "source", Source: noSource{}, Outputs: []flow.Type{flow.TypeOf[uint64](nil)},
		New: flow.NewSource[uint64](f, &flow.Watermarks[uint64]{}, &flow.Policy{}, nil)})
	g.Add(&flow.Node{Kind: "sink", Sink: true, In: []flow.Edge{{From: src, Part: flow.Partitioning{Kind: flow.Rebalance}}},
		New: func(flow.Runtime, []any) (flow.Instance, error) {
			d := &drop{}
			return flow.Instance{Op: d, Inputs: []any{flow.Out[uint64](d)}}, nil
		}})
	plan, err := jobgraph.Compile(g, jobgraph.Options{})
	if err != nil {
		b.Fatal(err)
	}
	exchanges, addr := benchExchanges(b, "loopback")
	done := make(chan Result, 2)
	b.ReportAllocs()
	b.ResetTimer()
	before := cpuTime(b)
	for v := range 2 {
		id := cluster.ExecutionID{Vertex: v}
		in, out := Wire(plan, id, addr)
		env.Exchange = exchanges[v]
		t, err := New(Spec{ID: id, Graph: g, Plan: plan, Inputs: in, Outputs: out}, env)
		if err != nil {
			b.Fatal(err)
		}
		if v == 0 {
			t.AddSplits([]flow.Split{{ID: "split"}}, true)
		}
		go func() { done <- t.Run(context.Background()) }()
	}
	for range 2 {
		if res := <-done; res.State != cluster.Finished {
			b.Fatal(res)
		}
	}
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
}
