package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"github.com/heddle-stream/heddle/internal/kafka/batch"
)

// ProducerConfig is what a Producer needs beside the cluster's Config.
type ProducerConfig struct {
	Topic           string
	Codec           batch.Codec
	MaxMessageBytes int // of a message, and of a batch before compression; 0: 1,000,000
	InFlightBytes   int // how much may be on its way; 0: 8 MiB
}

// OutRecord is a record to be written. Its bytes must stay as they are until it is delivered.
type OutRecord struct {
	Partition  int32
	Key, Value []byte // nil: null
	Headers    []batch.RecordHeader
	Time       time.Time // zero: now
}

// size is about what a record takes on the wire.
func (r *OutRecord) size() int { return len(r.Key) + len(r.Value) + 40 }

// Producer writes to one topic, each record at least once: idempotently, acknowledged by all replicas in sync.
// What it can't deliver fails a later call. Its memory is bounded: Write waits while too much is on its way.
//
// One goroutine uses it. A goroutine of its own collects what sarama says became of the records.
type Producer struct {
	// Immutable.
	topic      string
	partitions int32
	limit      int
	producer   sarama.AsyncProducer
	client     sarama.Client
	cancel     context.CancelFunc
	closing    *atomic.Bool
	done       <-chan struct{} // of the task
	moved      chan struct{}   // one slot: something was delivered or failed
	collecting sync.WaitGroup

	mu    sync.Mutex
	bytes int   // guarded by mu: on their way
	err   error // guarded by mu: the first delivery that failed
}

// NewProducer checks that the topic exists and starts a producer. ctx ends with the task.
func NewProducer(ctx context.Context, cfg Config, pcfg ProducerConfig) (*Producer, error) {
	o, err := newOpener(cfg)
	if err != nil {
		return nil, err
	}
	n, err := partitionsOf(ctx, o, pcfg.Topic)
	if err != nil {
		return nil, err
	}
	life, cancel := context.WithCancel(ctx)
	p := &Producer{topic: pcfg.Topic, partitions: n, limit: pcfg.InFlightBytes, cancel: cancel, closing: new(atomic.Bool), done: ctx.Done(), moved: make(chan struct{}, 1)}
	if p.limit <= 0 {
		p.limit = 8 << 20
	}
	sc := p.config(o, pcfg)
	sc.Net.Proxy.Enable = true
	sc.Net.Proxy.Dialer = o.dialer(life)
	if p.client, err = sarama.NewClient(o.cfg.Brokers, sc); err == nil {
		if p.producer, err = sarama.NewAsyncProducerFromClient(p.client); err != nil {
			p.client.Close()
		}
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("cannot start a Kafka producer for topic %s: %w", pcfg.Topic, err)
	}
	p.collecting.Go(p.collect)
	return p, nil
}

// retryWait is how long the producer waits between attempts.
const retryWait = 250 * time.Millisecond

// config is sarama's, set for what Producer promises.
func (p *Producer) config(o *opener, pcfg ProducerConfig) *sarama.Config {
	sc := *o.sarama
	sc.Net.MaxOpenRequests = 1 // sarama asks for it, to be idempotent
	sc.Producer.Idempotent = true
	sc.Producer.RequiredAcks = sarama.WaitForAll
	sc.Producer.Return.Successes = true
	sc.Producer.Return.Errors = true
	sc.Producer.Partitioner = sarama.NewManualPartitioner
	sc.Producer.Compression = sarama.CompressionCodec(pcfg.Codec)
	if pcfg.MaxMessageBytes > 0 {
		sc.Producer.MaxMessageBytes = pcfg.MaxMessageBytes
	}
	// sarama gives a message up when it has used its own retries, but also when one search for the leader has used
	// those of metadata: both must last as long as a cluster may be away. There is no other way to make it give up, so
	// once we close nothing is waited for.
	wait := func(d time.Duration) func(int, int) time.Duration {
		return func(int, int) time.Duration {
			if p.closing.Load() {
				return 0
			}
			return d
		}
	}
	most := int(o.cfg.UnavailableTimeout/retryWait) + 1
	sc.Producer.Retry.Max, sc.Producer.Retry.BackoffFunc = most, wait(retryWait)
	sc.Metadata.Retry.Max, sc.Metadata.Retry.BackoffFunc = most, wait(retryWait)
	sc.Metadata.Timeout = o.cfg.UnavailableTimeout
	return &sc
}

