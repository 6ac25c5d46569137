package kafka

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/itest/testbed"
	"github.com/heddle-stream/heddle/kafkasink"
	"github.com/heddle-stream/heddle/kafkasource"
	"github.com/twmb/franz-go/pkg/kgo"
)

// taskRuntime is what the connectors need of a task, without the engine around it.
type taskRuntime struct {
	flow.Runtime
	brokers string
	options map[string]string
	woken   chan struct{}
	log     *slog.Logger
	timer   *time.Timer // nil: none was set yet

	mu       sync.Mutex
	counters map[string]*flow.Counter // guarded by mu
}

func (r *taskRuntime) Node() *flow.Node { return &flow.Node{Name: "test"} }
func (r *taskRuntime) Subtask() int     { return 0 }
func (r *taskRuntime) Now() int64       { return time.Now().UnixMilli() }

// SetTimer wakes the task when the time has come.
func (r *taskRuntime) SetTimer(at int64) {
	if r.timer != nil {
		r.timer.Stop()
	}
	if at != flow.MaxTime {
		r.timer = time.AfterFunc(time.Until(time.UnixMilli(at)), r.Wake)
	}
}

func (r *taskRuntime) Logger() *slog.Logger { return r.log }
func (r *taskRuntime) Counter(name string) *flow.Counter {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counters[name] == nil {
		r.counters[name] = new(flow.Counter)
	}
	return r.counters[name]
}

func (r *taskRuntime) Option(name string) (string, bool) {
	if name == "kafka.brokers" {
		return r.brokers, true
	}
	v, ok := r.options[name]
	return v, ok
}

func (r *taskRuntime) Wake() {
	select {
	case r.woken <- struct{}{}:
	default:
	}
}

func newTask(t *testing.T, k *testbed.Kafka) *taskRuntime {
	return &taskRuntime{brokers: k.Bootstrap, options: map[string]string{}, counters: map[string]*flow.Counter{}, woken: make(chan struct{}, 1), log: slog.New(slog.NewTextHandler(t.Output(), nil))}
}

var (
	asText = kafkasource.RecordFormat("text", func(r *kafkasource.Record) (string, error) { return string(r.Value), nil })
	ofText = kafkasink.RecordFormat("text", func(s string, r *kafkasink.Record) error {
		r.Value = []byte(s)
		return nil
	})
)

// reading is a source read by one reader.
type reading struct {
	t    *testing.T
	rt   *taskRuntime
	r    flow.Reader[string]
	recs []string
}

func read(t *testing.T, rt *taskRuntime, src *kafkasource.Source) *reading {
	t.Helper()
	e, err := src.Enumerator(t.Context(), flow.EnumeratorEnv{Node: rt.Node(), Readers: 1, Option: rt.Option, Warn: func(s string) { t.Log(s) }})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	d, err := e.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r, err := flow.Decode(src, asText, new(flow.Policy)).NewReader(t.Context(), flow.ReaderEnv{Runtime: rt})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	if err := r.AddSplits(d.Added); err != nil {
		t.Fatal(err)
	}
	if d.Final {
		r.NoMoreSplits()
	}
	return &reading{t: t, rt: rt, r: r}
}

// until reads n records in all, or to the end if n < 0.
func (x *reading) until(n int) {
	x.t.Helper()
	timeout := time.After(90 * time.Second)
	for n < 0 || len(x.recs) < n {
		st, err := x.r.Poll(func(_ string, b flow.Batch[string], _ bool) error {
			x.recs = append(x.recs, b.Recs...)
			return nil
		})
		if err != nil {
			x.t.Fatal(err)
		}
		switch st {
		case flow.SourceEnd:
			return
		case flow.SourceWait:
			select {
			case <-x.rt.woken:
			case <-timeout:
				x.t.Fatalf("%d records, then nothing more; splits %+v", len(x.recs), x.r.Splits())
			}
		}
	}
}

func (x *reading) want(prefix string, n int) {
	x.t.Helper()
	var want []string
	for i := range n {
		want = append(want, fmt.Sprintf("%s%09d", prefix, i))
	}
	slices.Sort(x.recs)
	if !slices.Equal(x.recs, want) {
		x.t.Errorf("%d records, want %d, each once: %.200q …", len(x.recs), n, x.recs)
	}
}

