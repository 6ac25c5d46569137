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
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// queue is the SDK's span processor: a bounded queue that never makes anybody wait. What does not fit is dropped and counted.
// It heeds the OTEL_BSP_ variables. Whoever ends a span wakes nobody, but with the span that fills a batch: on a busy machine
// a goroutine that runs for each span costs more than the span.
type queue struct {
	// Immutable.
	exporter spanExporter
	log      *slog.Logger
	endpoint string
	full     chan struct{} // one slot: there is a batch
	flush    chan chan struct{}
	stop     chan struct{}
	batch    int
	delay    time.Duration
	timeout  time.Duration
	wg       sync.WaitGroup // the exporting goroutine
	once     sync.Once

	// Guarded by mu.
	mu      sync.Mutex
	ring    []ended
	first   int // of ring
	n       int
	stopped bool

	exported, dropped, failed atomic.Int64

	// Owned by the exporting goroutine.
	taken      []ended
	complained time.Time // when a failure was last logged
}

// ended is a span that has ended: the SDK's, or one that is made already.
type ended struct {
	sdk  sdktrace.ReadOnlySpan
	made *tracepb.Span
}

// spanExporter sends spans to a collector.
type spanExporter interface {
	export(ctx context.Context, spans []ended) error
	shutdown(ctx context.Context) error
}

// Defaults of OpenTelemetry's specification, but for the delay, which people wait for.
const (
	queueSize   = 4096
	queueBatch  = 512
	queueDelay  = time.Second
	queueLimit  = 10 * time.Second
	complainGap = time.Minute
)

func newQueue(e spanExporter, log *slog.Logger, endpoint string) *queue {
	q := &queue{
		exporter: e, log: log, endpoint: endpoint, full: make(chan struct{}, 1), flush: make(chan chan struct{}), stop: make(chan struct{}),
		ring:    make([]ended, envInt("OTEL_BSP_MAX_QUEUE_SIZE", queueSize)),
		batch:   envInt("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", queueBatch),
		delay:   time.Duration(envInt("OTEL_BSP_SCHEDULE_DELAY", int(queueDelay/time.Millisecond))) * time.Millisecond,
		timeout: time.Duration(envInt("OTEL_BSP_EXPORT_TIMEOUT", int(queueLimit/time.Millisecond))) * time.Millisecond,
	}
	q.batch = min(q.batch, len(q.ring))
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
	if s.SpanContext().IsSampled() {
		q.put(ended{sdk: s})
	}
}

func (q *queue) put(s ended) {
	q.mu.Lock()
	ok := !q.stopped && q.n < len(q.ring)
	if ok {
		q.ring[(q.first+q.n)%len(q.ring)] = s
		q.n++
	}
	full := ok && q.n == q.batch
	q.mu.Unlock()
	switch {
	case !ok:
		q.dropped.Add(1)
	case full:
		select {
		case q.full <- struct{}{}:
		default:
		}
	}
}

// take takes up to a batch.
func (q *queue) take() []ended {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.taken = q.taken[:0]
	for n := min(q.n, q.batch); n > 0; n-- {
		q.taken = append(q.taken, q.ring[q.first])
		q.ring[q.first] = ended{}
		q.first = (q.first + 1) % len(q.ring)
		q.n--
	}
	return q.taken
}

// run exports until it is stopped, and then what is left.
func (q *queue) run() {
	tick := time.NewTicker(q.delay)
	defer tick.Stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for {
		select {
		case <-q.full:
			q.exportAll(ctx, q.batch)
		case <-tick.C:
			q.exportAll(ctx, 1)
		case done := <-q.flush:
			q.rest(ctx)
			close(done)
		case <-q.stop:
			q.rest(ctx)
			return
		}
	}
}

// exportAll exports as long as there are at least so many spans, and it is not stopped.
func (q *queue) exportAll(ctx context.Context, least int) {
	for q.waiting() >= least {
		q.export(ctx, q.take())
		select {
		case <-q.stop:
			return
		default:
		}
	}
}

func (q *queue) waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.n
}

// rest exports what is there. A collector that fails gets no more of it.
func (q *queue) rest(ctx context.Context) {
	failed := q.failed.Load()
	for left := q.waiting(); left > 0; {
		spans := q.take()
		left -= len(spans)
		if q.failed.Load() > failed {
			q.failed.Add(int64(len(spans)))
			continue
		}
		q.export(ctx, spans)
	}
}

func (q *queue) export(ctx context.Context, spans []ended) {
	ctx, cancel := context.WithTimeout(ctx, q.timeout)
	err := q.exporter.export(ctx, spans)
	cancel()
	n := int64(len(spans))
	clear(spans)
	if err == nil {
		q.exported.Add(n)
		return
	}
	q.failed.Add(n)
	if now := time.Now(); now.Sub(q.complained) >= complainGap {
		q.complained = now
		q.log.Warn("traces are lost: the OTLP collector does not take them; the job goes on", "endpoint", q.endpoint,
			"err", err, "lost", q.failed.Load(), "dropped", q.dropped.Load())
	}
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
	q.once.Do(func() {
		q.mu.Lock()
		q.stopped = true
		q.mu.Unlock()
		close(q.stop)
	})
	// A collector that hangs is given up with ctx: the exporter's end cancels what is under way.
	unhook := context.AfterFunc(ctx, func() { _ = q.exporter.shutdown(ctx) })
	defer unhook()
	q.wg.Wait()
	return q.exporter.shutdown(ctx)
}