// partitionsOf asks how many partitions the topic has.
func partitionsOf(ctx context.Context, o *opener, topic string) (int32, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*o.cfg.RequestTimeout)
	defer cancel()
	c := newClient(o)
	defer c.Close()
	md, err := c.Metadata(ctx, topic)
	if err != nil {
		return 0, err
	}
	t := md.Topics[topic]
	switch {
	case errors.Is(t.Err, ErrUnknownTopic):
		return 0, fmt.Errorf("topic %q does not exist, or our user may not describe it: create it first; Heddle creates no topics", topic)
	case t.Err != nil:
		return 0, fmt.Errorf("cannot look at topic %q: %w", topic, t.Err)
	case len(t.Partitions) == 0:
		return 0, fmt.Errorf("topic %q has no partitions", topic)
	}
	return int32(len(t.Partitions)), nil
}

// Partitions is how many the topic has.
func (p *Producer) Partitions() int32 { return p.partitions }

// Write sends records. It returns before they are delivered, and an error if any of before was not.
func (p *Producer) Write(recs []OutRecord) error {
	msgs := make([]sarama.ProducerMessage, len(recs))
	for i := range recs {
		r, m := &recs[i], &msgs[i]
		m.Topic, m.Partition, m.Timestamp, m.Metadata = p.topic, r.Partition, r.Time, r.size()
		if r.Key != nil {
			m.Key = sarama.ByteEncoder(r.Key)
		}
		if r.Value != nil {
			m.Value = sarama.ByteEncoder(r.Value)
		}
		for _, h := range r.Headers {
			m.Headers = append(m.Headers, sarama.RecordHeader{Key: []byte(h.Key), Value: slices.Clone(h.Value)})
		}
		if err := p.reserve(r.size()); err != nil {
			return err
		}
		select {
		case p.producer.Input() <- m:
		case <-p.done:
			return context.Canceled
		}
	}
	return nil
}

// reserve waits until size bytes may be on their way too.
func (p *Producer) reserve(size int) error {
	return p.wait(p.done, func() bool {
		if p.bytes > 0 && p.bytes+size > p.limit {
			return false
		}
		p.bytes += size
		return true
	})
}

// Flush returns when all that was written is delivered.
func (p *Producer) Flush(ctx context.Context) error {
	return p.wait(ctx.Done(), func() bool { return p.bytes == 0 })
}

// wait waits until ok, which is called under the lock, or for the first error.
func (p *Producer) wait(done <-chan struct{}, ok func() bool) error {
	for {
		p.mu.Lock()
		err := p.err
		ready := err == nil && ok()
		p.mu.Unlock()
		if err != nil || ready {
			return err
		}
		select {
		case <-p.moved:
		case <-done:
			return context.Canceled
		case <-p.done:
			return context.Canceled
		}
	}
}

// collect hears what became of each record, until the producer is closed.
func (p *Producer) collect() {
	ok, failed := p.producer.Successes(), p.producer.Errors()
	for ok != nil || failed != nil {
		select {
		case m, open := <-ok:
			if !open {
				ok = nil
				continue
			}
			p.settle(m, nil)
		case e, open := <-failed:
			if !open {
				failed = nil
				continue
			}
			p.settle(e.Msg, e.Err)
		}
	}
}

func (p *Producer) settle(m *sarama.ProducerMessage, err error) {
	p.mu.Lock()
	if size, ok := m.Metadata.(int); ok {
		p.bytes -= size
	}
	if err != nil && p.err == nil {
		p.err = fmt.Errorf("cannot write to %s: %w%s", TP{m.Topic, m.Partition}, err, writeHint(err))
	}
	p.mu.Unlock()
	notify(p.moved)
}

func writeHint(err error) string {
	_, tooLarge := errors.AsType[sarama.ConfigurationError](err)
	switch {
	case errors.Is(err, sarama.ErrMessageSizeTooLarge):
		return " (raise the topic's max.message.bytes)"
	case tooLarge:
		return " (raise the sink's MaxMessageBytes, and the topic's max.message.bytes)"
	case errors.Is(err, sarama.ErrTopicAuthorizationFailed):
		return " (" + OptSASLUser + " needs the right to write to the topic)"
	}
	return ""
}

// Close gives up what is not delivered (call Flush before) and waits for every goroutine.
func (p *Producer) Close() {
	p.closing.Store(true)
	p.cancel()
	p.producer.AsyncClose()
	p.collecting.Wait()
	p.client.Close()
}
