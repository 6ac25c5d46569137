package telemetry

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/telemetry/otlptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestResolve(t *testing.T) {
	for _, tt := range []struct {
		name                        string
		endpoint, protocol, headers string
		env                         map[string]string
		want                        Settings // but for Traces and Metrics
		bad                         string
	}{
		{name: "nothing"},
		{name: "bare", endpoint: "collector:4317", want: Settings{Endpoint: "http://collector:4317", Protocol: GRPC}},
		{name: "port tells", endpoint: "http://collector:4318/", want: Settings{Endpoint: "http://collector:4318", Protocol: HTTP}},
		{name: "path tells", endpoint: "https://otel.example/otlp", want: Settings{Endpoint: "https://otel.example/otlp", Protocol: HTTP}},
		{name: "environment", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", "OTEL_EXPORTER_OTLP_HEADERS": "a=1, b=x%20y"},
			want: Settings{Endpoint: "http://c:4317", Protocol: HTTP, Headers: map[string]string{"a": "1", "b": "x y"}}},
		{name: "options win", endpoint: "http://d:1", protocol: GRPC, headers: "k=v", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317", "OTEL_EXPORTER_OTLP_HEADERS": "a=1"},
			want: Settings{Endpoint: "http://d:1", Protocol: GRPC, Headers: map[string]string{"k": "v"}}},
		{name: "disabled", endpoint: "http://d:1", env: map[string]string{"OTEL_SDK_DISABLED": "true"}},
		{name: "no URL", endpoint: "ftp://x", bad: "want a URL"},
		{name: "no host", endpoint: "http://", bad: "want a URL"},
		{name: "no end of an address", endpoint: "http://[::1", bad: "want a URL"},
		{name: "scheme of gRPC", endpoint: "grpc://x:1", bad: "want a URL"},
		{name: "query", endpoint: "http://x:1?key=secret", bad: `"http://x:1": want a URL without a query`},
		{name: "empty query", endpoint: "http://x:1/a?", bad: "without a query"},
		{name: "fragment", endpoint: "x:1#secret", bad: "and a fragment"},
		{name: "empty fragment", endpoint: "x:1#", bad: "and a fragment"},
		{name: "password", endpoint: "https://me:secret@x:1", bad: `"https://x:1": a user and password`},
		{name: "user", endpoint: "secret@x:1", bad: "HEDDLE_TRACE_HEADERS"},
		{name: "password that is no URL", endpoint: "http://me:sec/ret?secret@x:1", bad: `"http://x:1"`},
		{name: "password in a variable", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://me:secret@x:1"}, bad: "a user and password"},
		{name: "password for metrics", env: map[string]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://me:secret@x:1"}, bad: "a user and password"},
		{name: "unknown protocol in a variable", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_EXPORTER_OTLP_PROTOCOL": "bogus"},
			want: Settings{Endpoint: "http://c:4318", Protocol: HTTP}},
		{name: "no name of a header", endpoint: "x:1", headers: "a b=secret", bad: "header 1"},
		{name: "no value of a header", endpoint: "x:1", headers: "a=secret%0a", bad: "header 1"},
		{name: "no protocol", endpoint: "x:1", protocol: "carrier pigeon", bad: "carrier pigeon"},
		{name: "bad header", endpoint: "x:1", headers: "a=1,secret", bad: "header 2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Resolve(tt.endpoint, tt.protocol, tt.headers, func(n string) string { return tt.env[n] })
			if tt.bad != "" {
				if err == nil || !strings.Contains(err.Error(), tt.bad) || strings.Contains(err.Error(), "secret") {
					t.Fatalf("got the error %v, want one with %q and without the headers' text", err, tt.bad)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.Endpoint != tt.want.Endpoint || got.Protocol != tt.want.Protocol || len(got.Headers) != len(tt.want.Headers) || got.Traces != (tt.want.Endpoint != "") {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			for k, v := range tt.want.Headers {
				if got.Headers[k] != v {
					t.Errorf("header %s is %q, want %q", k, got.Headers[k], v)
				}
			}
		})
	}
}

func TestTraceparent(t *testing.T) {
	const good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	c, ok := ParseTraceparent(good)
	if !ok || !c.Sampled() || Traceparent(c) != good {
		t.Errorf("%s came back as %s, %v", good, Traceparent(c), ok)
	}
	if c, ok := ParseTraceparent("cc" + good[2:] + "-what the future brings"); !ok || !c.Sampled() {
		t.Error("a later version is not read")
	}
	for _, bad := range []string{"", good[:54], good + "-x", "ff" + good[2:], strings.ToUpper(good), "00-00000000000000000000000000000000-b7ad6b7169203331-01",
		"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", strings.Replace(good, "-", "_", 1), "00-0af7651916cd43dd8448eb211c80319g-b7ad6b7169203331-01"} {
		if _, ok := ParseTraceparent(bad); ok {
			t.Errorf("%q was read", bad)
		}
	}
	if Traceparent(flow.TraceContext{}) != "" {
		t.Error("nothing has a text")
	}
}

func FuzzParseTraceparent(f *testing.F) {
	f.Add("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	f.Fuzz(func(t *testing.T, s string) {
		if c, ok := ParseTraceparent(s); ok && s[:2] == "00" && Traceparent(c) != s {
			t.Fatalf("%q came back as %q", s, Traceparent(c))
		}
	})
}

func provider(t *testing.T, cfg Config) *Provider {
	t.Helper()
	p, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func closeNow(t *testing.T, p *Provider, limit time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return p.Close(ctx)
}

func TestSpansArrive(t *testing.T) {
	c := otlptest.Start(t)
	p := provider(t, Config{Settings: Settings{Endpoint: c.URL, Protocol: HTTP, Headers: map[string]string{"authorization": "Bearer x"}, Traces: true}, Service: "job", Instance: "agent-1"})
	parent := flow.TraceContext{Trace: [16]byte{1}, Span: [8]byte{2}, Flags: 1}
	at := time.Unix(100, 0)
	s := p.Start(Start{Parent: parent, Name: "one", At: at, Links: []flow.TraceContext{{Trace: [16]byte{3}, Span: [8]byte{4}, Flags: 1}}, Attrs: []flow.TraceAttr{A("n", 5), A("s", "x")}})
	if got := s.Context(); got.Trace != parent.Trace || got.Span == parent.Span || !got.Sampled() {
		t.Errorf("the span's context is %v", got)
	}
	s.End(at.Add(time.Second))
	p.Start(Start{Parent: flow.TraceContext{Trace: [16]byte{9}, Span: [8]byte{9}}, Name: "of a trace that is not sampled"}).End(time.Time{})
	if err := closeNow(t, p, time.Minute); err != nil {
		t.Fatal(err)
	}
	spans := c.Spans()
	if len(spans) != 1 {
		t.Fatalf("%d spans arrived, want 1", len(spans))
	}
	got := spans[0]
	if got.Name != "one" || got.EndTimeUnixNano-got.StartTimeUnixNano != 1e9 || len(got.Links) != 1 || got.Attrs["n"] != "5" ||
		got.Resource["service.name"] != "job" || got.Resource["service.instance.id"] != "agent-1" {
		t.Errorf("the span arrived as %v with %v of %v", got.Span, got.Attrs, got.Resource)
	}
	if h := c.Header("Authorization"); h != "Bearer x" {
		t.Errorf("the header is %q", h)
	}
	if st := p.Stats(); st != (Stats{Exported: 1}) {
		t.Errorf("the figures are %+v", st)
	}
}

// TestUnreadableNames: a collector refuses all of a message for one text that is no UTF-8, be it the job's name, the environment's or a label.
func TestUnreadableNames(t *testing.T) {
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "team=a%FFb")
	c := otlptest.Start(t)
	p := provider(t, Config{Settings: Settings{Endpoint: c.URL, Protocol: HTTP, Traces: true, Metrics: true}, Service: "bad\xffname", Attrs: []flow.TraceAttr{A("heddle.job", "bad\xffname")},
		Figures: func() []Family {
			return []Family{{Name: "heddle.test", Kind: Gauge, Points: []Point{{Labels: []Label{{Name: "operator", Value: "op\xff"}}, Value: 1}}}}
		}})
	p.Start(Start{Name: "one"}).End(time.Time{})
	if err := closeNow(t, p, time.Minute); err != nil {
		t.Fatal(err)
	}
	spans := c.Spans()
	if len(spans) != 1 || spans[0].Resource["service.name"] != "bad\uFFFDname" || spans[0].Resource["heddle.job"] != "bad\uFFFDname" || spans[0].Resource["team"] != "a\uFFFDb" {
		t.Errorf("got the spans %v", spans)
	}
	if m := c.Metrics(); len(m) != 1 || m[0].GetGauge().GetDataPoints()[0].GetAttributes()[0].GetValue().GetStringValue() != "op\uFFFD" {
		t.Errorf("got the metrics %v", m)
	}
}

// TestLostMetricsAreTold: where metrics alone are sent, that they are lost is told once; beside traces, which a collector may take alone, it is not.
func TestLostMetricsAreTold(t *testing.T) {
	for _, protocol := range []string{HTTP, GRPC} {
		for traces, want := range map[bool]int{false: 1, true: 0} {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			addr := l.Addr().String()
			l.Close() // refused from now on
			t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "100")
			var logged strings.Builder
			p := provider(t, Config{Settings: Settings{Endpoint: "http://" + addr, Protocol: protocol, Traces: traces, Metrics: true}, Service: "job",
				Logger:  slog.New(slog.NewTextHandler(&logged, nil)),
				Figures: func() []Family { return []Family{{Name: "heddle.test", Kind: Gauge, Points: []Point{{Value: 1}}}} }})
			for range 2 {
				_ = p.metrics.ForceFlush(t.Context())
			}
			_ = closeNow(t, p, time.Minute)
			if n := strings.Count(logged.String(), "metrics are lost"); n != want {
				t.Errorf("%s, traces %v: told %d times, want %d: %s", protocol, traces, n, want, logged.String())
			}
		}
	}
}

// A collector that takes connections and never answers must not make anybody wait: neither who makes spans nor who ends the process.
func TestDeadCollectorSlowsNobody(t *testing.T) {
	for _, protocol := range []string{HTTP, GRPC} {
		t.Run(protocol, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "100")
			p := provider(t, Config{Settings: Settings{Endpoint: "http://" + l.Addr().String(), Protocol: protocol, Traces: true}, Service: "job"})
			const spans = 5000
			for range spans { // a span that waited for the collector would take seconds
				p.Start(Start{Name: "lost"}).End(time.Time{})
			}
			began := time.Now()
			if err := closeNow(t, p, 100*time.Millisecond); err == nil {
				t.Error("it was closed as if the spans had been sent")
			}
			if d := time.Since(began); d > 5*time.Second { // a request may take 10 s
				t.Errorf("closing took %v beyond its limit of 100 ms", d)
			}
			if st := p.Stats(); st.Exported != 0 || st.Dropped+st.Failed != spans {
				t.Errorf("of %d spans %d were exported, %d dropped and %d failed", spans, st.Exported, st.Dropped, st.Failed)
			}
		})
	}
}

