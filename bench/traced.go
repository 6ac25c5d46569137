package bench

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heddle-stream/heddle/agent/task"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/jobgraph"
	"github.com/heddle-stream/heddle/internal/telemetry"
	"github.com/heddle-stream/heddle/netstack"
)

// TracedOptions say what to measure.
type TracedOptions struct {
	Exchange ExchangeOptions // its Duration is that of all windows
	Rate     float64         // records a second that the producers follow, all together
	Window   time.Duration   // how long each window is; 0: 300 ms
}

// TracedResult tells what following records costs.
type TracedResult struct {
	RecordSize  int     `json:"record_size"`
	Parallelism int     `json:"parallelism"`
	Rate        float64 `json:"rate"`
	Rounds      int     `json:"rounds"` // of four windows: without, with, with, without
	// Processor time a record, of both processes and without the collector's: the middle of all rounds, in ns.
	Off    float64 `json:"off_cpu_ns_per_record"`
	Traced float64 `json:"traced_cpu_ns_per_record"`
	// Off to traced in each round: the middle of all rounds, and the bounds between which the middle is of any number of rounds, by 95 of 100.
	PerCPU Ratio `json:"per_cpu"`
	// The same of records a second, which a busy machine distorts more.
	PerSecond Ratio `json:"per_second"`
	// Processor time that the traced windows took beyond what their records cost without, for each record that was followed from end to end, in µs.
	PerTrace Ratio `json:"cpu_us_per_trace"`
	// Spans a second that reached the collector in the windows with tracing; and those lost, of all.
	Spans float64 `json:"spans_per_second"`
	Lost  int64   `json:"spans_lost"`
}

// Ratio is the median of several, with the bounds of its 95 % confidence interval.
type Ratio struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// Traced sends records from the tasks of one process to those of another one, over loopback TCP, in short windows that take turns: in one half
// of them, records are followed and their spans sent to a collector in a third process. Both halves run the same code on the same
// connection, side by side, so that all that differs is the tracing.
func Traced(ctx context.Context, o TracedOptions) (TracedResult, error) {
	var err error
	if o.Exchange, err = o.Exchange.withDefaults(); err != nil {
		return TracedResult{}, err
	}
	if o.Window == 0 {
		o.Window = 300 * time.Millisecond
	}
	if o.Rate <= 0 {
		return TracedResult{}, fmt.Errorf("cannot measure a rate of %g records a second: more than 0 are needed", o.Rate)
	}
	res, err := runTraced(ctx, o)
	if err != nil {
		return res, fmt.Errorf("cannot measure the cost of tracing: %w", err)
	}
	return res, nil
}

// The two lanes: the attempt number of their tasks.
const (
	laneOff = iota
	laneTraced
	lanes
)

// tracedConfig is what the consumers read first from their standard input.
type tracedConfig struct {
	Peer      peerConfig
	Rate      float64
	Collector string
}

func runTraced(ctx context.Context, o TracedOptions) (res TracedResult, err error) {
	ctx, end := bounded(ctx, 10*o.Exchange.Duration+4*longestDrain) // windows, and what is waited for between them
	defer end(nil)
	collector, err := startPeer(ctx, end, o.Exchange.Executable, roleCollector, struct{}{})
	if err != nil {
		return res, err
	}
	defer collector.close()
	cfg := tracedConfig{Peer: peerConfig{Options: o.Exchange, Key: make([]byte, netstack.KeySize)}, Rate: o.Rate / float64(o.Exchange.Parallelism)}
	rand.Read(cfg.Peer.Key)
	if err := collector.hear(ctx, &cfg.Collector); err != nil {
		return res, fmt.Errorf("the collector does not start: %w", err)
	}
	own, err := newTracedTasks(ctx, cfg, 0)
	if err != nil {
		return res, err
	}
	defer func() {
		if closed := own.close(); err == nil {
			err = closed
		}
	}()
	cfg.Peer.Addr = own.stack.Addr()
	p, err := startPeer(ctx, end, o.Exchange.Executable, roleTraced, cfg)
	if err != nil {
		return res, err
	}
	defer p.close()
	own.failed = p.orDeath(end)
	if err := own.start(ctx); err != nil {
		return res, err
	}
	m := tracedMeasure{own: own, peer: p, window: o.Window}
	return m.run(ctx, o)
}

// tracedTasks are the tasks of one process: those of one vertex, on both lanes.
type tracedTasks struct {
	cfg      tracedConfig
	vertex   int
	stack    *netstack.Stack
	provider *telemetry.Provider
	failed   func(error)  // told of each task that fails
	turn     atomic.Int32 // the lane whose sources emit; -1: none
	counts   [lanes][]consumer
	cancel   context.CancelFunc
	wg       sync.WaitGroup
	tasks    []*task.Task

	mu  sync.Mutex
	err error // guarded by mu: the first
}

