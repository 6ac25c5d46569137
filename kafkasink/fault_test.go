package kafkasink

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// refuse answers a produce request with an error for every partition.
func refuse(req kmsg.Request, e *kerr.Error) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.ProduceResponse)
	for _, t := range req.(*kmsg.ProduceRequest).Topics {
		rt := kmsg.NewProduceResponseTopic()
		rt.Topic = t.Topic
		for _, p := range t.Partitions {
			rp := kmsg.NewProduceResponseTopicPartition()
			rp.Partition, rp.ErrorCode = p.Partition, e.Code
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

// writeInts writes 0 ≤ i < n one batch of records after the other, and flushes.
func writeInts(t *testing.T, w flow.SinkWriter[int], n int, each func(i int)) {
	t.Helper()
	for i := range n {
		if each != nil {
			each(i)
		}
		if err := w.Write(flow.Batch[int]{Recs: []int{i}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// wantOnce checks that the topic has the keyed records 0 ≤ i < n once, in order within each partition.
func wantOnce(t *testing.T, c *kfake.Cluster, n int) {
	t.Helper()
	last := map[int32]int{}
	for _, r := range read(t, c, "out", n) {
		var i int
		fmt.Sscan(string(r.Value), &i)
		if l, ok := last[r.Partition]; ok && i <= l {
			t.Fatalf("partition %d has %d after %d", r.Partition, i, l)
		}
		last[r.Partition] = i
	}
	var high int64
	for _, p := range c.PartitionInfos("out") {
		high += p.HighWatermark
	}
	if high != int64(n) {
		t.Errorf("the topic has %d records, want %d", high, n)
	}
}

var keyedInts = WithKey(jsonFormat[int]{}, func(i int) string { return fmt.Sprint(i % 50) })

func TestLeadersMove(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(6, "out"))
	w := newWriter(t, Topic("out").Linger(time.Millisecond), keyedInts, newRuntime(c.ListenAddrs()))
	writeInts(t, w, 3000, func(i int) {
		if i%300 == 0 {
			for p := range int32(6) {
				if err := c.MoveTopicPartition("out", p, int32((int(p)+i/300)%3)); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(2 * time.Millisecond) // so that batches leave
		}
	})
	wantOnce(t, c, 3000)
}

// What a broker says may pass: each record arrives, once and in order.
func TestErrorsThatPass(t *testing.T) {
	for _, e := range []*kerr.Error{kerr.NotLeaderForPartition, kerr.NotEnoughReplicas, kerr.RequestTimedOut, kerr.UnknownTopicOrPartition, kerr.KafkaStorageError,
		kerr.OutOfOrderSequenceNumber, kerr.UnknownProducerID, kerr.InvalidProducerEpoch} {
		t.Run(e.Message, func(t *testing.T) {
			c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(3, "out"))
			var n atomic.Int32
			c.ControlKey(0, func(req kmsg.Request) (kmsg.Response, error, bool) {
				c.KeepControl()
				if n.Add(1)%4 == 0 {
					return refuse(req, e), nil, true
				}
				return nil, nil, false
			})
			w := newWriter(t, Topic("out").BatchBytes(4096), keyedInts, newRuntime(c.ListenAddrs()))
			writeInts(t, w, 4000, nil)
			wantOnce(t, c, 4000)
		})
	}
}

// A batch larger than the topic allows is split until it is not.
func TestSplitLargeBatches(t *testing.T) {
	for _, codec := range []string{"none", "zstd"} {
		c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "out")) // one partition: the whole request is refused
		c.ControlKey(0, func(req kmsg.Request) (kmsg.Response, error, bool) {
			c.KeepControl()
			for _, p := range req.(*kmsg.ProduceRequest).Topics[0].Partitions {
				if len(p.Records) > 900 {
					return refuse(req, kerr.MessageTooLarge), nil, true
				}
			}
			return nil, nil, false
		})
		w := newWriter(t, Topic("out").Compression(codec), keyedInts, newRuntime(c.ListenAddrs()))
		writeInts(t, w, 1000, nil)
		wantOnce(t, c, 1000)
	}
}

func TestOneRecordTooLargeForTopic(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "out"))
	c.ControlKey(0, func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		return refuse(req, kerr.MessageTooLarge), nil, true
	})
	w := newWriter(t, Topic("out"), jsonFormat[int]{}, newRuntime(c.ListenAddrs()))
	if err := w.Write(flow.Batch[int]{Recs: []int{1}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(t.Context()); err == nil || !strings.Contains(err.Error(), "max.message.bytes") || !strings.Contains(err.Error(), "out-0") {
		t.Errorf("Flush: %v, want the partition and the option", err)
	}
}

// Records without a key are sent in few batches, not one for each partition; and soon, without a flush.
func TestLinger(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(100, "out"))
	var batches atomic.Int32
	c.ControlKey(0, func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		batches.Add(int32(len(req.(*kmsg.ProduceRequest).Topics[0].Partitions)))
		return nil, nil, false
	})
	w := newWriter(t, Topic("out").Linger(50*time.Millisecond), jsonFormat[int]{}, newRuntime(c.ListenAddrs()))
	for i := range 1000 {
		if err := w.Write(flow.Batch[int]{Recs: []int{i}}); err != nil {
			t.Fatal(err)
		}
	}
	read(t, c, "out", 1000)
	if n := batches.Load(); n > 20 {
		t.Errorf("1,000 records were sent in %d batches", n)
	}
}

// TestFailsWithoutAWrite: a delivery that failed for good is told although nobody writes any more.
func TestFailsWithoutAWrite(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "out"))
	c.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		return refuse(req, kerr.TopicAuthorizationFailed), nil, true
	})
	w, err := Topic("out").NewMessageWriter(t.Context(), newRuntime(c.ListenAddrs()))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.Write(&flow.Messages{Buf: []byte("x"), Values: []flow.Span{{Len: 1}}}); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); err == nil && time.Now().Before(end); time.Sleep(time.Millisecond) {
		err = w.(flow.Failing).Failed()
	}
	if err == nil || !strings.Contains(err.Error(), "cannot write to out-0") {
		t.Errorf("got %v", err)
	}
}
