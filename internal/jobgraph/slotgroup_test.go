package jobgraph

import (
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/flow"
)

// grouped is a job of two slot sharing groups, of which the author says what is given.
func grouped(groups ...flow.SlotGroup) *flow.Graph {
	j := &job{Graph: flow.Graph{Name: "j", Parallelism: 2, SlotGroups: groups}}
	heavy := j.op("heavy", by(flow.Hash, j.source("in")))
	heavy.SlotGroup = "models"
	j.sink("out", auto(heavy))
	return &j.Graph
}

func TestProfiles(t *testing.T) {
	models := flow.SlotGroup{Name: "models", Resources: flow.Resources{CPU: 0.1, Memory: 1<<20 + 1, Custom: map[string]int64{"yarn.io/gpu": 1, "none": 0}}}
	g, err := Compile(grouped(models, flow.SlotGroup{Name: "default"}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := (cluster.Profile{MilliCPU: 100, MemoryMB: 2, Custom: "yarn.io/gpu=1"}); len(g.Profiles) != 1 || g.Profiles["models"] != want {
		t.Errorf("profiles %v, want %v", g.Profiles, want)
	}
	var json strings.Builder
	if err := g.JSON(&json); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ in, want string }{
		{strings.Join(g.Lines(), "\n"), "4 slots (default 2, models 2 of 0.1 cores, 2 MiB, yarn.io/gpu=1)"},
		{json.String(), `"milli_cpu": 100,`},
	} {
		if !strings.Contains(c.in, c.want) {
			t.Errorf("the plan has no %s:\n%s", c.want, c.in)
		}
	}
	plain, err := Compile(grouped(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if plain.Fingerprint == g.Fingerprint {
		t.Error("what slots must have is not in the fingerprint")
	}
}

func TestSlotGroupProblems(t *testing.T) {
	for _, c := range []struct {
		group flow.SlotGroup
		want  string
	}{
		{flow.SlotGroup{Name: "modles", Where: "main.go:3"}, "main.go:3: slot sharing group modles has resources, but no operator is in it; the groups of the job are default, models"},
		{flow.SlotGroup{Name: "models", Resources: flow.Resources{Custom: map[string]int64{"memory": 1}}}, "resource memory is no custom one"},
		{flow.SlotGroup{Name: "models", Resources: flow.Resources{Custom: map[string]int64{"gpu": -1}}}, "slot sharing group models asks for -1 of gpu"},
	} {
		if _, err := Compile(grouped(c.group), Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.group, err, c.want)
		}
	}
}
