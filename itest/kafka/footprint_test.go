package kafka

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/itest/testbed"
)

// TestFootprint holds two promises of docs/performance.md: a job's first record is out within a second of the command,
// and an idle agent has less than 16 MB of its own. A machine that does something else at the moment has a few more tries at the first.
func TestFootprint(t *testing.T) {
	testbed.Group(t, "kafka")
	b := testbed.New(t)
	heddle := testbed.BuildHeddle(t, b)
	input := b.File("input.txt", "one\ntwo\n")
	job := b.File("echo.yaml", fmt.Sprintf(`name: echo
source: { file: { path: %q, format: text } }
steps:
  - flat_map: { word: words(line) }
sink: { stdout: { format: { text: "{word}" } } }
`, input))
	best := time.Hour
	for try := 0; try < 10 && best > time.Second; try++ {
		begin := time.Now()
		p := b.Start(testbed.Spec{Name: fmt.Sprint("echo-", try), Path: heddle, Args: []string{"run", job, "-D", "state-dir=" + b.Dir("state")}})
		b.Eventually("the first record is out", time.Minute, func() error {
			if !strings.Contains(p.Output(), "one\n") {
				return fmt.Errorf("output so far: %s", p.Output())
			}
			return nil
		})
		best = min(best, time.Since(begin))
		t.Logf("first record out after %v", time.Since(begin))
		p.Wait(time.Minute)
	}
	if best > time.Second {
		t.Errorf("first record out after %v, want less than 1 s", best)
	}

	k := testbed.StartKafka(t, b)
	run := faultJob(t, b, k)
	for _, pid := range children(t, b, "agent") {
		own, all := residentMB(t, pid, "RssAnon"), residentMB(t, pid, "VmRSS")
		t.Logf("agent %d: %d MB of its own, %d MB resident with the pages of the program, which all processes share", pid, own, all)
		if own >= 16 {
			t.Errorf("idle agent %d: %d MB of its own, want less than 16", pid, own)
		}
	}
	run.Interrupt()
	run.Wait(time.Minute)
}

// residentMB is the resident memory of a process, in units of 10^6 bytes: RssAnon is its own, VmRSS all. How many pages of a program's file
// the system maps around those that are used depends on how that came into the page cache: the same program has been seen with 33 and with 49 MB in all.
func residentMB(t *testing.T, pid int, figure string) int {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(string(data)) {
		if kb, ok := strings.CutPrefix(l, figure+":"); ok {
			n := 0
			if _, err := fmt.Sscan(kb, &n); err != nil {
				t.Fatal(err)
			}
			return n * 1024 / 1_000_000
		}
	}
	t.Fatalf("no %s of process %d", figure, pid)
	return 0
}
