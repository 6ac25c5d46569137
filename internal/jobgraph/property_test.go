package jobgraph

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/heddle-stream/heddle/internal/flow"
)

var kinds = []flow.PartitionKind{flow.Forward, flow.Hash, flow.Rebalance, flow.Rescale, flow.Broadcast, flow.Custom}

func TestTargetsAndSourcesAreInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := Edge{Kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
		producers := rapid.IntRange(1, 40).Draw(t, "producers")
		consumers := rapid.IntRange(1, 40).Draw(t, "consumers")
		if e.Kind == flow.Forward {
			consumers = producers
		}
		type link struct{ producer, consumer, subpartition int }
		forward, backward := map[link]bool{}, map[link]bool{}
		for p := range producers {
			targets := e.Targets(p, producers, consumers)
			if len(targets) == 0 {
				t.Fatalf("%v: producer %d of %d reaches none of %d consumers", e.Kind, p, producers, consumers)
			}
			if !slices.IsSorted(targets) {
				t.Fatalf("%v: targets %v are not ascending", e.Kind, targets)
			}
			for i, c := range targets {
				if c < 0 || c >= consumers {
					t.Fatalf("%v: producer %d reaches consumer %d of %d", e.Kind, p, c, consumers)
				}
				forward[link{p, c, i}] = true
			}
		}
		for c := range consumers {
			subtasks, subpartitions := e.Sources(c, producers, consumers)
			if len(subtasks) == 0 {
				t.Fatalf("%v: consumer %d of %d is reached by none of %d producers", e.Kind, c, consumers, producers)
			}
			for i, p := range subtasks {
				backward[link{p, c, subpartitions[i]}] = true
			}
		}
		if len(forward) != len(backward) {
			t.Fatalf("%v: %d links by Targets, %d by Sources", e.Kind, len(forward), len(backward))
		}
		for l := range forward {
			if !backward[l] {
				t.Fatalf("%v: link %v by Targets only", e.Kind, l)
			}
		}
	})
}

// drawJob makes a random job without a cycle.
func drawJob(t *rapid.T) *job {
	j := &job{Graph: flow.Graph{Name: "random"}}
	n := rapid.IntRange(2, 12).Draw(t, "nodes")
	for i := range n {
		name := fmt.Sprint("n", i)
		if i == 0 || rapid.IntRange(0, 5).Draw(t, "source") == 0 {
			j.source(name)
		} else {
			var in []flow.Edge
			for range rapid.IntRange(1, 2).Draw(t, "inputs") {
				kind := rapid.SampledFrom(append(kinds, flow.Forward, flow.Forward)).Draw(t, "kind")
				e := by(kind, j.Nodes[rapid.IntRange(0, i-1).Draw(t, "from")])
				e.Part.Auto = true
				in = append(in, e)
			}
			j.op(name, in...)
		}
		node := j.Nodes[i]
		node.Parallelism = rapid.IntRange(0, 2).Draw(t, "parallelism")
		node.NoChain = rapid.IntRange(0, 7).Draw(t, "nochain") == 0
		node.SlotGroup = rapid.SampledFrom([]string{"", "", "", "g"}).Draw(t, "group")
	}
	read := make([]bool, n)
	for _, node := range j.Nodes {
		for _, e := range node.In {
			read[e.From.ID] = true
		}
	}
	for i := range n {
		if !read[i] {
			j.sink(fmt.Sprint("s", i), auto(j.Nodes[i]))
		}
	}
	return j
}

func TestCompileKeepsEveryStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := drawJob(t)
		g, err := Compile(&j.Graph, Options{NoChaining: rapid.Bool().Draw(t, "nochaining")})
		if err != nil {
			t.Fatal(err)
		}
		vertexOf := map[int]int{}
		for _, v := range g.Vertices {
			for _, id := range v.Nodes {
				if other, ok := vertexOf[id]; ok {
					t.Fatalf("node %d is in vertices %d and %d", id, other, v.ID)
				}
				vertexOf[id] = v.ID
			}
		}
		if len(vertexOf) != len(j.Nodes) {
			t.Fatalf("%d of %d nodes are in vertices", len(vertexOf), len(j.Nodes))
		}
		// Every edge of the author is read exactly once: by a chained node or through an edge.
		want, got := map[string]int{}, map[string]int{}
		for _, node := range j.Nodes {
			for _, e := range node.In {
				want[fmt.Sprint(e.From.ID, " ", node.ID)]++
			}
		}
		for i := range g.Vertices {
			v := &g.Vertices[i]
			for _, id := range v.Nodes {
				for _, l := range g.Links(&j.Graph, v, id, 0) {
					to := l.Node
					if l.Edge >= 0 {
						e := g.Edges[l.Edge]
						to = e.ToNode
						if e.From >= e.To {
							t.Fatalf("edge %d leads from vertex %d back to %d", e.ID, e.From, e.To)
						}
						if to != g.Vertices[e.To].Nodes[0] {
							t.Fatalf("edge %d leads into the middle of vertex %d", e.ID, e.To)
						}
						if a, b := g.Vertices[e.From].Parallelism, g.Vertices[e.To].Parallelism; e.Kind == flow.Forward && a != b {
							t.Fatalf("forward edge %d from parallelism %d to %d", e.ID, a, b)
						}
					}
					got[fmt.Sprint(id, " ", to)]++
				}
			}
		}
		if fmt.Sprint(want) != fmt.Sprint(got) {
			t.Fatalf("streams %v, want %v", got, want)
		}
	})
}