func newTracedTasks(ctx context.Context, cfg tracedConfig, vertex int) (*tracedTasks, error) {
	t := &tracedTasks{cfg: cfg, vertex: vertex, cancel: func() {}, failed: func(error) {}}
	t.turn.Store(-1)
	for lane := range t.counts {
		t.counts[lane] = make([]consumer, cfg.Peer.Options.Parallelism)
	}
	var err error
	t.provider, err = telemetry.New(ctx, telemetry.Config{Service: "bench", Settings: telemetry.Settings{Endpoint: cfg.Collector, Protocol: telemetry.HTTP, Traces: true}})
	if err != nil {
		return nil, err
	}
	if t.stack, err = newStack(cfg.Peer, []string{"producers", "consumers"}[vertex]); err != nil {
		return nil, errors.Join(err, t.provider.Close(ctx))
	}
	return t, nil
}

// start makes and runs the tasks. Consumers must know the producers' address.
func (t *tracedTasks) start(ctx context.Context) error {
	ctx, t.cancel = context.WithCancel(ctx)
	n := t.cfg.Peer.Options.Parallelism
	for lane := range lanes {
		for sub := range n {
			g := t.graph(lane, sub)
			plan, err := jobgraph.Compile(g, jobgraph.Options{Parallelism: n})
			if err != nil {
				return err
			}
			id := cluster.ExecutionID{Vertex: t.vertex, Subtask: sub, Attempt: lane}
			env := task.Env{Exchange: task.NewNetExchange(t.stack), FlushTimeout: 20 * time.Millisecond}
			if lane == laneTraced {
				env.Follow = task.Follow{Provider: t.provider, Rate: t.cfg.Rate}
			}
			in, out := task.Wire(plan, id, func(int, int) string { return t.cfg.Peer.Addr })
			tk, err := task.New(task.Spec{ID: id, Graph: g, Plan: plan, Inputs: in, Outputs: out, Splits: []flow.Split{{ID: "numbers"}}, NoMoreSplits: true}, env)
			if err != nil {
				return err
			}
			t.tasks = append(t.tasks, tk)
			t.wg.Go(func() {
				if r := tk.Run(ctx); r.State == cluster.Failed {
					err := fmt.Errorf("task %v: %s", id, r.Failure.Message)
					t.failed(err)
					t.mu.Lock()
					defer t.mu.Unlock()
					t.err = errors.Join(t.err, err)
				}
			})
		}
	}
	return nil
}

// graph is the job of one lane, as far as subtask sub of this process's vertex is concerned.
func (t *tracedTasks) graph(lane, sub int) *flow.Graph {
	size := t.cfg.Peer.Options.RecordSize
	c := &t.counts[lane][sub]
	g := &flow.Graph{Name: "bench"}
	src := &flow.Node{Kind: "source", Source: noSource{}, Outputs: []flow.Type{recordType(size)}}
	if size == 8 {
		src.New = laneSource(t, lane, c, make([]uint64, flow.BatchBytes/8), uint64(sub)<<48, number)
	} else {
		recs := make([][]byte, max(1, flow.BatchBytes/size))
		for i := range recs {
			recs[i] = make([]byte, size)
		}
		src.New = laneSource(t, lane, c, recs, uint64(sub)<<48, numberBytes)
	}
	out := c.out(size)
	g.Add(&flow.Node{Kind: "sink", Sink: true, In: []flow.Edge{{From: g.Add(src), Part: flow.Partitioning{Kind: flow.Rebalance}}},
		New: func(flow.Runtime, []any) (flow.Instance, error) {
			return flow.Instance{Op: idleOperator{}, Inputs: []any{out}}, nil
		}})
	return g
}

// give lets the sources of one lane emit, or of none, and wakes them.
func (t *tracedTasks) give(lane int32) {
	t.turn.Store(lane)
	for _, tk := range t.tasks {
		tk.Wake()
	}
}

// total is what all tasks have counted.
func (t *tracedTasks) total() (m mark) {
	for lane := range t.counts {
		for i := range t.counts[lane] {
			m.Records += t.counts[lane][i].records.Load()
			m.Sum += t.counts[lane][i].sum.Load()
		}
	}
	m.CPU = cpuTime()
	return m
}

// arrived is how many followed records have arrived.
func (t *tracedTasks) arrived() (n uint64) {
	for _, tk := range t.tasks {
		for _, h := range tk.Report().Hops {
			if h.Phase == telemetry.PhaseReceive {
				for _, count := range h.Counts {
					n += count
				}
			}
		}
	}
	return n
}

