package kafkasource

import (
	"strings"
	"sync"
	"testing"

	"github.com/heddle-stream/heddle/internal/kafka"
	"github.com/twmb/franz-go/pkg/kfake"
)

// TestListingCreatesNothing: looking for a topic that does not exist does not make it, at a broker that would (M-10).
func TestListingCreatesNothing(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.AllowAutoTopicCreation())
	rt := newRuntime(c.ListenAddrs())
	for range 2 {
		if _, err := Topics("none").Enumerator(t.Context(), env(rt, nil)); err == nil || !strings.Contains(err.Error(), `topic "none" does not exist`) {
			t.Fatalf("a topic that does not exist: %v", err)
		}
	}
	client, err := kafka.NewClient(kafka.Config{Brokers: c.ListenAddrs()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	md, err := client.Metadata(t.Context())
	if err != nil || len(md.Topics) != 0 {
		t.Errorf("topics are %v, %v", md.Topics, err)
	}
}

// TestManyCommitters: readers that commit at once, to one group, don't hold each other up (M-11).
func TestManyCommitters(t *testing.T) {
	const readers, parts, marks = 8, 8, 20
	c := newCluster(t, kfake.NumBrokers(2), kfake.SeedTopics(parts, "a"))
	cl := newProducer(t, c)
	want := map[int32]int64{}
	var wg sync.WaitGroup
	for p := range int32(parts) {
		produce(t, cl, "a", p, 0, marks)
		want[p] = marks
		x := start(t, through(Partitions(map[string][]int32{"a": {p}}).CommitTo("g"), newNetwork()), newRuntime(c.ListenAddrs()))
		x.until(marks)
		r := inner(x.r)
		wg.Go(func() {
			for id := range uint64(marks) {
				r.splits[0].pos = int64(id) + 1
				r.Mark(id + 1)
				r.Delivered(id + 1)
			}
		})
	}
	wg.Wait()
	committedBy(t, c, "g", "a", want)
}

// TestStateHoldsNoSecrets: what a split's state says is where to read, so that a job that goes on from old state uses today's credentials (K-22).
func TestStateHoldsNoSecrets(t *testing.T) {
	s := splitState{TP: kafka.TP{Topic: "clicks", Partition: 3}, Start: 17, Stop: noStop}.split()
	back, err := parseSplit(s)
	if err != nil || back.TP.Topic != "clicks" || back.Start != 17 || len(s.State) > 1+1+len("clicks")+3 {
		t.Errorf("state %x: %+v, %v", s.State, back, err)
	}
}