func write(t *testing.T, w flow.SinkWriter[string], prefix string, from, to int) {
	t.Helper()
	for ; from < to; from += 50 {
		var recs []string
		for i := from; i < min(from+50, to); i++ {
			recs = append(recs, fmt.Sprintf("%s%09d", prefix, i))
		}
		if err := w.Write(flow.Batch[string]{Recs: recs}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestConnectors(t *testing.T) {
	testbed.Group(t, "kafka")
	k := testbed.StartKafka(t, testbed.New(t))
	rt := newTask(t, k)

	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		t.Run("sink to source, "+codec, func(t *testing.T) {
			k.CreateTopic("c-"+codec, 4)
			w, err := flow.Encode(kafkasink.Topic("c-"+codec).Compression(codec), ofText).NewWriter(t.Context(), rt)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			write(t, w, codec, 0, 5000)
			if err := w.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			x := read(t, rt, kafkasource.Topics("c-"+codec).Stop(kafkasource.Latest()))
			x.until(-1)
			x.want(codec, 5000)
		})
	}
	t.Run("sink to java, every codec", func(t *testing.T) {
		out, err := k.Tool("", "org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", k.Bootstrap, "--include", "c-.*",
			"--from-beginning", "--max-messages", "25000", "--timeout-ms", "30000", "--isolation-level", "read_committed")
		if err != nil {
			t.Fatal(err)
		}
		counts := map[string]int{}
		for l := range strings.Lines(out) {
			counts[strings.TrimSpace(l)]++
		}
		for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
			for i := range 5000 {
				if n := counts[fmt.Sprintf("%s%09d", codec, i)]; n != 1 {
					t.Fatalf("record %s%09d was read %d times by Kafka's own consumer", codec, i, n)
				}
			}
		}
	})
	// What Java's client packs: its snappy is framed, its lz4 has blocks of its own.
	for _, codec := range []string{"gzip", "snappy", "lz4", "zstd"} {
		t.Run("java to source, "+codec, func(t *testing.T) {
			k.CreateTopic("j-"+codec, 1)
			lines := ""
			for i := range 3000 {
				lines += fmt.Sprintf("java%09d\n", i)
			}
			if _, err := k.Tool(lines, "org.apache.kafka.tools.ConsoleProducer", "--bootstrap-server", k.Bootstrap, "--topic", "j-"+codec, "--compression-codec", codec); err != nil {
				t.Fatal(err)
			}
			x := read(t, rt, kafkasource.Topics("j-"+codec).Stop(kafkasource.Latest()))
			x.until(-1)
			x.want("java", 3000)
		})
	}
	t.Run("transactions", func(t *testing.T) {
		k.CreateTopic("tx", 1)
		cl, err := kgo.NewClient(kgo.SeedBrokers(k.Bootstrap), kgo.TransactionalID("tx"), kgo.DefaultProduceTopic("tx"))
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		n := 0
		for round := range 6 {
			if err := cl.BeginTransaction(); err != nil {
				t.Fatal(err)
			}
			for i := range 10 {
				if err := cl.ProduceSync(t.Context(), kgo.StringRecord(fmt.Sprintf("tx%09d", n+i))).FirstErr(); err != nil {
					t.Fatal(err)
				}
			}
			end := kgo.TryAbort // the last one too: the topic has an aborted tail
			if round%2 == 0 {
				end, n = kgo.TryCommit, n+10
			}
			if err := cl.EndTransaction(t.Context(), end); err != nil {
				t.Fatal(err)
			}
		}
		x := read(t, rt, kafkasource.Topics("tx").Stop(kafkasource.Latest()))
		x.until(-1)
		x.want("tx", n)
	})
	t.Run("kill -9 while reading and writing", func(t *testing.T) {
		k.CreateTopic("kill", 4)
		w, err := flow.Encode(kafkasink.Topic("kill"), ofText).NewWriter(t.Context(), rt)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		x := read(t, rt, kafkasource.Topics("kill"))
		write(t, w, "kill", 0, 2000)
		x.until(1000)
		k.Kill()
		write(t, w, "kill", 2000, 3000)
		k.Start()
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		if err := w.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		x.until(3000)
		x.want("kill", 3000)
	})
	t.Run("missing topic", func(t *testing.T) {
		if _, err := flow.Encode(kafkasink.Topic("missing"), ofText).NewWriter(t.Context(), rt); err == nil {
			t.Error("a sink of a missing topic starts")
		} else {
			t.Log(err)
		}
		if _, err := kafkasource.Topics("missing").Enumerator(t.Context(), flow.EnumeratorEnv{Option: rt.Option}); err == nil {
			t.Error("a source of a missing topic starts")
		} else {
			t.Log(err)
		}
	})
}
