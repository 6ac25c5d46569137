package task

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/jobgraph"
	"github.com/heddle-stream/heddle/internal/telemetry"
	"github.com/heddle-stream/heddle/internal/telemetry/otlptest"
	"github.com/heddle-stream/heddle/internal/testjob"
	"github.com/heddle-stream/heddle/netstack"
)

// followed runs a graph over two stacks, with every poll followed, and returns its spans and the reports of its tasks.
func followed(t *testing.T, g *flow.Graph, splits int, exchange netstack.Config) ([]otlptest.Span, []Report) {
	t.Helper()
	collector := otlptest.Start(t)
	p := provider(t, collector.URL)
	reports := followInto(t, g, splits, exchange, everyPoll(p))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := p.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if st := p.Stats(); st.Failed != 0 {
		t.Fatalf("%d spans could not be exported", st.Failed)
	}
	return collector.Spans(), reports
}

func provider(t *testing.T, url string) *telemetry.Provider {
	t.Helper()
	p, err := telemetry.New(t.Context(), telemetry.Config{Service: "test", Settings: telemetry.Settings{Endpoint: url, Protocol: telemetry.HTTP, Traces: true}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// everyPoll follows a record of each.
func everyPoll(p *telemetry.Provider) Follow { return Follow{Provider: p, Rate: 1e9} }

// followInto is followed with those that follow says, and perhaps with clocks of the tasks, by vertex.
func followInto(t *testing.T, g *flow.Graph, splits int, exchange netstack.Config, follow Follow, clocks ...func() time.Time) []Report {
	t.Helper()
	plan, err := jobgraph.Compile(g, jobgraph.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var stacks [2]*netstack.Stack
	for i := range stacks {
		exchange.Auth, exchange.Identity = netstack.Auth{Key: make([]byte, netstack.KeySize)}, fmt.Sprint("agent-", i)
		s, err := netstack.New(exchange)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		stacks[i] = s
	}
	var wg sync.WaitGroup
	var tasks []*Task
	for v := range plan.Vertices {
		for sub := range plan.Vertices[v].Parallelism {
			id := cluster.ExecutionID{Vertex: v, Subtask: sub}
			in, out := Wire(plan, id, func(vertex, _ int) string { return stacks[vertex%2].Addr() })
			env := Env{Exchange: NewNetExchange(stacks[v%2]), Follow: follow}
			if clocks != nil {
				env.Clock = clocks[v]
			}
			task, err := New(Spec{ID: id, Graph: g, Plan: plan, Inputs: in, Outputs: out}, env)
			if err != nil {
				t.Fatal(err)
			}
			if v == 0 {
				for i := range splits {
					task.AddSplits([]flow.Split{{ID: fmt.Sprint(i)}}, i == splits-1)
				}
			}
			tasks = append(tasks, task)
		}
	}
	for _, task := range tasks {
		wg.Go(func() {
			if res := task.Run(t.Context()); res.State != cluster.Finished {
				t.Errorf("task %v ended as %v: %v", task.ID(), res.State, res.Failure)
			}
		})
	}
	wg.Wait()
	var reports []Report
	for _, task := range tasks {
		reports = append(reports, task.Report())
	}
	return reports
}

// TestBlockedCollector runs a job whose every poll is followed while the collector takes requests and answers none of them, and then one that
// answers each with an error: the job goes on, and what was not taken is counted.
func TestBlockedCollector(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"blocks": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"fails":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "20")
			asked := make(chan struct{}, 1)
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // so that the server sees when the client hangs up
				select {
				case asked <- struct{}{}:
				default:
				}
				answer(w, r)
			}))
			defer srv.Close()
			p := provider(t, srv.URL)
			sink := &testjob.Sink[string]{}
			src := words(1, 5000)
			src.Batch = 5
			g := job(src, sink, probe{}, probe{})
			g.Nodes[2].NoChain = true
			followInto(t, g, 1, netstack.Config{}, everyPoll(p)) // waiting for the collector it would take hours: each request may take 10 s
			<-asked
			if n := len(sink.Records()); n != 5000 {
				t.Errorf("%d records arrived, want 5000", n)
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
			defer cancel()
			if err := p.Close(ctx); err == nil && name == "blocks" {
				t.Error("the last spans were sent")
			}
			if st := p.Stats(); st.Exported != 0 || st.Failed == 0 || st.Dropped+st.Failed < 1000 {
				t.Errorf("the figures are %+v", st)
			}
		})
	}
}

