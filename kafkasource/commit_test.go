package kafkasource

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/kafka"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// committedBy waits until the group has committed what want says of the topic's partitions.
func committedBy(t *testing.T, c *kfake.Cluster, group, topic string, want map[int32]int64) {
	t.Helper()
	client, err := kafka.NewClient(kafka.Config{Brokers: c.ListenAddrs()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var tps []kafka.TP
	for p := range want {
		tps = append(tps, kafka.TP{Topic: topic, Partition: p})
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var got map[kafka.TP]int64
	for tick := time.NewTicker(10 * time.Millisecond); ctx.Err() == nil; <-tick.C {
		if got, err = client.Committed(ctx, group, tps); err != nil {
			continue
		}
		same := len(got) == len(want)
		for tp, o := range got {
			same = same && want[tp.Partition] == o
		}
		if same {
			return
		}
	}
	t.Fatalf("group %s has committed %v, want %v", group, got, want)
}

// TestCommit: what was before a mark is committed when the mark is delivered, not before, and the job can start there.
func TestCommit(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(2), kfake.SeedTopics(2, "a"))
	cl := newProducer(t, c)
	produce(t, cl, "a", 0, 0, 100)
	produce(t, cl, "a", 1, 0, 50)
	rt := newRuntime(c.ListenAddrs())
	x := start(t, through(Topics("a").CommitTo("g"), newNetwork()), rt)
	m := inner(x.r)
	if got := m.CommitEvery(); got != 5*time.Second {
		t.Errorf("it commits every %v", got)
	}
	x.until(150)
	m.Mark(1)
	produce(t, cl, "a", 0, 100, 110)
	x.until(160)
	m.Mark(2)
	m.Mark(3)
	m.Delivered(1)
	committedBy(t, c, "g", "a", map[int32]int64{0: 100, 1: 50})
	m.Delivered(3)
	committedBy(t, c, "g", "a", map[int32]int64{0: 110, 1: 50})
	x.r.Close() // waits until its commits are counted
	if n := rt.Counter("commits").Load(); n != 2 {
		t.Errorf("%d commits are counted, want 2", n)
	}
	if s := x.r.Splits(); s[0].Committed != 110 || s[1].Committed != 50 {
		t.Errorf("splits are %+v", s)
	}
	produce(t, cl, "a", 0, 110, 120)
	y := start(t, through(Topics("a").Start(Committed("g", Position{})).Stop(Latest()), newNetwork()), newRuntime(c.ListenAddrs()))
	y.toEnd()
	y.want("a-0", 110, 120)
	y.want("a-1", 50, 50)
}

// TestCommitAtClose: what was delivered last is committed before a reader has closed.
func TestCommitAtClose(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"))
	produce(t, newProducer(t, c), "a", 0, 0, 10)
	x := start(t, through(Topics("a").CommitTo("g"), newNetwork()), newRuntime(c.ListenAddrs()))
	x.until(10)
	inner(x.r).Mark(1)
	inner(x.r).Delivered(1)
	x.r.Close()
	committedBy(t, c, "g", "a", map[int32]int64{0: 10})
}

// TestCoordinatorMoves: commits that fail are counted, and go on with the new coordinator (K-18).
func TestCoordinatorMoves(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(2), kfake.SeedTopics(1, "a"))
	cl := newProducer(t, c)
	produce(t, cl, "a", 0, 0, 10)
	var refused atomic.Int64
	c.ControlKey(int16(kmsg.OffsetCommit), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if refused.Add(1) > 3 {
			return nil, nil, false
		}
		r := req.(*kmsg.OffsetCommitRequest)
		resp := r.ResponseKind().(*kmsg.OffsetCommitResponse)
		for _, t := range r.Topics {
			rt := kmsg.NewOffsetCommitResponseTopic()
			rt.Topic = t.Topic
			for _, p := range t.Partitions {
				rp := kmsg.NewOffsetCommitResponseTopicPartition()
				rp.Partition, rp.ErrorCode = p.Partition, kerr.NotCoordinator.Code
				rt.Partitions = append(rt.Partitions, rp)
			}
			resp.Topics = append(resp.Topics, rt)
		}
		return resp, nil, true
	})
	x := start(t, through(Topics("a").CommitTo("g"), newNetwork()), newRuntime(c.ListenAddrs()))
	x.until(10)
	inner(x.r).Mark(1)
	inner(x.r).Delivered(1)
	committedBy(t, c, "g", "a", map[int32]int64{0: 10})
}

