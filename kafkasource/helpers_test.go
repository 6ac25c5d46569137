package kafkasource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/kafka"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// The fake broker's, which ends with the connection, but may take its time on a busy machine.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/twmb/franz-go/pkg/kfake.(*clientConn).read.func1"))
}

// testRuntime is what a reader needs of a task.
type testRuntime struct {
	options map[string]string
	woken   chan struct{}
	log     io.Writer
	now     func() int64 // nil: the wall clock

	mu       sync.Mutex
	counters map[string]*flow.Counter // guarded by mu
}

func newRuntime(brokers []string) *testRuntime {
	return &testRuntime{options: map[string]string{kafka.OptBrokers: strings.Join(brokers, ",")}, woken: make(chan struct{}, 1),
		log: io.Discard, counters: map[string]*flow.Counter{}}
}

func (r *testRuntime) JobName() string     { return "test" }
func (r *testRuntime) Node() *flow.Node    { return &flow.Node{} }
func (r *testRuntime) Subtask() int        { return 0 }
func (r *testRuntime) Parallelism() int    { return 1 }
func (r *testRuntime) MaxParallelism() int { return 128 }
func (r *testRuntime) Now() int64 {
	if r.now != nil {
		return r.now()
	}
	return time.Now().UnixMilli()
}
func (r *testRuntime) SetTimer(int64)              {}
func (r *testRuntime) FlushTimeout() time.Duration { return 20 * time.Millisecond }
func (r *testRuntime) Logger() *slog.Logger        { return slog.New(slog.NewTextHandler(r.log, nil)) }
func (r *testRuntime) Option(name string) (string, bool) {
	v, ok := r.options[name]
	return v, ok
}

func (r *testRuntime) Wake() {
	select {
	case r.woken <- struct{}{}:
	default:
	}
}

func (r *testRuntime) Counter(name string) *flow.Counter {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counters[name] == nil {
		r.counters[name] = new(flow.Counter)
	}
	return r.counters[name]
}

