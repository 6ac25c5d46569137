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

// hops is how many exchanges a record of the job passes.
const hops = 2

// way is the way of a record: poll, the chain of the source, and for each hop the exchange and the chain after it.
type way struct {
	trace *testbed.Trace
	spans [2 + 2*hops]*testbed.JaegerSpan
}

// wayOf returns the way of the record that a trace follows, if it is complete and went from one agent to another.
func wayOf(t *testbed.Trace) (w way, ok bool) {
	w.trace = t
	byID, parents := map[string]*testbed.JaegerSpan{}, map[string]bool{}
	for i := range t.Spans {
		byID[t.Spans[i].SpanID] = &t.Spans[i]
		parents[t.Spans[i].Parent()] = true
	}
	for i := range t.Spans {
		last := &t.Spans[i]
		if last.Tag("heddle.vertex.id") != strconv.Itoa(hops) || last.OperationName == "exchange" || last.Tag("heddle.phase") != "" {
			continue
		}
		s := last
		for n := len(w.spans) - 1; n >= 0 && s != nil; n-- {
			w.spans[n], s = s, byID[s.Parent()]
		}
		for n := range hops {
			ok = ok || w.spans[2+2*n] != nil && w.spans[2+2*n].Tag("heddle.exchange.local") == "false"
		}
		return w, ok && w.spans[0] != nil
	}
	return w, false
}

// hop returns a hop by its number and the durations of its phases, in microseconds.
func (w *way) hop(n int) (*testbed.JaegerSpan, map[string]int64) {
	hop, out := w.spans[2+2*n], map[string]int64{}
	for i := range w.trace.Spans {
		if s := &w.trace.Spans[i]; s.Parent() == hop.SpanID && s.Tag("heddle.phase") != "" {
			out[s.Tag("heddle.phase")] += s.Duration
		}
	}
	return hop, out
}

// off is how far the durations are from adding up to the time from end to end, as a share of it.
func (w *way) off() float64 {
	sum := int64(0)
	for _, s := range w.spans {
		sum += s.Duration
	}
	last := w.spans[len(w.spans)-1]
	all := last.StartTime + last.Duration - w.spans[0].StartTime
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
		id := w.trace.TraceID
		if w.spans[0].Parent() != "" || !strings.HasPrefix(w.spans[0].OperationName, "poll ") || w.spans[1].Tag("heddle.vertex.id") != "0" {
			t.Errorf("trace %s begins with %s and %s", id, w.spans[0].OperationName, w.spans[1].OperationName)
		}
		for n := range hops {
			checkHop(t, w, n)
		}
		if last := w.spans[len(w.spans)-1]; last.Tag("heddle.subtask") == "" || w.trace.Tag(last, "heddle.app") == "" {
			t.Errorf("trace %s lacks attributes: %v", id, last.Tags)
		}
		off = append(off, w.off())
	}
	// A task that is put aside between writing a record and its next step counts that time twice: so not each must add up, but most.
	slices.Sort(off)
	m := off[len(off)/2]
	t.Logf("%d records; durations are off from the time from end to end by %.2f%% in the middle", len(off), 100*m)
	if m > 0.05 {
		t.Errorf("durations are off from the time from end to end by %.1f%% in the middle, want at most 5%%", 100*m)
	}
}

// checkHop checks that a hop of a record is between the right tasks, and that its phases make it up.
func checkHop(t *testing.T, w *way, n int) {
	t.Helper()
	hop, phases := w.hop(n)
	from, to := w.trace.Instance(w.spans[1+2*n]), w.trace.Instance(w.spans[3+2*n])
	local := hop.Tag("heddle.exchange.local") == "true"
	if hop.OperationName != "exchange" || local != (from == to) || !strings.HasPrefix(from, "agent-") || !strings.HasPrefix(to, "agent-") {
		t.Errorf("hop %d of trace %s, %s, goes from %s to %s, local=%v", n, w.trace.TraceID, hop.OperationName, from, to, local)
	}
	for _, key := range []string{"heddle.channel", "heddle.edge", "heddle.subtask", "heddle.segment.bytes", "heddle.backlog"} {
		if hop.Tag(key) == "" {
			t.Errorf("hop %d of trace %s lacks %s: %v", n, w.trace.TraceID, key, hop.Tags)
		}
	}
	if !local && (hop.Tag("heddle.credit") == "" || hop.Tag("heddle.connection") == "" || hop.Tag("network.peer.address") == "" || hop.Tag("network.peer.port") == "" || hop.Tag("heddle.clock.offset.error") == "") || hop.Tag("heddle.vertex.id") != strconv.Itoa(n+1) {
		t.Errorf("hop %d of trace %s lacks attributes: %v", n, w.trace.TraceID, hop.Tags)
	}
	sum := int64(0)
	for p, d := range phases {
		if d < 0 {
			t.Errorf("hop %d of trace %s has %d µs of %s", n, w.trace.TraceID, d, p)
		}
		sum += d
	}
	if d := hop.Duration; len(phases) == 0 || sum < d-10 || sum > d+10 { // each is rounded to a microsecond
		t.Errorf("hop %d of trace %s takes %d µs, its phases are %v", n, w.trace.TraceID, d, phases)
	}
}