func (t *tracedTasks) close() error {
	t.cancel()
	for _, tk := range t.tasks {
		tk.Cancel()
	}
	t.wg.Wait()
	t.stack.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = t.provider.Close(ctx) // what is lost was counted
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// noSource is the enumerator's side of a source that needs none.
type noSource struct{ flow.Source }

// idleOperator has nothing to do but what its input does.
type idleOperator struct{}

func (idleOperator) Open(context.Context) error { return nil }
func (idleOperator) Timer(int64) error          { return nil }
func (idleOperator) Close() error               { return nil }

// laneSource is the factory of a source that emits numbered records while it is its lane's turn.
func laneSource[T any](t *tracedTasks, lane int, c *consumer, recs []T, next uint64, number func([]T, uint64)) flow.Factory {
	in := &laneInput[T]{tasks: t, lane: int32(lane), count: c, recs: recs, next: next, number: number}
	return flow.NewSource[T](in, &flow.Watermarks[T]{}, &flow.Policy{}, nil)
}

// laneInput is the Input and Reader of one subtask.
type laneInput[T any] struct {
	flow.Source
	tasks  *tracedTasks
	lane   int32
	count  *consumer // what was emitted
	recs   []T
	next   uint64
	number func([]T, uint64)
}

func (l *laneInput[T]) Describe() string             { return "numbers" }
func (l *laneInput[T]) AddSplits([]flow.Split) error { return nil }
func (l *laneInput[T]) NoMoreSplits() error          { return nil }
func (l *laneInput[T]) Splits() []flow.SplitStatus   { return nil }
func (l *laneInput[T]) Close() error                 { return nil }
func (l *laneInput[T]) NewReader(context.Context, flow.ReaderEnv) (flow.Reader[T], error) {
	return l, nil
}

// Poll implements flow.Reader.
func (l *laneInput[T]) Poll(emit flow.Emit[T]) (flow.SourceStatus, error) {
	if l.tasks.turn.Load() != l.lane {
		return flow.SourceWait, nil
	}
	l.number(l.recs, l.next)
	n := uint64(len(l.recs))
	if err := emit("numbers", flow.Batch[T]{Recs: l.recs}, false); err != nil {
		return flow.SourceMore, err
	}
	l.count.sum.Store(l.count.sum.Load() + n*l.next + n*(n-1)/2)
	l.count.records.Store(l.count.records.Load() + n)
	l.next += n
	return flow.SourceMore, nil
}

// tracedMeasure takes windows in turns.
type tracedMeasure struct {
	own    *tracedTasks
	peer   *peer
	window time.Duration
	spans  int64 // of all windows
	lost   int64
}

// turnResult is what a window came to.
type turnResult struct {
	cpu, seconds, records, traces float64
}

func (a turnResult) plus(b turnResult) turnResult {
	return turnResult{a.cpu + b.cpu, a.seconds + b.seconds, a.records + b.records, a.traces + b.traces}
}

func (m *tracedMeasure) run(ctx context.Context, o TracedOptions) (TracedResult, error) {
	res := TracedResult{RecordSize: o.Exchange.RecordSize, Parallelism: o.Exchange.Parallelism, Rate: o.Rate}
	res.Rounds = max(3, int(o.Exchange.Duration/(4*m.window)))
	var cpus, rates, off, traced, costs []float64
	tracedSeconds := 0.
	for i := range res.Rounds + 1 {
		var sums [lanes]turnResult
		for _, lane := range []int{laneOff, laneTraced, laneTraced, laneOff} {
			if i%2 == 1 {
				lane = laneTraced - lane
			}
			w, err := m.turn(ctx, lane)
			if err != nil {
				return res, err
			}
			sums[lane] = sums[lane].plus(w)
		}
		if i == 0 {
			m.spans = 0 // the first round warms up
			continue
		}
		a, b := sums[laneOff], sums[laneTraced]
		off, traced = append(off, a.cpu/a.records*1e9), append(traced, b.cpu/b.records*1e9)
		cpus = append(cpus, off[len(off)-1]/traced[len(traced)-1])
		rates = append(rates, b.records/b.seconds/(a.records/a.seconds))
		if b.traces > 0 {
			costs = append(costs, (b.cpu-a.cpu/a.records*b.records)/b.traces*1e6)
		}
		tracedSeconds += b.seconds
	}
	res.Off, res.Traced, res.PerCPU, res.PerSecond = median(off), median(traced), ratioOf(cpus), ratioOf(rates)
	if len(costs) == 0 {
		return res, errors.New("no record was followed to its end: the windows are too short for the rate")
	}
	res.PerTrace = ratioOf(costs)
	res.Spans, res.Lost = float64(m.spans)/tracedSeconds, m.lost
	return res, nil
}

// turn runs one lane for a window, and until all it sent has been received and its spans have been delivered.
func (m *tracedMeasure) turn(ctx context.Context, lane int) (turnResult, error) {
	before, err := m.both(ctx)
	if err != nil {
		return turnResult{}, err
	}
	began := time.Now()
	m.own.give(int32(lane))
	if err := pause(ctx, m.window); err != nil {
		return turnResult{}, err
	}
	m.own.give(-1)
	after, err := m.both(ctx)
	if err != nil {
		return turnResult{}, err
	}
	m.spans += after.spans - before.spans
	m.lost = after.lost
	if after.own.Records == before.own.Records {
		return turnResult{}, fmt.Errorf("nothing moved within %v: the machine is too busy to measure", m.window)
	}
	return turnResult{
		cpu:     (after.own.CPU - before.own.CPU + after.theirs.CPU - before.theirs.CPU).Seconds(),
		seconds: time.Since(began).Seconds(), records: float64(after.own.Records - before.own.Records),
		traces: float64(after.theirs.Traces - before.theirs.Traces),
	}, nil
}

// both is the state of both processes.
type both struct {
	own         mark
	theirs      tracedMark
	spans, lost int64
}

// longestDrain is how long records may take to arrive that were sent.
const longestDrain = 30 * time.Second

// both waits until all that was sent has been received and every span is with the collector, and returns the state then.
func (m *tracedMeasure) both(ctx context.Context) (b both, err error) {
	if err := m.own.provider.Flush(ctx); err != nil {
		return b, err
	}
	for began := time.Now(); ; {
		if err := m.peer.ask(ctx); err != nil {
			return b, err
		}
		if err := m.peer.hear(ctx, &b.theirs); err != nil {
			return b, err
		}
		if b.theirs.Err != "" {
			return b, errors.New(b.theirs.Err)
		}
		b.own = m.own.total()
		if b.own.Records == b.theirs.Records {
			break
		}
		if time.Since(began) > longestDrain {
			return b, fmt.Errorf("%d records were sent and %d received", b.own.Records, b.theirs.Records)
		}
		if err := pause(ctx, 2*time.Millisecond); err != nil {
			return b, err
		}
	}
	if b.own.Sum != b.theirs.Sum {
		return b, fmt.Errorf("records were sent with sum %x, and received with %x", b.own.Sum, b.theirs.Sum)
	}
	st := m.own.provider.Stats()
	b.spans, b.lost = st.Exported+b.theirs.Spans, st.Dropped+st.Failed+b.theirs.Lost
	return b, nil
}

// tracedMark is a sample of the consumers' process.
type tracedMark struct {
	mark
	Spans, Lost int64
	Traces      uint64 // followed records that have arrived
}

// consumeTraced runs the consumers: it answers each line of in by a mark, once its spans have been delivered.
func consumeTraced(ctx context.Context, line []byte, in *bufio.Reader) (err error) {
	var cfg tracedConfig
	if err := json.Unmarshal(line, &cfg); err != nil {
		return err
	}
	t, err := newTracedTasks(ctx, cfg, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	if err := t.start(ctx); err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	for {
		if _, err := in.ReadBytes('\n'); err != nil {
			return nil // the parent is done
		}
		if err := t.provider.Flush(ctx); err != nil {
			return err
		}
		st := t.provider.Stats()
		m := tracedMark{t.total(), st.Exported, st.Dropped + st.Failed, t.arrived()}
		t.mu.Lock()
		if t.err != nil {
			m.Err = t.err.Error()
		}
		t.mu.Unlock()
		if err := out.Encode(m); err != nil {
			return err
		}
	}
}

// collect is an OTLP collector that throws away what it gets, until its standard input ends.
func collect(in io.Reader) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	srv := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })}
	var wg sync.WaitGroup
	wg.Go(func() { _ = srv.Serve(l) })
	err = json.NewEncoder(os.Stdout).Encode("http://" + l.Addr().String())
	_, err2 := io.Copy(io.Discard, in)
	srv.Close()
	wg.Wait()
	return errors.Join(err, err2)
}

// ratioOf is the median with the interval that order statistics give: no shape is assumed of how the values are spread.
func ratioOf(values []float64) Ratio {
	v := slices.Clone(values)
	slices.Sort(v)
	// The most values that may lie beyond a bound: fewer heads than that in len(v) throws of a coin have a chance of at most 2.5 %.
	k, term, sum := 0, math.Pow(0.5, float64(len(v))), 0.
	for ; k < len(v)/2 && sum+term <= 0.025; k++ {
		sum += term
		term *= float64(len(v)-k) / float64(k+1)
	}
	k = max(0, k-1)
	return Ratio{Median: median(v), Low: v[k], High: v[len(v)-1-k]}
}

// String shows r to people.
func (r Ratio) String() string {
	return fmt.Sprintf("%.3f (%.3f to %.3f)", r.Median, r.Low, r.High)
}