// path follows parents from s to the root, and returns the spans with the root first.
func path(spans []otlptest.Span, s otlptest.Span) []otlptest.Span {
	out := []otlptest.Span{s}
	for len(out[0].ParentSpanId) > 0 {
		found := false
		for _, p := range spans {
			if bytes.Equal(p.SpanId, out[0].ParentSpanId) && bytes.Equal(p.TraceId, s.TraceId) {
				out = append([]otlptest.Span{p}, out...)
				found = true
				break
			}
		}
		if !found {
			return nil
		}
	}
	return out
}

func length(s otlptest.Span) time.Duration {
	return time.Duration(int64(s.EndTimeUnixNano) - int64(s.StartTimeUnixNano))
}

func TestFollowARecordThroughTwoProcesses(t *testing.T) {
	sink := &testjob.Sink[string]{}
	g := job(words(1, 5000), sink, probe{}, probe{})
	g.Nodes[2].NoChain = true
	spans, reports := followed(t, g, 1, netstack.Config{})
	if n := len(sink.Records()); n != 5000 {
		t.Fatalf("%d records arrived, want 5000", n)
	}
	whole := 0
	for _, s := range spans {
		if d := length(s); d < 0 {
			t.Errorf("span %s takes %v", s.Name, d)
		}
		if s.Attrs["heddle.vertex.id"] != "1" || s.Name == "exchange" {
			continue
		}
		p := path(spans, s)
		if len(p) != 4 || p[2].Name != "exchange" || p[0].Attrs["heddle.split"] != "0" {
			t.Fatalf("the chain of the sink has the path %v", names(p))
		}
		whole++
		checkHop(t, spans, p[2])
		sum := length(p[0]) + length(p[2]) + length(p[3])
		if all := time.Duration(int64(s.EndTimeUnixNano) - int64(p[0].StartTimeUnixNano)); sum > all+time.Millisecond {
			t.Errorf("poll, hop and sink take %v, from end to end it is %v", sum, all)
		}
	}
	if whole == 0 {
		t.Fatalf("no record was followed to its end; spans: %v", names(spans))
	}
	phases := map[int]bool{}
	for _, r := range reports {
		for _, h := range r.Hops {
			phases[h.Phase] = true
		}
	}
	if len(phases) != telemetry.Phases-1 || phases[telemetry.PhaseAlign] {
		t.Errorf("phases %v were timed, want all %d but the alignment, of which there was none", phases, telemetry.Phases)
	}
}

// checkHop checks that the phases of a hop make it up.
func checkHop(t *testing.T, spans []otlptest.Span, hop otlptest.Span) {
	t.Helper()
	sum, n := time.Duration(0), 0
	for _, s := range spans {
		if s.Attrs["heddle.phase"] != "" && bytes.Equal(s.ParentSpanId, hop.SpanId) {
			sum += length(s)
			n++
		}
	}
	if n == 0 || sum != length(hop) { // waits of no time have no span
		t.Errorf("a hop of %v has %d phases that take %v", length(hop), n, sum)
	}
	if hop.Attrs["network.peer.address"] != "127.0.0.1" || len(hop.Attrs["network.peer.port"]) < 4 || hop.Attrs["network.transport"] != "tcp" || hop.Attrs["heddle.exchange.local"] != "false" || hop.Attrs["heddle.clock.offset.error"] == "" {
		t.Errorf("a hop has the attributes %v", hop.Attrs)
	}
	for _, key := range []string{"heddle.vertex", "heddle.vertex.id", "heddle.subtask", "heddle.attempt", "heddle.edge", "heddle.channel", "heddle.producer.subtask", "heddle.connection",
		"heddle.credit", "heddle.backlog", "heddle.segment.bytes", "heddle.segment.record", "heddle.queue.received", "heddle.clock.offset"} {
		if hop.Attrs[key] == "" {
			t.Errorf("a hop lacks %s: %v", key, hop.Attrs)
		}
	}
	if n, err := strconv.Atoi(hop.Attrs["heddle.segment.bytes"]); err != nil || n < 8 {
		t.Errorf("a segment has %s bytes", hop.Attrs["heddle.segment.bytes"])
	}
}