func TestSlowConsumer(t *testing.T) {
	r := start(t, grpc, "-D", "itest.pause=5ms", "-D", "exchange.segment-bytes=1KiB", "-D", "exchange.exclusive=1", "-D", "exchange.floating=0",
		"-D", "exchange.max-per-channel=1", "-D", "exchange.max-per-subpartition=4")
	edge := ""
	r.traces("records that wait for credit", func(traces []testbed.Trace) error {
		waited, before, behind := 0, 0, 0
		for _, w := range ways(traces) {
			hop, phases := w.hop(0)
			if hop.Tag("heddle.exchange.local") == "true" {
				continue // there is no credit within an agent
			}
			_, after := w.hop(1)
			edge = hop.Tag("heddle.edge")
			before++
			if longest(phases) == "credit" {
				waited++
			}
			if after["credit"] > phases["credit"] {
				behind++
			}
		}
		if waited < 5 || 2*waited < before || behind > before/5 {
			return fmt.Errorf("before the slow function %d of %d records wait longest for credit; %d wait longer for it behind", waited, before, behind)
		}
		return nil
	})
	r.bed.Eventually("the figures to show it", time.Minute, func() error {
		text, err := r.metrics()
		if err != nil {
			return err
		}
		at := `heddle_edge="` + edge + `"`
		sum := func(phase string) float64 {
			return sumOf(text, "heddle_exchange_latency_seconds_sum", at, `phase="`+phase+`"`)
		}
		all := sumOf(text, "heddle_exchange_latency_seconds_sum", `phase="credit"`)
		blocked := sumOf(text, "heddle_subtask_utilization_ratio", `heddle_vertex_id="0"`, `state="backpressured"`)
		if sum("credit") <= sum("wire") || sum("credit") < all*0.9 || blocked < 1 { // of two subtasks together
			return fmt.Errorf("at edge %s waiting for credit took %v s, the wire %v s; at all edges %v s; the two sources are backpressured for %v",
				edge, sum("credit"), sum("wire"), all, blocked)
		}
		return nil
	})
	r.restShows(edge)
	text, err := r.metrics()
	if err != nil {
		t.Fatal(err)
	}
	checkMetrics(t, r.bed, text)
}

// longest is the phase that took longest.
func longest(phases map[string]int64) string {
	most := ""
	for p, d := range phases {
		if most == "" || d > phases[most] {
			most = p
		}
	}
	return most
}

// restShows makes sure that what the dashboard draws, the REST API's snapshot, shows at one edge alone that records wait for credit.
func (r *jobRun) restShows(edge string) {
	r.t.Helper()
	var snap struct {
		Vertices []struct {
			Subtasks []struct {
				Hops []struct {
					Edge        int
					Phase       string
					Count, Mean float64
				}
			}
		}
	}
	text, err := r.get("api/job")
	if err != nil {
		r.t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(text), &snap); err != nil {
		r.t.Fatal(err)
	}
	most, at := 0.0, ""
	for _, v := range snap.Vertices {
		for _, sub := range v.Subtasks {
			for _, h := range sub.Hops {
				if h.Phase == "credit" && h.Count*h.Mean > most {
					most, at = h.Count*h.Mean, strconv.Itoa(h.Edge)
				}
			}
		}
	}
	if at != edge {
		r.t.Errorf("the REST API shows most waiting for credit (%v) at edge %q, want %q: %.600s", most, at, edge, text)
	}
}

// metrics asks the ApplicationMaster for its figures, as Prometheus would.
func (r *jobRun) metrics() (string, error) { return r.get("metrics") }

// get asks the ApplicationMaster.
func (r *jobRun) get(path string) (string, error) {
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
	resp, err := http.Get(addr.Web + path)
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
				"deploy": 2, "open": 6, "first record": 6, "localize": 2, "job loaded": 1} {
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

// TestJaegerHangs stops Jaeger's process while a job runs, so that it takes connections and answers nothing: the job goes on as before, what is lost is
// counted and logged, and traces come again when Jaeger does. It is stopped again when the job ends, which takes little longer for it.
func TestJaegerHangs(t *testing.T) {
	r := start(t, grpc)
	enough := func(after int64) func([]testbed.Trace) error {
		return func(traces []testbed.Trace) error {
			n := 0
			for _, w := range ways(traces) {
				if w.spans[0].StartTime > after {
					n++
				}
			}
			if n < 5 {
				return fmt.Errorf("%d records were followed to their ends since then", n)
			}
			return nil
		}
	}
	r.traces("traces of records", enough(0))
	r.jaeger.Signal(syscall.SIGSTOP)
	t.Cleanup(func() { r.jaeger.Signal(syscall.SIGCONT) }) // else it could not be ended
	came := func() float64 {
		text, err := r.metrics()
		if err != nil {
			t.Fatal(err)
		}
		return sumOf(text, "heddle_subtask_records_in_total", fmt.Sprintf(`heddle_vertex_id="%d"`, hops))
	}
	before, began := came(), time.Now()
	r.bed.Eventually("lost spans to be counted", 2*time.Minute, func() error {
		text, err := r.metrics()
		if err != nil {
			return err
		}
		if n := sumOf(text, "heddle_agent_spans_dropped_total"); n == 0 {
			return errors.New("none is counted")
		}
		return nil
	})
	if rate := (came() - before) / time.Since(began).Seconds(); rate < 1600 { // figures may be a heartbeat old
		t.Errorf("while Jaeger hangs %.0f records a second come through, want 2,000", rate)
	}
	r.jaeger.Signal(syscall.SIGCONT)
	r.traces("traces of records after Jaeger hung", enough(time.Now().UnixMicro()))
	r.jaeger.Signal(syscall.SIGSTOP)
	began = time.Now()
	r.process.Signal(syscall.SIGINT)
	r.process.Wait(time.Minute) // its exit code is looked at in the end
	if d := time.Since(began); d > 6*time.Second {
		t.Errorf("with a Jaeger that hangs the job's end took %v, want little more than 2 s", d)
	}
}
