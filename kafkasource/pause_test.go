package kafkasource

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/kafka"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func (x *run) pause(split string, on bool) { x.r.(flow.Pauser).Pause(split, on) }

// TestPauseAtRandom: whatever is paused and resumed when, with whatever memory for what waits, each record comes once and in order.
func TestPauseAtRandom(t *testing.T) {
	const parts, each = 4, 3000
	c := newCluster(t, kfake.NumBrokers(2), kfake.SeedTopics(parts, "a"))
	cl := newProducer(t, c)
	for p := range int32(parts) {
		for from := 0; from < each; from += 500 {
			produce(t, cl, "a", p, from, from+500)
		}
	}
	for _, held := range []int{0, 4 << 10, 64 << 10, 1 << 30} {
		t.Run(fmt.Sprint(held), func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			rnd := rand.New(rand.NewPCG(seed, 0))
			x := start(t, through(Topics("a").Stop(Latest()), newNetwork()).smallFetches(), newRuntime(c.ListenAddrs()))
			inner(x.r).maxHeld = held
			paused := map[int]bool{}
			err := x.poll(func() bool {
				if rnd.IntN(5) == 0 {
					p := rnd.IntN(parts)
					paused[p] = !paused[p]
					x.pause(fmt.Sprintf("a-%d", p), paused[p])
				}
				if rnd.IntN(40) == 0 || len(x.ended) < parts && allPaused(x, paused, parts) {
					for p := range paused {
						x.pause(fmt.Sprintf("a-%d", p), false)
						delete(paused, p)
					}
				}
				return false
			})
			if err != nil {
				t.Fatal(err)
			}
			for p := range parts {
				x.want(fmt.Sprintf("a-%d", p), 0, each)
			}
		})
	}
}

// allPaused reports whether every split that has not ended is paused.
func allPaused(x *run, paused map[int]bool, parts int) bool {
	for p := range parts {
		if !paused[p] && !x.ended[fmt.Sprintf("a-%d", p)] {
			return false
		}
	}
	return true
}

// smallFetches makes many responses of what there is.
func (s *Source) smallFetches() *Source {
	was := s.cfg
	s.cfg = func(c *kafka.Config) {
		if was != nil {
			was(c)
		}
		c.PartitionBytes = 8 << 10
	}
	return s
}

// inner is the Kafka reader below the format.
func inner(r flow.Reader[Record]) *reader {
	return r.(interface{ Unwrap() flow.MessageReader }).Unwrap().(*reader)
}

// TestPause: a split that is paused gives nothing, is not fetched, and holds up no other.
func TestPause(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(2, "a"))
	cl := newProducer(t, c)
	produce(t, cl, "a", 0, 0, 1000)
	produce(t, cl, "a", 1, 0, 1000)
	x := start(t, through(Topics("a"), newNetwork()), newRuntime(c.ListenAddrs()))
	x.pause("a-0", true)
	x.pause("b-7", true) // not ours: nothing happens
	produce(t, cl, "a", 1, 1000, 2000)
	x.until(2000)
	x.want("a-1", 0, 2000)
	if s := x.r.Splits(); !s[0].Paused || s[1].Paused || s[0].Records != 0 || s[1].Records != 2000 || s[1].Fetches == 0 || s[1].Bytes == 0 {
		t.Errorf("splits are %+v", s)
	}
	x.pause("a-0", false)
	x.until(3000)
	x.want("a-0", 0, 1000)
}