func TestNothingIsFree(t *testing.T) {
	p := provider(t, Config{})
	if p != nil {
		t.Fatal("there is a provider without an endpoint")
	}
	if p.Traces() || p.Stats() != (Stats{}) || p.Close(t.Context()) != nil {
		t.Error("no provider does something")
	}
	s := p.Start(Start{Name: "x"})
	s.Set(A("k", "v"))
	s.Event("e", time.Now())
	s.Fail("why")
	s.End(time.Time{})
	if s.Recording() || s.Context() != (flow.TraceContext{}) {
		t.Error("no span is something")
	}
}

func TestMetricsArrive(t *testing.T) {
	c := otlptest.Start(t)
	var l Latency
	l.Observe(15 * time.Microsecond)
	l.Observe(time.Hour)
	counts, sum := l.Counts()
	p := provider(t, Config{Settings: Settings{Endpoint: c.URL, Protocol: HTTP, Metrics: true}, Service: "job", Logger: slog.New(slog.DiscardHandler), Interval: time.Hour,
		Figures: func() []Family {
			return []Family{
				{Name: "heddle.records", Unit: "{record}", Kind: Counter, Points: []Point{{Labels: []Label{{"vertex", "a"}}, Value: 3}}},
				{Name: "heddle.wait", Unit: "s", Kind: Histogram, Points: []Point{{Hist: LatencyOf(counts, sum)}}},
				{Name: "heddle.none"},
			}
		}})
	if err := closeNow(t, p, time.Minute); err != nil { // the last figures go out then
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, m := range c.Metrics() {
		got[m.GetName()] = true
		switch m.GetName() {
		case "heddle.records":
			if d := m.GetSum(); !d.GetIsMonotonic() || d.GetDataPoints()[0].GetAsDouble() != 3 {
				t.Errorf("the counter arrived as %v", m)
			}
		case "heddle.wait":
			if d := m.GetHistogram().GetDataPoints()[0]; d.GetCount() != 2 || len(d.GetBucketCounts()) != len(d.GetExplicitBounds())+1 {
				t.Errorf("the histogram arrived as %v", m)
			}
		}
	}
	if len(got) != 2 {
		t.Errorf("the metrics %v arrived, want two", got)
	}
}

func TestPrometheus(t *testing.T) {
	b := &Buckets{Bounds: []float64{0.5, 1}, Counts: []uint64{1, 0, 2}, Sum: 7}
	got := string(AppendPrometheus(nil, []Family{
		{Name: "heddle.io.in", Unit: "By", Help: "Bytes\nin", Kind: Counter, Points: []Point{{Labels: []Label{{"a.b", "x\"y\n\\"}}, Value: 1e21}}},
		{Name: "heddle.wait", Unit: "s", Help: "Wait", Kind: Histogram, Points: []Point{{Hist: b}}},
		{Name: "heddle.none", Help: "None"},
		{Name: "heddle.share", Unit: "1", Help: "Share", Points: []Point{{Value: 0.25}}},
	}))
	want := `# HELP heddle_io_in_bytes_total Bytes\nin
# TYPE heddle_io_in_bytes_total counter
heddle_io_in_bytes_total{a_b="x\"y\n\\"} 1e+21
# HELP heddle_wait_seconds Wait
# TYPE heddle_wait_seconds histogram
heddle_wait_seconds_bucket{le="0.5"} 1
heddle_wait_seconds_bucket{le="1"} 1
heddle_wait_seconds_bucket{le="+Inf"} 3
heddle_wait_seconds_sum 7
heddle_wait_seconds_count 3
# HELP heddle_share_ratio Share
# TYPE heddle_share_ratio gauge
heddle_share_ratio 0.25
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestLatency(t *testing.T) {
	var l Latency
	if counts, _ := l.Counts(); counts != nil {
		t.Error("nothing was observed, and there are counts")
	}
	for _, d := range []time.Duration{0, 10 * time.Microsecond, 11 * time.Microsecond, time.Second, 24 * time.Hour} {
		l.Observe(d)
	}
	counts, sum := l.Counts()
	b := LatencyOf(counts, sum)
	if b.Count() != 5 || counts[0] != 2 || counts[1] != 1 || counts[LatencyBuckets-1] != 1 || len(b.Bounds) != LatencyBuckets-1 {
		t.Errorf("counts are %v, bounds %v", counts, b.Bounds)
	}
	if q := b.Quantile(0.5); q != 20e-6 {
		t.Errorf("the median is at most %v, want 20 µs", q)
	}
	b.Add(*b)
	if b.Count() != 10 {
		t.Errorf("the sum of both has %d values, want 10", b.Count())
	}
}

func TestCheckpoint(t *testing.T) {
	c := otlptest.Start(t)
	p := provider(t, Config{Settings: Settings{Endpoint: c.URL, Protocol: HTTP, Traces: true}, Service: "job"})
	at := time.Unix(100, 0)
	cp := p.Checkpoint("checkpoint", at, A("heddle.checkpoint", 7))
	cp.Step(StepTrigger, at.Add(time.Second), at.Add(time.Second))
	told, ok := ParseTraceparent(Traceparent(cp.Context())) // as another process hears of it
	if !ok {
		t.Fatal("a checkpoint can't be handed on")
	}
	p.Step(told, StepAlignment, at.Add(3*time.Second), at.Add(2*time.Second), A("heddle.subtask", 1)) // by clocks that differ: no span is negative
	for _, step := range []string{StepSnapshot, StepUpload, StepAcknowledge} {
		p.Step(told, step, at.Add(3*time.Second), at.Add(4*time.Second), A("heddle.subtask", 1))
	}
	cp.Step(StepComplete, at.Add(4*time.Second), at.Add(5*time.Second))
	cp.End(at.Add(5*time.Second), "the job was cancelled")
	if err := closeNow(t, p, time.Minute); err != nil {
		t.Fatal(err)
	}
	spans := c.Spans()
	if len(spans) != 7 || spans[0].Name != "checkpoint" || spans[0].Status.GetMessage() == "" || spans[0].Attrs["heddle.checkpoint"] != "7" {
		t.Fatalf("the spans are %v", spans)
	}
	for i, s := range spans[1:] {
		if want := []string{"trigger", "alignment", "snapshot", "upload", "acknowledge", "complete"}[i]; s.Name != want {
			t.Errorf("step %d is %s, want %s", i, s.Name, want)
		}
		if string(s.TraceId) != string(spans[0].TraceId) || string(s.ParentSpanId) != string(spans[0].SpanId) || s.EndTimeUnixNano < s.StartTimeUnixNano {
			t.Errorf("the span %v is not below the checkpoint, or ends early", s.Span)
		}
	}
	var none *Provider
	none.Checkpoint("restart", at).Step(StepRestore, at, at)
}
