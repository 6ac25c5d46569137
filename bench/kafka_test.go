package bench

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
)

// TestKafka writes a topic and reads it back, by each format, and wants every figure.
func TestKafka(t *testing.T) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "a"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	brokers := strings.Join(c.ListenAddrs(), ",")
	o := KafkaOptions{Topic: "a", Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Option: func(name string) (string, bool) { return brokers, name == "kafka.brokers" }}
	run := func(o KafkaOptions) (all []KafkaResult) {
		t.Helper()
		err := Kafka(t.Context(), o, func(r KafkaResult) error {
			all = append(all, r)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	w := o
	w.Write, w.Records, w.Rounds, w.Compression = true, 5000, 2, "lz4"
	for _, r := range run(w) {
		if r.Records != 5000 || r.Bytes != 500_000 {
			t.Errorf("wrote %+v", r)
		}
	}
	for _, format := range []string{"", "text"} {
		o.Format = format
		for _, r := range run(o) {
			if r.Records != 10_000 || r.Bytes != 1_000_000 || r.CPUNsPerRecord <= 0 || r.RecordsPerSecond <= 0 || r.FirstRecordMs <= 0 {
				t.Errorf("read %+v", r)
			}
		}
	}
	o.Topic = "missing"
	if err := Kafka(t.Context(), o, nil); err == nil || !strings.Contains(err.Error(), `topic "missing" does not exist`) {
		t.Errorf("reading a missing topic: %v", err)
	}
}
