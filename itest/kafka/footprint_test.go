package kafka

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/itest/testbed"
)

// TestFootprint holds two promises of docs/performance.md: a job's first record is out within a second of the command,
// and an idle agent stays below 40 MB.
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
	begin := time.Now()
	p := b.Start(testbed.Spec{Name: "echo", Path: heddle, Args: []string{"run", job, "-D", "state-dir=" + b.Dir("state")}})
	b.Eventually("the first record is out", time.Minute, func() error {
		if !strings.Contains(p.Output(), "one\n") {
			return fmt.Errorf("output so far: %s", p.Output())
		}
		return nil
	})
	if d := time.Since(begin); d > time.Second {
		t.Errorf("first record out after %v, want less than 1 s", d)
	} else {
		t.Logf("first record out after %v", d)
	}
	p.Wait(time.Minute)

	k := testbed.StartKafka(t, b)
	run := faultJob(t, b, k)
	for _, pid := range children(t, b, "agent") {
		mb := residentMB(t, pid)
		t.Logf("agent %d: %d MB resident", pid, mb)
		if mb >= 40 {
			t.Errorf("idle agent %d: %d MB resident, want less than 40", pid, mb)
		}
	}
	run.Interrupt()
	run.Wait(time.Minute)
}

// installed returns a copy of a program, which is what people run, written piece by piece. How many pages of a program the system maps around those that
// are used depends on how its file came into the page cache: what the linker, or one large write, has just put there counts up to 15 MB more.
func installed(t *testing.T, b *testbed.Bed, program string) string {
	t.Helper()
	from, err := os.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	name := filepath.Join(b.Dir("installed"), filepath.Base(program))
	to, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, 32<<10))
	if err := errors.Join(err, to.Close()); err != nil {
		t.Fatal(err)
	}
	return name
}

// residentMB is the resident memory of a process, in units of 10^6 bytes.
func residentMB(t *testing.T, pid int) int {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(string(data)) {
		if kb, ok := strings.CutPrefix(l, "VmRSS:"); ok {
			n := 0
			if _, err := fmt.Sscan(kb, &n); err != nil {
				t.Fatal(err)
			}
			return n * 1024 / 1_000_000
		}
	}
	t.Fatalf("no VmRSS of process %d", pid)
	return 0
}