func names(spans []otlptest.Span) (out []string) {
	for _, s := range spans {
		out = append(out, s.Name+"@"+hex.EncodeToString(s.SpanId[:2]))
	}
	return out
}

// TestWindowsThatWait: where many records are followed into windows that fire late, each window is still to be seen, not the last ones alone.
func TestWindowsThatWait(t *testing.T) {
	const windows, each = 20, 20
	sink := &testjob.Sink[heddle.Windowed[string, int64]]{}
	j := heddle.NewJob("test")
	s := heddle.FromSource(j, &testjob.Source[int64]{Splits: 1, Each: windows * each, Batch: 1, At: func(_, i int) int64 { return int64(i) }}).
		Watermark(heddle.BoundedDelay(time.Hour, func(i int64) time.Time { return time.UnixMilli(i * 1000) }))
	heddle.ToSink(heddle.Aggregate(heddle.Tumbling(heddle.KeyBy(s, func(int64) string { return "key" }), each*time.Second), heddle.Count[int64]()), sink)
	spans, _ := followed(t, j.Graph(), 1, netstack.Config{})
	seen := map[string]bool{}
	for _, s := range spans {
		if s.Name == "window" {
			seen[s.Attrs["heddle.window.end"]] = true
		}
	}
	if len(seen) != windows || len(sink.Records()) != windows {
		t.Errorf("%d windows show in traces and %d in the sink, want %d", len(seen), len(sink.Records()), windows)
	}
}

func TestWindowLinksWhatItIsMadeOf(t *testing.T) {
	sink := &testjob.Sink[heddle.Windowed[string, int64]]{}
	j := heddle.NewJob("test")
	s := heddle.FromSource(j, &testjob.Source[string]{Splits: 3, Each: 10, Batch: 1, At: func(split, i int) string { return fmt.Sprint("key-", split) }}).
		Watermark(heddle.BoundedDelay(0, func(string) time.Time { return time.UnixMilli(1000) }))
	heddle.ToSink(heddle.Aggregate(heddle.Tumbling(heddle.KeyBy(s, func(w string) string { return w }), time.Minute), heddle.Count[string]()), sink)
	spans, _ := followed(t, j.Graph(), 3, netstack.Config{})
	fired := 0
	for _, s := range spans {
		if s.Name != "window" {
			continue
		}
		fired++
		if len(s.Links) != 9 {
			t.Errorf("a window of 10 followed records has %d links and goes on from one", len(s.Links))
		}
		if p := path(spans, s); len(p) < 4 {
			t.Errorf("a window's result has the path %v", names(p))
		}
		if s.Attrs["heddle.window.end"] != "1970-01-01T00:01:00.000Z" {
			t.Errorf("a window has the attributes %v", s.Attrs)
		}
	}
	if fired != 3 || len(sink.Records()) != 3 {
		t.Errorf("%d windows show in traces and %d in the sink, want 3 each", fired, len(sink.Records()))
	}
}

// phases sums up the phases of all hops in a list of spans.
func phases(spans []otlptest.Span) map[string]time.Duration {
	sums := map[string]time.Duration{}
	for _, s := range spans {
		if p := s.Attrs["heddle.phase"]; p != "" {
			sums[p] += length(s)
		}
	}
	return sums
}

func TestSlowConsumerShowsAsCreditWait(t *testing.T) {
	sink := &testjob.Sink[string]{}
	src := words(1, 4000)
	src.Batch = 20 // so that many are followed
	g := job(src, sink, probe{}, probe{push: func(p *probe, b flow.Batch[string]) error {
		time.Sleep(time.Duration(len(b.Recs)) * 50 * time.Microsecond)
		return p.out.Push(b)
	}})
	g.Nodes[2].NoChain = true
	spans, _ := followed(t, g, 1, netstack.Config{SegmentBytes: 1024, ExclusivePerChannel: 1, FloatingPerGate: -1, MaxPerChannel: 1, MaxPerSubpartition: 4})
	sums := phases(spans)
	for phase, d := range sums {
		if phase != "credit" && d > sums["credit"] {
			t.Errorf("the phases are %v: %s takes longer than the wait for credit", sums, phase)
		}
	}
	waits := 0
	for _, s := range spans {
		if s.Name == "wait for a segment" {
			waits++
		}
	}
	if sums["credit"] == 0 || waits == 0 {
		t.Errorf("the phases are %v, and %d records waited for a segment", sums, waits)
	}
}

