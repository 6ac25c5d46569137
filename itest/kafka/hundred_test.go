package kafka

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/itest/testbed"
)

// TestHundredRuns runs the small job a hundred times in a row: every result is right, and neither a
// process, nor a file, nor a connection to the broker is left.
func TestHundredRuns(t *testing.T) {
	testbed.Group(t, "kafka")
	b := testbed.New(t)
	heddle := testbed.BuildHeddle(t, b)
	k := testbed.StartKafka(t, b)
	k.CreateTopic("small", 4)
	lines := strings.Repeat("to be or not to be\n", 50)
	k.Produce("small", lines)
	want := uniq(t, lines)
	job := b.File("small.yaml", `name: small
source: { kafka: { topics: [small], format: text, stop: latest } }
steps:
  - flat_map: { word: words(line) }
  - key_by: word
  - window: { global: true, aggregate: { count: count() } }
sink: { file: { path: result, format: { text: "{count} {word}" } } }
`)
	run := func(i int) {
		dir := b.Dir(fmt.Sprintf("run-%d", i))
		p := b.Start(testbed.Spec{Name: fmt.Sprintf("small-%d", i), Path: heddle, Dir: dir,
			Args: append([]string{"run", job, "--quiet"}, heddleArgs(b, k)...), Env: []string{"TMPDIR=" + b.Dir("tmp")}})
		if code := p.Wait(time.Minute); code != 0 {
			t.Fatalf("run %d: exit code %d\n%s", i, code, p.Tail(30))
		}
		var got []string
		parts, err := filepath.Glob(filepath.Join(dir, "result", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range parts {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, strings.Fields(strings.ReplaceAll(string(data), " ", "·"))...)
		}
		for j := range got {
			got[j] = strings.ReplaceAll(got[j], "·", " ")
		}
		slices.Sort(got)
		diff(t, fmt.Sprintf("run %d", i), got, want)
	}
	run(0)
	before := k.Descriptors()
	for i := 1; i <= 100; i++ {
		run(i)
	}
	gone(t, b)
	b.Eventually("the broker's descriptors come back", 30*time.Second, func() error {
		if n := k.Descriptors(); n > before+2 {
			return fmt.Errorf("the broker had %d open before, has %d now", before, n)
		}
		return nil
	})
	for _, dir := range []string{"state", "tmp"} {
		left, err := filepath.Glob(filepath.Join(b.Dir(dir), "*"))
		left = slices.DeleteFunc(left, func(path string) bool { return path == filepath.Join(b.Dir("state"), "history") }) // what jobs did is kept
		if err != nil || len(left) > 0 {
			t.Errorf("left in %s: %v %v", dir, left, err)
		}
	}
}
