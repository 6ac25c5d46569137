package kafkasource

import (
	"bytes"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/kafka"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestLeadersMove(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(6, "a"))
	cl := newProducer(t, c, kgo.MetadataMinAge(10*time.Millisecond))
	x := start(t, through(Topics("a"), newNetwork()), newRuntime(c.ListenAddrs()))
	for round := range 10 {
		for p := range int32(6) {
			produce(t, cl, "a", p, 20*round, 20*round+20)
			if err := c.MoveTopicPartition("a", p, int32((int(p)+round)%3)); err != nil {
				t.Fatal(err)
			}
		}
		x.until(6 * 20 * (round + 1))
	}
	for p := range 6 {
		x.want(fmt.Sprintf("a-%d", p), 0, 200)
	}
}

// syncBuffer is a log that can be read while it is written.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

func (s *syncBuffer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// All brokers go away and come back: reading goes on where it was, and says why it stood still.
func TestBrokersGoAndReturn(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(6, "a"))
	cl := newProducer(t, c)
	n, log := newNetwork(), &syncBuffer{}
	rt := newRuntime(c.ListenAddrs())
	rt.log = log
	x := start(t, through(Topics("a"), n), rt)
	for round := range 3 {
		for p := range int32(6) {
			produce(t, cl, "a", p, 20*round, 20*round+20)
		}
		x.until(6 * 20 * (round + 1))
		n.cut()
		waiting := rt.Counter("waiting partitions")
		for waiting.Load() < 6 {
			runtime.Gosched()
		}
		n.mend()
	}
	for p := range 6 {
		x.want(fmt.Sprintf("a-%d", p), 0, 60)
	}
	if s := log.String(); !strings.Contains(s, "can't be read, trying again") || !strings.Contains(s, "partition=a-") || !strings.Contains(s, "offset=") {
		t.Errorf("the log does not say what can't be read:\n%s", s)
	}
}

func TestUnavailable(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"))
	cl := newProducer(t, c)
	produce(t, cl, "a", 0, 0, 5)
	n := newNetwork()
	rt := newRuntime(c.ListenAddrs())
	rt.options[kafka.OptUnavailableTimeout] = "300ms"
	x := start(t, through(Topics("a"), n), rt)
	x.until(5)
	n.cut()
	err := x.poll(func() bool { return false })
	if err == nil {
		t.Fatal("reading goes on without brokers")
	}
	for _, want := range []string{"cannot read a-0 at offset 5", kafka.OptUnavailableTimeout, "the test has cut the network"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not say %q", err, want)
		}
	}
}

// A broker that accepts and never answers is found within the request timeout.
func TestSilentBroker(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"))
	cl := newProducer(t, c)
	produce(t, cl, "a", 0, 0, 5)
	var mu sync.Mutex
	fetches := 0
	c.ControlKey(1, func(kmsg.Request) (kmsg.Response, error, bool) {
		mu.Lock()
		defer mu.Unlock()
		c.KeepControl()
		if fetches++; fetches == 1 {
			return nil, nil, true // handled, without an answer
		}
		return nil, nil, false
	})
	src := Topics("a")
	src.cfg = func(c *kafka.Config) {
		c.FetchWait, c.RequestTimeout = 50*time.Millisecond, 200*time.Millisecond
	}
	x := start(t, src, newRuntime(c.ListenAddrs()))
	x.until(5)
	x.want("a-0", 0, 5)
}