// slowLink is a dialer whose connections carry everything late.
func slowLink(t *testing.T, delay time.Duration) func(ctx context.Context, addr string) (net.Conn, error) {
	return func(ctx context.Context, addr string) (net.Conn, error) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		far, err := net.Dial("tcp", addr)
		if err != nil {
			return nil, err
		}
		near, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			return nil, err
		}
		mid, err := l.Accept()
		if err != nil {
			return nil, err
		}
		var wg sync.WaitGroup
		wg.Go(func() { carry(far, mid, delay) })
		wg.Go(func() { carry(mid, far, delay) })
		t.Cleanup(wg.Wait)
		return near, nil
	}
}

// carry copies from src to dst, each piece late, until src ends.
func carry(dst, src net.Conn, delay time.Duration) {
	type piece struct {
		at   time.Time
		data []byte
	}
	pieces := make(chan piece, 1<<16)
	go func() { // ends with src
		defer close(pieces)
		for {
			buf := make([]byte, 4096)
			n, err := src.Read(buf)
			if n > 0 {
				pieces <- piece{time.Now().Add(delay), buf[:n]}
			}
			if err != nil {
				return
			}
		}
	}()
	for p := range pieces {
		time.Sleep(time.Until(p.at))
		_, _ = dst.Write(p.data) // a peer that is gone shows at src
	}
	dst.Close()
}

func TestSlowLinkShowsAsWireTime(t *testing.T) {
	const delay = 50 * time.Millisecond
	sink := &testjob.Sink[string]{}
	src := words(1, 40)
	src.Batch, src.Pause = 10, 20*time.Millisecond
	g := job(src, sink, probe{}, probe{})
	g.Nodes[2].NoChain = true
	spans, _ := followed(t, g, 1, netstack.Config{Dial: slowLink(t, delay)})
	n := 0
	for _, s := range spans {
		if s.Attrs["heddle.phase"] == "wire" {
			n++
			if d := length(s); d < delay/2 { // the clocks of the two can't be told apart better than that
				t.Errorf("a record took %v on the wire, whose delay is %v", d, delay)
			}
		}
	}
	if n == 0 {
		t.Errorf("no record was followed over the wire; spans: %v", names(spans))
	}
}

func TestLogsTellTheTrace(t *testing.T) {
	var out bytes.Buffer
	f := &follower{}
	log := slog.New(traceHandler{slog.NewTextHandler(&out, nil), f}).With("task", "1")
	log.Info("before")
	f.logged.store(&flow.TraceContext{Trace: [16]byte{0xab}, Span: [8]byte{0xcd}})
	log.Info("within")
	f.logged.store(&flow.TraceContext{})
	log.Info("after")
	lines := strings.Split(out.String(), "\n")
	if strings.Contains(lines[0], "trace_id") || !strings.Contains(lines[1], "task=1 trace_id=ab000000000000000000000000000000 span_id=cd00000000000000") ||
		strings.Contains(lines[2], "trace_id") {
		t.Errorf("logged was\n%s", out.String())
	}
}

