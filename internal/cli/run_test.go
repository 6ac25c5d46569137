package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/appmaster"
)

const text = "the warp and the weft\nand the heddle between the two\n"

var words = map[string]int64{"the": 4, "warp": 1, "and": 2, "weft": 1, "heddle": 1, "between": 1, "two": 1}

// goJob counts the words of the files in to the folder out; dirs is "in:out".
func goJob(dirs string) *heddle.Job {
	in, out, _ := strings.Cut(dirs, ":")
	job := heddle.NewJob("words")
	lines := heddle.From(job, heddle.Files(in), heddle.Text())
	split := heddle.FlatMap(lines, func(line string, emit func(string)) {
		for word := range strings.FieldsSeq(line) {
			emit(word)
		}
	})
	counts := heddle.Aggregate(heddle.Global(heddle.KeyBy(split, func(w string) string { return w })), heddle.Count[string]())
	type count struct {
		Word  string `json:"word"`
		Count int64  `json:"count"`
	}
	heddle.To(heddle.Map(counts, func(w heddle.Windowed[string, int64]) count { return count{w.Key, w.Value} }), heddle.ToFiles(out), heddle.JSON[count]())
	return job
}

// wordJob is the same in YAML.
func (w *world) wordJob(in, out string) string {
	return w.file("words.yaml", fmt.Sprintf(`name: words
source: { file: { path: %q, format: text } }
steps:
  - flat_map: { word: words(line) }
  - key_by: word
  - window: { global: true, aggregate: { count: count() } }
sink: { file: { path: %q, format: json } }
`, in, out))
}

// endless is a job that never ends.
func (w *world) endless() string {
	return w.file("endless.yaml", `name: endless
source: { generator: { rate: 1000, record: { k: n % 10 } } }
steps:
  - key_by: k
  - window: { tumbling: 1s, time: processing, aggregate: { c: count() } }
sink: { discard: {} }
`)
}

// counted reads what a word count wrote.
func counted(t *testing.T, out string) map[string]int64 {
	t.Helper()
	counts := map[string]int64{}
	files, err := filepath.Glob(filepath.Join(out, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
			var c struct {
				Word  string
				Count int64
			}
			if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
				t.Errorf("result %q: %v", lines.Text(), err)
			}
			if counts[c.Word] != 0 {
				t.Errorf("word %q has two results", c.Word)
			}
			counts[c.Word] = c.Count
		}
	}
	return counts
}

func TestRunWordCount(t *testing.T) {
	for _, args := range [][]string{
		{"--parallelism", "4"},
		{"--parallelism", "2", "--exchange.tls", "--chaining=false", "--agents", "1"},
		{"--parallelism", "4", "--slot.selection", "evenly-spread", "--agents", "3"},
		{"--target", "inproc", "--parallelism", "3"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			w := newWorld(t)
			out := filepath.Join(w.dir, "out")
			in := w.start(append([]string{"run", w.wordJob(w.file("in.txt", text), out)}, args...)...)
			in.expect(0, "finished: words in ", "2 records in, 7 out")
			if got := counted(t, out); !maps.Equal(got, words) {
				t.Errorf("counted %v, want %v", got, words)
			}
			if left, err := w.kept(); err == nil && len(left) > 0 {
				t.Errorf("the state directory still holds %v", left)
			}
		})
	}
}

// A Go program runs its own job in every role.
func TestRunGoJob(t *testing.T) {
	w := newWorld(t)
	out := filepath.Join(w.dir, "out")
	dirs := w.file("in.txt", text) + ":" + out
	w.job = goJob(dirs)
	w.environ = append(w.environ, testJob+"="+dirs)
	w.start("run", "--parallelism", "3", "--quiet").expect(0)
	if got := counted(t, out); !maps.Equal(got, words) {
		t.Errorf("counted %v, want %v", got, words)
	}
	plan := w.start("plan")
	plan.expect(0)
	if !strings.Contains(plan.stdout.String(), "job words") {
		t.Errorf("plan printed %s", &plan.stdout)
	}
	w.start("run", "job.yaml").expect(2, "heddle run takes no arguments")
}