// TestRateLimit: no split gives more records than its rate allows, and all of them come in the end.
func TestRateLimit(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(2, "a"))
	cl := newProducer(t, c)
	produce(t, cl, "a", 0, 0, 300)
	produce(t, cl, "a", 1, 0, 1500)
	rt := newRuntime(c.ListenAddrs())
	var now atomic.Int64
	now.Store(1e12)
	rt.now = now.Load
	x := start(t, through(Topics("a").Stop(Latest()).RateLimit(500), newNetwork()), rt)
	for x.total() < 1800 {
		st, err := x.r.Poll(x.emit)
		if err != nil {
			t.Fatal(err)
		}
		passed := float64(now.Load() - 1e12)
		for s, recs := range x.got {
			if most := passed/1000*500 + 101; float64(len(recs)) > most {
				t.Fatalf("%s gave %d records in %v ms, at most %v are allowed", s, len(recs), passed, most)
			}
		}
		if st == flow.SourceWait {
			select {
			case <-rt.woken:
			case <-time.After(time.Millisecond):
				now.Add(10)
			}
		}
	}
	if passed := now.Load() - 1e12; passed < 2700 {
		t.Errorf("1500 records at 500 a second took %d ms", passed)
	}
	x.toEnd()
	x.want("a-0", 0, 300)
	x.want("a-1", 0, 1500)
}

// TestOptionRateLimit: the option is a source's default, and checked.
func TestOptionRateLimit(t *testing.T) {
	rt := newRuntime([]string{"b:1"})
	for v, want := range map[string]float64{"": 0, "0": 0, "12.5": 12.5, "x": -1, "-1": -1, "NaN": -1} {
		rt.options[kafka.OptRateLimit] = v
		cfg, err := Topics("a").config(rt.Option)
		if (err != nil) != (want < 0) || err == nil && Topics("a").rateLimit(cfg) != want {
			t.Errorf("%q: %v, %v", v, cfg.RateLimit, err)
		}
	}
	if _, err := Topics("a").RateLimit(-1).config(newRuntime([]string{"b:1"}).Option); err == nil {
		t.Error("a negative rate is taken")
	}
}

// watched counts what fetches ask of brokers.
type watched struct{ full, incremental, named, forgotten atomic.Int64 }

func watch(c *kfake.Cluster) *watched {
	w := new(watched)
	c.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		r := req.(*kmsg.FetchRequest)
		if r.SessionEpoch == 0 {
			w.full.Add(1)
		} else {
			w.incremental.Add(1)
			for _, t := range r.Topics {
				w.named.Add(int64(len(t.Partitions)))
			}
		}
		for _, t := range r.ForgottenTopics {
			w.forgotten.Add(int64(len(t.Partitions)))
		}
		return nil, nil, false
	})
	return w
}

// TestFetchSession: after the first, a fetch names only the partitions whose position has moved, and forgets those that are done.
func TestFetchSession(t *testing.T) {
	const parts = 50
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(parts, "a"))
	cl := newProducer(t, c)
	for p := range int32(parts) {
		produce(t, cl, "a", p, 0, 10)
	}
	w := watch(c)
	x := start(t, through(Topics("a"), newNetwork()), newRuntime(c.ListenAddrs()))
	x.until(10 * parts)
	named := w.named.Load()
	for i := 10; i < 20; i++ {
		produce(t, cl, "a", 7, i, i+1)
		x.until(10*parts + i - 9)
	}
	if n := w.named.Load() - named; n > 80 {
		t.Errorf("%d partitions were named to read ten records of one", n)
	}
	if n := w.full.Load(); n != 1 {
		t.Errorf("%d fetches were full, want 1", n)
	}
	x.pause("a-3", true)
	produce(t, cl, "a", 7, 20, 21)
	x.until(10*parts + 11)
	produce(t, cl, "a", 7, 21, 22)
	x.until(10*parts + 12)
	if n := w.forgotten.Load(); n != 1 {
		t.Errorf("%d partitions were forgotten, want the one that is paused", n)
	}
	x.want("a-7", 0, 22)
}

// TestFetchSessionLost: a broker that forgets a session, or has no room for one, loses nothing.
func TestFetchSessionLost(t *testing.T) {
	for name, spoil := range map[string]func(r *kmsg.FetchRequest) int16{
		"forgotten":   func(r *kmsg.FetchRequest) int16 { return 70 },
		"wrong epoch": func(r *kmsg.FetchRequest) int16 { return 71 },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(3, "a"))
			cl := newProducer(t, c)
			for p := range int32(3) {
				produce(t, cl, "a", p, 0, 500)
			}
			n := 0
			c.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
				c.KeepControl()
				r := req.(*kmsg.FetchRequest)
				if n++; r.SessionEpoch == 0 || n%3 != 0 {
					return nil, nil, false
				}
				resp := r.ResponseKind().(*kmsg.FetchResponse)
				resp.ErrorCode = spoil(r)
				return resp, nil, true
			})
			x := start(t, through(Topics("a").Stop(Latest()), newNetwork()).smallFetches(), newRuntime(c.ListenAddrs()))
			x.toEnd()
			for p := range 3 {
				x.want(fmt.Sprintf("a-%d", p), 0, 500)
			}
		})
	}
}

