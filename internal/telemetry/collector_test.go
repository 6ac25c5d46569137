package telemetry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"
	collecttraces "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/heddle-stream/heddle/internal/flow"
)

// said is a log that may be read while it is written.
type said struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// make makes n spans, by each way in turn, and fails if one of them waits.
func makeSpans(t *testing.T, p *Provider, n int) {
	t.Helper()
	began := time.Now()
	parent := flow.TraceContext{Trace: [16]byte{1}, Span: [8]byte{2}, Flags: 1}
	trail := p.Trail()
	for i := range n {
		switch i % 4 {
		case 0:
			p.Start(Start{Name: "x"}).End(time.Time{})
		case 1:
			p.Child(Start{Name: "x", Parent: parent}).End(time.Time{})
		case 2:
			p.Record(Start{Name: "x", Parent: parent}, time.Time{})
		case 3:
			trail.Root(&Start{Name: "x"}, time.Time{})
			trail.Flush()
		}
	}
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("%d spans took %v: somebody waited", n, d)
	}
}

// TestCollectorsThatDoNotTake: whatever a collector does, spans cost no time, each is counted once, and the end comes within its limit and is told.
func TestCollectorsThatDoNotTake(t *testing.T) {
	retry := func(status int, after string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", after)
			w.WriteHeader(status)
		}
	}
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for name, x := range map[string]struct {
		first, then http.HandlerFunc
		waits       bool // the end waits for as long as it may
	}{
		"never answers":         {hang, hang, true},
		"stops after the first": {func(http.ResponseWriter, *http.Request) {}, hang, true},
		"stops in its answer":   {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(200); w.(http.Flusher).Flush(); hang(w, r) }, hang, true},
		"503, later":            {retry(503, "3600"), retry(503, "3600"), false}, // given up at once: it would be too late
		"503, soon":             {retry(503, "5"), retry(503, "5"), true},
		"429, soon":             {retry(429, "5"), retry(429, "5"), true},
		"503":                   {retry(503, ""), retry(503, ""), true},
		"refuses":               {retry(403, ""), retry(403, ""), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int64
			asked := make(chan struct{}, 1)
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // so that the server sees when the client hangs up
				n := requests.Add(1)
				select {
				case asked <- struct{}{}:
				default:
				}
				if n == 1 {
					x.first(w, r)
				} else {
					x.then(w, r)
				}
			}))
			defer srv.Close()
			var log said
			p := provider(t, Config{Settings: Settings{Endpoint: srv.URL, Protocol: HTTP, Traces: true}, Service: "job", Logger: slog.New(slog.NewTextHandler(&log, nil))})
			const all = 3 * queueSize
			makeSpans(t, p, queueBatch)
			<-asked
			makeSpans(t, p, all-queueBatch)
			began := time.Now()
			err := closeNow(t, p, 100*time.Millisecond)
			if d := time.Since(began); d > 3*time.Second { // each of its requests may take 10 s
				t.Errorf("closing took %v, its limit is 100 ms", d)
			}
			if st := p.Stats(); st.Exported+st.Dropped+st.Failed != all || st.Dropped+st.Failed < all-queueBatch-1 {
				t.Errorf("of %d spans %d were exported, %d dropped and %d failed", all, st.Exported, st.Dropped, st.Failed)
			}
			if x.waits != (err != nil) || x.waits != strings.Contains(log.String(), "is given up") || !strings.Contains(log.String(), "traces are lost") {
				t.Errorf("closing ended by %v; it says %s", err, log.String())
			}
		})
	}
}

// stepping is a spanExporter that takes as long as it is told.
type stepping struct {
	take chan error // one for each export
	took chan int   // bytes
}

func (s *stepping) export(_ context.Context, b []byte) error { s.took <- len(b); return <-s.take }
func (s *stepping) shutdown(context.Context) error           { return nil }

