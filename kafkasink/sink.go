package kafkasink

import (
	"context"
	"fmt"
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/kafka"
	"github.com/heddle-stream/heddle/internal/kafka/batch"
)

// Sink describes where to write. Make one by Topic; its methods change it and return it.
// It is a sink of messages for heddle.To.
type Sink struct {
	topic    string
	brokers  []string
	codec    string
	maxBytes int

	batchBytes int
	linger     time.Duration
	partition  func(key []byte, n int) int

	cfg func(*kafka.Config) // tests set what is no option
}

// Topic writes to the named topic, which must exist when the job starts.
func Topic(name string) *Sink { return &Sink{topic: name, codec: "none"} }

// Brokers names brokers (host:port) of the cluster to write to, in place of the option kafka.brokers.
func (s *Sink) Brokers(addrs ...string) *Sink {
	s.brokers = addrs
	return s
}

// Compression packs batches by none (the default), gzip, snappy, lz4 or zstd.
func (s *Sink) Compression(codec string) *Sink {
	s.codec = codec
	return s
}

// MaxMessageBytes bounds a message, and a batch before compression. By default that is 1,000,000, which the default of a
// topic's max.message.bytes accepts.
func (s *Sink) MaxMessageBytes(n int) *Sink {
	s.maxBytes = n
	return s
}

// BatchBytes bounds a batch before compression, unless one record is larger. By default that is 256 KiB, less where a topic has
// so many partitions that all their batches would not fit into the memory of a writer.
func (s *Sink) BatchBytes(n int) *Sink {
	s.batchBytes = n
	return s
}

// Linger says how long a batch waits for more records before it is sent. By default that is 10 ms.
func (s *Sink) Linger(d time.Duration) *Sink {
	s.linger = d
	return s
}

// Partition chooses the partition of a record by its key, among n. By default that is murmur2 of the key, as in Kafka's own clients. f must not keep key,
// and is called by all subtasks at once; records without a key go to the partitions in turn.
func (s *Sink) Partition(f func(key []byte, n int) int) *Sink {
	s.partition = f
	return s
}

// Describe implements heddle's sink.
func (s *Sink) Describe() string { return "kafka " + s.topic }

// NewMessageWriter implements heddle's sink.
func (s *Sink) NewMessageWriter(ctx context.Context, rt flow.Runtime) (flow.MessageWriter, error) {
	w, err := s.newWriter(ctx, rt)
	if err != nil {
		return nil, fmt.Errorf("cannot write to kafka topic %s: %w", s.topic, err)
	}
	return w, nil
}

// Ready implements flow.Readying: the topic is there, and we may write to it.
func (s *Sink) Ready(ctx context.Context, option func(string) (string, bool)) error {
	cfg, err := s.config(option)
	if err == nil {
		_, err = batch.ParseCodec(s.codec)
	}
	if err == nil {
		err = kafka.Writable(ctx, cfg, s.topic)
	}
	if err != nil {
		return fmt.Errorf("cannot write to kafka topic %s: %w", s.topic, err)
	}
	return nil
}

// config is how to reach the cluster.
func (s *Sink) config(option func(string) (string, bool)) (kafka.Config, error) {
	cfg, err := kafka.FromOptions(option, s.brokers)
	if err == nil && s.cfg != nil {
		s.cfg(&cfg)
	}
	return cfg, err
}

func (s *Sink) newWriter(ctx context.Context, rt flow.Runtime) (*writer, error) {
	cfg, err := s.config(rt.Option)
	if err != nil {
		return nil, err
	}
	codec, err := batch.ParseCodec(s.codec)
	if err != nil {
		return nil, err
	}
	p, err := kafka.NewProducer(ctx, cfg, kafka.ProducerConfig{
		Topic: s.topic, Codec: codec, MaxMessageBytes: s.maxBytes, BatchBytes: s.batchBytes, Linger: s.linger, First: rt.Subtask(), Partition: s.partition,
		Logger: rt.Logger().With("component", "kafkasink"), Waiting: rt.Counter("waiting partitions"), Retries: rt.Counter("resent batches"), Sent: rt.Counter("sent bytes"),
	})
	if err != nil {
		return nil, err
	}
	return &writer{Producer: p, topic: s.topic, tracer: flow.TracerOf(rt)}, nil
}

// writer writes one subtask's messages. The task's goroutine uses it.
type writer struct {
	*kafka.Producer
	topic  string
	tracer *flow.Tracer
}

// Close implements flow.MessageWriter.
func (w *writer) Close() error {
	w.Producer.Close()
	return nil
}
