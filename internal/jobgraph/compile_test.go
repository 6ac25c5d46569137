package jobgraph

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/flow"
)

// fakeType is a record type that only has a name, and perhaps no codec.
type fakeType struct {
	name string
	err  error
}

func (t fakeType) Name() string { return t.name }
func (t fakeType) Err() error   { return t.err }
func (t fakeType) NewWriter(flow.WriterConfig) (any, flow.Writer, error) {
	panic("not used by a compiler")
}
func (t fakeType) NewReader(any) (flow.SegmentReader, error) { panic("not used by a compiler") }
func (t fakeType) Tee([]any) (any, error)                    { panic("not used by a compiler") }
func (t fakeType) Counted(any, *flow.Counter) (any, error)   { panic("not used by a compiler") }

type fakeSource struct{}

func (fakeSource) Enumerator(context.Context, flow.EnumeratorEnv) (flow.Enumerator, error) {
	return nil, errors.New("not used by a compiler")
}
func (fakeSource) Bounded() bool { return true }

var stringType = fakeType{name: "string"}

// job builds graphs for tests.
type job struct{ flow.Graph }

func (j *job) source(name string) *flow.Node {
	return j.Add(&flow.Node{Kind: "source", Name: name, Source: fakeSource{}, Outputs: []flow.Type{stringType}, Where: name + ".go:1"})
}

func (j *job) op(name string, in ...flow.Edge) *flow.Node {
	return j.Add(&flow.Node{Kind: "map", Name: name, In: in, Outputs: []flow.Type{stringType}, Where: name + ".go:1"})
}

func (j *job) sink(name string, in ...flow.Edge) *flow.Node {
	return j.Add(&flow.Node{Kind: "sink", Name: name, In: in, Sink: true, Where: name + ".go:1"})
}

func auto(n *flow.Node) flow.Edge {
	return flow.Edge{From: n, Part: flow.Partitioning{Kind: flow.Forward, Auto: true}}
}

func by(kind flow.PartitionKind, n *flow.Node) flow.Edge {
	e := flow.Edge{From: n, Part: flow.Partitioning{Kind: kind}}
	if kind == flow.Hash || kind == flow.Custom {
		e.Part.Impl = "something"
	}
	return e
}

// shape is the vertices of a graph as names, and its edges as "from kind to".
func shape(g *Graph) string {
	var parts []string
	for _, v := range g.Vertices {
		parts = append(parts, v.Name)
	}
	for _, e := range g.Edges {
		parts = append(parts, strings.Join([]string{g.Vertices[e.From].Name, e.Part, g.Vertices[e.To].Name}, " "))
	}
	return strings.Join(parts, "; ")
}

