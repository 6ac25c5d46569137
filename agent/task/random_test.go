package task

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/jobgraph"
	"github.com/heddle-stream/heddle/internal/testjob"
	"github.com/heddle-stream/heddle/netstack"
)

// ends counts, by subtask, the ends that an operator sees, and checks that nothing follows one.
type ends struct {
	mu   sync.Mutex
	seen map[int]int // guarded by mu
}

func (e *ends) see(subtask int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen[subtask]++
}

// endProbe passes everything on.
type endProbe struct {
	probe
	ends  *ends
	ended bool
}

func (p *endProbe) Push(b flow.Batch[string]) error {
	if p.ended {
		return fmt.Errorf("%d records after the end", len(b.Recs))
	}
	return p.probe.Push(b)
}

func (p *endProbe) Control(c flow.Control) error {
	if p.ended {
		return fmt.Errorf("%v after the end", c.Kind)
	}
	if c.Kind == flow.End {
		p.ended = true
		p.ends.see(p.rt.Subtask())
	}
	return p.probe.Control(c)
}

// TestRandomJobs runs random jobs over two stacks with hardly any memory: every record arrives, and one end at every operator.
func TestRandomJobs(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			splits, each := r.IntN(6), r.IntN(3000)
			if seed%4 == 3 {
				each %= 60
			}
			src := words(splits, each)
			if seed%4 == 3 { // records of up to 20 segments
				at := src.At
				src.At = func(split, i int) string { return strings.Repeat("x", (977*split+3301*i)%20_000) + at(split, i) }
			}
			if r.IntN(2) == 0 {
				src.Batch, src.Pause = 1+r.IntN(300), time.Duration(r.IntN(2000))*time.Microsecond
			}
			sink := &testjob.Sink[string]{}
			g, probes := randomJob(r, src, sink)
			plan, err := jobgraph.Compile(g, jobgraph.Options{NoChaining: r.IntN(3) == 0})
			if err != nil {
				t.Fatal(err)
			}
			results := runOverStacks(t, r, g, plan, splits)
			for id, res := range results {
				if res.State != cluster.Finished {
					t.Errorf("task %v ended as %v: %v", id, res.State, res.Failure)
				}
			}
			seen := map[string]int{}
			for _, w := range sink.Records() {
				seen[w]++
			}
			if len(sink.Records()) != splits*each || len(seen) != splits*each {
				t.Errorf("%d records arrived, %d different, want %d", len(sink.Records()), len(seen), splits*each)
			}
			for node, e := range probes {
				for sub := range g.Nodes[node].Parallelism {
					if e.seen[sub] != 1 {
						t.Errorf("subtask %d of operator %d saw %d ends", sub, node, e.seen[sub])
					}
				}
			}
		})
	}
}

// randomJob is a source, up to four probes in a row, and a sink, with random partitionings and parallelisms.
func randomJob(r *rand.Rand, src *testjob.Source[string], sink *testjob.Sink[string]) (*flow.Graph, map[int]*ends) {
	j := heddle.NewJob("random")
	heddle.FromSource(j, src).Parallelism(1 + r.IntN(3))
	g := j.Graph()
	kinds := []flow.PartitionKind{flow.Forward, flow.Rebalance, flow.Rescale, flow.Custom}
	edge := func() flow.Edge {
		e := from(g.Nodes[len(g.Nodes)-1])
		e.Part.Kind = kinds[r.IntN(len(kinds))]
		if e.Part.Kind == flow.Custom {
			e.Part.Impl = func(w string, n int) int { return int(w[len(w)-1]) % n }
		}
		return e
	}
	probes := map[int]*ends{}
	for range r.IntN(5) {
		e := &ends{seen: map[int]int{}}
		n := node(g, "", probe{}, edge())
		n.Parallelism = 1 + r.IntN(4)
		n.New = func(rt flow.Runtime, outs []any) (flow.Instance, error) {
			op := &endProbe{ends: e}
			op.rt, op.out = rt, outs[0].(flow.Out[string])
			return flow.Instance{Inputs: []any{flow.Out[string](op)}, Op: op}, nil
		}
		probes[n.ID] = e
	}
	g.Add(&flow.Node{Kind: "sink", Sink: true, Parallelism: 1 + r.IntN(3), In: []flow.Edge{edge()}, New: flow.NewSink[string](sink)})
	return g, probes
}

