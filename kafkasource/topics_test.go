package kafkasource

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func commit(t *testing.T, c *kfake.Cluster, cl *kgo.Client, group, topic string, offsets map[int32]int64) {
	t.Helper()
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Generation = group, -1
	rt := kmsg.NewOffsetCommitRequestTopic()
	rt.Topic, rt.TopicID = topic, c.TopicInfo(topic).TopicID
	for p, o := range offsets {
		rp := kmsg.NewOffsetCommitRequestTopicPartition()
		rp.Partition, rp.Offset = p, o
		rt.Partitions = append(rt.Partitions, rp)
	}
	req.Topics = append(req.Topics, rt)
	resp, err := req.RequestWith(t.Context(), cl)
	if err != nil || resp.Topics[0].Partitions[0].ErrorCode != 0 {
		t.Fatalf("%v, %+v", err, resp)
	}
}

func TestCommitted(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(2), kfake.SeedTopics(3, "a"))
	cl := newProducer(t, c)
	for p := range int32(3) {
		produce(t, cl, "a", p, 0, 10)
	}
	commit(t, c, cl, "g", "a", map[int32]int64{0: 4, 1: 10})
	rt := newRuntime(c.ListenAddrs())

	x := start(t, Topics("a").Start(Committed("g", Earliest())).Stop(Latest()), rt)
	x.toEnd()
	x.want("a-0", 4, 10)
	x.want("a-1", 10, 10)
	x.want("a-2", 0, 10)

	x = start(t, Topics("a").Stop(Committed("g", Latest())), rt)
	x.toEnd()
	x.want("a-0", 0, 4)
	x.want("a-1", 0, 10)
	x.want("a-2", 0, 10)

	for _, tc := range []struct {
		start Position
		want  string
	}{
		{Committed("g", Position{}), `group "g" has committed nothing for a-2`},
		{Committed("nobody", Position{}), `group "nobody" has committed nothing for a-0`},
		{Committed("", Earliest()), "names no group"},
	} {
		_, err := Topics("a").Start(tc.start).Enumerator(t.Context(), env(rt, nil))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("start at %v: %v, want %q", tc.start, err, tc.want)
		}
	}
	commit(t, c, cl, "g", "a", map[int32]int64{0: 99})
	if _, err := Topics("a").Start(Committed("g", Earliest())).Enumerator(t.Context(), env(rt, nil)); err == nil || !strings.Contains(err.Error(), "cannot start at offset 99 of a-0") {
		t.Errorf("start at a committed offset that is not there: %v", err)
	}
}

func TestAssignGlobal(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a", "b", "c", "d", "e", "f"))
	e, err := Pattern(".*").AssignGlobal().Enumerator(t.Context(), env(newRuntime(c.ListenAddrs()), nil))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	d, err := e.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	owners := map[int]int{}
	for _, s := range d.Added {
		owners[e.Owner(s, 3)]++
	}
	if len(d.Added) != 6 || owners[0] != 2 || owners[1] != 2 || owners[2] != 2 {
		t.Errorf("%d splits over 3 readers: %v", len(d.Added), owners)
	}
}

func deleteTopic(t *testing.T, cl *kgo.Client, topic string) {
	t.Helper()
	req := kmsg.NewPtrDeleteTopicsRequest()
	rt := kmsg.NewDeleteTopicsRequestTopic()
	rt.Topic = kmsg.StringPtr(topic)
	req.Topics, req.TopicNames = append(req.Topics, rt), []string{topic}
	if resp, err := req.RequestWith(t.Context(), cl); err != nil || resp.Topics[0].ErrorCode != 0 {
		t.Fatalf("%v, %+v", err, resp)
	}
}

func createTopic(t *testing.T, cl *kgo.Client, topic string) {
	t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = topic, 1, 1
	req.Topics = append(req.Topics, rt)
	if resp, err := req.RequestWith(t.Context(), cl); err != nil || resp.Topics[0].ErrorCode != 0 {
		t.Fatalf("%v, %+v", err, resp)
	}
}

// A topic that is deleted and made anew is not read on at an offset of the old one, even if the new one has it.
func TestTopicMadeAnew(t *testing.T) {
	for _, policy := range []string{"fail", "earliest"} {
		t.Run(policy, func(t *testing.T) {
			c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"))
			cl := newProducer(t, c, kgo.MetadataMinAge(10*time.Millisecond))
			produce(t, cl, "a", 0, 0, 10)
			rt := newRuntime(c.ListenAddrs())
			x := start(t, through(Topics("a").OnDataLoss(policy).DiscoveryInterval(time.Hour), newNetwork()), rt)
			x.until(10)
			deleteTopic(t, cl, "a")
			waiting := rt.Counter("waiting partitions")
			for waiting.Load() == 0 {
				if st, err := x.r.Poll(x.emit); err != nil || st == flow.SourceEnd {
					t.Fatal(st, err)
				}
				time.Sleep(time.Millisecond)
			}
			x.discover()
			createTopic(t, cl, "a")
			other := newProducer(t, c)
			produce(t, other, "a", 0, 0, 30)
			x.discover()
			if s := fmt.Sprint(x.warns); !strings.Contains(s, `topic "a" was deleted`) {
				t.Errorf("warnings are %s", s)
			}
			err := x.poll(func() bool { return x.total() >= 40 })
			if policy == "fail" {
				if err == nil || !strings.Contains(err.Error(), "deleted and made anew") {
					t.Fatalf("error is %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if last := x.got["a-0"][39]; string(last.Value) != "a-0/29" || rt.Counter("data losses").Load() != 1 {
				t.Errorf("last record %s, %d data losses", last.Value, rt.Counter("data losses").Load())
			}
		})
	}
}

// TestReadersWithoutPartitions: subtasks that have nothing to read are told of.
func TestReadersWithoutPartitions(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(3, "a"))
	for readers, want := range map[int]string{3: "", 5: "2 of 5 subtasks have no partition of kafka a to read"} {
		var warns []string
		en := env(newRuntime(c.ListenAddrs()), func(s string) { warns = append(warns, s) })
		en.Readers = readers
		e, err := Topics("a").Enumerator(t.Context(), en)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if got := strings.Join(warns, ";"); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%d readers: %q, want %q", readers, got, want)
		}
	}
}
