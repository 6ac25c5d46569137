package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestCurrent compares the code checked in with what ctl.proto gives now.
func TestCurrent(t *testing.T) {
	files, err := generate(t.Context(), "..")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 2 {
		t.Fatalf("generated %d files, want 2", len(files))
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("..", "ctlpb", name))
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(got, want) {
			t.Errorf("ctlpb/%s is not what ctl.proto gives: run go generate ./internal/ctl", name)
		}
	}
}
