package kafkasink

import (
	"testing"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/kafka/batch"
	"github.com/twmb/franz-go/pkg/kfake"
)

func TestDeadLetters(t *testing.T) {
	var m flow.Messages
	err := DeadLetters().Encode(&m, []flow.DeadRecord{
		{Operator: "source", Reason: "bad", Record: "shown", Value: []byte("raw"), Topic: "in", Partition: 3, Offset: 17, Key: []byte("k")},
		{Operator: "map", Reason: "worse", Record: "shown"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ key, value, headers string }{
		{"k", "raw", "heddle-reason=bad heddle-operator=source heddle-topic=in heddle-partition=3 heddle-offset=17 "},
		{"", "shown", "heddle-reason=worse heddle-operator=map "},
	} {
		hs, err := batch.Headers(nil, m.At(m.Headers[i]))
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, h := range hs {
			text += h.Key + "=" + string(h.Value) + " "
		}
		if got := string(m.At(m.Keys[i])); got != want.key || string(m.Value(i)) != want.value || text != want.headers {
			t.Errorf("message %d: key %q, value %q, headers %q, want %+v", i, got, m.Value(i), text, want)
		}
	}
}

// TestPartition: the author's function decides about the partition of a key, whatever number it gives.
func TestPartition(t *testing.T) {
	c := newCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(3, "out"))
	w := newWriter(t, Topic("out").Partition(func(key []byte, _ int) int { return int(key[0]) - 'b' }),
		RecordFormat("test", func(s string, r *Record) error {
			r.Key, r.Value = []byte(s), []byte(s)
			return nil
		}), newRuntime(c.ListenAddrs()))
	if err := w.Write(flow.Batch[string]{Recs: []string{"a", "b", "c", "d", "e"}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, r := range read(t, c, "out", 5) {
		if want := (int32(r.Key[0]) - 'b' + 3) % 3; r.Partition != want {
			t.Errorf("%s is in partition %d, want %d", r.Key, r.Partition, want)
		}
	}
}