// TestSharedContext: what is loaded was stored as a whole.
func TestSharedContext(t *testing.T) {
	var s sharedContext
	context := func(b byte) (c flow.TraceContext) {
		copy(c.Trace[:], bytes.Repeat([]byte{b}, 16))
		copy(c.Span[:], bytes.Repeat([]byte{b}, 8))
		return c
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	stop := make(chan struct{})
	defer close(stop)
	wg.Go(func() {
		for b := byte(0); ; b++ {
			select {
			case <-stop:
				return
			default:
				c := context(b % 4)
				s.store(&c)
			}
		}
	})
	for seen := 0; seen < 10_000; {
		c, ok := s.load()
		if !ok {
			runtime.Gosched()
			continue
		}
		if seen++; c != context(c.Span[7]) || c.Span[7] == 0 {
			t.Fatalf("loaded %v, which nobody stored", c)
		}
	}
}

func TestNoteRoundTrip(t *testing.T) {
	marks := []mark{
		{context: flow.TraceContext{Trace: [16]byte{1, 2}, Span: [8]byte{3}, Flags: 1}, index: 0, filled: time.Millisecond},
		{index: 300, filled: 0},
	}
	var b []byte
	for _, m := range marks {
		b = appendMark(b, m)
	}
	got := parseNote(nil, b)
	if len(got) != 2 || got[0] != marks[0] || got[1] != marks[1] {
		t.Errorf("got %v, want %v", got, marks)
	}
}

func FuzzParseNote(f *testing.F) {
	f.Add([]byte{0, 1, 2, 0, 5, 6})
	f.Add(appendMark(nil, mark{context: flow.TraceContext{Trace: [16]byte{1}, Flags: 1}, index: 7}))
	f.Fuzz(func(t *testing.T, b []byte) {
		last := -1
		for _, m := range parseNote(nil, b) {
			if m.index <= last || m.filled < 0 {
				t.Fatalf("note %x gives mark %+v after index %d", b, m, last)
			}
			last = m.index
		}
	})
}

// TestDue: about so many a second, however the clock moves.
func TestDue(t *testing.T) {
	f := &follower{cfg: Follow{Rate: 10}}
	count := func(from, to, step int64) (n int) {
		for now := from; now < to; now += step {
			if _, ok, again := f.Due(5, now); ok {
				n++
				if again < now || again > now+101 {
					t.Fatalf("at %d it is to be asked again at %d", now, again)
				}
			}
		}
		return n
	}
	const hour = 3_600_000
	if n := count(hour, hour+10_000, 3); n < 95 || n > 105 {
		t.Errorf("%d records of 10 seconds are followed, want 100", n)
	}
	if n := count(0, 10_000, 3); n < 95 || n > 105 { // set back by an hour
		t.Errorf("%d records of 10 seconds are followed by a clock that was set back", n)
	}
	if n := count(10*hour, 10*hour+10_000, 3); n < 95 || n > 106 {
		t.Errorf("%d records of 10 seconds are followed by a clock that was set forward", n)
	}
}

// TestHopByAClockThatWasSet: the wall clock of the consumer, or of the producer, was set since its process began. What the exchange measures, by clocks
// without such steps, is neither longer nor shorter for it.
func TestHopByAClockThatWasSet(t *testing.T) {
	for name, by := range map[string][2]time.Duration{"consumer ahead": {0, time.Hour}, "consumer behind": {0, -time.Hour}, "producer ahead": {time.Hour, 0}, "producer behind": {-time.Hour, 0}} {
		t.Run(name, func(t *testing.T) {
			sink := &testjob.Sink[string]{}
			g := job(words(1, 100), sink, probe{}, probe{})
			g.Nodes[2].NoChain = true
			collector := otlptest.Start(t)
			p := provider(t, collector.URL)
			clock := func(v int) func() time.Time { return func() time.Time { return time.Now().Add(by[v]) } }
			began := time.Now()
			reports := followInto(t, g, 1, netstack.Config{}, everyPoll(p), clock(0), clock(1))
			most := time.Since(began)
			if err := p.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			spans := collector.Spans()
			hops := 0
			for _, s := range spans {
				if d := length(s); d < 0 || d > most {
					t.Errorf("span %s takes %v", s.Name, d)
				}
				if s.Name == "exchange" {
					hops++
					checkHop(t, spans, s)
					if off := time.Unix(0, int64(s.EndTimeUnixNano)).Sub(began.Add(by[1])); off < 0 || off > most {
						t.Errorf("a hop ends %v after the beginning by the consumer's clock, of %v", off, most)
					}
				}
			}
			for _, h := range reports[1].Hops {
				if h.Sum > most*time.Duration(len(spans)) {
					t.Errorf("phase %d took %v", h.Phase, h.Sum)
				}
			}
			if hops == 0 {
				t.Error("no record was followed")
			}
		})
	}
}

// TestBacklogAndCredit: where the consumer has no room, hops tell that no credit was left and how much was behind them.
func TestBacklogAndCredit(t *testing.T) {
	sink := &testjob.Sink[string]{}
	src := words(1, 2000)
	src.Batch = 20
	g := job(src, sink, probe{}, probe{push: func(p *probe, b flow.Batch[string]) error {
		time.Sleep(time.Duration(len(b.Recs)) * 20 * time.Microsecond)
		return p.out.Push(b)
	}})
	g.Nodes[2].NoChain = true
	spans, _ := followed(t, g, 1, netstack.Config{SegmentBytes: 1024, ExclusivePerChannel: 1, FloatingPerGate: -1, MaxPerChannel: 1, MaxPerSubpartition: 4})
	behind, credit := 0, 0
	for _, s := range spans {
		if s.Name != "exchange" {
			continue
		}
		if s.Attrs["heddle.backlog"] != "0" {
			behind++
		}
		if s.Attrs["heddle.credit"] != "0" {
			credit++
		}
	}
	if behind == 0 || credit > 0 {
		t.Errorf("%d hops tell of a backlog, %d of credit that was left; want some, and none", behind, credit)
	}
}

// TestRecordThatEndsItsTask: the record at which a task panics, or at which a function ends its goroutine, is not lost to the trace, and says so.
func TestRecordThatEndsItsTask(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("secret") }, "exit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			collector := otlptest.Start(t)
			p := provider(t, collector.URL)
			src := words(1, 10)
			src.Batch = 1
			g := job(src, &testjob.Sink[string]{}, probe{}, probe{push: func(*probe, flow.Batch[string]) error {
				end()
				return nil
			}})
			plan, err := jobgraph.Compile(g, jobgraph.Options{})
			if err != nil {
				t.Fatal(err)
			}
			task, err := New(Spec{Graph: g, Plan: plan}, Env{Exchange: NewMemory(1024, 2), Follow: everyPoll(p)})
			if err != nil {
				t.Fatal(err)
			}
			task.AddSplits([]flow.Split{{ID: "0"}}, true)
			done := make(chan Result, 1)
			go func() {
				returned := false
				defer func() {
					if !returned {
						done <- task.Exited()
					}
				}()
				res := task.Run(t.Context())
				returned = true
				done <- res
			}()
			if res := <-done; res.State != cluster.Failed {
				t.Fatalf("the task ended as %v", res.State)
			}
			if err := p.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			failed := 0
			for _, s := range collector.Spans() {
				if s.Status.GetMessage() != "" {
					failed++
				}
				if strings.Contains(fmt.Sprint(s.Span), "secret") {
					t.Errorf("a span tells what is nobody's business: %v", s.Span)
				}
			}
			if failed != 1 {
				t.Errorf("%d spans have failed of %v, want 1", failed, names(collector.Spans()))
			}
		})
	}
}

