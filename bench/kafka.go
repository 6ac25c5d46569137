package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/kafkasink"
	"github.com/heddle-stream/heddle/kafkasource"
)

// KafkaOptions say what to measure.
type KafkaOptions struct {
	Topic       string
	Records     int64  // stop after so many; 0: at what the topic holds when the benchmark starts (to write: 1,000,000)
	Rounds      int    // how often; 0: once
	Write       bool   // write records instead of reading those there are
	RecordSize  int    // of records to be written; 0: 100 bytes
	Compression string // of records to be written; "": none
	Format      string // of records to be read: raw or text; "": raw

	Option func(name string) (string, bool) // kafka.* options
	Logger *slog.Logger
}

// KafkaResult is what one round measured.
type KafkaResult struct {
	Topic            string  `json:"topic"`
	Write            bool    `json:"write"`
	Round            int     `json:"round"`
	Records          int64   `json:"records"`
	Bytes            int64   `json:"bytes"` // of values
	Seconds          float64 `json:"seconds"`
	RecordsPerSecond float64 `json:"records_per_second"`
	BytesPerSecond   float64 `json:"bytes_per_second"`
	CPUNsPerRecord   float64 `json:"cpu_ns_per_record"` // this process, user and system
	AllocsPerRecord  float64 `json:"allocs_per_record"`
	FirstRecordMs    float64 `json:"first_record_ms"` // from nothing connected; to write: all delivered of a first batch
}

func (o KafkaOptions) withDefaults() (KafkaOptions, error) {
	if o.Topic == "" {
		return o, errors.New("cannot measure Kafka without a topic: name one")
	}
	if o.Write && o.Records == 0 {
		o.Records = 1_000_000
	}
	if o.RecordSize == 0 {
		o.RecordSize = 100
	}
	if o.Compression == "" {
		o.Compression = "none"
	}
	if o.Format == "" {
		o.Format = "raw"
	}
	o.Rounds = max(o.Rounds, 1)
	if o.Records < 0 || o.RecordSize < 0 {
		return o, fmt.Errorf("cannot measure %d records of %d bytes", o.Records, o.RecordSize)
	}
	return o, nil
}

// Kafka reads a topic into nothing by a job's own source and format, or writes one by a job's own sink, round after round.
func Kafka(ctx context.Context, o KafkaOptions, each func(KafkaResult) error) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	round := func(ctx context.Context, k *kafkaRun) error {
		return readKafka(ctx, o, k, heddle.Raw(), func(b []byte) int { return len(b) })
	}
	switch {
	case o.Write:
		round = func(ctx context.Context, k *kafkaRun) error { return writeKafka(ctx, o, k) }
	case o.Format == "text":
		round = func(ctx context.Context, k *kafkaRun) error {
			return readKafka(ctx, o, k, heddle.Text(), func(s string) int { return len(s) })
		}
	case o.Format != "raw":
		return fmt.Errorf("cannot read as %q: raw and text are possible", o.Format)
	}
	for i := range o.Rounds {
		k := &kafkaRun{woken: make(chan struct{}, 1), began: time.Now(), option: o.Option, log: o.Logger}
		before := sample()
		if err := round(ctx, k); err != nil {
			return fmt.Errorf("cannot measure Kafka topic %s: %w", o.Topic, err)
		}
		seconds := time.Since(k.began).Seconds()
		after := sample()
		n := max(float64(k.records), 1)
		if err := each(KafkaResult{
			Topic: o.Topic, Write: o.Write, Round: i, Records: k.records, Bytes: k.bytes, Seconds: seconds,
			RecordsPerSecond: float64(k.records) / seconds, BytesPerSecond: float64(k.bytes) / seconds,
			CPUNsPerRecord: float64(after.CPU-before.CPU) / n, AllocsPerRecord: float64(after.Mallocs-before.Mallocs) / n,
			FirstRecordMs: float64(k.first.Microseconds()) / 1000,
		}); err != nil {
			return err
		}
	}
	return nil
}

