package task

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/jobgraph"
	"github.com/heddle-stream/heddle/netstack"
)

// fill is a source that pushes the same batch n times and ends. It does nothing else, so that the rest is what is measured.
type fill struct {
	out   flow.Out[uint64]
	batch []uint64
	n     int
}

func (f *fill) Open(context.Context) error   { return nil }
func (f *fill) Timer(int64) error            { return nil }
func (f *fill) Close() error                 { return nil }
func (f *fill) AddSplits([]flow.Split) error { return nil }
func (f *fill) NoMoreSplits() error          { return nil }
func (f *fill) Splits() []flow.SplitStatus   { return nil }
func (f *fill) Poll() (flow.SourceStatus, error) {
	if f.n <= 0 {
		return flow.SourceEnd, nil
	}
	f.n -= len(f.batch)
	return flow.SourceMore, f.out.Push(flow.Batch[uint64]{Recs: f.batch})
}

// drop is a sink that adds records up.
type drop struct{ sum uint64 }

func (d *drop) Open(context.Context) error { return nil }
func (d *drop) Timer(int64) error          { return nil }
func (d *drop) Close() error               { return nil }
func (d *drop) Control(flow.Control) error { return nil }
func (d *drop) Push(b flow.Batch[uint64]) error {
	for _, r := range b.Recs {
		d.sum += r
	}
	return nil
}

type noSource struct{ flow.Source }

func BenchmarkExchange(b *testing.B) {
	for _, where := range []string{"memory", "loopback"} {
		b.Run(where, func(b *testing.B) {
			g := &flow.Graph{Name: "bench"}
			src := g.Add(&flow.Node{Kind: "source", Source: noSource{}, Outputs: []flow.Type{flow.TypeOf[uint64](nil)},
				New: func(_ flow.Runtime, outs []any) (flow.Instance, error) {
					batch := make([]uint64, 1024)
					for i := range batch {
						batch[i] = uint64(i)
					}
					f := &fill{out: outs[0].(flow.Out[uint64]), batch: batch, n: b.N}
					return flow.Instance{Op: f, Source: f}, nil
				}})
			g.Add(&flow.Node{Kind: "sink", Sink: true, In: []flow.Edge{{From: src, Part: flow.Partitioning{Kind: flow.Rebalance}}},
				New: func(flow.Runtime, []any) (flow.Instance, error) {
					d := &drop{}
					return flow.Instance{Op: d, Inputs: []any{flow.Out[uint64](d)}}, nil
				}})
			plan, err := jobgraph.Compile(g, jobgraph.Options{})
			if err != nil {
				b.Fatal(err)
			}
			exchanges, addr := benchExchanges(b, where)
			done := make(chan Result, 2)
			b.ReportAllocs()
			b.ResetTimer()
			for v := range 2 {
				id := cluster.ExecutionID{Vertex: v}
				in, out := Wire(plan, id, addr)
				t, err := New(Spec{ID: id, Graph: g, Plan: plan, Inputs: in, Outputs: out}, Env{Exchange: exchanges[v], FlushTimeout: 20 * time.Millisecond})
				if err != nil {
					b.Fatal(err)
				}
				go func() { done <- t.Run(context.Background()) }()
			}
			for range 2 {
				if res := <-done; res.State != cluster.Finished {
					b.Fatal(res)
				}
			}
			b.SetBytes(8)
		})
	}
}

// benchExchanges returns the exchange of each of two vertices.
func benchExchanges(b *testing.B, where string) ([2]Exchange, func(vertex, subtask int) string) {
	if where == "memory" {
		m := NewMemory(32<<10, 8)
		return [2]Exchange{m, m}, nil
	}
	key := make([]byte, netstack.KeySize)
	rand.Read(key)
	var stacks [2]*netstack.Stack
	var exchanges [2]Exchange
	for i := range stacks {
		s, err := netstack.New(netstack.Config{Auth: netstack.Auth{Key: key}, Identity: fmt.Sprint("agent-", i)})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = s.Close() })
		stacks[i], exchanges[i] = s, NewNetExchange(s)
	}
	return exchanges, func(vertex, _ int) string { return stacks[vertex].Addr() }
}
