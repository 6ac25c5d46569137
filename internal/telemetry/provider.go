package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"

	"github.com/heddle-stream/heddle/internal/flow"
)

// Config is what a Provider needs to know.
type Config struct {
	Settings
	Service  string           // service.name, unless OTEL_SERVICE_NAME is set: the job
	Instance string           // service.instance.id: the agent, or the role
	Version  string           // service.version
	Attrs    []flow.TraceAttr // of the process, beside those
	Logger   *slog.Logger     // nil: discard
	Figures  func() []Family  // metrics to export; nil: none
	Interval time.Duration    // between exports of metrics; 0: 10 s
}

// Provider makes spans and exports them and metrics, until it is closed. A nil Provider exports nothing.
type Provider struct {
	// Immutable.
	spans  *sdktrace.TracerProvider // nil: no traces
	tracer trace.Tracer
	queue  *queue
	// The sampler takes every trace that nobody else has decided on, and each that was sampled.
	samplesAll bool
	metrics    *sdkmetric.MeterProvider // nil: no metrics
	log        *slog.Logger
	endpoint   string
	service    string // as the collector knows it

	over     atomic.Pointer[time.Time] // when Over was called; nil: not yet
	flushing sync.WaitGroup            // Over's
}

// scope names what makes the spans and metrics.
const scope = "github.com/heddle-stream/heddle"

// New returns a Provider; nil if the settings say that nothing is exported. It does not wait for the collector.
func New(ctx context.Context, cfg Config) (*Provider, error) {
	if cfg.Endpoint == "" && cfg.traces == nil && cfg.metrics == nil || !cfg.Traces && (!cfg.Metrics || cfg.Figures == nil) {
		return nil, nil
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	quietSDK(cfg.Logger)
	for _, text := range cfg.Ignored() {
		cfg.Logger.Warn("a variable for OpenTelemetry is wrong", "what", text)
	}
	res, err := cfg.resource(ctx)
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("cannot describe this process to the OTLP collector: %w", err)
	}
	p := &Provider{log: cfg.Logger, endpoint: cfg.to(cmp.Or(cfg.traces, cfg.metrics), "").url}
	if name, ok := res.Set().Value("service.name"); ok {
		p.service = name.AsString()
	}
	if cfg.Traces {
		exporter, err := newExporter(ctx, cfg.spanClient(), res, cfg.Version)
		to := cfg.to(cfg.traces, "").url
		if err != nil {
			return nil, fmt.Errorf("cannot send traces to %s: %w", to, err)
		}
		p.queue = newQueue(exporter, cfg.Logger, to)
		p.spans = sdktrace.NewTracerProvider(sdktrace.WithResource(res), sdktrace.WithSpanProcessor(p.queue))
		p.samplesAll = samplesAll(os.Getenv(samplerVar))
		p.tracer = p.spans.Tracer(scope, trace.WithInstrumentationVersion(cfg.Version))
	}
	if cfg.Metrics && cfg.Figures != nil {
		if p.metrics, err = cfg.meterProvider(ctx, res); err != nil {
			return nil, errors.Join(fmt.Errorf("cannot send metrics to %s: %w", cfg.to(cfg.metrics, "").url, err), p.Close(ctx))
		}
	}
	return p, nil
}

// quietSDK sends the SDK's own complaints to the log of whoever came last, at a level that is off in production: what is lost is counted.
// What it says of the environment goes nowhere, as secrets are in it: see Ignored.
func quietSDK(log *slog.Logger) {
	otel.SetLogger(logr.Discard())
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Debug("opentelemetry", "err", err) }))
}

func (c *Config) resource(ctx context.Context) (*resource.Resource, error) {
	host, _ := os.Hostname() // "" will do
	attrs := []attribute.KeyValue{
		attribute.String("service.name", c.Service), attribute.String("service.namespace", "heddle"),
		attribute.String("service.instance.id", c.Instance), attribute.String("service.version", c.Version),
		attribute.String("host.name", host), attribute.Int("process.pid", os.Getpid()),
	}
	attrs = append(attrs, attributes(c.Attrs)...)
	// The environment comes last, so that it overrides.
	res, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(attrs...), resource.WithFromEnv())
	if res == nil {
		return nil, err
	}
	return readableResource(res), err
}