// Nobody polls: what is fetched ahead is bounded, and read when somebody does.
func TestBackPressure(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(2), kfake.SeedTopics(4, "a"))
	cl := newProducer(t, c)
	const batches, size = 200, 200_000 // 4 × 40 MB would be too much for a test: the partitions share 40 MB
	value := bytes.Repeat([]byte("x"), size)
	for i := range batches {
		if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: "a", Partition: int32(i % 4), Value: value}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	n := newNetwork()
	src := Topics("a").Stop(Latest())
	const memory = 6 << 20
	src.cfg = func(c *kafka.Config) { c.Dial, c.FetchMemory, c.FetchWait = n.dial, memory, 20*time.Millisecond }
	x := start(t, src, newRuntime(c.ListenAddrs()))
	settled := int64(-1)
	for deadline := time.Now().Add(10 * time.Second); n.in.Load() != settled && time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if now := n.in.Load(); now > 1<<20 {
			settled = now
		}
	}
	if settled > memory+2<<20 {
		t.Errorf("%d bytes came in with nobody polling, want at most about %d", settled, memory)
	}
	x.toEnd()
	if x.total() != batches {
		t.Errorf("%d records, want %d", x.total(), batches)
	}
}

// A record larger than what is asked of a partition is fetched, not skipped.
func TestLargeRecords(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.BrokerConfigs(map[string]string{"message.max.bytes": "20000000"}), kfake.SeedTopics(2, "a"))
	cl := newProducer(t, c, kgo.ProducerBatchMaxBytes(20_000_000))
	sizes := []int{0, 1, 10_000_000, 5, 3_000_000, 100}
	for _, p := range []int32{0, 1} {
		for _, s := range sizes {
			if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: "a", Partition: p, Value: bytes.Repeat([]byte("x"), s)}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
	x := start(t, Topics("a").Stop(Latest()), newRuntime(c.ListenAddrs()))
	x.toEnd()
	for s, recs := range x.got {
		if len(recs) != len(sizes) {
			t.Fatalf("%s gave %d records, want %d", s, len(recs), len(sizes))
		}
		for i, r := range recs {
			if len(r.Value) != sizes[i] {
				t.Errorf("record %d of %s has %d bytes, want %d", i, s, len(r.Value), sizes[i])
			}
		}
	}
}

// The brokers cut batches at what was asked of a partition, as real ones do with all but the first.
func TestCutBatches(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"))
	cl := newProducer(t, c)
	for i := range 20 {
		produce(t, cl, "a", 0, 10*i, 10*i+10)
	}
	cutting := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"))
	cutting.ControlKey(1, func(req kmsg.Request) (kmsg.Response, error, bool) {
		cutting.KeepControl()
		kreq := req.(*kmsg.FetchRequest)
		version := kreq.Version
		kreq.Topics[0].TopicID = c.TopicInfo("a").TopicID
		asked := kreq.Topics[0].Partitions[0].PartitionMaxBytes
		kreq.Topics[0].Partitions[0].PartitionMaxBytes = 1 << 20
		kreq.Topics[0].Partitions[0].CurrentLeaderEpoch = -1
		resp, err := kreq.RequestWith(t.Context(), cl)
		if err != nil {
			return nil, err, true
		}
		p := &resp.Topics[0].Partitions[0]
		if len(p.RecordBatches) > int(asked) {
			p.RecordBatches = p.RecordBatches[:asked]
		}
		resp.Topics[0].Topic = "a"
		resp.Version, kreq.Version = version, version
		return resp, nil, true
	})
	src := Topics("a").Stop(Offsets(map[string]map[int32]int64{"a": {0: 200}})).OnDataLoss("earliest")
	for _, ask := range []int{1, 100, 500, 1000} {
		src.cfg = func(c *kafka.Config) { c.PartitionBytes, c.FetchWait = ask, 20*time.Millisecond }
		x := start(t, src, newRuntime(cutting.ListenAddrs()))
		x.toEnd()
		x.want("a-0", 0, 200)
	}
}

// Readers come and go without leaving anything behind: TestMain looks for goroutines.
func TestCloseAtAnyTime(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(6, "a"))
	cl := newProducer(t, c)
	for p := range int32(6) {
		produce(t, cl, "a", p, 0, 100)
	}
	for i := range 50 {
		x := start(t, Topics("a"), newRuntime(c.ListenAddrs()))
		if i%2 == 0 {
			x.until(i * 10)
		}
		began := time.Now()
		x.r.Close()
		if d := time.Since(began); d > 8*time.Second { // a request's time limit is 10 s
			t.Fatalf("Close took %v", d)
		}
	}
}

