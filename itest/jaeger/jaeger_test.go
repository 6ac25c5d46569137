// Package jaeger tests with a real Jaeger what people see of a job in traces, beside the figures that Prometheus gets.
package jaeger

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/itest/testbed"
)

// jobRun is a job that runs and sends its traces to Jaeger.
type jobRun struct {
	t       *testing.T
	bed     *testbed.Bed
	jaeger  *testbed.Jaeger
	process *testbed.Process
	state   string
}

// start starts the job on two agents of one slot each, so that each subtask sends half of its records to the other agent.
func start(t *testing.T, endpoint func(*testbed.Jaeger) string, args ...string) *jobRun {
	t.Helper()
	testbed.Group(t, "jaeger")
	b := testbed.New(t)
	program := testbed.BuildProgram(t, b, "./itest/jaeger/job", "job")
	j := testbed.StartJaeger(t, b)
	r := &jobRun{t: t, bed: b, jaeger: j, state: b.Dir("state")}
	r.process = b.Start(testbed.Spec{Name: "job", Path: program, Args: append([]string{"run", "--agents", "2", "-D", "agent.slots=1",
		"-D", "parallelism=2", "-D", "state-dir=" + r.state, "-D", "trace.endpoint=" + endpoint(j), "-D", "trace.sample-rate=20"}, args...)})
	t.Cleanup(func() {
		r.process.Signal(syscall.SIGINT)
		if code := r.process.Wait(time.Minute); code != 6 {
			t.Errorf("the job ended with exit code %d, want 6 (cancelled)\n%s", code, r.process.Tail(20))
		}
	})
	return r
}

// traces returns what Jaeger has once enough says nil.
func (r *jobRun) traces(what string, enough func([]testbed.Trace) error) {
	r.t.Helper()
	r.bed.Eventually(what, 2*time.Minute, func() error {
		if !r.process.Running() {
			r.t.Fatalf("the job has ended:\n%s", r.process.Tail(20))
		}
		all, err := r.jaeger.Traces("traced")
		if err != nil {
			return err
		}
		return enough(all)
	})
}

// way is the way of a record: poll, chain of the source, exchange, chain of the sink.
type way struct {
	trace *testbed.Trace
	spans [4]*testbed.JaegerSpan
}

// wayOf returns the way of the record that a trace follows, if it went from one agent to another and is complete.
func wayOf(t *testbed.Trace) (w way, ok bool) {
	byID := map[string]*testbed.JaegerSpan{}
	for i := range t.Spans {
		byID[t.Spans[i].SpanID] = &t.Spans[i]
	}
	for i := range t.Spans {
		s := &t.Spans[i]
		if s.OperationName != "exchange" || s.Tag("heddle.exchange.local") != "false" {
			continue
		}
		w.trace, w.spans[2] = t, s
		if w.spans[1] = byID[s.Parent()]; w.spans[1] == nil {
			return w, false
		}
		w.spans[0] = byID[w.spans[1].Parent()]
		for j := range t.Spans {
			if c := &t.Spans[j]; c.Parent() == s.SpanID && c.Tag("heddle.phase") == "" {
				w.spans[3] = c
			}
		}
		return w, w.spans[0] != nil && w.spans[3] != nil
	}
	return w, false
}

// phases are the durations of the phases of the hop, in microseconds.
func (w *way) phases() map[string]int64 {
	out := map[string]int64{}
	for i := range w.trace.Spans {
		if s := &w.trace.Spans[i]; s.Parent() == w.spans[2].SpanID && s.Tag("heddle.phase") != "" {
			out[s.Tag("heddle.phase")] += s.Duration
		}
	}
	return out
}

// off is how far the durations are from adding up to the time from end to end, as a share of it.
func (w *way) off() float64 {
	sum := int64(0)
	for _, s := range w.spans {
		sum += s.Duration
	}
	all := w.spans[3].StartTime + w.spans[3].Duration - w.spans[0].StartTime
	return max(float64(sum-all), float64(all-sum)) / float64(all)
}

// ways returns the ways of all records in traces that went from one agent to another.
func ways(traces []testbed.Trace) (out []way) {
	for i := range traces {
		if w, ok := wayOf(&traces[i]); ok {
			out = append(out, w)
		}
	}
	return out
}

