package kafkasink

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/kafka"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// The fake broker's, which ends with the connection, but may take its time on a busy machine.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/twmb/franz-go/pkg/kfake.(*clientConn).read.func1"))
}

// testRuntime is what a writer needs of a task.
type testRuntime struct {
	flow.Runtime
	options map[string]string
}

func (r testRuntime) Subtask() int                 { return 0 }
func (r testRuntime) Counter(string) *flow.Counter { return new(flow.Counter) }
func (r testRuntime) Logger() *slog.Logger         { return slog.New(slog.NewTextHandler(io.Discard, nil)) }
func (r testRuntime) Option(name string) (string, bool) {
	v, ok := r.options[name]
	return v, ok
}

func newRuntime(brokers []string) testRuntime {
	return testRuntime{options: map[string]string{kafka.OptBrokers: strings.Join(brokers, ",")}}
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

// jsonFormat stands for a format of package heddle.
type jsonFormat[T any] struct{}

func (jsonFormat[T]) Name() string               { return "json" }
func (jsonFormat[T]) Fields() flow.MessageFields { return 0 }
func (jsonFormat[T]) Decode(dst []T, _ *flow.Messages, _ int) ([]T, error) {
	return dst, nil
}

func (jsonFormat[T]) Encode(m *flow.Messages, recs []T) error {
	for _, r := range recs {
		b, err := json.Marshal(r)
		if err != nil {
			return err
		}
		m.Values = append(m.Values, flow.Span{Off: int32(len(m.Buf)), Len: int32(len(b))})
		m.Buf = append(m.Buf, b...)
	}
	return nil
}

func newWriter[T any](t *testing.T, s *Sink, f flow.Format[T], rt flow.Runtime) flow.SinkWriter[T] {
	t.Helper()
	w, err := flow.Encode(s, f).NewWriter(t.Context(), rt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return w
}

// read returns the n records of a topic.
func read(t *testing.T, c *kfake.Cluster, topic string, n int) (out []*kgo.Record) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.ConsumeTopics(topic), kgo.FetchMaxWait(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for len(out) < n {
		f := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("%d of %d records in %s", len(out), n, topic)
		}
		out = append(out, f.Records()...)
	}
	return out
}

func TestWriteAndFlush(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(6, "out"))
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		t.Run(codec, func(t *testing.T) {
			w := newWriter(t, Topic("out").Compression(codec), WithKey(jsonFormat[int]{}, func(i int) string { return fmt.Sprint("key ", i%100) }), newRuntime(c.ListenAddrs()[:1]))
			var times []int64
			var recs []int
			for i := range 2000 {
				recs, times = append(recs, i), append(times, int64(i))
			}
			for len(recs) > 0 {
				if err := w.Write(flow.Batch[int]{Recs: recs[:250], Times: times[:250]}); err != nil {
					t.Fatal(err)
				}
				clear(recs[:250]) // it was borrowed
				recs, times = recs[250:], times[250:]
			}
			if err := w.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			var high int64
			for _, p := range c.PartitionInfos("out") {
				high += p.HighWatermark
			}
			if high%2000 != 0 {
				t.Errorf("after Flush the topic has %d records, want a multiple of 2000", high)
			}
		})
	}
	kgoPart := kgo.StickyKeyPartitioner(nil).ForTopic("out")
	seen := map[string]int{}
	for _, r := range read(t, c, "out", 10000) {
		seen[string(r.Value)]++
		if want := int32(kgoPart.Partition(r, 6)); r.Partition != want {
			t.Fatalf("key %q is in partition %d, other clients put it in %d", r.Key, r.Partition, want)
		}
		if fmt.Sprint(r.Timestamp.UnixMilli()) != string(r.Value) {
			t.Fatalf("record %s has time %v", r.Value, r.Timestamp)
		}
	}
	if len(seen) != 2000 {
		t.Errorf("%d different records, want 2000", len(seen))
	}
	for v, n := range seen {
		if n != 5 {
			t.Errorf("record %s is there %d times, want 5", v, n)
		}
	}
}

func TestRecordFormat(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "out"))
	w := newWriter(t, Topic("out"), RecordFormat("test", func(i int, r *Record) error {
		if i == 0 {
			r.Key = []byte("gone") // a tombstone
			return nil
		}
		r.Value, r.Time = []byte("v"), time.UnixMilli(int64(i))
		r.Headers = []Header{{"a", []byte("1")}, {"b", nil}}
		return nil
	}), newRuntime(c.ListenAddrs()))
	if err := w.Write(flow.Batch[int]{Recs: []int{0, 7}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	recs := read(t, c, "out", 2)
	if r := recs[0]; string(r.Key) != "gone" || r.Value != nil || time.Since(r.Timestamp) > time.Minute {
		t.Errorf("tombstone is %+v", r)
	}
	if r := recs[1]; r.Key != nil || string(r.Value) != "v" || r.Timestamp.UnixMilli() != 7 || len(r.Headers) != 2 || r.Headers[0].Key != "a" || string(r.Headers[0].Value) != "1" {
		t.Errorf("record is %+v", r)
	}
}

func TestStartErrors(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "out"))
	gone := newCluster(t, kfake.NumBrokers(1))
	addr := gone.ListenAddrs()
	gone.Close()
	for _, tc := range []struct {
		sink    *Sink
		brokers []string
		want    string
	}{
		{Topic("missing"), c.ListenAddrs(), `topic "missing" does not exist`},
		{Topic("out"), addr, "no Kafka broker of " + addr[0] + " answers"},
		{Topic("out"), nil, "kafka.brokers"},
		{Topic("out").Compression("rar"), c.ListenAddrs(), `unknown compression "rar"`},
	} {
		_, err := tc.sink.NewMessageWriter(t.Context(), newRuntime(tc.brokers))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("error is %v, want %q in it", err, tc.want)
		}
	}
}