// A program whose main builds another graph in another process is refused.
func TestRunRefusesAnotherGraph(t *testing.T) {
	w := newWorld(t)
	in := w.file("in.txt", text)
	w.job = goJob(in + ":" + filepath.Join(w.dir, "out"))
	w.environ = append(w.environ, testJob+"="+in+":"+filepath.Join(w.dir, "elsewhere"))
	w.start("run").expect(5, "the ApplicationMaster builds another job graph than the client")
}

// An error at run time names the file as its author does, and the place once.
func TestRunNamesTheFile(t *testing.T) {
	w := newWorld(t)
	in := w.start("run", w.file("mine.yaml", `name: mine
source: { generator: { count: 10, record: { n: n } } }
steps: [{ filter: 10 % n == 0, name: divides }]
sink: { discard: {} }
`))
	in.expect(5, "operator divides (mine.yaml:3): cannot evaluate filter")
	if text := in.stderr.String(); strings.Count(text, "operator ") != 1 {
		t.Errorf("the place is told more than once:\n%s", text)
	}
}

// What a job needs before it can read is a precondition.
func TestRunLacksInput(t *testing.T) {
	w := newWorld(t)
	for _, source := range []string{"kafka: { topics: [a], format: text }", "file: { path: /nowhere/at-all, format: text }"} {
		w.start("run", w.file("lacks.yaml", "name: lacks\nsource: { "+source+" }\nsink: { discard: {} }\n")).expect(3, "cannot find the splits")
	}
}

func TestRunJSON(t *testing.T) {
	for _, target := range []string{"local", "inproc"} {
		w := newWorld(t)
		result := func(in *invocation, code int) (r runResult) {
			in.expect(code)
			if err := json.Unmarshal([]byte(in.stdout.String()), &r); err != nil {
				t.Errorf("%s: stdout is no JSON: %v\n%s", target, err, &in.stdout)
			}
			return r
		}
		r := result(w.start("run", w.wordJob(w.file("in.txt", text), filepath.Join(w.dir, "out")), "--json", "--target", target), 0)
		if r.State != "finished" || r.Job != "words" || r.RecordsIn != 2 || r.RecordsOut != 7 {
			t.Errorf("%s: the result is %+v", target, r)
		}
		bad := w.file("bad.yaml", "name: bad\nsource: { generator: { count: 10, record: { n: n } } }\nsteps: [{ filter: 1 % n == 0 }]\nsink: { discard: {} }\n")
		if r := result(w.start("run", bad, "--json", "--target", target), 5); r.State != "failed" || r.Cause == nil || !strings.Contains(r.Cause.Message, "bad.yaml:3") {
			t.Errorf("%s: the result is %+v", target, r)
		}
		printing := w.file("prints.yaml", "name: bad\nsource: { generator: { count: 10, record: { n: n } } }\nsink: { stdout: {} }\n")
		w.start("run", printing, "--json", "--target", target).expect(2, "--json writes to standard output, and so does the job")
	}
}

func TestRunTooParallel(t *testing.T) {
	w := newWorld(t)
	in := w.start("plan", w.endless(), "--parallelism", "200")
	in.expect(2, "parallelism 200 (flag --parallelism) is more than the max parallelism 128", "set --max-parallelism 200")
	if n := strings.Count(in.stderr.String(), "\n"); n != 2 {
		t.Errorf("%d lines for one mistake:\n%s", n, &in.stderr)
	}
	w.start("plan", w.endless(), "--timezone", "Europe/Berln").expect(2, `did you mean "Europe/Berlin"?`)
}

func TestRunNeedsTooMuch(t *testing.T) {
	w := newWorld(t)
	w.start("run", w.endless(), "--parallelism", "5", "--agents.max", "2").expect(3, "needs 5 slots, but at most 2 agents of 2 slots", "--agents.max 3")
	if _, err := os.Stat(w.state); err == nil {
		t.Error("something was started")
	}
}

func TestRunStartsMoreAgents(t *testing.T) {
	w := newWorld(t)
	out := filepath.Join(w.dir, "out")
	w.start("run", w.wordJob(w.file("in.txt", text), out), "--parallelism", "5", "--agents", "1").expect(0)
	if got := counted(t, out); !maps.Equal(got, words) {
		t.Errorf("counted %v, want %v", got, words)
	}
}