func grpc(j *testbed.Jaeger) string     { return j.GRPC }
func overHTTP(j *testbed.Jaeger) string { return j.HTTP }

func TestRecordAcrossTwoAgents(t *testing.T) {
	for name, endpoint := range map[string]func(*testbed.Jaeger) string{"grpc": grpc, "http": overHTTP} {
		t.Run(name, func(t *testing.T) {
			args := []string{"-D", "trace.protocol=grpc"}
			if name == "http" {
				args[1] = "trace.protocol=http/protobuf"
			}
			r := start(t, endpoint, args...)
			var found []way
			r.traces("traces of records", func(traces []testbed.Trace) error {
				if found = ways(traces); len(found) < 20 {
					return fmt.Errorf("%d records went from one agent to the other, of %d traces", len(found), len(traces))
				}
				return nil
			})
			checkWays(t, found)
		})
	}
}

func checkWays(t *testing.T, found []way) {
	t.Helper()
	var off []float64
	for i := range found {
		w := &found[i]
		from, to := w.trace.Instance(w.spans[1]), w.trace.Instance(w.spans[3])
		if from == to || !strings.HasPrefix(from, "agent-") || !strings.HasPrefix(to, "agent-") {
			t.Errorf("trace %s goes from %s to %s", w.trace.TraceID, from, to)
		}
		if w.spans[0].Parent() != "" || !strings.HasPrefix(w.spans[0].OperationName, "poll ") {
			t.Errorf("trace %s begins with %s", w.trace.TraceID, w.spans[0].OperationName)
		}
		sum, phases := int64(0), w.phases()
		for _, d := range phases {
			if d < 0 {
				t.Errorf("trace %s has a phase of %d µs", w.trace.TraceID, d)
			}
			sum += d
		}
		if d := w.spans[2].Duration; len(phases) == 0 || sum < d-10 || sum > d+10 { // each is rounded to a microsecond
			t.Errorf("trace %s has a hop of %d µs with the phases %v", w.trace.TraceID, d, phases)
		}
		if w.spans[2].Tag("network.peer.address") == "" || w.spans[3].Tag("heddle.subtask") == "" || w.trace.Tag(w.spans[3], "heddle.app") == "" {
			t.Errorf("trace %s lacks attributes: hop %v, chain %v", w.trace.TraceID, w.spans[2].Tags, w.spans[3].Tags)
		}
		off = append(off, w.off())
	}
	// A task that is put aside between writing a record and its next step counts that time twice: so not each must add up, but most.
	slices.Sort(off)
	if m := off[len(off)/2]; m > 0.05 {
		t.Errorf("durations are off from the time from end to end by %.1f%% in the middle, want at most 5%%", 100*m)
	}
}

func TestSlowConsumer(t *testing.T) {
	r := start(t, grpc, "-D", "itest.pause=5ms", "-D", "exchange.segment-bytes=1KiB", "-D", "exchange.exclusive=1", "-D", "exchange.floating=0",
		"-D", "exchange.max-per-channel=1", "-D", "exchange.max-per-subpartition=4")
	r.traces("records that wait for credit", func(traces []testbed.Trace) error {
		waited := 0
		found := ways(traces)
		for i := range found {
			phases, most := found[i].phases(), ""
			for p, d := range phases {
				if most == "" || d > phases[most] {
					most = p
				}
			}
			if most == "credit" {
				waited++
			}
		}
		if waited < 5 || 2*waited < len(found) {
			return fmt.Errorf("waiting for credit took longest for %d of %d records", waited, len(found))
		}
		return nil
	})
	r.bed.Eventually("the figures to show it", time.Minute, func() error {
		text, err := r.metrics()
		if err != nil {
			return err
		}
		credit, wire := sumOf(text, "heddle_exchange_latency_seconds_sum", `phase="credit"`), sumOf(text, "heddle_exchange_latency_seconds_sum", `phase="wire"`)
		blocked := sumOf(text, "heddle_subtask_utilization_ratio", `heddle_vertex_id="0"`, `state="backpressured"`)
		if credit <= wire || blocked < 1 { // of two subtasks together
			return fmt.Errorf("waiting for credit took %v s, the wire %v s; the two sources are backpressured for %v", credit, wire, blocked)
		}
		return nil
	})
	text, err := r.metrics()
	if err != nil {
		t.Fatal(err)
	}
	checkMetrics(t, r.bed, text)
}