// TestReplicaFails: a replica that the leader names and that can't be read sends us back to the leader (M-02).
func TestReplicaFails(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(2), kfake.SeedTopics(1, "a"))
	cl := newProducer(t, c)
	produce(t, cl, "a", 0, 0, 100)
	leader := c.LeaderFor("a", 0)
	var sent, racked atomic.Int64
	c.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		r := req.(*kmsg.FetchRequest)
		if c.CurrentNode() != leader || r.Rack == "" {
			return nil, nil, false // the other broker says that it is not the leader
		}
		racked.Add(1)
		resp := r.ResponseKind().(*kmsg.FetchResponse)
		t := kmsg.NewFetchResponseTopic()
		t.Topic = "a"
		p := kmsg.NewFetchResponseTopicPartition()
		p.PreferredReadReplica = 1 - leader
		t.Partitions = append(t.Partitions, p)
		resp.Topics = append(resp.Topics, t)
		sent.Add(1)
		return resp, nil, true
	})
	rt := newRuntime(c.ListenAddrs())
	rt.options[kafka.OptRack] = "r1"
	x := start(t, through(Topics("a"), newNetwork()), rt)
	x.until(100)
	x.want("a-0", 0, 100)
	if sent.Load() == 0 {
		t.Error("the leader was not asked where to read")
	}
	produce(t, cl, "a", 0, 100, 200)
	x.until(200)
	x.want("a-0", 0, 200)
	if n := racked.Load(); n > 2 {
		t.Errorf("the leader was asked %d times within moments", n)
	}
}

// TestThrottled: a broker that throttles is obeyed, and the time is counted.
func TestThrottled(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"))
	cl := newProducer(t, c)
	produce(t, cl, "a", 0, 0, 100)
	var throttled, early atomic.Int64
	var until atomic.Int64
	c.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if now := time.Now().UnixNano(); now < until.Load() {
			early.Add(1)
		}
		if throttled.Add(1) > 3 {
			return nil, nil, false
		}
		resp := req.(*kmsg.FetchRequest).ResponseKind().(*kmsg.FetchResponse)
		resp.ThrottleMillis = 60
		until.Store(time.Now().Add(55 * time.Millisecond).UnixNano())
		return resp, nil, true
	})
	rt := newRuntime(c.ListenAddrs())
	x := start(t, through(Topics("a"), newNetwork()), rt)
	x.until(100)
	x.want("a-0", 0, 100)
	if n := rt.Counter("throttled ms").Load(); n != 180 {
		t.Errorf("%d ms of throttling were counted, want 180", n)
	}
	if early.Load() > 0 {
		t.Error("the broker was asked while it throttled")
	}
}

// TestOneBusyPartition: while one partition has far more than a response holds, the others get their turn.
func TestOneBusyPartition(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(3, "a"))
	cl := newProducer(t, c)
	big := strings.Repeat("x", 50_000)
	for range 200 {
		if err := cl.ProduceSync(context.Background(), &kgo.Record{Topic: "a", Partition: 0, Value: []byte(big)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	produce(t, cl, "a", 1, 0, 10)
	produce(t, cl, "a", 2, 0, 10)
	src := through(Topics("a").Stop(Latest()), newNetwork())
	x := start(t, src, newRuntime(c.ListenAddrs()))
	if err := x.poll(func() bool { return len(x.got["a-1"]) == 10 && len(x.got["a-2"]) == 10 }); err != nil {
		t.Fatal(err)
	}
	if n := len(x.got["a-0"]); n > 150 {
		t.Errorf("%d records of the busy partition came first", n)
	}
	x.toEnd()
}
