package cli

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/conf"
	"github.com/heddle-stream/heddle/internal/telemetry"
	"github.com/heddle-stream/heddle/internal/telemetry/otlptest"
)

// TestHangingCollector: a command goes on while its collector does not take its trace, and loses nothing if that does in the end.
func TestHangingCollector(t *testing.T) {
	old := lastTraces
	lastTraces = time.Hour
	defer func() { lastTraces = old }()
	hole, err := net.Listen("tcp", "127.0.0.1:0") // it takes connections, and never says a word
	if err != nil {
		t.Fatal(err)
	}
	set, err := telemetry.Resolve("http://"+hole.Addr().String(), "http/protobuf", "", func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	provider, err := telemetry.New(t.Context(), telemetry.Config{Settings: set, Service: "job"})
	if err != nil {
		t.Fatal(err)
	}
	trace := &submitTrace{provider: provider, times: newTimings(), warn: io.Discard, span: provider.Start(telemetry.Start{Name: "submit job"})}
	asked := make(chan net.Conn, 1)
	go func() {
		c, err := hole.Accept()
		if err != nil {
			t.Error(err)
		}
		asked <- c
	}()
	wait := trace.end("app", nil) // it would be here for an hour
	c := <-asked
	sent := make(chan struct{})
	go func() { defer close(sent); wait() }()
	select {
	case <-sent:
		t.Error("the trace counts as sent before the collector said so")
	default:
	}
	c.Close()
	hole.Close()
	<-sent
}

// TestOneWaitForAHangingCollector: agents wait for it, and the ApplicationMaster, which waits for the agents, does not do so again.
func TestOneWaitForAHangingCollector(t *testing.T) {
	for ago, want := range map[time.Duration]time.Duration{0: lastTraces, time.Second: lastTraces - time.Second, lastTraces: leastTraces, time.Hour: leastTraces} {
		if got := lastWait(ago); got != want {
			t.Errorf("%v after the job it is waited for %v, want %v", ago, got, want)
		}
	}
	if lastTraces+leastTraces > 2500*time.Millisecond {
		t.Errorf("the end of a job may wait for %v", lastTraces+leastTraces)
	}
}

// TestLostTraceIsTold: who submits is told that the collector does not take the trace.
func TestLostTraceIsTold(t *testing.T) {
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer refuses.Close()
	var said strings.Builder
	set, err := telemetry.Resolve(refuses.URL, "http/protobuf", "", func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	provider, err := telemetry.New(t.Context(), telemetry.Config{Settings: set, Service: "job"})
	if err != nil {
		t.Fatal(err)
	}
	trace := &submitTrace{provider: provider, times: newTimings(), warn: &said, span: provider.Start(telemetry.Start{Name: "submit job"})}
	trace.end("app", nil)()
	if !strings.Contains(said.String(), "1 spans") || !strings.Contains(said.String(), refuses.URL) {
		t.Errorf("it says %q", said.String())
	}
}

// TestOneSignalsVariables: a variable for traces alone goes before the one for all, in the command and in the processes that it starts; an option
// goes before both. As by default about one record a second is followed then.
func TestOneSignalsVariables(t *testing.T) {
	all, traces := otlptest.Start(t), otlptest.Start(t)
	environ := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + all.URL, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=" + traces.URL + "/v1/traces"}
	r, err := registry()
	if err != nil {
		t.Fatal(err)
	}
	client, err := conf.Load(r, conf.Sources{Environ: environ})
	if err != nil {
		t.Fatal(err)
	}
	started, err := conf.Restore(r, "conf.yaml", client.AppendYAML(nil), client.Secrets())
	if err != nil {
		t.Fatal(err)
	}
	option, err := conf.Load(r, conf.Sources{Environ: environ, Flags: []conf.Flag{{Name: "trace.endpoint", Text: all.URL}}})
	if err != nil {
		t.Fatal(err)
	}
	s := &session{env: Env{Environ: environ}}
	byHand := &session{env: Env{}} // an agent that is started elsewhere
	for _, x := range []struct {
		name string
		s    *session
		c    *conf.Config
		to   *otlptest.Collector
	}{{"client", s, client, traces}, {"started", s, started, traces}, {"option", s, option, all}, {"by hand", byHand, started, all}} {
		set, err := x.s.telemetrySettings(x.c)
		if err != nil {
			t.Fatal(err)
		}
		provider, err := telemetry.New(t.Context(), telemetry.Config{Settings: set, Service: "job"})
		if err != nil {
			t.Fatal(err)
		}
		before := len(x.to.Spans())
		provider.Start(telemetry.Start{Name: x.name}).End(time.Time{})
		closeTelemetry(provider)
		if n := len(x.to.Spans()) - before; n != 1 {
			t.Errorf("%s: %d spans came to where they belong, want 1", x.name, n)
		}
		if f := follow(&application{conf: x.c}, provider); f.Rate != 1 || f.Ratio != 0 || f.MaxRate != 1000 {
			t.Errorf("%s: followed are %+v", x.name, f)
		}
	}
}

// TestWrongCollector: where telemetry can't go to is told once, as wrong usage, and nothing is started. A variable whose value is not known is ignored.
func TestWrongCollector(t *testing.T) {
	w := newWorld(t)
	environ := w.environ
	for _, tt := range []struct{ environ, endpoint, says string }{
		{"", "http://", `"http://": want a URL`},
		{"", "ftp://x:1", "want a URL"},
		{"", "http://[::1", "want a URL"},
		{"", "grpc://x:1", "want a URL"},
		{"", "http://me:secret@x:1", "HEDDLE_TRACE_HEADERS"},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=ftp://x:1", "", "want a URL"},
		{"HEDDLE_TRACE_HEADERS=secret", "http://x:1", "header 1"},
	} {
		args := []string{"run", w.endless()}
		if tt.endpoint != "" {
			args = append(args, "--trace.endpoint", tt.endpoint)
		}
		w.environ = environ
		if tt.environ != "" {
			w.environ = append(slices.Clip(environ), tt.environ)
		}
		run := w.start(args...)
		run.expect(exitUsage, tt.says)
		if text := run.stderr.String(); strings.Count(text, tt.says) != 1 || strings.Contains(text, "secret") {
			t.Errorf("it says %s", text)
		}
	}
	if _, err := os.Stat(w.state); err == nil {
		t.Error("an application was made")
	}
}
