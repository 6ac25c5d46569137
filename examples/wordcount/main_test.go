package main

import (
	"os"
	"testing"

	"github.com/heddle-stream/heddle/internal/jobgraph"
	"github.com/heddle-stream/heddle/internal/jobspec"
)

// Both forms of the job compile, to the same shape.
func TestCompiles(t *testing.T) {
	inGo, err := jobgraph.Compile(job("in.txt", "").Graph(), jobgraph.Options{Parallelism: 2})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("wordcount.yaml")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := jobspec.Load("wordcount.yaml", text, jobspec.Options{})
	if err != nil {
		t.Fatal(err)
	}
	inYAML, err := jobgraph.Compile(spec.Graph(), jobgraph.Options{Parallelism: 2})
	if err != nil {
		t.Fatal(err)
	}
	if len(inGo.Vertices) != 2 || len(inYAML.Vertices) != 2 || inGo.Name != inYAML.Name {
		t.Errorf("the job in Go has %d vertices, in YAML %d, want 2 in both", len(inGo.Vertices), len(inYAML.Vertices))
	}
}