// readableResource is res with texts that a collector takes.
func readableResource(res *resource.Resource) *resource.Resource {
	attrs := res.Attributes()
	for i, a := range attrs {
		if a.Value.Type() == attribute.STRING {
			attrs[i].Value = attribute.StringValue(readable(a.Value.AsString()))
		}
	}
	return resource.NewWithAttributes(res.SchemaURL(), attrs...)
}

func (c *Config) spanClient() otlptrace.Client {
	to := c.to(c.traces, "/v1/traces")
	if to.protocol == HTTP {
		// The client has the TLS settings of the environment: beside them the SDK would refuse http://.
		opts := []otlptracehttp.Option{otlptracehttp.WithEndpointURL(to.url), otlptracehttp.WithHTTPClient(httpClient("TRACES")), otlptracehttp.WithTLSClientConfig(nil),
			otlptracehttp.WithEncoding(otlptracehttp.EncodingProtobuf)} // as JSON, the spans that are bytes already would be left out
		if to.headers != nil {
			opts = append(opts, otlptracehttp.WithHeaders(to.headers))
		}
		return otlptracehttp.NewClient(opts...)
	}
	opts := []otlptracegrpc.Option{otlptracegrpc.WithEndpointURL(to.url), otlptracegrpc.WithDialOption(grpc.WithNoProxy())}
	if to.headers != nil {
		opts = append(opts, otlptracegrpc.WithHeaders(to.headers))
	}
	return otlptracegrpc.NewClient(opts...)
}

// Service is what the collector knows the process as: the job, unless the environment says otherwise.
func (p *Provider) Service() string {
	if p == nil {
		return ""
	}
	return p.service
}

// Traces reports whether spans are exported.
func (p *Provider) Traces() bool { return p != nil && p.spans != nil }

// Stats are a Provider's figures.
type Stats struct{ Exported, Dropped, Failed int64 }

// Stats returns how many spans were exported, dropped since the queue was full, and lost since the collector did not take them.
func (p *Provider) Stats() Stats {
	if !p.Traces() {
		return Stats{}
	}
	return Stats{p.queue.exported.Load(), p.queue.dropped.Load(), p.queue.failed.Load()}
}

// Endpoint is where spans go, or else metrics.
func (p *Provider) Endpoint() string {
	if p == nil {
		return ""
	}
	return p.endpoint
}

// Over says that what is traced is over, while the process has something else to do before it ends: what waits is sent meanwhile, until Close.
func (p *Provider) Over() {
	now := time.Now()
	if p == nil || !p.over.CompareAndSwap(nil, &now) || !p.Traces() {
		return
	}
	p.flushing.Go(func() { _ = p.Flush(context.Background()) }) // Close ends it
}

// SinceOver is how long ago Over was called, 0 if it was not.
func (p *Provider) SinceOver() time.Duration {
	if p == nil {
		return 0
	}
	if at := p.over.Load(); at != nil {
		return time.Since(*at)
	}
	return 0
}

// Flush sends the spans that wait, within ctx.
func (p *Provider) Flush(ctx context.Context) error {
	if !p.Traces() {
		return nil
	}
	return p.queue.ForceFlush(ctx)
}

// Close sends what is left, within ctx, and ends.
func (p *Provider) Close(ctx context.Context) error {
	if p == nil {
		return nil
	}
	var wg sync.WaitGroup
	var spans, metrics error
	began := time.Now()
	if p.spans != nil {
		wg.Go(func() {
			spans = p.spans.Shutdown(ctx)
			if ctx.Err() != nil { // the SDK does not ask its processors to end when it is too late already
				spans = errors.Join(spans, p.queue.Shutdown(ctx))
			}
		})
	}
	if p.metrics != nil {
		wg.Go(func() { metrics = p.metrics.Shutdown(ctx) })
	}
	wg.Wait()
	p.flushing.Wait() // Shutdown has ended it
	if ctx.Err() != nil {
		st := p.Stats()
		p.log.Warn("the OTLP collector is given up: it did not take the last traces and metrics in time", "endpoint", p.endpoint,
			"waited", time.Since(began).Round(time.Millisecond), "lost", st.Failed, "dropped", st.Dropped)
	}
	if err := errors.Join(spans, metrics); err != nil {
		return fmt.Errorf("cannot send the last traces and metrics: %w", err)
	}
	return nil
}
