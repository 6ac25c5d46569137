package kafkasource

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// transact writes "topic-0/i" for from ≤ i < to in a transaction and ends it.
func transact(t *testing.T, cl *kgo.Client, topic string, from, to int, end kgo.TransactionEndTry) {
	t.Helper()
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	produce(t, cl, topic, 0, from, to)
	if err := cl.EndTransaction(context.Background(), end); err != nil {
		t.Fatal(err)
	}
}

// A bounded read must end by position: the last offsets are a commit marker, or an aborted transaction with its marker.
func TestBoundedOverTransactions(t *testing.T) {
	for _, tc := range []struct {
		name        string
		tail        kgo.TransactionEndTry
		uncommitted bool
		want        int
		position    int64
	}{
		{"commit marker last", kgo.TryCommit, false, 20, 22},
		{"aborted tail", kgo.TryAbort, false, 10, 22},
		{"aborted tail, read uncommitted", kgo.TryAbort, true, 20, 22},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"))
			cl := newProducer(t, c, kgo.TransactionalID("tx"))
			transact(t, cl, "a", 0, 10, kgo.TryCommit)
			transact(t, cl, "a", 10, 20, tc.tail)
			src := Topics("a").Stop(Latest())
			if tc.uncommitted {
				src.ReadUncommitted()
			}
			x := start(t, src, newRuntime(c.ListenAddrs()))
			x.toEnd()
			x.want("a-0", 0, tc.want)
			if got := x.r.Splits()[0].Position; got != tc.position {
				t.Errorf("position at the end is %d, want %d", got, tc.position)
			}
		})
	}
}

// An open transaction is not read before its end, and bounds a read of committed data.
func TestOpenTransaction(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"))
	tx, plain := newProducer(t, c, kgo.TransactionalID("tx")), newProducer(t, c)
	produce(t, plain, "a", 0, 0, 5)
	if err := tx.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	produce(t, tx, "a", 0, 5, 8)
	produce(t, plain, "a", 0, 8, 10)

	bounded := start(t, Topics("a").Stop(Latest()), newRuntime(c.ListenAddrs()))
	bounded.toEnd()
	bounded.want("a-0", 0, 5)

	x := start(t, Topics("a"), newRuntime(c.ListenAddrs()))
	x.until(5)
	x.want("a-0", 0, 5)
	if err := tx.EndTransaction(context.Background(), kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	x.until(10)
	x.want("a-0", 0, 10)
}

func TestManyTransactions(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"))
	one, two := newProducer(t, c, kgo.TransactionalID("one")), newProducer(t, c, kgo.TransactionalID("two"))
	committed := 0
	for i := range 30 {
		if err := two.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := two.ProduceSync(t.Context(), &kgo.Record{Topic: "a", Value: []byte("aborted")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if i%3 == 0 {
			transact(t, one, "a", 1000, 1003, kgo.TryAbort)
		} else {
			transact(t, one, "a", committed, committed+3, kgo.TryCommit)
			committed += 3
		}
		if err := two.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
			t.Fatal(err)
		}
	}
	x := start(t, Topics("a").Stop(Latest()), newRuntime(c.ListenAddrs()))
	x.toEnd()
	x.want("a-0", 0, committed)
}

func TestBoundedOverCompaction(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1))
	compact := "compact"
	if err := c.CreateTopic("a", 1, map[string]string{"cleanup.policy": compact}); err != nil {
		t.Fatal(err)
	}
	cl := newProducer(t, c)
	for i := range 40 {
		if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: "a", Key: fmt.Append(nil, i%4), Value: fmt.Append(nil, i)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	c.Compact()
	x := start(t, Topics("a").Stop(Offsets(map[string]map[int32]int64{"a": {0: 35}})), newRuntime(c.ListenAddrs()))
	x.toEnd()
	y := start(t, Topics("a").Stop(Latest()), newRuntime(c.ListenAddrs()))
	y.toEnd()
	if n := y.total(); n >= 40 || n < 4 {
		t.Errorf("%d records after compaction of 40 with 4 keys", n)
	}
	for _, r := range x.got["a-0"] {
		if r.Offset >= 35 {
			t.Errorf("record at offset %d is beyond the stop at 35", r.Offset)
		}
	}
	if x.r.Splits()[0].Position != 35 || y.r.Splits()[0].Position != 40 {
		t.Errorf("positions at the end are %d and %d, want 35 and 40", x.r.Splits()[0].Position, y.r.Splits()[0].Position)
	}
}

// Retention deletes what was to be read next.
func TestDataLoss(t *testing.T) {
	for _, tc := range []struct {
		policy string
		want   [2]int
		err    string
	}{
		{"fail", [2]int{}, "a-0 has offsets 20 to 30, and 10 was to be read next"},
		{"earliest", [2]int{20, 30}, ""},
		{"latest", [2]int{30, 30}, ""},
	} {
		t.Run(tc.policy, func(t *testing.T) {
			c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"))
			cl := newProducer(t, c)
			produce(t, cl, "a", 0, 0, 10)
			n := newNetwork()
			rt := newRuntime(c.ListenAddrs())
			x := start(t, through(Topics("a").OnDataLoss(tc.policy), n), rt)
			x.until(10)
			n.cut()
			produce(t, cl, "a", 0, 10, 30)
			if err := c.DeleteRecords("a", 0, 20); err != nil {
				t.Fatal(err)
			}
			n.mend()
			lost := rt.Counter("data losses")
			if tc.err != "" {
				if err := x.poll(func() bool { return false }); err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("reading on fails with %v, want %q", err, tc.err)
				}
				return
			}
			if err := x.poll(func() bool { return lost.Load() == 1 }); err != nil {
				t.Fatal(err)
			}
			produce(t, cl, "a", 0, 30, 40)
			x.until(10 + 40 - tc.want[0])
			x.got["a-0"] = x.got["a-0"][10:]
			x.want("a-0", tc.want[0], 40)
		})
	}
}

// A stop that lies in what was lost still ends the split.
func TestDataLossBeyondStop(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"))
	cl := newProducer(t, c)
	produce(t, cl, "a", 0, 0, 30)
	src := Topics("a").Stop(Offsets(map[string]map[int32]int64{"a": {0: 15}})).OnDataLoss("earliest")
	e, err := src.Enumerator(t.Context(), env(newRuntime(c.ListenAddrs()), nil))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := c.DeleteRecords("a", 0, 20); err != nil {
		t.Fatal(err)
	}
	rt := newRuntime(c.ListenAddrs())
	r, err := flow.Decode(src, Records(), new(flow.Policy)).NewReader(t.Context(), flow.ReaderEnv{Runtime: rt, Times: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	x := &run{t: t, rt: rt, enum: e, r: r, got: map[string][]Record{}, ended: map[string]bool{}, times: map[string][]int64{}}
	x.discover()
	x.toEnd()
	if x.total() != 0 || !x.ended["a-0"] {
		t.Errorf("%d records, ended %v; want none, and the end", x.total(), x.ended)
	}
}