func TestChaining(t *testing.T) {
	for _, tt := range []struct {
		name  string
		build func(j *job)
		opts  Options
		want  string
	}{
		{"all forward", func(j *job) { j.sink("c", auto(j.op("b", auto(j.source("a"))))) }, Options{}, "a → b → c"},
		{"hash cuts", func(j *job) { j.sink("c", auto(j.op("b", by(flow.Hash, j.source("a"))))) }, Options{}, "a; b → c; a hash b → c"},
		{"chaining off", func(j *job) { j.sink("b", auto(j.source("a"))) }, Options{NoChaining: true}, "a; b; a forward b"},
		{"NoChain", func(j *job) { b := j.op("b", auto(j.source("a"))); b.NoChain = true; j.sink("c", auto(b)) }, Options{}, "a; b → c; a forward b → c"},
		{"NoChainNext", func(j *job) { b := j.op("b", auto(j.source("a"))); b.NoChainNext = true; j.sink("c", auto(b)) }, Options{}, "a → b; c; a → b forward c"},
		{"parallelism differs", func(j *job) { b := j.op("b", auto(j.source("a"))); b.Parallelism = 3; j.sink("c", auto(b)) }, Options{}, "a; b; c; a rebalance b; b rebalance c"},
		{"slot group differs", func(j *job) { b := j.op("b", auto(j.source("a"))); b.SlotGroup = "g"; j.sink("c", auto(b)) }, Options{}, "a; b → c; a forward b → c"},
		{"two readers", func(j *job) { a := j.source("a"); j.sink("b", auto(a)); j.sink("c", auto(a)) }, Options{}, "a → b → c"},
		{"union", func(j *job) { j.sink("c", auto(j.source("a")), auto(j.source("b"))) }, Options{}, "a; b; c; a forward c; b forward c"},
		{"self union", func(j *job) { a := j.source("a"); j.sink("c", auto(a), auto(a)) }, Options{}, "a; c; a forward c; a forward c"},
		{"co-location differs", func(j *job) {
			b := j.op("b", auto(j.source("a")))
			b.CoLocation = "x"
			c := j.op("c", auto(b))
			d := j.sink("d", auto(c))
			d.CoLocation = "y"
		}, Options{}, "a → b → c; d; a → b → c forward d"},
		{"own key groups", func(j *job) {
			b := j.op("b", by(flow.Hash, j.source("a")))
			b.MaxParallelism = 16
			j.sink("c", auto(b))
			j.sink("d", auto(b)).MaxParallelism = 8
		}, Options{}, "a; b → c; d; a hash b → c; b → c forward d"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := &job{}
			tt.build(j)
			g, err := Compile(&j.Graph, tt.opts)
			if err != nil {
				t.Fatal(err)
			}
			if got := shape(g); got != tt.want {
				t.Errorf("compiled to\n%s, want\n%s", got, tt.want)
			}
		})
	}
}

func TestInherit(t *testing.T) {
	j := &job{Graph: flow.Graph{Parallelism: 2}}
	a, b := j.source("a"), j.source("b")
	a.SlotGroup, b.SlotGroup, b.Parallelism = "g", "h", 4
	c := j.op("c", by(flow.Hash, a))
	d := j.op("d", auto(c), by(flow.Broadcast, b))
	d.MaxParallelism = 64
	j.sink("e", auto(d))
	g, err := Compile(&j.Graph, Options{Parallelism: 7, MaxParallelism: 32})
	if err != nil {
		t.Fatal(err)
	}
	type v struct {
		Name     string
		Par, Max int
		Group    string
	}
	want := []v{{"a", 2, 32, "g"}, {"b", 4, 32, "h"}, {"c", 2, 32, "g"}, {"d → e", 2, 64, "default"}}
	var got []v
	for _, x := range g.Vertices {
		got = append(got, v{x.Name, x.Parallelism, x.MaxParallelism, x.SlotGroup})
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("vertices %v, want %v", got, want)
	}
	need := []SlotsNeeded{{Group: "g", Slots: 2, Vertices: []int{0, 2}}, {Group: "h", Slots: 4, Vertices: []int{1}}, {Group: "default", Slots: 2, Vertices: []int{3}}}
	if got := g.SlotsNeeded(); !reflect.DeepEqual(got, need) {
		t.Errorf("slots needed %v, want %v", got, need)
	}
}

