package kafka

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/itest/testbed"
)

// text is a real book that ships with the Go distribution.
func text(t *testing.T) string {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "src", "testdata", "Isaac.Newton-Opticks.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestBroker(t *testing.T) {
	testbed.Group(t, "kafka")
	b := testbed.New(t)
	k := testbed.StartKafka(t, b)
	k.CreateTopic("lines", 8)
	lines := text(t)
	k.Produce("lines", lines)
	want := len(strings.Split(strings.TrimRight(lines, "\n"), "\n"))
	if got := k.Count("lines"); got != want {
		t.Fatalf("records in the topic: got %d, want %d", got, want)
	}
	if got := k.Consume("lines", 10); len(got) != 10 {
		t.Fatalf("consumed %d lines, want 10", len(got))
	}
}
