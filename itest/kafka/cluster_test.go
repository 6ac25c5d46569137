package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/itest/testbed"
	"github.com/heddle-stream/heddle/kafkasink"
	"github.com/heddle-stream/heddle/kafkasource"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// inSync waits until every replica of the topic's partitions follows its leader, and returns the leaders.
func inSync(t *testing.T, b *testbed.Bed, cl *kgo.Client, topic string, replicas int) (leaders []int32) {
	t.Helper()
	b.Eventually(fmt.Sprintf("%d replicas of %s are in sync", replicas, topic), 90*time.Second, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		req := kmsg.NewPtrMetadataRequest()
		rt := kmsg.NewMetadataRequestTopic()
		rt.Topic = kmsg.StringPtr(topic)
		req.Topics = append(req.Topics, rt)
		resp, err := req.RequestWith(ctx, cl)
		if err != nil {
			return err
		}
		if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) == 0 {
			return errors.New("no partitions")
		}
		leaders = leaders[:0]
		for _, p := range resp.Topics[0].Partitions {
			if len(p.ISR) < replicas || p.Leader < 0 {
				return fmt.Errorf("partition %d has leader %d, in sync %v", p.Partition, p.Leader, p.ISR)
			}
			leaders = append(leaders, p.Leader)
		}
		return nil
	})
	return leaders
}

// writeUntil writes records until stop is closed, and flushes.
func writeUntil(ctx context.Context, w flow.SinkWriter[string], stop <-chan struct{}) (n int, err error) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return n, w.Flush(ctx)
		case <-ctx.Done():
			return n, ctx.Err()
		case <-tick.C:
		}
		recs := make([]string, 20)
		for i := range recs {
			recs[i] = fmt.Sprintf("roll%09d", n+i)
		}
		if err := w.Write(flow.Batch[string]{Recs: recs}); err != nil {
			return n, err
		}
		n += len(recs)
	}
}

// Three brokers are restarted one after the other, and one is killed, while a topic is written and read:
// each record is read once, and in order of writing within its partition.
func TestRollingRestart(t *testing.T) {
	testbed.Group(t, "kafka-long")
	b := testbed.New(t)
	nodes := testbed.StartKafkas(t, b, 3)
	var all []string
	for _, k := range nodes {
		all = append(all, k.Bootstrap)
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(all...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	nodes[0].CreateTopic("roll", 6)
	inSync(t, b, cl, "roll", 3)

	rt := newTask(t, nodes[0])
	rt.brokers = strings.Join(all, ",")
	w, err := flow.Encode(kafkasink.Topic("roll"), ofText).NewWriter(t.Context(), rt)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	x := read(t, rt, kafkasource.Topics("roll"))

	type written struct {
		n   int
		err error
	}
	stop, wrote := make(chan struct{}), make(chan written, 1)
	go func() {
		n, err := writeUntil(t.Context(), w, stop)
		wrote <- written{n, err}
	}()
	restarted := make(chan struct{})
	go func() { // the reader stays in the test's goroutine
		defer close(restarted)
		for _, k := range nodes {
			k.Stop()
			k.Start()
			inSync(t, b, cl, "roll", 3)
		}
		leaders := inSync(t, b, cl, "roll", 3)
		victim := nodes[leaders[0]-1]
		victim.Kill()
		victim.Start()
		inSync(t, b, cl, "roll", 3)
	}()
	total := -1
	for timeout := time.After(5 * time.Minute); total < 0 || len(x.recs) < total; {
		st, err := x.r.Poll(func(_ string, b flow.Batch[string], _ bool) error {
			x.recs = append(x.recs, b.Recs...)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if st != flow.SourceWait {
			continue
		}
		select {
		case <-restarted:
			restarted = nil
			close(stop)
		case r := <-wrote:
			if r.err != nil {
				t.Fatal(r.err)
			}
			total = r.n
		case <-rt.woken:
		case <-timeout:
			t.Fatalf("%d of %d records, then nothing more; splits %+v", len(x.recs), total, x.r.Splits())
		}
	}
	x.want("roll", total)
	if n := nodes[0].Count("roll"); n != total {
		t.Errorf("the topic has %d records, %d were written", n, total)
	}
}

// All brokers of a cluster are away for a while: reading and writing go on where they were. Away for longer than kafka.unavailable-timeout, they fail, and say so.
func TestAllBrokersAway(t *testing.T) {
	testbed.Group(t, "kafka-long")
	b := testbed.New(t)
	nodes := testbed.StartKafkas(t, b, 3)
	var all []string
	for _, k := range nodes {
		all = append(all, k.Bootstrap)
	}
	cl := newClient(t, kgo.SeedBrokers(all...))
	(&long{t, nodes[0], cl}).create("away", 6)
	inSync(t, b, cl, "away", 3)
	rt := newTask(t, nodes[0])
	rt.brokers = strings.Join(all, ",")
	w, err := flow.Encode(kafkasink.Topic("away"), ofText).NewWriter(t.Context(), rt)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	x := read(t, rt, kafkasource.Topics("away"))
	write(t, w, "away", 0, 500)
	x.until(500)
	for _, k := range nodes {
		k.Kill()
	}
	write(t, w, "away", 500, 1000)
	time.Sleep(time.Minute) // that is how long they are away
	testbed.StartAll(nodes)
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	x.until(1000)
	x.want("away", 1000)

	brief := newTask(t, nodes[0])
	brief.brokers, brief.options = rt.brokers, map[string]string{"kafka.unavailable-timeout": "5s"}
	y := read(t, brief, kafkasource.Topics("away"))
	y.until(1000)
	v, err := flow.Encode(kafkasink.Topic("away"), ofText).NewWriter(t.Context(), brief)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	for _, k := range nodes {
		k.Kill()
	}
	write(t, v, "late", 0, 50)
	failed := func(what string, err error) {
		if err == nil || !strings.Contains(err.Error(), "kafka.unavailable-timeout") {
			t.Errorf("%s: %v", what, err)
		}
	}
	failed("writing", v.Flush(t.Context()))
	for end := time.Now().Add(2 * time.Minute); err == nil && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		_, err = y.r.Poll(func(string, flow.Batch[string], bool) error { return nil })
	}
	failed("reading", err)
}