func TestProblems(t *testing.T) {
	noCodec := errors.New("field Conn of type net.Conn has no codec")
	for _, tt := range []struct {
		name  string
		build func(j *job)
		want  []string // parts of the message, each in the line of another problem
	}{
		{"empty", func(j *job) {}, []string{"the job has no operators"}},
		{"no sink", func(j *job) { j.op("b", auto(j.source("a"))) }, []string{`b.go:1: map "b": nothing reads its output`, "the job has no sink"}},
		{"dangling", func(j *job) { a := j.source("a"); j.op("b", auto(a)); j.sink("c", auto(a)) }, []string{`map "b": nothing reads`}},
		{"over max", func(j *job) { a := j.source("a"); a.Parallelism = 200; j.sink("c", auto(a)) }, []string{`a.go:1: source "a": parallelism 200 is more than the max parallelism 128`}},
		{"negative", func(j *job) { a := j.source("a"); a.Parallelism = -1; j.sink("c", auto(a)) }, []string{"parallelism -1 is negative"}},
		{"too many groups", func(j *job) { a := j.source("a"); a.MaxParallelism = 1 << 20; j.sink("c", auto(a)) }, []string{"max parallelism 1048576 is not between"}},
		{"forward", func(j *job) { a := j.source("a"); a.Parallelism = 2; j.sink("c", by(flow.Forward, a)) }, []string{`forward from source "a" needs equal parallelism, but that has 2 and this has 1`}},
		{"duplicate uid", func(j *job) { a := j.source("a"); a.UID = "u"; j.sink("c", auto(a)).UID = "u" }, []string{`c.go:1: sink "c": uid "u" is that of source "a" (a.go:1)`}},
		{"hash without key", func(j *job) { j.sink("c", flow.Edge{From: j.source("a"), Part: flow.Partitioning{Kind: flow.Hash}}) }, []string{"no key is given"}},
		{"keyed by forward", func(j *job) { b := j.op("b", auto(j.source("a"))); b.Keyed = true; j.sink("c", auto(b)) }, []string{`map "b": keeps state by key`}},
		{"keyed by broadcast", func(j *job) { b := j.op("b", by(flow.Broadcast, j.source("a"))); b.Keyed = true; j.sink("c", auto(b)) }, []string{"none of its inputs is partitioned by key"}},
		{"co-location", func(j *job) {
			a := j.source("a")
			a.Parallelism, a.CoLocation = 2, "x"
			c := j.sink("c", auto(a))
			c.CoLocation, c.SlotGroup = "x", "g"
		}, []string{"parallelism 2 and this 1", `slot sharing group "default" and this in "g"`}},
		{"no codec", func(j *job) {
			a := j.source("a")
			a.Outputs[0] = fakeType{"conn", noCodec}
			j.sink("b", auto(a))
			j.sink("c", by(flow.Rebalance, a))
		}, []string{`a.go:1: source "a": its records go to sink "c" through the exchange`}},
		{"cycle", func(j *job) {
			b := j.op("b", auto(j.source("a")))
			c := j.op("c", auto(b))
			b.In = append(b.In, by(flow.Rebalance, c))
			j.sink("d", auto(c))
		}, []string{`cycle: map "b" → map "c" → map "b"`}},
		{"own cycle", func(j *job) { b := j.op("b"); b.In = append(b.In, auto(b)); j.sink("d", auto(b)) }, []string{`cycle: map "b" → map "b"`}},
		{"no input", func(j *job) { j.sink("d", auto(j.op("b"))) }, []string{`map "b": has no input`}},
		{"missing port", func(j *job) { e := auto(j.source("a")); e.FromPort = 2; j.sink("d", e) }, []string{`reads output 2 of source "a", which has 1`}},
		{"stranger", func(j *job) { other := &job{}; j.sink("d", auto(other.source("a"))) }, []string{"operator of another job"}},
		{"building", func(j *job) { j.sink("d", auto(j.source("a"))); j.Errs = []error{errors.New("x.go:3: no function")} }, []string{"x.go:3: no function"}},
		{"own check", func(j *job) {
			j.source("a").Check = func() error { return errors.New("bad state") }
			j.sink("d", auto(j.Nodes[0]))
		}, []string{`a.go:1: source "a": bad state`}},
		{"same files", func(j *job) {
			a := j.source("a")
			j.sink("d", auto(a)).Sole = "files in /out"
			j.sink("e", auto(a)).Sole = "files in /other"
			j.sink("f", auto(a)).Sole = "files in /out"
		}, []string{`sink "f": writes files in /out, as sink "d" does`}},
		{"all at once", func(j *job) {
			a := j.source("a")
			a.Parallelism, a.UID = 500, "u"
			b := j.op("b", by(flow.Forward, a))
			b.UID = "u"
			j.Errs = []error{errors.New("x.go:3: no function")}
		}, []string{"no function", "parallelism 500", "needs equal", "uid", "nothing reads", "no sink"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := &job{Graph: flow.Graph{Name: "j"}}
			tt.build(j)
			_, err := Compile(&j.Graph, Options{})
			p, ok := errors.AsType[*Problems](err)
			if !ok {
				t.Fatalf("compiled with error %v, want *Problems", err)
			}
			if len(p.List) != len(tt.want) {
				t.Errorf("%d problems, want %d:\n%v", len(p.List), len(tt.want), err)
			}
			for i, want := range tt.want {
				if i < len(p.List) && !strings.Contains(p.List[i].Error(), want) {
					t.Errorf("problem %d is %q, want it to say %q", i, p.List[i], want)
				}
			}
			if !strings.HasPrefix(err.Error(), `cannot compile job "j": `) {
				t.Errorf("error %q does not name the job", err)
			}
		})
	}
	j := &job{}
	a := j.source("a")
	a.Outputs[0] = fakeType{"conn", noCodec}
	j.sink("c", by(flow.Rebalance, a))
	if _, err := Compile(&j.Graph, Options{}); !errors.Is(err, noCodec) {
		t.Errorf("error %v does not wrap the type's", err)
	}
}

