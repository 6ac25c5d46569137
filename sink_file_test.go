package heddle_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/internal/jobgraph"
	"github.com/heddle-stream/heddle/internal/testjob"
)

func numbers(n int) *testjob.Source[string] {
	return &testjob.Source[string]{Splits: 1, Each: n, At: func(int, int) string { return "x" }}
}

// Two sinks that write the same files would leave those of one, and nobody would know.
func TestTwoSinksOfOneDirectoryAreRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(dir, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{dir, dir + "/./", filepath.Join(dir, "link")} {
		job := heddle.NewJob("twice")
		in := heddle.FromSource(job, numbers(10))
		heddle.To(in, heddle.ToFiles(dir).Overwrite(), heddle.Text())
		heddle.To(in, heddle.ToFiles(other).Overwrite(), heddle.Text())
		if _, err := jobgraph.Compile(job.Graph(), jobgraph.Options{}); err == nil || !strings.Contains(err.Error(), "overwrite each other's results") {
			t.Errorf("%s and %s: got %v", dir, other, err)
		}
	}
	job := heddle.NewJob("apart")
	in := heddle.FromSource(job, numbers(10))
	heddle.To(in, heddle.ToFiles(filepath.Join(dir, "a")), heddle.Text())
	heddle.To(in, heddle.ToFiles(filepath.Join(dir, "b")), heddle.Text())
	if err := runJob(t, job, 1); err != nil {
		t.Error(err)
	}
}

// Of two jobs that write the same files at once, one fails; a file that a job left which is gone is in nobody's way.
func TestFilesThatAnotherJobWrites(t *testing.T) {
	dir := t.TempDir()
	running := make(chan struct{})
	release := make(chan struct{})
	first := heddle.NewJob("first")
	heddle.To(heddle.Map(heddle.FromSource(first, numbers(1)), func(s string) string {
		close(running)
		<-release
		return s
	}), heddle.ToFiles(dir).Overwrite(), heddle.Text())
	ended := make(chan error, 1)
	go func() { ended <- runJob(t, first, 1) }()
	<-running
	second := heddle.NewJob("second")
	heddle.To(heddle.FromSource(second, numbers(3)), heddle.ToFiles(dir).Overwrite(), heddle.Text())
	if err := runJob(t, second, 1); err == nil || !strings.Contains(err.Error(), "another job writes it now") {
		t.Errorf("the second job ended with %v", err)
	}
	close(release)
	if err := <-ended; err != nil {
		t.Errorf("the first job failed: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "part-00000.inprogress"), []byte("left by a job that was killed"), 0o666); err != nil {
		t.Fatal(err)
	}
	third := heddle.NewJob("third")
	heddle.To(heddle.FromSource(third, numbers(2)), heddle.ToFiles(dir).Overwrite(), heddle.Text())
	if err := runJob(t, third, 1); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "part-00000")); err != nil || string(got) != "x\nx\n" {
		t.Errorf("got %q, %v", got, err)
	}
}