// twoStacks are stacks with hardly any memory. All of it must be back when they are closed at the end of the test.
func twoStacks(t *testing.T, r *rand.Rand) [2]*netstack.Stack {
	t.Helper()
	var stacks [2]*netstack.Stack
	for i := range stacks {
		s, err := netstack.New(netstack.Config{
			Auth: netstack.Auth{Key: make([]byte, netstack.KeySize)}, Identity: fmt.Sprint("agent-", i),
			SegmentBytes: 1024, MemorySegments: 400, ExclusivePerChannel: []int{-1, 1, 2}[r.IntN(3)], FloatingPerGate: []int{-1, 1}[r.IntN(2)],
			MaxPerChannel: 2, MaxPerSubpartition: 1 + 31*r.IntN(2), MaxConnections: 1 + r.IntN(2),
			Compression: []string{"", "lz4", "zstd"}[r.IntN(3)], Checksum: r.IntN(2) == 0,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if used := s.Stats().SegmentsUsed; used != 0 {
				t.Errorf("stack %d has %d segments in use at the end", i, used)
			}
		})
		stacks[i] = s
	}
	return stacks
}

// TestCancelLeaksNothing cancels jobs at random moments on the same two stacks. Some fail instead.
func TestCancelLeaksNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	stacks := twoStacks(t, r)
	for attempt := range 100 {
		sink := &testjob.Sink[string]{Block: r.IntN(2) == 0}
		fails := probe{}
		if r.IntN(4) == 0 {
			var left atomic.Int64
			left.Store(r.Int64N(20))
			fails.push = func(p *probe, b flow.Batch[string]) error {
				if left.Add(-1) < 0 {
					return fmt.Errorf("that was the last batch")
				}
				return p.out.Push(b)
			}
		}
		g := job(words(2, -1), sink, probe{}, fails)
		for _, n := range g.Nodes[1:] {
			n.In[0].Part.Kind = flow.Rebalance
		}
		for _, n := range g.Nodes {
			n.Parallelism = 2
		}
		plan, err := jobgraph.Compile(g, jobgraph.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.IntN(4000))*time.Microsecond)
		var wg sync.WaitGroup
		for v := range plan.Vertices {
			for sub := range 2 {
				id := cluster.ExecutionID{Vertex: v, Subtask: sub, Attempt: attempt}
				in, out := Wire(plan, id, func(_, subtask int) string { return stacks[subtask].Addr() })
				task, err := New(Spec{ID: id, Graph: g, Plan: plan, Inputs: in, Outputs: out, Splits: []flow.Split{{ID: fmt.Sprint(sub)}}},
					Env{Exchange: NewNetExchange(stacks[sub])})
				if err != nil {
					t.Fatal(err)
				}
				wg.Go(func() { task.Run(ctx) })
			}
		}
		wg.Wait()
		cancel()
		if sink.Open() != 0 {
			t.Fatalf("%d sinks were left open", sink.Open())
		}
	}
	for i, s := range stacks {
		if st := s.Stats(); st.SegmentsReserved != 0 || st.Partitions != 0 || st.Gates != 0 || st.Connections > 4 {
			t.Errorf("stack %d has not got everything back: %+v", i, st)
		}
	}
}

// runOverStacks runs a job, each subtask on one of two stacks, and gives sources their splits while they run.
func runOverStacks(t *testing.T, r *rand.Rand, g *flow.Graph, plan *jobgraph.Graph, splits int) map[cluster.ExecutionID]Result {
	t.Helper()
	stacks := twoStacks(t, r)
	flush := time.Duration(r.IntN(3)) * time.Millisecond
	salt := r.IntN(2)
	place := func(vertex, subtask int) int { return (vertex*salt + subtask) % 2 }
	addr := func(vertex, subtask int) string { return stacks[place(vertex, subtask)].Addr() }
	var tasks []*Task
	for v := range plan.Vertices {
		for sub := range plan.Vertices[v].Parallelism {
			id := cluster.ExecutionID{Vertex: v, Subtask: sub}
			in, out := Wire(plan, id, addr)
			task, err := New(Spec{ID: id, Graph: g, Plan: plan, Inputs: in, Outputs: out},
				Env{Exchange: NewNetExchange(stacks[place(v, sub)]), FlushTimeout: flush})
			if err != nil {
				t.Fatal(err)
			}
			tasks = append(tasks, task)
		}
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	results := map[cluster.ExecutionID]Result{}
	r.Shuffle(len(tasks), func(i, j int) { tasks[i], tasks[j] = tasks[j], tasks[i] })
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for _, task := range tasks {
		wg.Go(func() {
			res := task.Run(ctx)
			mu.Lock()
			defer mu.Unlock()
			results[task.ID()] = res
		})
	}
	for _, task := range tasks {
		v := task.Vertex()
		if v.Source < 0 {
			continue
		}
		for s := task.ID().Subtask; s < splits; s += v.Parallelism {
			task.AddSplits([]flow.Split{{ID: fmt.Sprint(s)}}, false)
			task.Report()
		}
		task.AddSplits(nil, true)
	}
	wg.Wait()
	return results
}