func TestFingerprint(t *testing.T) {
	build := func(change func(j *job)) string {
		j := &job{Graph: flow.Graph{Name: "j"}}
		b := j.op("b", by(flow.Hash, j.source("a")))
		j.sink("c", auto(b))
		change(j)
		g, err := Compile(&j.Graph, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return g.Fingerprint
	}
	same := build(func(*job) {})
	if got := build(func(j *job) { j.Nodes[1].Where = "elsewhere.go:9" }); got != same {
		t.Error("a moved line changes the fingerprint")
	}
	for name, change := range map[string]func(j *job){
		"name":        func(j *job) { j.Name = "k" },
		"kind":        func(j *job) { j.Nodes[1].Kind = "filter" },
		"operator":    func(j *job) { j.Nodes[1].Name = "x" },
		"uid":         func(j *job) { j.Nodes[1].UID = "x" },
		"detail":      func(j *job) { j.Nodes[1].Detail = "tumbling 1m" },
		"parallelism": func(j *job) { j.Nodes[1].Parallelism = 2 },
		"key groups":  func(j *job) { j.Nodes[1].MaxParallelism = 2 },
		"chaining":    func(j *job) { j.Nodes[1].NoChainNext = true },
		"type":        func(j *job) { j.Nodes[0].Outputs[0] = fakeType{name: "int"} },
		"partition":   func(j *job) { j.Nodes[1].In[0].Part.Kind = flow.Rescale },
		"one more":    func(j *job) { j.sink("d", auto(j.Nodes[1])) },
	} {
		if build(change) == same {
			t.Errorf("another %s leaves the fingerprint the same", name)
		}
	}
}

func TestLinks(t *testing.T) {
	j := &job{}
	a := j.source("a")
	a.Outputs = append(a.Outputs, stringType)
	side := auto(a)
	side.FromPort = 1
	j.sink("b", auto(a))
	j.sink("c", side)
	j.sink("d", by(flow.Rebalance, a))
	j.sink("e", auto(a))
	g, err := Compile(&j.Graph, Options{})
	if err != nil {
		t.Fatal(err)
	}
	v := &g.Vertices[0]
	if got, want := g.Links(&j.Graph, v, 0, 0), []Link{{1, 0, -1}, {4, 0, -1}, {-1, 0, 0}}; !reflect.DeepEqual(got, want) {
		t.Errorf("main output is read by %v, want %v", got, want)
	}
	if got, want := g.Links(&j.Graph, v, 0, 1), []Link{{2, 0, -1}}; !reflect.DeepEqual(got, want) {
		t.Errorf("side output is read by %v, want %v", got, want)
	}
	if got, want := v.BuildOrder(), []int{4, 2, 1, 0}; !reflect.DeepEqual(got, want) {
		t.Errorf("build order %v, want %v", got, want)
	}
}