// TestDeliveriesEndWithTheirTask: a delivery that its task did not live to see ends with it, as failed, and once.
func TestDeliveriesEndWithTheirTask(t *testing.T) {
	collector := otlptest.Start(t)
	p := provider(t, collector.URL)
	src := words(1, 10)
	src.Batch = 1
	var task *Task
	var open flow.Delivery
	g := job(src, &testjob.Sink[string]{}, probe{}, probe{push: func(*probe, flow.Batch[string]) error {
		if !task.follow.trail.Recording() {
			return nil
		}
		task.follow.Send("send one").Done()
		open = task.follow.Send("send two")
		return errors.New("broken")
	}})
	plan, err := jobgraph.Compile(g, jobgraph.Options{})
	if err != nil {
		t.Fatal(err)
	}
	task, err = New(Spec{Graph: g, Plan: plan}, Env{Exchange: NewMemory(1024, 2), Follow: everyPoll(p)})
	if err != nil {
		t.Fatal(err)
	}
	task.AddSplits([]flow.Split{{ID: "0"}}, true)
	if res := task.Run(t.Context()); res.State != cluster.Failed {
		t.Fatalf("the task ended as %v", res.State)
	}
	open.Done() // by a broker, too late
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, s := range collector.Spans() {
		if strings.HasPrefix(s.Name, "send ") {
			got[s.Name] = append(got[s.Name], s.Status.GetMessage())
		}
	}
	want := map[string][]string{"send one": {""}, "send two": {"not known to be delivered: the task ended first"}}
	if !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("the deliveries ended as %q, want %q", got, want)
	}
}

