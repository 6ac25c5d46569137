package telemetry

import (
	"context"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// queue is the SDK's span processor: a bounded queue that never makes anybody wait. What does not fit is dropped and counted.
// It heeds the OTEL_BSP_ variables.
type queue struct {
	// Immutable.
	exporter sdktrace.SpanExporter
	log      *slog.Logger
	endpoint string
	spans    chan sdktrace.ReadOnlySpan
	flush    chan chan struct{}
	stop     chan struct{}
	batch    int
	delay    time.Duration
	timeout  time.Duration
	wg       sync.WaitGroup // the exporting goroutine
	once     sync.Once

	exported, dropped, failed atomic.Int64
	complained                time.Time // owned by the exporting goroutine: when a failure was last logged
}

// Defaults of OpenTelemetry's specification, but for the delay, which people wait for.
const (
	queueSize   = 4096
	queueBatch  = 512
	queueDelay  = time.Second
	queueLimit  = 10 * time.Second
	complainGap = time.Minute
)

func newQueue(e sdktrace.SpanExporter, log *slog.Logger, endpoint string) *queue {
	q := &queue{
		exporter: e, log: log, endpoint: endpoint, flush: make(chan chan struct{}), stop: make(chan struct{}),
		spans:   make(chan sdktrace.ReadOnlySpan, envInt("OTEL_BSP_MAX_QUEUE_SIZE", queueSize)),
		batch:   envInt("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", queueBatch),
		delay:   time.Duration(envInt("OTEL_BSP_SCHEDULE_DELAY", int(queueDelay/time.Millisecond))) * time.Millisecond,
		timeout: time.Duration(envInt("OTEL_BSP_EXPORT_TIMEOUT", int(queueLimit/time.Millisecond))) * time.Millisecond,
	}
	q.wg.Go(q.run)
	return q
}

// envInt is a positive number of the environment, else def.
func envInt(name string, def int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return def
}

// OnStart implements sdktrace.SpanProcessor.
func (q *queue) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd implements sdktrace.SpanProcessor.
func (q *queue) OnEnd(s sdktrace.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	select {
	case <-q.stop:
		q.dropped.Add(1)
	case q.spans <- s:
	default:
		q.dropped.Add(1)
	}
}

// run exports until it is stopped, and then what is left.
func (q *queue) run() {
	tick := time.NewTicker(q.delay)
	defer tick.Stop()
	var batch []sdktrace.ReadOnlySpan
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for {
		select {
		case s := <-q.spans:
			if batch = append(batch, s); len(batch) >= q.batch {
				batch = q.export(ctx, batch)
			}
		case <-tick.C:
			batch = q.export(ctx, batch)
		case done := <-q.flush:
			batch = q.rest(ctx, batch)
			close(done)
		case <-q.stop:
			q.rest(ctx, batch)
			return
		}
	}
}

// rest exports what is there. A collector that fails gets no more of it.
func (q *queue) rest(ctx context.Context, batch []sdktrace.ReadOnlySpan) []sdktrace.ReadOnlySpan {
	for failed := q.failed.Load(); ; {
		select {
		case s := <-q.spans:
			if q.failed.Load() > failed {
				q.failed.Add(1)
				continue
			}
			if batch = append(batch, s); len(batch) >= q.batch {
				batch = q.export(ctx, batch)
			}
		default:
			return q.export(ctx, batch)
		}
	}
}

// export sends a batch and returns it, empty.
func (q *queue) export(ctx context.Context, batch []sdktrace.ReadOnlySpan) []sdktrace.ReadOnlySpan {
	if len(batch) == 0 {
		return batch
	}
	ctx, cancel := context.WithTimeout(ctx, q.timeout)
	err := q.exporter.ExportSpans(ctx, batch)
	cancel()
	n := int64(len(batch))
	clear(batch)
	if err == nil {
		q.exported.Add(n)
		return batch[:0]
	}
	q.failed.Add(n)
	if now := time.Now(); now.Sub(q.complained) >= complainGap {
		q.complained = now
		q.log.Warn("traces are lost: the OTLP collector does not take them; the job goes on", "endpoint", q.endpoint,
			"err", err, "lost", q.failed.Load(), "dropped", q.dropped.Load())
	}
	return batch[:0]
}

// ForceFlush implements sdktrace.SpanProcessor.
func (q *queue) ForceFlush(ctx context.Context) error {
	done := make(chan struct{})
	select {
	case q.flush <- done:
	case <-q.stop:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Shutdown implements sdktrace.SpanProcessor.
func (q *queue) Shutdown(ctx context.Context) error {
	q.once.Do(func() { close(q.stop) })
	// A collector that hangs is given up with ctx: the exporter's end cancels what is under way.
	unhook := context.AfterFunc(ctx, func() { _ = q.exporter.Shutdown(ctx) })
	defer unhook()
	q.wg.Wait()
	return q.exporter.Shutdown(ctx)
}