func TestRunStdout(t *testing.T) {
	w := newWorld(t)
	job := w.file("lines.yaml", fmt.Sprintf("name: lines\nsource: { file: { path: %q, format: text } }\nsink: { stdout: { format: text } }\n", w.file("in.txt", text)))
	for _, target := range []string{"local"} {
		in := w.start("run", job, "--target", target)
		in.expect(0)
		if got := in.stdout.String(); got != text {
			t.Errorf("target %s: stdout is %q, want %q", target, got, text)
		}
	}
}

func TestFailingJob(t *testing.T) {
	w := newWorld(t)
	job := w.file("bad.yaml", fmt.Sprintf("name: bad\nsource: { file: { path: %q, format: json } }\nsink: { discard: {} }\n", w.file("in.txt", text)))
	in := w.start("run", job)
	in.expect(5, "heddle: the job bad failed: subtask ", "source source (bad.yaml:2): ", "the warp and the weft", "heddle logs heddle-")
	apps, err := listApps(w.state)
	if err != nil || len(apps) != 1 {
		t.Fatalf("after a failure there are applications %v, %v, want one kept", apps, err)
	}
	list := w.start("list", "--all")
	list.expect(0)
	if !strings.Contains(list.stdout.String(), "\tbad\tfailed\t") {
		t.Errorf("list --all printed %q", &list.stdout)
	}
	logs := w.start("logs", apps[0].id, "-n", "0")
	logs.expect(0)
	if !strings.Contains(logs.stdout.String(), "appmaster ") || !strings.Contains(logs.stdout.String(), "agent-1 ") {
		t.Errorf("logs printed\n%s", &logs.stdout)
	}
}

func TestInterruptCancels(t *testing.T) {
	w := newWorld(t)
	in := w.start("run", w.endless(), "--parallelism", "2")
	w.running()
	in.signals <- os.Interrupt
	in.expect(6, "cancelling the job", "heddle: the job was cancelled after ")
	w.gone()
	if left, err := w.kept(); err != nil || len(left) > 0 {
		t.Errorf("the state directory still holds %v, %v", left, err)
	}
}

// One who cancels the job of a client that waits is told that it was cancelled, though its directory is removed.
func TestCancelAttached(t *testing.T) {
	w := newWorld(t)
	run := w.start("run", w.endless())
	app, _ := w.running()
	in := w.start("cancel", app.id)
	in.expect(0)
	if got, want := in.stdout.String(), app.id+"\tcanceled\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
	run.expect(6, "the job was cancelled")
	w.gone()
}

// One who waits for an application of another client learns how it ended, though its directory is removed.
func TestWaitAttached(t *testing.T) {
	w := newWorld(t)
	run := w.start("run", w.endless())
	app, _ := w.running()
	in := w.start("wait", app.id)
	w.start("cancel", app.id).expect(0)
	run.expect(6, "the job was cancelled")
	in.expect(6, "heddle: the job was cancelled")
	w.gone()
	for _, test := range []struct {
		name, want string
		seen       appmaster.Result
		app        string
	}{
		{"by its report", "canceled", appmaster.Result{}, app.id},
		{"as it was seen", "finished", appmaster.Result{State: "finished"}, app.id},
		{"not at all", stateGone, appmaster.Result{}, "heddle-1-1"},
	} {
		if got := stateAtEnd(t.Context(), appDir{id: test.app, path: filepath.Join(w.state, test.app)}, test.seen).State; got != test.want {
			t.Errorf("known %s: %q, want %q", test.name, got, test.want)
		}
	}
}

