// Package demo is what surrounds the job of `heddle demo`: a Kafka broker in this process, a generator of
// click events, a reader of the job's results, and a ledger that compares both. It knows nothing of how
// the job is run.
package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Topics of the demo.
const (
	Clicks  = "clicks"          // what the generator writes
	Results = "clicks-per-user" // what the job writes
)

// Job is the job file of the demo.
//
//go:embed clicks.yaml
var Job []byte

const (
	window   = 2 * time.Second        // of Job
	disorder = 500 * time.Millisecond // how late an event may come; less than Job's max_delay
	users    = 200
)

// Config of a demo. The zero value of each field means its default.
type Config struct {
	Rate       int   // events a second; 20,000
	Partitions int32 // of both topics; 4
	Seed       uint64
}

// Demo is a running demo. Its methods may be called by several goroutines, except as they say.
type Demo struct {
	cfg     Config
	cluster *kfake.Cluster
	client  *kgo.Client // produces, and trims
	ledger  ledger
	stop    context.CancelFunc
	reading chan struct{} // closed when the reader of the results has ended
	next    nextEvent     // owned by Produce
	freed   atomic.Int64  // events that were trimmed
}

// Start starts the broker, creates the topics and begins to read results.
func Start(cfg Config) (*Demo, error) {
	if cfg.Rate <= 0 {
		cfg.Rate = 20_000
	}
	if cfg.Partitions <= 0 {
		cfg.Partitions = 4
	}
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(1),
		kfake.SeedTopics(cfg.Partitions, Clicks, Results),
		// Small segments, since memory is freed by whole ones.
		kfake.BrokerConfigs(map[string]string{"log.segment.bytes": "4194304"}),
	)
	if err != nil {
		return nil, fmt.Errorf("cannot start the embedded broker: %w", err)
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(cluster.ListenAddrs()...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerLinger(5*time.Millisecond),
		kgo.MaxBufferedRecords(50_000),
	)
	if err != nil {
		cluster.Close()
		return nil, fmt.Errorf("cannot connect to the embedded broker: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	d := &Demo{cfg: cfg, cluster: cluster, client: client, stop: stop, reading: make(chan struct{}), next: newNextEvent(cfg)}
	d.ledger.init()
	results, err := kgo.NewClient(
		kgo.SeedBrokers(cluster.ListenAddrs()...),
		kgo.ConsumeTopics(Results),
		kgo.FetchMaxWait(100*time.Millisecond),
	)
	if err != nil {
		stop()
		client.Close()
		cluster.Close()
		return nil, fmt.Errorf("cannot read results from the embedded broker: %w", err)
	}
	go d.read(ctx, results) // Close ends it and waits
	return d, nil
}

// Broker is the address of the embedded broker.
func (d *Demo) Broker() string { return d.cluster.ListenAddrs()[0] }

// Close ends everything that Start began. Produce must have returned.
func (d *Demo) Close() {
	d.stop()
	<-d.reading
	d.client.Close()
	d.cluster.Close()
}

// read enters the results into the ledger until ctx ends. It owns client.
func (d *Demo) read(ctx context.Context, client *kgo.Client) {
	defer close(d.reading)
	defer client.Close()
	for {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil || fetches.IsClientClosed() {
			return
		}
		fetches.EachRecord(func(r *kgo.Record) { d.ledger.enter(r.Value) })
	}
}

// Trim frees the memory of events that the job has read: those before the given offset of each partition.
func (d *Demo) Trim(ctx context.Context, offsets map[int32]int64) error {
	if len(offsets) == 0 {
		return nil
	}
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.TimeoutMillis = 1000
	freed := int64(0)
	topic := kmsg.NewDeleteRecordsRequestTopic()
	topic.Topic = Clicks
	for partition, offset := range offsets {
		p := kmsg.NewDeleteRecordsRequestTopicPartition()
		p.Partition, p.Offset = partition, offset
		topic.Partitions = append(topic.Partitions, p)
		freed += offset
	}
	req.Topics = append(req.Topics, topic)
	if _, err := req.RequestWith(ctx, d.client); err != nil {
		return fmt.Errorf("cannot trim the topic %s: %w", Clicks, err)
	}
	d.freed.Store(freed)
	return nil
}

// View is the state of the demo for people.
type View struct {
	Produced int64 // events that the broker has acknowledged
	Counted  int64 // events in results so far
	Results  int64
	Window   time.Time // end of the newest window of which a result came; zero before the first
	Top      []UserCount
}

// UserCount is a line of the table.
type UserCount struct {
	User  string
	Count int64 // in View.Window
	Total int64 // in all windows
}

// View returns the present state, with the n users that clicked most.
func (d *Demo) View(n int) View { return d.ledger.view(n) }

// Await returns when done says so of the view, which it is asked after each result, or with ctx's error.
// One caller at a time.
func (d *Demo) Await(ctx context.Context, done func(View) bool) error {
	for !done(d.View(0)) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-d.ledger.entered:
		}
	}
	return nil
}

// Complete reports whether as many events are counted as were produced.
func (v View) Complete() bool { return v.Counted >= v.Produced }

// ErrMiscounted is the error of a check that found events lost or counted twice.
var ErrMiscounted = errors.New("events were lost or counted twice")

// Check compares every result with what was produced and returns a line that says what was compared.
// The job must have ended, or at least written all its results.
func (d *Demo) Check() (string, error) { return d.ledger.check() }