// TestSlowCollectorIsTold: spans that are dropped since the collector takes the others slowly are told of too, though nothing fails. One that
// comes back gets what is new.
func TestSlowCollectorIsTold(t *testing.T) {
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "10")
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "5")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "3600000")
	var log said
	e := &stepping{make(chan error), make(chan int)}
	q := newQueue(e, slog.New(slog.NewTextHandler(&log, nil)), "http://there")
	p := &Provider{spans: trace.NewTracerProvider(), queue: q, log: slog.New(slog.DiscardHandler), samplesAll: true}
	trail := p.Trail()
	put := func(n int) {
		for range n {
			trail.Root(&Start{Name: "x"}, time.Time{})
			trail.Flush()
		}
	}
	put(5)
	<-e.took
	put(12) // 10 fit
	if got := q.dropped.Load(); got != 2 {
		t.Fatalf("%d spans are dropped, want 2", got)
	}
	e.take <- nil
	<-e.took
	if text := log.String(); !strings.Contains(text, "more slowly than they come") || !strings.Contains(text, "dropped=2") || !strings.Contains(text, "http://there") {
		t.Errorf("it says %q", text)
	}
	e.take <- errors.New("away") // within the minute: not told again
	<-e.took
	e.take <- nil
	put(5)
	<-e.took
	e.take <- nil
	if err := q.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if st := p.Stats(); st != (Stats{Exported: 15, Dropped: 2, Failed: 5}) {
		t.Errorf("the figures are %+v", st)
	}
	if n := strings.Count(log.String(), "traces are lost"); n != 1 {
		t.Errorf("it was told %d times", n)
	}
}

// rejecting is a collector that takes all of a batch but for some spans, and says so.
type rejecting struct {
	collecttraces.UnimplementedTraceServiceServer
	spans int64
}

func (r *rejecting) Export(context.Context, *collecttraces.ExportTraceServiceRequest) (*collecttraces.ExportTraceServiceResponse, error) {
	return &collecttraces.ExportTraceServiceResponse{PartialSuccess: &collecttraces.ExportTracePartialSuccess{RejectedSpans: r.spans, ErrorMessage: "too old (9 spans rejected)\n"}}, nil
}

// ServeHTTP implements http.Handler.
func (r *rejecting) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	m, _ := r.Export(context.Background(), nil)
	body, _ := proto.Marshal(m)
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(body)
}

// TestPartialSuccess: spans that the collector rejects are lost, the others of their batch are not, nor what comes after them at the end.
func TestPartialSuccess(t *testing.T) {
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "2")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "3600000")
	for rejects, lost := range map[int64]int64{0: 0, 1: 1, 2: 2, 99: 2, -1: 0} {
		collector := &rejecting{spans: rejects}
		byHTTP := httptest.NewServer(collector)
		defer byHTTP.Close()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		byGRPC := grpc.NewServer()
		collecttraces.RegisterTraceServiceServer(byGRPC, collector)
		var wg sync.WaitGroup
		wg.Go(func() { _ = byGRPC.Serve(l) })
		defer wg.Wait()
		defer byGRPC.Stop()
		for protocol, to := range map[string]string{HTTP: byHTTP.URL, GRPC: "http://" + l.Addr().String()} {
			p := provider(t, Config{Settings: Settings{Endpoint: to, Protocol: protocol, Traces: true}, Service: "job"})
			for range 4 {
				p.Start(Start{Name: "x"}).End(time.Time{})
			}
			_ = closeNow(t, p, time.Minute)
			if st, want := p.Stats(), (Stats{Exported: 4 - 2*lost, Failed: 2 * lost}); st != want {
				t.Errorf("%s: where %d are rejected the figures are %+v, want %+v", protocol, rejects, st, want)
			}
		}
	}
}

// TestOver: what waits goes out while the process does something else, and the limit of its end is known to have begun.
func TestOver(t *testing.T) {
	arrived := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(arrived) }))
	defer srv.Close()
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "3600000")
	p := provider(t, Config{Settings: Settings{Endpoint: srv.URL, Protocol: HTTP, Traces: true}, Service: "job"})
	if p.SinceOver() != 0 {
		t.Error("it is over before anybody said so")
	}
	p.Start(Start{Name: "last"}).End(time.Time{})
	p.Over()
	p.Over()
	<-arrived
	if p.SinceOver() <= 0 {
		t.Error("it is not over")
	}
	if err := closeNow(t, p, time.Minute); err != nil {
		t.Error(err)
	}
	var none *Provider
	if none.Over(); none.SinceOver() != 0 || none.Endpoint() != "" {
		t.Error("no provider does something")
	}
}