func TestKillAgent(t *testing.T) {
	w := newWorld(t)
	in := w.start("run", w.endless(), "--parallelism", "4")
	_, snap := w.running()
	if err := syscall.Kill(snap.Agents[0].PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	in.expect(5, "heddle: the job endless failed: ", snap.Agents[0].ID, "killed")
	w.gone()
}

func TestKillMaster(t *testing.T) {
	w := newWorld(t)
	in := w.start("run", w.endless(), "--parallelism", "4")
	app, _ := w.running()
	killMaster(t, app)
	in.expect(5, "heddle: the ApplicationMaster died: killed by signal 9 (killed)", "appmaster.log")
	w.gone()
}

func killMaster(t *testing.T, app appDir) {
	t.Helper()
	var addr struct{ PID int }
	if err := app.readJSON(addrFile, &addr); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(addr.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

func TestDetach(t *testing.T) {
	w := newWorld(t)
	in := w.start("run", w.endless(), "--detach")
	in.expect(0)
	id := strings.TrimSpace(in.stdout.String())
	if app, _ := w.running(); app.id != id {
		t.Fatalf("run --detach printed %q, but %s runs", id, app.id)
	}
	status := w.start("status", "--json")
	status.expect(0)
	if !strings.Contains(status.stdout.String(), `"state": "running"`) {
		t.Errorf("status --json printed %s", &status.stdout)
	}
	w.start("status", id).expect(0)
	cancel := w.start("cancel", id)
	cancel.expect(0)
	if got := cancel.stdout.String(); got != id+"\tcanceled\n" {
		t.Errorf("cancel printed %q", got)
	}
	w.start("cancel", id).expect(3, "has ended already: canceled")
	w.start("top", id).expect(3, "has ended already: canceled", "history "+id)
}

func TestTimeout(t *testing.T) {
	w := newWorld(t)
	in := w.start("run", w.endless(), "--timeout", "300ms")
	in.expect(4, "the time limit of 300ms passed", "still runs", "heddle cancel heddle-")
	w.running()
	w.start("cancel").expect(0)
}

// The job ends when its client is killed.
func TestKillClient(t *testing.T) {
	w := newWorld(t)
	cmd := exec.Command(os.Args[0], "run", w.endless())
	cmd.Env = append(w.environ, testMain+"=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.running()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	w.gone()
}

func TestDemo(t *testing.T) {
	w := newWorld(t)
	in := w.start("demo", "--duration", "2500ms", "--rate", "5000")
	if code := in.wait(40 * time.Second); code != 0 || !strings.Contains(in.stdout.String(), "every event exactly once") {
		t.Errorf("demo: exit code %d\nstdout:\n%s\nstderr:\n%s\n%s", code, &in.stdout, &in.stderr, w.logs())
	}
}

// TestDemoChecksOptions: what can't work is told before anything is started, as by run, and a configured target is not the demo's.
func TestDemoChecksOptions(t *testing.T) {
	w := newWorld(t)
	for options, want := range map[string]string{
		"-D exchange.segment-bytes=1028":     "exchange.segment-bytes is 1028",
		"-D exchange.keepalive-timeout=5s":   "exchange.keepalive-timeout (5s) must be longer",
		"-D exchange.port=99999":             "is not a port",
		"--agent.heartbeat-timeout 100ms":    "agent.heartbeat-interval 1s",
		"--target inproc -D exchange.port=x": "is not a port",
	} {
		in := w.start(append([]string{"demo", "--duration", "1h"}, strings.Fields(options)...)...)
		in.expect(2, want)
	}
	if _, err := os.Stat(w.state); err == nil {
		t.Error("something was started")
	}
}

func TestDemoEndsByInterrupt(t *testing.T) {
	w := newWorld(t)
	in := w.start("demo", "--duration", "1h")
	w.running()
	in.signals <- os.Interrupt
	in.expect(0)
}

func TestDemoFailsWithItsJob(t *testing.T) {
	w := newWorld(t)
	in := w.start("demo", "--duration", "1h")
	app, _ := w.running()
	killMaster(t, app)
	in.expect(5, "heddle: the ApplicationMaster died")
}

func TestBenchEndsByInterrupt(t *testing.T) {
	w := newWorld(t)
	in := w.start("bench", "exchange", "--duration", "1h")
	in.signals <- os.Interrupt
	in.expect(6, "interrupted")
}

func TestBenchExchange(t *testing.T) {
	w := newWorld(t)
	w.start("bench", "exchange", "-D", "exchange.segment-bytes=1028").expect(2, "exchange.segment-bytes is 1028")
	in := w.start("bench", "exchange", "--duration", "100ms", "--json")
	in.expect(0)
	var res map[string]any
	if err := json.Unmarshal([]byte(in.stdout.String()), &res); err != nil || res["records_per_second"] == nil || res["raw_bytes_per_second"] == nil {
		t.Errorf("bench exchange --json printed %s, %v", &in.stdout, err)
	}
}