// metrics asks the ApplicationMaster for its figures, as Prometheus would.
func (r *jobRun) metrics() (string, error) {
	files, err := filepath.Glob(filepath.Join(r.state, "*", "appmaster.addr"))
	if err != nil || len(files) != 1 {
		return "", fmt.Errorf("there are %d files of addresses (%v)", len(files), err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		return "", err
	}
	var addr struct{ Web string }
	if err := json.Unmarshal(data, &addr); err != nil {
		return "", err
	}
	resp, err := http.Get(addr.Web + "metrics")
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK {
		err = errors.Join(err, errors.New(resp.Status))
	}
	return string(text), err
}

// sumOf sums up the samples of a metric whose labels hold all of parts.
func sumOf(text, name string, parts ...string) float64 {
	sum := 0.0
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, name+"{") || !containsAll(line, parts) {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]), 64)
		if err == nil {
			sum += v
		}
	}
	return sum
}

func containsAll(s string, parts []string) bool {
	return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(s, p) })
}

// checkMetrics has promtool, where it is installed, and else a rule of thumb judge the figures.
func checkMetrics(t *testing.T, b *testbed.Bed, text string) {
	t.Helper()
	line := regexp.MustCompile(`^([a-z_]+(\{.*\})? [-+0-9.eInfNa]+|# (HELP|TYPE) [a-z_]+ .*)$`)
	for l := range strings.Lines(text) {
		if !line.MatchString(strings.TrimSuffix(l, "\n")) {
			t.Errorf("this is no line of Prometheus's format: %s", l)
		}
	}
	if out, err := testbed.Promtool(b, text, "check", "metrics"); err != nil {
		t.Errorf("promtool does not like the metrics: %v\n%s", err, out)
	}
	rules, err := os.ReadFile(filepath.Join("..", "..", "conf", "monitoring", "heddle-alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := testbed.Promtool(b, "", "check", "rules", b.File("alerts.yaml", string(rules))); err != nil {
		t.Errorf("promtool does not like the alerts: %v\n%s", err, out)
	}
}

func TestLifeOfAnApplication(t *testing.T) {
	r := start(t, grpc)
	var life testbed.Trace
	r.traces("the trace of the application's life", func(traces []testbed.Trace) error {
		for _, tr := range traces {
			count := map[string]int{}
			for i := range tr.Spans {
				count[tr.Spans[i].OperationName]++
			}
			if count["submit traced"] == 0 {
				continue
			}
			life = tr
			for name, want := range map[string]int{"start application": 1, "start master": 1, "allocate": 2, "start agent": 2, "register agent": 2,
				"deploy": 2, "open": 4, "first record": 4, "job loaded": 1} {
				if count[name] < want {
					return fmt.Errorf("%d spans %q, want %d; there are %v", count[name], name, want, count)
				}
			}
			return nil
		}
		return fmt.Errorf("none of %d traces has it", len(traces))
	})
	byID, instances := map[string]*testbed.JaegerSpan{}, map[string]bool{}
	for i := range life.Spans {
		byID[life.Spans[i].SpanID] = &life.Spans[i]
		instances[life.Instance(&life.Spans[i])] = true
	}
	for i := range life.Spans {
		s := &life.Spans[i]
		p := byID[s.Parent()]
		if s.OperationName == "submit traced" {
			continue
		}
		if p == nil {
			t.Errorf("%s has no parent in the trace", s.OperationName)
		} else if s.StartTime < p.StartTime-1000 {
			t.Errorf("%s begins %d µs before %s", s.OperationName, p.StartTime-s.StartTime, p.OperationName)
		}
	}
	for _, want := range []string{"client", "appmaster", "agent-1", "agent-2"} {
		if !instances[want] {
			t.Errorf("the trace has no span of %s, but of %v", want, instances)
		}
	}
}
