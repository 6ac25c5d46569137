package jobspec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/heddle-stream/heddle/internal/inproc"
	"github.com/heddle-stream/heddle/internal/jobgraph"
	"github.com/heddle-stream/heddle/internal/kafka"
)

// kafkaTest is a broker in this process, and a client of it.
type kafkaTest struct {
	t       *testing.T
	ctx     context.Context
	cluster *kfake.Cluster
	client  *kgo.Client
	log     *strings.Builder

	registry string // URL; "": none
}

func newKafkaTest(t *testing.T, topics ...string) *kafkaTest {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, topics...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	t.Cleanup(cancel)
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ConsumeTopics("out", "bad"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &kafkaTest{t: t, ctx: ctx, cluster: cluster, client: client, log: &strings.Builder{}}
}

func (k *kafkaTest) produce(partition int32, values ...string) {
	k.t.Helper()
	for i, v := range values {
		r := &kgo.Record{Topic: "in", Partition: partition, Value: []byte(v), Headers: []kgo.RecordHeader{{Key: "trace", Value: fmt.Append(nil, "t", i)}}}
		if err := k.client.ProduceSync(k.ctx, r).FirstErr(); err != nil {
			k.t.Fatal(err)
		}
	}
}

// run runs a job until it ends or ctx does.
func (k *kafkaTest) run(ctx context.Context, text string) error {
	k.t.Helper()
	job, err := Load("job.yaml", []byte(text), Options{})
	if err != nil {
		k.t.Fatal(err)
	}
	g, err := jobgraph.Compile(job.Graph(), jobgraph.Options{Parallelism: 2, MaxParallelism: 128})
	if err != nil {
		k.t.Fatal(err)
	}
	option := func(name string) (string, bool) {
		if name == "schema-registry.urls" {
			return k.registry, k.registry != ""
		}
		return strings.Join(k.cluster.ListenAddrs(), ","), name == kafka.OptBrokers
	}
	return inproc.Run(ctx, inproc.Config{Graph: job.Graph(), Compiled: g, Options: option, Logger: slog.New(slog.NewTextHandler(k.log, nil))})
}

// committed is what a group has committed of the topic in.
func (k *kafkaTest) committed(group string) [2]int64 {
	k.t.Helper()
	c, err := kafka.NewClient(kafka.Config{Brokers: k.cluster.ListenAddrs()})
	if err != nil {
		k.t.Fatal(err)
	}
	defer c.Close()
	got, err := c.Committed(k.ctx, group, []kafka.TP{{Topic: "in"}, {Topic: "in", Partition: 1}})
	if err != nil {
		k.t.Fatal(err)
	}
	return [2]int64{got[kafka.TP{Topic: "in"}], got[kafka.TP{Topic: "in", Partition: 1}]}
}

// read reads n records of out and bad, as "topic: value {headers}".
func (k *kafkaTest) read(n int) (got []string) {
	k.t.Helper()
	for len(got) < n {
		f := k.client.PollFetches(k.ctx)
		if err := f.Err(); err != nil {
			k.t.Fatalf("%v; got so far %q", err, got)
		}
		f.EachRecord(func(r *kgo.Record) {
			s := r.Topic + ": " + string(r.Value)
			for _, h := range r.Headers {
				s += fmt.Sprintf(" %s=%s", h.Key, h.Value)
			}
			got = append(got, s)
		})
	}
	slices.Sort(got)
	return got
}

// TestKafkaOptions runs a bounded job with every option of source and sink, headers both ways, and dead letters in a topic with their reason
// in headers. When it has finished, its end is committed.
func TestKafkaOptions(t *testing.T) {
	k := newKafkaTest(t, "in", "out", "bad")
	k.produce(0, `{"n":1}`, `{"n":2}`, `not json`)
	k.produce(1, `{"n":3}`)
	err := k.run(k.ctx, `
name: options
source:
  kafka:
    partitions: { in: [0, 1] }
    format: json
    start: { committed: other, otherwise: earliest }
    stop: latest
    assign: global
    isolation: uncommitted
    on_data_loss: earliest
    rate_limit: 100000
    commit_to: g
    commit_interval: 1h
  fields: { n: int }
  on_error: { dead_letter: bad }
steps:
  - set: { trace: _headers.trace, missing: _headers.nothing }
sinks:
  out: { kafka: { topic: out, format: json, headers: { trace: trace, missing: missing, n: n }, compression: lz4, batch_bytes: 65536, linger: 1ms, max_message_bytes: 500000 } }
  bad: { kafka: { topic: bad, format: { text: "{record}" }, headers: { reason: error, step: step } } }
`)
	if err != nil {
		t.Fatal(err)
	}
	got := k.read(4)
	if len(got) != 4 || !strings.HasPrefix(got[0], "bad: not json reason=cannot decode message of in-0 at offset 2 as json") || !strings.HasSuffix(got[0], "step=source") {
		t.Errorf("dead letters: got %q", got)
	}
	want := []string{`out: {"n":1,"trace":"t0","missing":null} trace=t0 n=1`, `out: {"n":2,"trace":"t1","missing":null} trace=t1 n=2`, `out: {"n":3,"trace":"t0","missing":null} trace=t0 n=3`}
	if !slices.Equal(got[1:], want) {
		t.Errorf("got %q, want %q", got[1:], want)
	}
	if c := k.committed("g"); c != [2]int64{3, 1} {
		t.Errorf("committed %v, want the ends", c)
	}
}

// TestKafkaCommit: a job that shuffles commits what has left its sink, says at its start what the group's offsets lack, and can go on from them.
func TestKafkaCommit(t *testing.T) {
	k := newKafkaTest(t, "in", "out", "bad")
	k.produce(0, `{"n":1}`, `{"n":2}`)
	k.produce(1, `{"n":3}`)
	const text = `
name: commits
source: { kafka: { topics: [in], format: json, start: { committed: g, otherwise: earliest }, commit_to: g, commit_interval: 50ms }, fields: { n: int } }
steps:
  - dedupe: { by: [n], within: 1h }
sink: { kafka: { topic: out, format: json } }
`
	for round := range 2 {
		ctx, cancel := context.WithCancelCause(k.ctx)
		done := make(chan error, 1)
		go func() { done <- k.run(ctx, text) }()
		want := [2]int64{2 + int64(round), 1}
		for tick := time.NewTicker(20 * time.Millisecond); k.committed("g") != want; <-tick.C {
			select {
			case err := <-done:
				t.Fatalf("the job ended: %v\n%s", err, k.log)
			case <-k.ctx.Done():
				t.Fatalf("committed %v, want %v", k.committed("g"), want)
			default:
			}
		}
		stop := errors.New("enough")
		cancel(stop)
		if err := <-done; !errors.Is(err, stop) {
			t.Fatalf("the job ended: %v", err)
		}
		k.produce(0, fmt.Sprintf(`{"n":%d}`, 10+round))
	}
	if got, want := k.read(4), []string{`out: {"n":10}`, `out: {"n":1}`, `out: {"n":2}`, `out: {"n":3}`}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if !strings.Contains(k.log.String(), "lacks what was held when it stopped") {
		t.Errorf("the log does not say what a restart lacks:\n%s", k.log)
	}
}

// TestAvroRegistry reads messages whose schema a registry has; a bad one is left out, and an unknown schema is told.
func TestAvroRegistry(t *testing.T) {
	k := newKafkaTest(t, "in", "out", "bad")
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/schemas/ids/1" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"schema": `{"type":"record","name":"Click","fields":[{"name":"user","type":"string"},{"name":"n","type":"long"},
			{"name":"tags","type":{"type":"array","items":"string"}},{"name":"at","type":{"type":"long","logicalType":"timestamp-millis"}}]}`})
	}))
	defer srv.Close()
	k.registry = srv.URL
	k.produce(0, "\x00\x00\x00\x00\x01\x02a\x54\x02\x02x\x00\xd0\x0f", "not framed", "\x00\x00\x00\x00\x02\x02a")
	for _, fields := range []string{"", "  fields: { user: string, n: int, tags: list, at: time }\n"} {
		err := k.run(k.ctx, `
name: avro
source:
  kafka: { partitions: { in: [0] }, format: avro, stop: latest }
  on_error: { dead_letter: bad }
`+fields+`sinks:
  out: { from: source, kafka: { topic: out, format: json } }
  bad: { kafka: { topic: bad, format: { text: "{error}" } } }
`)
		if err != nil {
			t.Fatal(err)
		}
		got := k.read(3)
		if want := `out: {"user":"a","n":42,"tags":["x"],"at":"1970-01-01T00:00:01Z"}`; got[2] != want && fields != "" {
			t.Errorf("got %s, want %s", got[2], want)
		}
		if want := `out: {"at":"1970-01-01T00:00:01Z","n":42,"tags":["x"],"user":"a"}`; got[2] != want && fields == "" {
			t.Errorf("got %s, want %s", got[2], want)
		}
		if !strings.Contains(got[0], "no schema id") || !strings.Contains(got[1], "cannot get schema 2: the registry does not have it") {
			t.Errorf("dead letters are %q", got[:2])
		}
	}
}
