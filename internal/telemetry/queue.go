package telemetry

import (
	"context"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/protobuf/proto"
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
	most     int // spans that may wait
	batch    int // spans of a batch at most, but for those that are put as one
	delay    time.Duration
	timeout  time.Duration
	wg       sync.WaitGroup // the exporting goroutine
	once     sync.Once

	// Guarded by mu.
	mu      sync.Mutex
	batches []spool // that wait, the oldest first; all but the last are full
	spare   spool   // of a batch that was sent
	n       int     // spans that wait
	stopped bool

	exported, dropped, failed atomic.Int64

	// Owned by the exporting goroutine: when it was last logged that spans are lost, and how many were by then; and the message's spans.
	complained time.Time
	told       int64
	message    []byte
}

// spanExporter sends spans, as the message of a scope has them, to a collector.
type spanExporter interface {
	export(ctx context.Context, spans []byte) error
	shutdown(ctx context.Context) error
}

// Defaults. OpenTelemetry's specification has 2,048, 512 and 5 s; but a request costs as much as hundreds of spans, and people wait for the delay.
const (
	queueSize   = 8192
	queueBatch  = 2048
	batchBytes  = 1 << 20 // of a request at most: collectors refuse messages of more than 4 MiB
	queueDelay  = time.Second
	queueLimit  = 10 * time.Second
	complainGap = time.Minute
)

func newQueue(e spanExporter, log *slog.Logger, endpoint string) *queue {
	q := &queue{
		exporter: e, log: log, endpoint: endpoint, full: make(chan struct{}, 1), flush: make(chan chan struct{}), stop: make(chan struct{}),
		most:    envInt("OTEL_BSP_MAX_QUEUE_SIZE", queueSize),
		batch:   envInt("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", queueBatch),
		delay:   time.Duration(envInt("OTEL_BSP_SCHEDULE_DELAY", int(queueDelay/time.Millisecond))) * time.Millisecond,
		timeout: time.Duration(envInt("OTEL_BSP_EXPORT_TIMEOUT", int(queueLimit/time.Millisecond))) * time.Millisecond,
	}
	q.batch = min(q.batch, q.most)
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
	message, err := proto.Marshal(spanOf(s))
	if err != nil { // a text that is no UTF-8, which readable has seen to
		q.dropped.Add(1)
		return
	}
	message = appendBytes(nil, scopeSpans, message)
	q.put(&spool{records: []record{{whole: true, more: uint32(len(message))}}, more: message, n: 1})
}

// put adds spans: all or none.
func (q *queue) put(spans *spool) {
	q.mu.Lock()
	ok := !q.stopped && (q.n+spans.n <= q.most || q.n == 0)
	full := false
	if ok {
		full = q.addLocked(spans)
	}
	q.mu.Unlock()
	switch {
	case !ok:
		q.dropped.Add(int64(spans.n))
	case full:
		select {
		case q.full <- struct{}{}:
		default:
		}
	}
}

// addLocked adds to the last batch, or to a new one if it would become too large, and reports whether a batch is full now.
func (q *queue) addLocked(spans *spool) (full bool) {
	q.n += spans.n
	k := len(q.batches)
	if k == 0 || q.batches[k-1].n+spans.n > q.batch {
		q.batches = append(q.batches, q.spare)
		q.spare = spool{}
		full = k > 0
	}
	b := &q.batches[len(q.batches)-1]
	b.add(spans)
	return full || b.n >= q.batch
}

// take takes the oldest batch.
func (q *queue) take() (b spool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.batches) == 0 {
		return b
	}
	b = q.batches[0]
	q.batches = slices.Delete(q.batches, 0, 1)
	q.n -= b.n
	return b
}

// done takes back what take gave.
func (q *queue) done(b spool) {
	b.reset()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.spare = b
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
			q.exportAll(ctx, false)
		case <-tick.C:
			q.exportAll(ctx, true)
		case done := <-q.flush:
			q.rest(ctx)
			close(done)
		case <-q.stop:
			q.rest(ctx)
			return
		}
	}
}

// exportAll exports the batches that are full, or all, as long as it is not stopped.
func (q *queue) exportAll(ctx context.Context, all bool) {
	for q.ready(all) {
		q.export(ctx, q.take(), false)
		select {
		case <-q.stop:
			return
		default:
		}
	}
}

// ready reports whether a batch is full, or, with all, whether there is one.
func (q *queue) ready(all bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	k := len(q.batches)
	return k > 1 || k == 1 && (all || q.batches[0].n >= q.batch)
}

func (q *queue) waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.n
}

// rest exports what is there. A collector that fails gets no more of it.
func (q *queue) rest(ctx context.Context) {
	taken := true
	for left := q.waiting(); left > 0; {
		b := q.take()
		left -= b.n
		if !taken {
			q.failed.Add(int64(b.n))
			continue
		}
		taken = q.export(ctx, b, true)
	}
}

// export sends a batch, in as many requests as its bytes need, and reports whether the collector took them, though it may have refused some spans. With
// giveUp, what comes after a request that failed is lost.
func (q *queue) export(ctx context.Context, b spool, giveUp bool) (taken bool) {
	defer q.done(b)
	taken = true
	var err error
	for r := (spoolReader{spool: &b}); ; {
		var n int
		if q.message, n = r.next(q.message, batchBytes); n == 0 {
			return taken
		}
		lost := n
		if taken || !giveUp {
			lost, taken, err = q.send(ctx, n)
		}
		q.exported.Add(int64(n - lost))
		q.failed.Add(int64(lost))
		q.complain(err)
	}
}

// send sends message, of n spans, and tells how many were lost.
func (q *queue) send(ctx context.Context, n int) (lost int, taken bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, q.timeout)
	defer cancel()
	err = q.exporter.export(ctx, q.message)
	lost, taken = rejected(err, n)
	return lost, taken, err
}

// rejected is how many of n spans err says are lost, and whether the collector took the others. The SDK has the type of OTLP's partial success to
// itself, so its text has to tell.
func rejected(err error, n int) (lost int, taken bool) {
	if err == nil {
		return 0, true
	}
	m := partialSuccess.FindStringSubmatch(err.Error())
	if m == nil {
		return n, false
	}
	lost, err = strconv.Atoi(m[1])
	if err != nil {
		return n, false
	}
	return min(max(lost, 0), n), true
}

var partialSuccess = regexp.MustCompile(`(?s)^OTLP partial success: .* \((-?\d+) spans rejected\)$`)

// complain logs, now and then, that spans are lost: by err, or since they came faster than the collector takes them.
func (q *queue) complain(err error) {
	failed, dropped := q.failed.Load(), q.dropped.Load()
	if failed+dropped == q.told {
		return
	}
	now := time.Now()
	if now.Sub(q.complained) < complainGap {
		return
	}
	q.complained, q.told = now, failed+dropped
	if err == nil {
		q.log.Warn("traces are lost: the OTLP collector takes them more slowly than they come; the job goes on", "endpoint", q.endpoint,
			"lost", failed, "dropped", dropped)
		return
	}
	q.log.Warn("traces are lost: the OTLP collector does not take them; the job goes on", "endpoint", q.endpoint, "err", err, "lost", failed, "dropped", dropped)
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