// kafkaRun is one round. It is the flow.Runtime of the source's reader or the sink's writer, which have no engine around them.
type kafkaRun struct {
	records, bytes int64
	first          time.Duration
	began          time.Time
	woken          chan struct{} // one slot
	timer          *time.Timer   // nil: none was set yet

	option func(string) (string, bool)
	log    *slog.Logger
}

func (k *kafkaRun) JobName() string                   { return "bench" }
func (k *kafkaRun) Node() *flow.Node                  { return &flow.Node{Name: "kafka"} }
func (k *kafkaRun) Subtask() int                      { return 0 }
func (k *kafkaRun) Parallelism() int                  { return 1 }
func (k *kafkaRun) MaxParallelism() int               { return 1 }
func (k *kafkaRun) Now() int64                        { return time.Now().UnixMilli() }
func (k *kafkaRun) Counter(string) *flow.Counter      { return new(flow.Counter) }
func (k *kafkaRun) Option(name string) (string, bool) { return k.option(name) }
func (k *kafkaRun) Logger() *slog.Logger              { return k.log }
func (k *kafkaRun) FlushTimeout() time.Duration       { return 20 * time.Millisecond }
func (k *kafkaRun) Wake() {
	select {
	case k.woken <- struct{}{}:
	default:
	}
}

// SetTimer wakes the reader when the time has come.
func (k *kafkaRun) SetTimer(at int64) {
	if k.timer != nil {
		k.timer.Stop()
	}
	if at != flow.MaxTime {
		k.timer = time.AfterFunc(time.Until(time.UnixMilli(at)), k.Wake)
	}
}

// readKafka reads the topic to its end, or the wanted number of records.
func readKafka[T any](ctx context.Context, o KafkaOptions, k *kafkaRun, f flow.Format[T], size func(T) int) error {
	src := kafkasource.Topics(o.Topic).Stop(kafkasource.Latest())
	e, err := src.Enumerator(ctx, flow.EnumeratorEnv{JobName: k.JobName(), Node: k.Node(), Readers: 1, Option: k.option, Warn: func(s string) { k.log.Warn(s) }})
	if err != nil {
		return err
	}
	defer e.Close()
	d, err := e.Discover(ctx)
	if err != nil {
		return err
	}
	r, err := flow.Decode(src, f, new(flow.Policy)).NewReader(ctx, flow.ReaderEnv{Runtime: k})
	if err != nil {
		return err
	}
	defer r.Close()
	if err := r.AddSplits(d.Added); err != nil {
		return err
	}
	if err := r.NoMoreSplits(); err != nil {
		return err
	}
	emit := func(_ string, b flow.Batch[T], _ bool) error {
		if k.records == 0 && len(b.Recs) > 0 {
			k.first = time.Since(k.began)
		}
		k.records += int64(len(b.Recs))
		for _, r := range b.Recs {
			k.bytes += int64(size(r))
		}
		return nil
	}
	for o.Records == 0 || k.records < o.Records {
		switch st, err := r.Poll(emit); {
		case err != nil:
			return err
		case st == flow.SourceEnd:
			return nil
		case st == flow.SourceWait:
			select {
			case <-k.woken:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

// writeBatch is how many records a task writes at once.
const writeBatch = 256

// writeKafka writes records and waits until all are delivered.
func writeKafka(ctx context.Context, o KafkaOptions, k *kafkaRun) error {
	w, err := flow.Encode(kafkasink.Topic(o.Topic).Compression(o.Compression), heddle.Raw()).NewWriter(ctx, k)
	if err != nil {
		return err
	}
	defer w.Close()
	value := make([]byte, o.RecordSize)
	for i := range value {
		value[i] = "heddle "[i%7]
	}
	recs := make([][]byte, writeBatch)
	for i := range recs {
		recs[i] = value
	}
	for k.records < o.Records {
		n := min(o.Records-k.records, writeBatch)
		if err := w.Write(flow.Batch[[]byte]{Recs: recs[:n]}); err != nil {
			return err
		}
		if k.records == 0 {
			if err := w.Flush(ctx); err != nil {
				return err
			}
			k.first = time.Since(k.began)
		}
		k.records += n
		k.bytes += n * int64(o.RecordSize)
	}
	return w.Flush(ctx)
}
