package telemetry

import (
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"go.opentelemetry.io/otel"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/telemetry/otlptest"
)

// TestEnvironment has a collector see what OpenTelemetry's variables do.
func TestEnvironment(t *testing.T) {
	both := []string{"of a sampled trace", "root"}
	for _, x := range []struct {
		name    string
		env     map[string]string // AT is the collector's URL
		spans   []string
		metrics bool
		header  [2]string // of the last request
		attr    [2]string // of the process
	}{
		{name: "nothing"},
		{name: "endpoint", env: map[string]string{"ENDPOINT": "AT"}, spans: both, metrics: true},
		{name: "protocol grpc", env: map[string]string{"ENDPOINT": "AT", "PROTOCOL": "grpc"}},                                                                       // the collector takes HTTP alone
		{name: "protocol json", env: map[string]string{"ENDPOINT": "AT", "PROTOCOL": "http/json", "METRICS_PROTOCOL": "http/protobuf"}, spans: both, metrics: true}, // spans go as protobuf
		{name: "for traces alone", env: map[string]string{"TRACES_ENDPOINT": "AT/v1/traces"}, spans: both},
		{name: "for metrics alone", env: map[string]string{"METRICS_ENDPOINT": "AT/v1/metrics"}, metrics: true},
		{name: "for each", env: map[string]string{"ENDPOINT": "http://127.0.0.1:1", "TRACES_ENDPOINT": "AT/v1/traces", "METRICS_ENDPOINT": "AT/v1/metrics"}, spans: both, metrics: true},
		{name: "headers", env: map[string]string{"ENDPOINT": "AT", "HEADERS": "x-team=a%20b"}, spans: both, metrics: true, header: [2]string{"X-Team", "a b"}},
		{name: "headers for traces", env: map[string]string{"TRACES_ENDPOINT": "AT/v1/traces", "HEADERS": "x-team=a", "TRACES_HEADERS": "x-team=b"}, spans: both, header: [2]string{"X-Team", "b"}},
		{name: "headers for traces at the common endpoint", env: map[string]string{"ENDPOINT": "AT", "HEADERS": "x-team=a", "TRACES_HEADERS": "x-team=b", "OTEL_METRICS_EXPORTER": "none"}, spans: both, header: [2]string{"X-Team", "b"}},
		{name: "protocol for traces at the common endpoint", env: map[string]string{"ENDPOINT": "AT", "PROTOCOL": "grpc", "TRACES_PROTOCOL": "http/protobuf"}, spans: both}, // the collector takes HTTP alone
		{name: "protocol for metrics at the common endpoint", env: map[string]string{"ENDPOINT": "AT", "PROTOCOL": "grpc", "METRICS_PROTOCOL": "http/protobuf"}, metrics: true},
		{name: "compression", env: map[string]string{"ENDPOINT": "AT", "COMPRESSION": "gzip"}, spans: both, metrics: true, header: [2]string{"Content-Encoding", "gzip"}},
		{name: "disabled", env: map[string]string{"ENDPOINT": "AT", "OTEL_SDK_DISABLED": "true"}},
		{name: "no traces", env: map[string]string{"ENDPOINT": "AT", "OTEL_TRACES_EXPORTER": "none"}, metrics: true},
		{name: "no metrics", env: map[string]string{"ENDPOINT": "AT", "OTEL_METRICS_EXPORTER": "none"}, spans: both},
		{name: "service", env: map[string]string{"ENDPOINT": "AT", "OTEL_SERVICE_NAME": "mine"}, spans: both, metrics: true, attr: [2]string{"service.name", "mine"}},
		{name: "attributes", env: map[string]string{"ENDPOINT": "AT", "OTEL_RESOURCE_ATTRIBUTES": "team=red"}, spans: both, metrics: true, attr: [2]string{"team", "red"}},
		{name: "never", env: map[string]string{"ENDPOINT": "AT", "OTEL_TRACES_SAMPLER": "always_off"}, metrics: true},
		{name: "no share", env: map[string]string{"ENDPOINT": "AT", "OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0"}, metrics: true},
		{name: "no share of roots", env: map[string]string{"ENDPOINT": "AT", "OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0"}, spans: both[:1], metrics: true},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := otlptest.Start(t)
			t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
			for name, value := range x.env {
				if !strings.HasPrefix(name, "OTEL_") {
					name = "OTEL_EXPORTER_OTLP_" + name
				}
				t.Setenv(name, strings.Replace(value, "AT", c.URL, 1))
			}
			set, err := Resolve("", "", "", os.Getenv)
			if err != nil {
				t.Fatal(err)
			}
			p := provider(t, Config{Settings: set, Service: "job", Interval: time.Hour,
				Figures: func() []Family { return []Family{{Name: "heddle.x", Points: []Point{{Value: 1}}}} }})
			if got := p.Service(); x.attr[0] == "service.name" && got != x.attr[1] || x.attr[0] == "" && p != nil && got != "job" {
				t.Errorf("it says that it is %q", got)
			}
			p.Start(Start{Parent: flow.TraceContext{Trace: [16]byte{1}, Span: [8]byte{1}, Flags: 1}, Name: both[0]}).End(time.Time{})
			p.Start(Start{Name: both[1]}).End(time.Time{})
			if s := (Start{Name: both[1]}); p.Traces() { // whatever the sampler says of one it says of both
				trail := p.Trail()
				trail.Root(&s, time.Now())
				trail.Flush()
			}
			_ = closeNow(t, p, 3*time.Second) // where the collector can't be reached this fails
			names := map[string]bool{}
			for _, s := range c.Spans() {
				names[s.Name] = true
				if x.attr[0] != "" && s.Resource[x.attr[0]] != x.attr[1] {
					t.Errorf("%s is %q, want %q", x.attr[0], s.Resource[x.attr[0]], x.attr[1])
				}
			}
			if got := slices.Sorted(maps.Keys(names)); !slices.Equal(got, x.spans) || len(c.Metrics()) > 0 != x.metrics {
				t.Errorf("spans %q and %d metrics arrived, want %q and metrics=%v", got, len(c.Metrics()), x.spans, x.metrics)
			}
			if got := c.Header(x.header[0]); x.header[0] != "" && got != x.header[1] {
				t.Errorf("the header %s is %q, want %q", x.header[0], got, x.header[1])
			}
		})
	}
}