// A reader that has nothing to read, or nobody to read from, asks now and then, not all the time.
func TestNoBusyLoop(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(4, "a"))
	var fetches atomic.Int64
	c.ControlKey(1, func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		fetches.Add(1)
		return nil, nil, false
	})
	n := newNetwork()
	began := time.Now()
	x := start(t, through(Topics("a"), n), newRuntime(c.ListenAddrs()))
	polls := 0
	idle := func(d time.Duration) {
		for end := time.After(d); ; polls++ {
			if st, err := x.r.Poll(x.emit); st != flow.SourceWait || err != nil {
				t.Fatalf("poll of nothing: %v, %v", st, err)
			}
			select {
			case <-x.rt.woken:
				continue
			case <-end:
			}
			return
		}
	}
	// However little a busy machine gives this test of a second, a second is what it counts.
	for end := began.Add(time.Minute); fetches.Load() < 5 && time.Now().Before(end) || time.Since(began) < time.Second; {
		idle(200 * time.Millisecond)
	}
	f, took := fetches.Load(), time.Since(began)
	if f < 5 || float64(f) > 25*took.Seconds() {
		t.Errorf("%d fetches of 50 ms each in %v", f, took)
	}
	cut, before := time.Now(), n.dials.Load()
	n.cut()
	idle(time.Second)
	if d, took := n.dials.Load()-before, time.Since(cut); float64(d) > 60*took.Seconds() {
		t.Errorf("%d dials in %v without brokers", d, took)
	}
	if took := time.Since(began); float64(polls) > 10*took.Seconds() {
		t.Errorf("woken %d times for nothing in %v", polls, took)
	}
}

// The first broker that is asked hangs: the others must get their turn.
func TestFirstBrokerHangs(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"))
	produce(t, newProducer(t, c), "a", 0, 0, 5)
	src := Topics("a").Stop(Latest()).Brokers(ln.Addr().String(), c.ListenAddrs()[0])
	src.cfg = func(c *kafka.Config) { c.RequestTimeout = 400 * time.Millisecond }
	x := start(t, src, newRuntime(nil))
	x.toEnd()
	x.want("a-0", 0, 5)
}

// A replica that was behind becomes the leader: records that were read are not in the log any more, others take their offsets.
func TestTruncated(t *testing.T) {
	for _, policy := range []string{"fail", "latest"} {
		c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"))
		cl := newProducer(t, c)
		produce(t, cl, "a", 0, 0, 10)
		var cut atomic.Bool
		c.ControlKey(1, func(req kmsg.Request) (kmsg.Response, error, bool) {
			c.KeepControl()
			p := &req.(*kmsg.FetchRequest).Topics[0].Partitions[0]
			if p.FetchOffset != 10 || p.LastFetchedEpoch < 0 || !cut.CompareAndSwap(false, true) {
				return nil, nil, false
			}
			resp := req.ResponseKind().(*kmsg.FetchResponse)
			rt, rp := kmsg.NewFetchResponseTopic(), kmsg.NewFetchResponseTopicPartition()
			rt.Topic, rp.Partition, rp.HighWatermark = "a", 0, 7
			rp.DivergingEpoch.Epoch, rp.DivergingEpoch.EndOffset = 0, 7
			rt.Partitions = append(rt.Partitions, rp)
			resp.Topics = append(resp.Topics, rt)
			return resp, nil, true
		})
		rt := newRuntime(c.ListenAddrs())
		x := start(t, through(Topics("a").OnDataLoss(policy), newNetwork()), rt)
		err := x.poll(func() bool { return x.total() >= 13 })
		if policy == "fail" {
			if err == nil || !strings.Contains(err.Error(), "a-0 was read up to offset 10, and its log was cut at 7") {
				t.Errorf("error is %v", err)
			}
			continue
		}
		if err != nil || x.got["a-0"][10].Offset != 7 || rt.Counter("data losses").Load() != 1 {
			t.Errorf("error %v, record %+v", err, x.got["a-0"][10])
		}
	}
}
