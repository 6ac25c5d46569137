package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/bench"
	"github.com/heddle-stream/heddle/internal/lastlines"
	"go.uber.org/goleak"
)

// Variables that make the test's own program what a test needs as a process of its own.
const (
	testMain = "CLI_TEST_MAIN" // be the command
	testJob  = "CLI_TEST_JOB"  // have a job of one's own
	badJob   = "CLI_TEST_BAD"  // have a job that does harm
)

// TestMain lets this program be every role of the applications that the tests start.
func TestMain(m *testing.M) {
	if os.Getenv("HEDDLE_ROLE") == "" && os.Getenv(bench.RoleEnv) == "" && os.Getenv(testMain) == "" {
		goleak.VerifyTestMain(m) // exits
	}
	var job *heddle.Job
	if os.Getenv(testJob) != "" {
		job = goJob(os.Getenv(testJob))
	}
	if os.Getenv(badJob) != "" {
		job = harmful(os.Getenv(badJob))
	}
	env, stop := System()
	code := Main(context.Background(), env, job)
	stop()
	os.Exit(code)
}

// limit is within what everything must have happened that a person waits for: some seconds, and much more on a busy machine.
const limit = time.Minute

// world is a state directory and what runs in it.
type world struct {
	t       *testing.T
	dir     string // for files of the test
	state   string
	environ []string
	job     *heddle.Job
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir()}
	w.state = filepath.Join(w.dir, "state")
	w.environ = []string{"HOME=" + w.dir, "HEDDLE_STATE_DIR=" + w.state}
	if os.Getuid() != 0 { // only root may otherwise look at what processes are there, by their environments
		w.environ = append(w.environ, "HEDDLE_DEBUGGABLE=true")
	}
	t.Cleanup(w.gone)
	return w
}

// file writes a file and returns its path.
func (w *world) file(name, text string) string {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// invocation is a command that runs in this process; its roles are processes.
type invocation struct {
	w              *world
	signals        chan os.Signal
	stdout, stderr syncBuffer
	done           chan int
}

func (w *world) start(args ...string) *invocation {
	w.t.Helper()
	in := &invocation{w: w, signals: make(chan os.Signal, 2), done: make(chan int, 1)}
	env := Env{
		Program: "heddle", Args: args, Environ: w.environ, Stdin: strings.NewReader(""),
		Stdout: &in.stdout, Stderr: &in.stderr, Executable: os.Args[0], Signals: in.signals,
	}
	go func() { in.done <- Main(context.Background(), env, w.job) }()
	return in
}

// wait returns the command's exit code, and fails the test if it does not end within d.
func (in *invocation) wait(d time.Duration) int {
	in.w.t.Helper()
	select {
	case code := <-in.done:
		return code
	case <-time.After(d):
		in.w.t.Fatalf("the command did not end within %s\nstdout:\n%s\nstderr:\n%s\n%s", d, &in.stdout, &in.stderr, in.w.logs())
		return -1
	}
}

// expect waits for the command's end and checks its exit code and that its stderr holds all of want.
func (in *invocation) expect(code int, want ...string) {
	in.w.t.Helper()
	if got := in.wait(limit); got != code {
		in.w.t.Errorf("exit code %d, want %d\nstdout:\n%s\nstderr:\n%s\n%s", got, code, &in.stdout, &in.stderr, in.w.logs())
	}
	for _, text := range want {
		if !strings.Contains(in.stderr.String(), text) {
			in.w.t.Errorf("stderr is\n%s\nwant %q in it", &in.stderr, text)
		}
	}
}

// logs are those of all applications, for a failed test.
func (w *world) logs() string {
	var b strings.Builder
	apps, _ := listApps(w.state)
	for _, app := range apps {
		for name, file := range app.logs() {
			fmt.Fprintf(&b, "%s of %s:\n  %s\n", name, app.id, strings.Join(lastlines.Of(file, 20), "\n  "))
		}
	}
	return b.String()
}

// running waits until the newest application runs all its tasks and returns it with its state.
func (w *world) running() (appDir, *appmaster.Snapshot) {
	w.t.Helper()
	var app appDir
	var snap *appmaster.Snapshot
	w.eventually("the job runs", func() bool {
		var err error
		if app, err = findApp(w.state, ""); err != nil {
			return false
		}
		c, err := openClient(app)
		if err != nil {
			return false
		}
		defer c.close()
		snap, err = c.snapshot(w.t.Context())
		if err != nil || snap.State != "running" {
			return false
		}
		for _, v := range snap.Vertices {
			if v.Tasks["running"] != v.Parallelism {
				return false
			}
		}
		return true
	})
	return app, snap
}

// eventually polls until ok; processes can't be waited for otherwise.
func (w *world) eventually(what string, ok func() bool) {
	w.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(limit)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			w.t.Fatalf("not within %s: %s\n%s", limit, what, w.logs())
		}
	}
}

// gone waits until no process of the world's applications is left.
func (w *world) gone() {
	w.t.Helper()
	w.eventually("no process is left", func() bool { return len(w.processes()) == 0 })
}

// processes returns those whose environment names the state directory.
func (w *world) processes() (pids []int) {
	w.t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(data), "HEDDLE_APP_DIR="+w.state+"/") {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// syncBuffer is a buffer that a command writes while a test reads it.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