func TestFailedDelivery(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "out"))
	c.ControlKey(0, func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		resp := req.ResponseKind().(*kmsg.ProduceResponse)
		for _, t := range req.(*kmsg.ProduceRequest).Topics {
			rt := kmsg.NewProduceResponseTopic()
			rt.Topic = t.Topic
			for _, p := range t.Partitions {
				rp := kmsg.NewProduceResponseTopicPartition()
				rp.Partition, rp.ErrorCode = p.Partition, kerr.TopicAuthorizationFailed.Code
				rt.Partitions = append(rt.Partitions, rp)
			}
			resp.Topics = append(resp.Topics, rt)
		}
		return resp, nil, true
	})
	w := newWriter(t, Topic("out"), jsonFormat[int]{}, newRuntime(c.ListenAddrs()))
	if err := w.Write(flow.Batch[int]{Recs: []int{1}}); err != nil {
		t.Fatal(err)
	}
	err := w.Flush(t.Context())
	if err == nil || !strings.Contains(err.Error(), "cannot write to out-0") || !strings.Contains(err.Error(), "right to write") {
		t.Errorf("Flush: %v, want the partition and the fix", err)
	}
	if err2 := w.Write(flow.Batch[int]{Recs: []int{2}}); err2 == nil || err2.Error() != err.Error() {
		t.Errorf("Write after a failed delivery: %v, want %v", err2, err)
	}
}

func TestTooLarge(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "out"))
	big := strings.Repeat("x", 2<<20)
	w := newWriter(t, Topic("out"), jsonFormat[string]{}, newRuntime(c.ListenAddrs()))
	if err := w.Write(flow.Batch[string]{Recs: []string{big}}); err == nil || !strings.Contains(err.Error(), "max.message.bytes") || !strings.Contains(err.Error(), "topic out") {
		t.Errorf("writing 2 MiB: %v, want the topic and the option that bounds it", err)
	}
}

// While the broker does not answer, Write must stop taking records, and cancelling must get it out.
func TestBackPressureAndCancel(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "out"))
	stuck := make(chan struct{})
	var once sync.Once
	c.ControlKey(0, func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		once.Do(func() { close(stuck) })
		return nil, nil, true // handled, without an answer
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w, err := flow.Encode(Topic("out"), jsonFormat[string]{}).NewWriter(ctx, newRuntime(c.ListenAddrs()))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		<-stuck
		time.AfterFunc(300*time.Millisecond, cancel)
	}()
	rec := strings.Repeat("x", 1000)
	n := 0
	for err == nil {
		err = w.Write(flow.Batch[string]{Recs: []string{rec, rec, rec, rec}})
		n += 4
	}
	if n > 17000 {
		t.Errorf("%d records of 1,000 bytes were taken with nobody to deliver them to, want at most 16 MiB", n)
	}
	began := time.Now()
	w.Close()
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("Close took %v", d)
	}
}

// network is a way to brokers that can be cut.
type network struct {
	mu    sync.Mutex
	down  bool              // guarded by mu
	conns map[net.Conn]bool // guarded by mu
}

func (n *network) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down {
		c.Close()
		return nil, errors.New("the test has cut the network")
	}
	n.conns[c] = true
	return c, nil
}

func (n *network) set(down bool) {
	n.mu.Lock()
	n.down = down
	conns := n.conns
	n.conns = map[net.Conn]bool{}
	n.mu.Unlock()
	for c := range conns {
		c.Close()
	}
}

// Brokers go away while records are on their way: each arrives, once and in order.
func TestBrokersGoAndReturn(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "out"))
	n := &network{conns: map[net.Conn]bool{}}
	s := Topic("out")
	s.cfg = func(c *kafka.Config) { c.Dial = n.dial }
	w := newWriter(t, s, jsonFormat[int]{}, newRuntime(c.ListenAddrs()))
	for i := range 2000 {
		if i == 700 || i == 1400 {
			n.set(true)
			time.AfterFunc(300*time.Millisecond, func() { n.set(false) })
		}
		if err := w.Write(flow.Batch[int]{Recs: []int{i}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, r := range read(t, c, "out", 2000) {
		if string(r.Value) != fmt.Sprint(i) {
			t.Fatalf("record %d is %s", i, r.Value)
		}
	}
}

func TestUnavailable(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "out"))
	n := &network{conns: map[net.Conn]bool{}}
	s := Topic("out")
	s.cfg = func(c *kafka.Config) { c.Dial, c.UnavailableTimeout = n.dial, time.Second }
	w := newWriter(t, s, jsonFormat[int]{}, newRuntime(c.ListenAddrs()))
	n.set(true)
	if err := w.Write(flow.Batch[int]{Recs: []int{1}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot write to out-0") {
		t.Errorf("Flush without brokers: %v", err)
	}
}