// TestCommitFails: a group that can't be written to is a warning and a count; reading goes on.
func TestCommitFails(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"))
	cl := newProducer(t, c)
	produce(t, cl, "a", 0, 0, 10)
	c.ControlKey(int16(kmsg.FindCoordinator), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		resp := req.ResponseKind().(*kmsg.FindCoordinatorResponse)
		resp.ErrorCode = kerr.GroupAuthorizationFailed.Code
		return resp, nil, true
	})
	rt := newRuntime(c.ListenAddrs())
	log := &syncBuffer{}
	rt.log = log
	x := start(t, through(Topics("a").CommitTo("g"), newNetwork()), rt)
	x.until(10)
	for id := range uint64(3) {
		inner(x.r).Mark(id + 1)
		inner(x.r).Delivered(id + 1)
		produce(t, cl, "a", 0, int(10+id), int(11+id))
		x.until(int(11 + id))
	}
	x.r.Close() // waits for the last try
	if n := rt.Counter("failed commits").Load(); n == 0 {
		t.Error("no failed commit is counted")
	}
	x.want("a-0", 0, 13)
	if text := log.String(); !strings.Contains(text, "offsets could not be committed") || !strings.Contains(text, "needs the right to read the group") {
		t.Errorf("the log says %s", text)
	}
}

// TestManyMarks: marks that no sink ever delivers don't pile up, and the last stands for those before it.
func TestManyMarks(t *testing.T) {
	r := &reader{}
	s := &split{id: "a-0", target: kafka.NewTarget(kafka.TP{Topic: "a"}, 0, noStop)}
	r.splits = []*split{s}
	for id := range uint64(500) {
		s.pos++
		r.Mark(id + 1)
	}
	if len(r.marks) > maxMarks {
		t.Errorf("%d marks are kept", len(r.marks))
	}
	r.Delivered(499)
	if len(r.marks) != 1 || r.marks[0].pos[s] != 500 {
		t.Errorf("marks left are %+v", r.marks)
	}
}

// TestCommitSettings: without a group nothing is committed; the option is a default and checked (K-23).
func TestCommitSettings(t *testing.T) {
	rt := newRuntime([]string{"b:1"})
	for _, test := range []struct {
		src    *Source
		option string
		want   time.Duration
	}{
		{Topics("a"), "1s", 0},
		{Topics("a").CommitTo("g"), "", 5 * time.Second},
		{Topics("a").CommitTo("g"), "1s", time.Second},
		{Topics("a").CommitTo("g"), "0", 0},
		{Topics("a").CommitTo("g").CommitInterval(0), "1s", 0},
		{Topics("a").CommitTo("g").CommitInterval(time.Minute), "1s", time.Minute},
	} {
		rt.options[kafka.OptCommitInterval] = test.option
		cfg, err := test.src.config(rt.Option)
		if got := test.src.commitInterval(cfg); err != nil || got != test.want {
			t.Errorf("option %q: %v, %v, want %v", test.option, got, err, test.want)
		}
	}
	rt.options[kafka.OptCommitInterval] = "often"
	if _, err := Topics("a").config(rt.Option); err == nil {
		t.Error("a bad interval is taken")
	}
	if _, err := Topics("a").CommitTo("").config(newRuntime([]string{"b:1"}).Option); err == nil {
		t.Error("a group without a name is taken")
	}
	var _ flow.Committing = Topics("a")
	var _ flow.Finalizer = Topics("a")
	if Topics("a").Commits() || !Topics("a").CommitTo("g").Commits() || Topics("a").CommitTo("g").CommitInterval(0).Commits() {
		t.Error("Commits is wrong")
	}
}