// TestWrongVariables: what can't be used of the environment is told by its name, once, and keeps nothing from being sent; the SDK says nothing of its own.
func TestWrongVariables(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none.pem")
	for _, x := range []struct{ name, value, says string }{
		{"OTEL_EXPORTER_OTLP_CERTIFICATE", none, "OTEL_EXPORTER_OTLP_CERTIFICATE is ignored: open " + none},
		{"OTEL_EXPORTER_OTLP_METRICS_CERTIFICATE", none, "OTEL_EXPORTER_OTLP_METRICS_CERTIFICATE is ignored"},
		{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "bogus", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL is ignored"},
		{"OTEL_RESOURCE_ATTRIBUTES", "a=b,c=%zz", "attribute 2 of OTEL_RESOURCE_ATTRIBUTES is taken as it stands"},
		{"OTEL_RESOURCE_ATTRIBUTES", "a", "attribute 1 of OTEL_RESOURCE_ATTRIBUTES is ignored"},
		{"OTEL_TRACES_SAMPLER", "Sometimes", `OTEL_TRACES_SAMPLER is ignored: there is no sampler \"Sometimes\"`},
		{"OTEL_TRACES_SAMPLER", " ParentBased_TraceIDRatio ", ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "127.0.0.1:1", ""}, // it is as good as a URL
	} {
		for _, protocol := range []string{HTTP, GRPC} {
			t.Run(x.name+" "+protocol, func(t *testing.T) {
				var sdk, log said
				otel.SetLogger(funcr.New(func(_, args string) { _, _ = sdk.Write([]byte(args)) }, funcr.Options{}))
				otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { _, _ = sdk.Write([]byte(err.Error())) }))
				t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "https://127.0.0.1:1")
				t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
				t.Setenv(x.name, x.value)
				set, err := Resolve("", "", "", os.Getenv)
				if err != nil {
					t.Fatal(err)
				}
				p := provider(t, Config{Settings: set, Service: "job", Logger: slog.New(slog.NewTextHandler(&log, nil)), Figures: onePoint, Interval: time.Hour})
				if !p.Traces() || p.metrics == nil {
					t.Error("nothing is sent")
				}
				_ = closeNow(t, p, time.Millisecond)
				if text := sdk.String(); text != "" {
					t.Errorf("the SDK says %q", text)
				}
				if text := log.String(); x.says != "" && strings.Count(text, x.says) != 1 || x.says == "" && strings.Contains(text, "is wrong") {
					t.Errorf("it says %q, want %q once", text, x.says)
				}
			})
		}
	}
}

// TestWrongSampler: of a ratio that is none all traces are recorded, which is told.
func TestWrongSampler(t *testing.T) {
	for _, x := range []struct {
		name, arg string
		wrong     bool
	}{
		{"", "2", false}, {"always_on", "x", false}, {"traceidratio", "", false}, {"traceidratio", " 0.5 ", false}, {"TraceIDRatio", "0", false},
		{"traceidratio", "1.5", true}, {"parentbased_traceidratio", "-0.1", true}, {"traceidratio", "NaN", true}, {"traceidratio", "half", true}, {"xray", "", true},
	} {
		if got := badSampler(x.name, x.arg); got != "" != x.wrong || strings.Contains(x.name, "traceid") && x.wrong && !strings.Contains(got, samplerArgVar) {
			t.Errorf("%q with %q: %q", x.name, x.arg, got)
		}
	}
}
