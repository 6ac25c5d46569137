package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestCurrent compares the code checked in with what the .proto files give now.
func TestCurrent(t *testing.T) {
	files, err := generate(t.Context(), "..")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(sources) {
		t.Fatalf("generated %d files, want %d", len(files), len(sources))
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the .proto files give: run go generate ./internal/hadoop/hadooppb", name)
		}
	}
}
