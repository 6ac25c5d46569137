package kafkasink

import (
	"context"
	"fmt"
	"slices"
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

func (s *Sink) newWriter(ctx context.Context, rt flow.Runtime) (*writer, error) {
	cfg, err := kafka.FromOptions(rt.Option, s.brokers)
	if err != nil {
		return nil, err
	}
	if s.cfg != nil {
		s.cfg(&cfg)
	}
	codec, err := batch.ParseCodec(s.codec)
	if err != nil {
		return nil, err
	}
	p, err := kafka.NewProducer(ctx, cfg, kafka.ProducerConfig{Topic: s.topic, Codec: codec, MaxMessageBytes: s.maxBytes})
	if err != nil {
		return nil, err
	}
	return &writer{producer: p, turn: int32(rt.Subtask())}, nil
}

// producer is what a writer needs. Writing raw batches, or transactions, is another one of these.
type producer interface {
	Partitions() int32
	Write([]kafka.OutRecord) error
	Flush(context.Context) error
	Close()
}

// writer writes one subtask's messages. The task's goroutine uses it.
type writer struct {
	producer producer
	turn     int32 // whose turn it is among partitions, for records without a key
	recs     []kafka.OutRecord
}

// Write implements flow.MessageWriter.
func (w *writer) Write(m *flow.Messages) error {
	if m.Len() == 0 {
		return nil
	}
	kept := *m
	kept.Buf = slices.Clone(m.Buf) // records outlive the call: one copy for all
	n := w.producer.Partitions()
	w.turn = (w.turn + 1) % n
	w.recs = slices.Grow(w.recs[:0], m.Len())[:m.Len()]
	for i := range w.recs {
		r := kafka.OutRecord{Partition: w.turn, Value: kept.Value(i)}
		if len(m.Keys) > 0 {
			if r.Key = kept.At(m.Keys[i]); r.Key != nil {
				r.Partition = kafka.KeyPartition(r.Key, n)
			}
		}
		if len(m.Times) > 0 && m.Times[i] != flow.MinTime {
			r.Time = time.UnixMilli(max(m.Times[i], 0)) // Kafka refuses times before 1970
		}
		if len(m.Headers) > 0 {
			hs, err := batch.Headers(nil, kept.At(m.Headers[i]))
			if err != nil {
				return fmt.Errorf("cannot use headers of record %d: %w", i, err)
			}
			r.Headers = hs
		}
		w.recs[i] = r
	}
	return w.producer.Write(w.recs)
}

// Flush implements flow.MessageWriter.
func (w *writer) Flush(ctx context.Context) error { return w.producer.Flush(ctx) }

// Close implements flow.MessageWriter.
func (w *writer) Close() error {
	w.producer.Close()
	return nil
}