// TestDrawn: the share of all records that is asked for, in whatever batches they come, and each as likely as any other.
func TestDrawn(t *testing.T) {
	for _, ratio := range []float64{0.001, 0.01, 0.5, 1} {
		f := newFollower(&Task{vertex: &jobgraph.Vertex{}}, Follow{Ratio: ratio})
		const batches, size = 20_000, 50
		n, halves := 0, [2]int{}
		for i := range int64(batches) {
			if _, ok, again := f.Due(size, i); ok || again > i+1 {
				t.Fatalf("a record is due (%v) without a rate, or asked for again at %d", ok, again)
			}
			for from := 0; ; {
				index, ok := f.Drawn(size - from)
				if !ok {
					break
				}
				if index < 0 || index >= size-from {
					t.Fatalf("record %d of %d is drawn", index, size-from)
				}
				from += index
				halves[from/(size/2)]++
				from++
				n++
			}
		}
		want := ratio * batches * size
		if off := math.Abs(float64(n) - want); off > 6*math.Sqrt(want) || ratio == 1 && off > 0 {
			t.Errorf("%d of %d records are followed, want about %v", n, batches*size, want)
		}
		if math.Abs(float64(halves[0]-halves[1])) > 6*math.Sqrt(want) {
			t.Errorf("of the first half of batches %d are followed, of the second %d", halves[0], halves[1])
		}
	}
	f := newFollower(&Task{vertex: &jobgraph.Vertex{}}, Follow{})
	if _, ok, again := f.Due(5, 0); ok || again != flow.MaxTime {
		t.Errorf("without rate and ratio: %v, again at %d", ok, again)
	}
	if _, ok := f.Drawn(5); ok {
		t.Error("without a ratio a record is drawn")
	}
}

// TestFollowAll: with all records followed, each one's trace reaches the sink, however many come in a segment; no more than the rate that is allowed.
func TestFollowAll(t *testing.T) {
	t.Run("text", func(t *testing.T) { followAll(t, func(i int) string { return fmt.Sprint(i) }) })
	t.Run("numbers", func(t *testing.T) { followAll(t, func(i int) int64 { return int64(i) }) })
}

func followAll[T any](t *testing.T, at func(i int) T) {
	const each = 1000
	for _, most := range []float64{1e9, 100} {
		sink := &testjob.Sink[T]{}
		j := heddle.NewJob("all")
		heddle.FromSource(j, &testjob.Source[T]{Splits: 1, Each: each, At: func(_, i int) T { return at(i) }})
		g := j.Graph()
		g.Add(&flow.Node{Kind: "sink", Name: "sink", Sink: true, NoChain: true, In: []flow.Edge{{From: g.Nodes[0], Part: flow.Partitioning{Kind: flow.Forward}}}, New: flow.NewSink[T](sink)})
		collector := otlptest.Start(t)
		p := provider(t, collector.URL)
		began := time.Now()
		followInto(t, g, 1, netstack.Config{}, Follow{Provider: p, Ratio: 1, MaxRate: most})
		took := time.Since(began)
		if err := p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := len(sink.Records()); n != each {
			t.Fatalf("%d records arrived, want %d", n, each)
		}
		spans, whole := collector.Spans(), 0
		byID := map[string]otlptest.Span{}
		for _, s := range spans {
			byID[string(s.SpanId)] = s
		}
		for _, s := range spans {
			if s.Attrs["heddle.vertex.id"] != "1" || s.Name == "exchange" {
				continue
			}
			hop := byID[string(s.ParentSpanId)]
			chain := byID[string(hop.ParentSpanId)]
			if poll := byID[string(chain.ParentSpanId)]; hop.Span == nil || hop.Name != "exchange" || poll.Span == nil || len(poll.ParentSpanId) != 0 {
				t.Fatalf("the chain of the sink is not below a hop, a chain and a poll")
			}
			whole++
		}
		if least, most := int(min(each, most)), int(min(each, most*(2+took.Seconds()))); whole < least || whole > most {
			t.Errorf("%d records were followed to the sink, want %d to %d", whole, least, most)
		}
	}
}

// TestAdmit: records that come with a sampled trace are followed up to a rate, however long none came before.
func TestAdmit(t *testing.T) {
	now := time.Unix(1000, 0)
	f := newFollower(&Task{env: Env{Clock: func() time.Time { return now }}, vertex: &jobgraph.Vertex{}}, Follow{MaxRate: 100})
	for _, x := range []struct {
		pass time.Duration
		want int
	}{{0, 100}, {0, 0}, {100 * time.Millisecond, 10}, {time.Hour, 100}, {-time.Hour, 0}, {time.Second, 100}} {
		now = now.Add(x.pass)
		n := 0
		for range 1000 {
			if f.Admit() {
				n++
			}
		}
		if n != x.want {
			t.Errorf("after %v %d records are admitted, want %d", x.pass, n, x.want)
		}
	}
}
