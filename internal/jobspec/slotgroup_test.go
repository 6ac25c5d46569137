package jobspec

import (
	"testing"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/jobgraph"
)

func TestSlotGroups(t *testing.T) {
	job, err := Load("slot-groups.yaml", read(t, "testdata/good/slot-groups.yaml"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	g, err := jobgraph.Compile(job.Graph(), jobgraph.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]cluster.Profile{
		"models":  {MilliCPU: 2000, MemoryMB: 1536, Custom: "yarn.io/gpu=1"},
		"default": {MemoryMB: 256},
	}
	for _, n := range g.SlotsNeeded() {
		if n.Profile != want[n.Group] {
			t.Errorf("group %s asks for %v, want %v", n.Group, n.Profile, want[n.Group])
		}
	}
	if got := len(g.SlotsNeeded()); got != 2 {
		t.Errorf("%d groups, want 2: %+v", got, g.SlotsNeeded())
	}
}

func TestParseMemory(t *testing.T) {
	for text, want := range map[string]int64{"512MiB": 512 << 20, "1.5GiB": 3 << 29, "2 KiB": 2 << 10, "1TiB": 1 << 40} {
		if got, err := parseMemory(text); err != nil || got != want {
			t.Errorf("%q is %d, %v; want %d", text, got, err, want)
		}
	}
	for _, bad := range []string{"", "512", "MiB", "-1MiB", "NaNMiB", "1e30GiB", "1MB", "0MiB"} {
		if got, err := parseMemory(bad); err == nil {
			t.Errorf("%q is %d", bad, got)
		}
	}
}
