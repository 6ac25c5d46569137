package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	"google.golang.org/grpc"
)

// exportInterval is the time between two exports of metrics.
const exportInterval = 10 * time.Second

// meterProvider exports Figures at an interval.
func (c *Config) meterProvider(ctx context.Context, res *resource.Resource) (*sdkmetric.MeterProvider, error) {
	exporter, err := c.metricExporter(ctx)
	if err != nil {
		return nil, err
	}
	interval := c.Interval
	if interval == 0 {
		interval = exportInterval
	}
	reader := sdkmetric.NewPeriodicReader(exporter, sdkmetric.WithInterval(interval),
		sdkmetric.WithProducer(producer{figures: c.Figures, start: time.Now(), version: c.Version}))
	return sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithResource(res)), nil
}

func (c *Config) metricExporter(ctx context.Context) (sdkmetric.Exporter, error) {
	to := c.to(c.metrics, "/v1/metrics")
	if to.protocol == HTTP {
		opts := []otlpmetrichttp.Option{otlpmetrichttp.WithEndpointURL(to.url), otlpmetrichttp.WithHTTPClient(httpClient("METRICS")), otlpmetrichttp.WithTLSClientConfig(nil)}
		if to.headers != nil {
			opts = append(opts, otlpmetrichttp.WithHeaders(to.headers))
		}
		e, err := otlpmetrichttp.New(ctx, opts...)
		if err != nil {
			return nil, err
		}
		return c.telling(e, to.url), nil
	}
	opts := []otlpmetricgrpc.Option{otlpmetricgrpc.WithEndpointURL(to.url), otlpmetricgrpc.WithDialOption(grpc.WithNoProxy())}
	if to.headers != nil {
		opts = append(opts, otlpmetricgrpc.WithHeaders(to.headers))
	}
	e, err := otlpmetricgrpc.New(ctx, opts...)
	if err != nil {
		return nil, err
	}
	return c.telling(e, to.url), nil
}

func (c *Config) telling(e sdkmetric.Exporter, endpoint string) sdkmetric.Exporter {
	return &telling{Exporter: e, log: c.Logger, endpoint: endpoint, alone: !c.Traces}
}

// telling tells, once, that a collector does not take metrics: where it redirects them, or where there are no traces whose loss would be told. Beside
// traces nothing else is told: Jaeger, for one, takes those alone.
type telling struct {
	sdkmetric.Exporter
	log      *slog.Logger
	endpoint string
	alone    bool
	once     sync.Once
}

// Export implements sdkmetric.Exporter.
func (u *telling) Export(ctx context.Context, m *metricdata.ResourceMetrics) error {
	err := u.Exporter.Export(ctx, m)
	if errors.Is(err, errRedirect) || u.alone && err != nil && ctx.Err() != context.Canceled {
		u.once.Do(func() {
			u.log.Warn("metrics are lost: the OTLP collector does not take them; the job goes on", "endpoint", u.endpoint, "err", err)
		})
	}
	return err
}

// producer gives the SDK families as its own data.
type producer struct {
	figures func() []Family
	start   time.Time
	version string
}

// Produce implements sdkmetric.Producer.
func (p producer) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	now := time.Now()
	out := metricdata.ScopeMetrics{Scope: instrumentation.Scope{Name: scope, Version: p.version}}
	for _, f := range p.figures() {
		if len(f.Points) == 0 {
			continue
		}
		m := metricdata.Metrics{Name: f.Name, Description: f.Help, Unit: f.Unit}
		switch f.Kind {
		case Histogram:
			h := metricdata.Histogram[float64]{Temporality: metricdata.CumulativeTemporality}
			for _, pt := range f.Points {
				h.DataPoints = append(h.DataPoints, metricdata.HistogramDataPoint[float64]{
					Attributes: labelSet(pt.Labels), StartTime: p.start, Time: now,
					Count: pt.Hist.Count(), Sum: pt.Hist.Sum, Bounds: pt.Hist.Bounds, BucketCounts: pt.Hist.Counts,
				})
			}
			m.Data = h
		case Counter:
			m.Data = metricdata.Sum[float64]{Temporality: metricdata.CumulativeTemporality, IsMonotonic: true, DataPoints: p.points(f.Points, now)}
		default:
			m.Data = metricdata.Gauge[float64]{DataPoints: p.points(f.Points, now)}
		}
		out.Metrics = append(out.Metrics, m)
	}
	return []metricdata.ScopeMetrics{out}, nil
}

func (p producer) points(points []Point, now time.Time) []metricdata.DataPoint[float64] {
	out := make([]metricdata.DataPoint[float64], len(points))
	for i, pt := range points {
		out[i] = metricdata.DataPoint[float64]{Attributes: labelSet(pt.Labels), StartTime: p.start, Time: now, Value: pt.Value}
	}
	return out
}

func labelSet(labels []Label) attribute.Set {
	kvs := make([]attribute.KeyValue, len(labels))
	for i, l := range labels {
		kvs[i] = attribute.String(l.Name, readable(l.Value))
	}
	return attribute.NewSet(kvs...)
}
