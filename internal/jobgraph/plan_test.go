package jobgraph

import (
	"encoding/json"
	"strings"
	"testing"

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
