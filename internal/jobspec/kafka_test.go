package jobspec

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/heddle-stream/heddle/internal/inproc"
	"github.com/heddle-stream/heddle/internal/jobgraph"
)

// TestKafkaWordCount is the first example of the docs, on a broker in this process.
func TestKafkaWordCount(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(4, "lines"), kfake.SeedTopics(1, "counts", "where"))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.ConsumeTopics("counts", "where"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	want := map[string]int{}
	var lines []*kgo.Record
	for i := range 200 {
		line := fmt.Sprintf("word%d the  word%d", i%7, i%3)
		for _, w := range strings.Fields(line) {
			want[w]++
		}
		lines = append(lines, &kgo.Record{Topic: "lines", Partition: int32(i % 4), Key: fmt.Append(nil, i), Value: []byte(line)})
	}
	if err := client.ProduceSync(ctx, lines...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	job, err := Load("job.yaml", []byte(`
name: word-count
source: { kafka: { topics: [lines], format: text, stop: latest }, event_time: _timestamp }
steps:
  - flat_map: { word: words(line) }
    from: source
  - key_by: word
  - window: { global: true, aggregate: { count: count() } }
    name: counts
  - from: source
    filter: _partition == 3 && _offset == 49
  - set: { where: '_topic + "/" + string(_partition) + "/" + string(_offset) + "/" + _key', recent: millis(_timestamp) > 1600000000000 }
    name: where
sinks:
  counts: { from: counts, kafka: { topic: counts, format: { text: "{count} {word}" }, key: word } }
  where: { from: where, kafka: { topic: where, format: json } }
`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	g, err := jobgraph.Compile(job.Graph(), jobgraph.Options{Parallelism: 2, MaxParallelism: 128})
	if err != nil {
		t.Fatal(err)
	}
	option := func(name string) (string, bool) {
		if name == "kafka.brokers" {
			return strings.Join(cluster.ListenAddrs(), ","), true
		}
		return "", false
	}
	if err := inproc.Run(ctx, inproc.Config{Graph: job.Graph(), Compiled: g, Options: option}); err != nil {
		t.Fatal(err)
	}
	var expect, got []string
	for w, n := range want {
		expect = append(expect, fmt.Sprintf("%s: %d %s", w, n, w))
	}
	expect = append(expect, `: {"line":"word3 the  word1","where":"lines/3/49/199","recent":true}`)
	for len(got) < len(expect) {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("%v; got so far %q", err, got)
		}
		fetches.EachRecord(func(r *kgo.Record) { got = append(got, string(r.Key)+": "+string(r.Value)) })
	}
	slices.Sort(expect)
	slices.Sort(got)
	if !slices.Equal(got, expect) {
		t.Errorf("got %q, want %q", got, expect)
	}
}
