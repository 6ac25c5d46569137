package jobgraph

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/heddle-stream/heddle/internal/flow"
)

func wordCount(t *testing.T) *Graph {
	j := &job{Graph: flow.Graph{Name: "word-count", Parallelism: 2}}
	lines := j.source("lines")
	lines.Detail = "kafka text"
	words := j.op("split", auto(lines))
	counts := j.op("count", by(flow.Hash, words))
	counts.SlotGroup = "heavy"
	j.sink(`say "it"`, auto(counts))
	g, err := Compile(&j.Graph, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestText(t *testing.T) {
	g := wordCount(t)
	want := `job word-count: 2 vertices, 4 subtasks, 4 slots (default 2, heavy 2)

[0] × 2
  ├─ source lines (kafka text)  lines.go:1
  ├─ map split                  split.go:1
  └─hash→ [1]  string

[1] × 2  slot group heavy
  ├─ map count      count.go:1
  └─ sink say "it"  say "it".go:1

fingerprint ` + g.Fingerprint
	if got := strings.Join(g.Lines(), "\n"); got != want {
		t.Errorf("text plan:\n%s\nwant:\n%s", got, want)
	}
}

func TestDOT(t *testing.T) {
	var b strings.Builder
	if err := wordCount(t).DOT(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`digraph "word-count" {`, `v0 [label="source lines (kafka text)\nmap split\n× 2"];`, `\"it\"`, `v0 -> v1 [label="hash\nstring"];`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("DOT has no %s:\n%s", want, b.String())
		}
	}
}

func TestJSON(t *testing.T) {
	var b strings.Builder
	if err := wordCount(t).JSON(&b); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Name     string
		Vertices []struct {
			Parallelism int
			Operators   []struct{ Kind, Name string }
		}
		Edges []struct{ Partitioning string }
		Slots []struct {
			Group string
			Slots int
		}
	}
	if err := json.Unmarshal([]byte(b.String()), &got); err != nil {
		t.Fatal(err)
	}
	if got.Name != "word-count" || len(got.Vertices) != 2 || got.Vertices[0].Operators[1].Name != "split" ||
		got.Edges[0].Partitioning != "hash" || got.Slots[1].Group != "heavy" || got.Slots[1].Slots != 2 {
		t.Errorf("JSON plan says %+v:\n%s", got, b.String())
	}
}

// TestChainName: a vertex's name stands in each of its metrics, and is bounded however many operators are chained; what is left out is seen.
func TestChainName(t *testing.T) {
	long := strings.Repeat("ü", flow.MaxName/2)
	for _, tt := range []struct {
		names []string
		want  string
	}{
		{[]string{"a", "b"}, "a → b"}, {[]string{long}, long},
		{[]string{"a", long, "b", "c"}, "a → … (3 more)"},
		{[]string{long, "b"}, strings.Repeat("ü", 118) + "… → … (1 more)"},
		{slices.Repeat([]string{"operator"}, 30), strings.TrimSuffix(strings.Repeat("operator → ", 18), " → ") + " → … (12 more)"},
	} {
		ops := make([]Operator, len(tt.names))
		for i, name := range tt.names {
			ops[i].Name = name
		}
		if got := chainName(ops); got != tt.want || len(got) > flow.MaxName || !utf8.ValidString(got) {
			t.Errorf("%d operators are called %q (%d bytes), want %q", len(ops), got, len(got), tt.want)
		}
	}
}

// TestLongNames: who names an operator or a group by more than metrics bear is told the place, in few words.
func TestLongNames(t *testing.T) {
	long := strings.Repeat("n", 20_000)
	j := &job{Graph: flow.Graph{Name: "j"}}
	in := j.source("in")
	named := j.op("map", auto(in))
	named.Name, named.Where = long, "job.go:7"
	grouped := j.op("other", auto(in))
	grouped.SlotGroup = long
	j.sink("out", auto(named))
	j.sink("out2", auto(grouped))
	_, err := Compile(&j.Graph, Options{})
	if err == nil || len(err.Error()) > 4000 || !strings.Contains(err.Error(), "job.go:7") || strings.Count(err.Error(), "20000 bytes") < 2 || !strings.Contains(err.Error(), "at most 256") {
		t.Errorf("%v", err)
	}
}