func newCluster(t testing.TB, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func newProducer(t testing.TB, c *kfake.Cluster, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(c.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression())}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// produce writes records with values "topic-partition/i" for from ≤ i < to into one partition, one batch each call.
func produce(t testing.TB, cl *kgo.Client, topic string, partition int32, from, to int) {
	t.Helper()
	var recs []*kgo.Record
	for i := from; i < to; i++ {
		recs = append(recs, &kgo.Record{Topic: topic, Partition: partition, Value: fmt.Appendf(nil, "%s-%d/%d", topic, partition, i), Timestamp: time.UnixMilli(int64(1000 + i))})
	}
	if err := cl.ProduceSync(context.Background(), recs...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// run is a source being read by one reader.
type run struct {
	t     testing.TB
	rt    *testRuntime
	enum  flow.Enumerator
	warns []string
	r     flow.Reader[Record]
	got   map[string][]Record // by split
	ended map[string]bool
	times map[string][]int64
}

func env(rt *testRuntime, warn func(string)) flow.EnumeratorEnv {
	return flow.EnumeratorEnv{JobName: "test", Node: &flow.Node{}, Readers: 1, Option: rt.Option, Warn: warn}
}

// start makes enumerator and reader of src and gives the reader the splits there are.
func start(t testing.TB, src *Source, rt *testRuntime) *run {
	t.Helper()
	x := &run{t: t, rt: rt, got: map[string][]Record{}, ended: map[string]bool{}, times: map[string][]int64{}}
	var err error
	if x.enum, err = src.Enumerator(context.Background(), env(rt, func(s string) { x.warns = append(x.warns, s) })); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.enum.Close() })
	x.r, err = flow.Decode(src, RecordFormat("test", func(r *Record) (Record, error) {
		c := *r
		c.Key, c.Value = []byte(string(r.Key)), []byte(string(r.Value))
		return c, nil
	}), new(flow.Policy)).NewReader(context.Background(), flow.ReaderEnv{Runtime: rt, Times: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.r.Close() })
	x.discover()
	return x
}

func (x *run) discover() flow.Discovery {
	x.t.Helper()
	d, err := x.enum.Discover(context.Background())
	if err != nil {
		x.t.Fatal(err)
	}
	if err := x.r.AddSplits(d.Added); err != nil {
		x.t.Fatal(err)
	}
	if d.Final {
		x.r.NoMoreSplits()
	}
	return d
}

func (x *run) emit(split string, b flow.Batch[Record], ended bool) error {
	if x.ended[split] {
		x.t.Errorf("split %s emits after its end", split)
	}
	if len(b.Times) != len(b.Recs) {
		x.t.Errorf("%d times for %d records", len(b.Times), len(b.Recs))
	}
	x.got[split] = append(x.got[split], b.Recs...)
	x.times[split] = append(x.times[split], b.Times...)
	if ended {
		x.ended[split] = true
	}
	return nil
}

// poll polls until done says so, the source ends or fails, or a minute has passed.
func (x *run) poll(done func() bool) error {
	x.t.Helper()
	timeout := time.After(time.Minute)
	for !done() {
		st, err := x.r.Poll(x.emit)
		if err != nil || st == flow.SourceEnd {
			return err
		}
		if st == flow.SourceWait {
			select {
			case <-x.rt.woken:
			case <-timeout:
				x.t.Fatalf("nothing more arrives; so far %s, splits %+v", x.counts(), x.r.Splits())
			}
		}
	}
	return nil
}

func (x *run) toEnd() {
	x.t.Helper()
	if err := x.poll(func() bool { return false }); err != nil {
		x.t.Fatal(err)
	}
}

func (x *run) until(n int) {
	x.t.Helper()
	if err := x.poll(func() bool { return x.total() >= n }); err != nil {
		x.t.Fatal(err)
	}
}

func (x *run) total() (n int) {
	for _, recs := range x.got {
		n += len(recs)
	}
	return n
}

func (x *run) counts() string {
	var b strings.Builder
	for s, recs := range x.got {
		fmt.Fprintf(&b, "%s:%d ", s, len(recs))
	}
	return b.String()
}

// want checks that a split gave the values "split/i" for from ≤ i < to, in order, each once.
func (x *run) want(split string, from, to int) {
	x.t.Helper()
	recs := x.got[split]
	if len(recs) != to-from {
		x.t.Errorf("%s gave %d records, want %d", split, len(recs), to-from)
	}
	for i, r := range recs[:min(len(recs), to-from)] {
		if want := fmt.Sprintf("%s/%d", split, from+i); string(r.Value) != want {
			x.t.Fatalf("record %d of %s is %q, want %q", i, split, r.Value, want)
		}
	}
}

// network is a way to brokers that can be cut, and that counts what comes in.
type network struct {
	mu    sync.Mutex
	down  bool              // guarded by mu
	conns map[*netConn]bool // guarded by mu
	in    atomic.Int64
	dials atomic.Int64
}

type netConn struct {
	net.Conn
	n *network
}

func newNetwork() *network { return &network{conns: map[*netConn]bool{}} }

func (n *network) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	n.dials.Add(1)
	n.mu.Lock()
	down := n.down
	n.mu.Unlock()
	if down {
		return nil, errors.New("the test has cut the network")
	}
	c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	nc := &netConn{c, n}
	n.mu.Lock()
	n.conns[nc] = true
	n.mu.Unlock()
	return nc, nil
}

func (c *netConn) Read(b []byte) (int, error) {
	k, err := c.Conn.Read(b)
	c.n.in.Add(int64(k))
	return k, err
}

func (n *network) cut() {
	n.mu.Lock()
	n.down = true
	conns := n.conns
	n.conns = map[*netConn]bool{}
	n.mu.Unlock()
	for c := range conns {
		c.Close()
	}
}

func (n *network) mend() {
	n.mu.Lock()
	n.down = false
	n.mu.Unlock()
}

// through makes src use n, with short waits.
func through(src *Source, n *network) *Source {
	src.cfg = func(c *kafka.Config) {
		c.Dial = n.dial
		c.FetchWait = 50 * time.Millisecond
	}
	return src
}
