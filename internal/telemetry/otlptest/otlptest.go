// Package otlptest is a collector for tests: it takes traces and metrics by OTLP over HTTP and keeps them in memory.
package otlptest

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"

	collectmetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collecttraces "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Collector is a running collector.
type Collector struct {
	URL string

	mu       sync.Mutex
	spans    []Span
	metrics  []*metrics.Metric
	headers  http.Header
	requests int
}

// Span is a span as it came, with its attributes and those of its resource as text.
type Span struct {
	*traces.Span
	Attrs, Resource map[string]string
}

// Start starts a collector, which ends with the test.
func Start(t testing.TB) *Collector {
	c := &Collector{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/traces", func(w http.ResponseWriter, r *http.Request) {
		var req collecttraces.ExportTraceServiceRequest
		if c.read(w, r, &req) {
			c.addSpans(&req)
		}
	})
	mux.HandleFunc("POST /v1/metrics", func(w http.ResponseWriter, r *http.Request) {
		var req collectmetrics.ExportMetricsServiceRequest
		if c.read(w, r, &req) {
			c.addMetrics(&req)
		}
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	c.URL = srv.URL
	return c
}

func (c *Collector) read(w http.ResponseWriter, r *http.Request, m proto.Message) bool {
	body, err := bodyOf(r)
	if err == nil {
		err = proto.Unmarshal(body, m)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return false
	}
	c.mu.Lock()
	c.headers = r.Header.Clone()
	c.requests++
	c.mu.Unlock()
	w.Header().Set("Content-Type", "application/x-protobuf")
	return true
}

func bodyOf(r *http.Request) ([]byte, error) {
	if r.Header.Get("Content-Encoding") != "gzip" {
		return io.ReadAll(r.Body)
	}
	z, err := gzip.NewReader(r.Body)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

func (c *Collector) addSpans(req *collecttraces.ExportTraceServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rs := range req.GetResourceSpans() {
		res := texts(rs.GetResource().GetAttributes())
		for _, ss := range rs.GetScopeSpans() {
			for _, s := range ss.GetSpans() {
				c.spans = append(c.spans, Span{s, texts(s.GetAttributes()), res})
			}
		}
	}
}

func (c *Collector) addMetrics(req *collectmetrics.ExportMetricsServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rm := range req.GetResourceMetrics() {
		for _, sm := range rm.GetScopeMetrics() {
			c.metrics = append(c.metrics, sm.GetMetrics()...)
		}
	}
}

func texts(attrs []*common.KeyValue) map[string]string {
	m := map[string]string{}
	for _, a := range attrs {
		switch v := a.GetValue().GetValue().(type) {
		case *common.AnyValue_StringValue:
			m[a.GetKey()] = v.StringValue
		case *common.AnyValue_IntValue:
			m[a.GetKey()] = strconv.FormatInt(v.IntValue, 10)
		case *common.AnyValue_DoubleValue:
			m[a.GetKey()] = strconv.FormatFloat(v.DoubleValue, 'g', -1, 64)
		case *common.AnyValue_BoolValue:
			m[a.GetKey()] = strconv.FormatBool(v.BoolValue)
		}
	}
	return m
}

// Spans returns the spans that have come, in order of their beginning.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := slices.Clone(c.spans)
	slices.SortStableFunc(out, func(a, b Span) int { return int(int64(a.StartTimeUnixNano) - int64(b.StartTimeUnixNano)) })
	return out
}

// Metrics returns the metrics that have come.
func (c *Collector) Metrics() []*metrics.Metric {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.metrics)
}

// Header returns a header of the last request.
func (c *Collector) Header(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.headers.Get(name)
}
