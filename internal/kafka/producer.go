package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/kafka/batch"
)

// ProducerConfig is what a Producer needs beside the cluster's Config.
type ProducerConfig struct {
	Topic           string
	Codec           batch.Codec
	MaxMessageBytes int           // of a record, and of a batch before compression; 0: 1,000,000
	BatchBytes      int           // of a batch before compression, unless one record is larger; 0: 256 KiB
	Linger          time.Duration // how long a batch waits for more records; 0: 10 ms
	Memory          int           // bytes of batches that are not delivered; 0: 16 MiB
	First           int           // which partition records without a key begin with
	// Partition chooses the partition of a key among n; nil: KeyPartition. What it returns is taken modulo n.
	Partition func(key []byte, n int) int

	Logger  *slog.Logger
	Waiting *flow.Counter // gauge: partitions that can't be written to for now
	Retries *flow.Counter // batches sent again
	Sent    *flow.Counter // bytes delivered, as packed
}

const (
	defaultMessageBytes = 1_000_000
	defaultBatchBytes   = 256 << 10
	minBatchBytes       = 4 << 10
	defaultLinger       = 10 * time.Millisecond
	defaultMemory       = 16 << 20
)

func (c ProducerConfig) withDefaults() ProducerConfig {
	or := func(v *int, def int) {
		if *v <= 0 {
			*v = def
		}
	}
	or(&c.MaxMessageBytes, defaultMessageBytes)
	or(&c.BatchBytes, defaultBatchBytes)
	or(&c.Memory, defaultMemory)
	c.BatchBytes = min(c.BatchBytes, c.MaxMessageBytes)
	if c.Linger <= 0 {
		c.Linger = defaultLinger
	}
	for _, n := range []**flow.Counter{&c.Waiting, &c.Retries, &c.Sent} {
		if *n == nil {
			*n = new(flow.Counter)
		}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Producer writes to one topic, each record at least once: idempotently, acknowledged by all replicas in sync, in order within
// each partition. What it can't deliver fails a later call. Its memory is bounded: Write waits while too much is on its way.
//
// Records are put straight into batches by the goroutine that calls Write; a sender per leading broker packs and sends them, and
// a loop finds leaders. The bytes of a batch belong to whoever has the batch: Write while it is the open one of its
// partition, a sender from taking it until its answer, and otherwise the partition, under mu.
type Producer struct {
	// Immutable.
	topic   string
	cfg     Config
	pcfg    ProducerConfig
	opener  *opener
	cancel  context.CancelFunc
	done    <-chan struct{} // of the task
	moved   chan struct{}   // one slot: something was delivered or failed
	kick    chan struct{}   // one slot: the loop has something to do
	closing atomic.Bool     // what fails from now on does so because we close

	running sync.WaitGroup // the loop and the senders

	mu     sync.Mutex
	parts  []*outPart // guarded by mu, as is all they hold
	turn   int        // guarded by mu: the partition of records without a key
	bytes  int        // guarded by mu: of batches that exist
	free   [][]byte   // guarded by mu: memory of batches to use again
	room   int        // guarded by mu: of a batch
	id     producerID // guarded by mu: for partitions that need one
	hurry  bool       // guarded by mu: no batch waits for more records
	err    error      // guarded by mu: why writing can't go on
	told   []func()   // guarded by mu: to call, without mu, of records that were delivered
	warned time.Time  // guarded by mu: when trouble was last logged; zero: there is none

	senders map[int32]*sender // owned by the loop: by broker
}

// NewProducer checks that the topic exists, gets a producer id and starts a producer. ctx ends with the task.
func NewProducer(ctx context.Context, cfg Config, pcfg ProducerConfig) (*Producer, error) {
	o, err := newOpener(cfg)
	if err != nil {
		return nil, err
	}
	client := newClient(o)
	parts, id, err := prepare(ctx, client, pcfg.Topic)
	if err != nil {
		client.Close()
		return nil, err
	}
	life, cancel := context.WithCancel(ctx)
	p := &Producer{topic: pcfg.Topic, cfg: o.cfg, pcfg: pcfg.withDefaults(), opener: o, cancel: cancel, done: ctx.Done(),
		moved: make(chan struct{}, 1), kick: make(chan struct{}, 1), id: id, senders: map[int32]*sender{}}
	p.grow(parts)
	p.turn = max(pcfg.First, 0) % parts
	context.AfterFunc(life, func() { p.closing.Store(true) })
	p.running.Go(func() { p.run(life, client) })
	notify(p.kick)
	return p, nil
}

// prepare asks how many partitions the topic has, and for a producer id.
func prepare(ctx context.Context, c *Client, topic string) (int, producerID, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*c.o.cfg.RequestTimeout)
	defer cancel()
	n, err := c.writable(ctx, topic)
	if err != nil {
		return 0, producerID{}, err
	}
	id, err := c.producerID(ctx)
	return n, id, err
}

// writable returns how many partitions a topic has that is to be written to.
func (c *Client) writable(ctx context.Context, topic string) (partitions int, err error) {
	md, err := c.Metadata(ctx, topic)
	if err != nil {
		return 0, err
	}
	t := md.Topics[topic]
	switch {
	case errors.Is(t.Err, ErrUnknownTopic):
		return 0, fmt.Errorf("topic %q does not exist, or our user may not describe it: create it first; Heddle creates no topics", topic)
	case errors.Is(t.Err, sarama.ErrInvalidTopic):
		return 0, fmt.Errorf("%q can't be the name of a topic: letters, digits, dots, dashes and underscores can, 249 at most", topic)
	case t.Err != nil:
		return 0, fmt.Errorf("cannot look at topic %q: %w%s", topic, t.Err, writeHint(t.Err))
	case len(t.Partitions) == 0:
		return 0, fmt.Errorf("topic %q has no partitions", topic)
	}
	return len(t.Partitions), nil
}

// Writable checks, on connections of its own, that a topic can be written to as far as that shows before anything is: it is there, we may, and a leader answers.
func Writable(ctx context.Context, cfg Config, topic string) error {
	c, err := NewClient(cfg)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, 3*c.o.cfg.RequestTimeout)
	defer cancel()
	if _, err := c.writable(ctx, topic); err != nil {
		return err
	}
	topics, _, err := c.Allowed(ctx, topic)
	if t := topics[topic]; err == nil && t.Err == nil && t.Told && !t.Allowed.Has(OpWrite) {
		return fmt.Errorf("%w to topic %q: %s needs the right to write to it", ErrDenied, topic, OptSASLUser)
	}
	return c.noLeaderAnswers(ctx, topic)
}

// grow makes the topic have n partitions. Batches are smaller where there are many of these: all must have one open.
func (p *Producer) grow(n int) {
	p.mu.Lock()
	for len(p.parts) < n {
		p.parts = append(p.parts, &outPart{id: int32(len(p.parts)), who: p.id})
	}
	p.free = nil
	p.room = max(min(p.pcfg.BatchBytes, p.pcfg.Memory/(2*len(p.parts))), minBatchBytes)
	p.mu.Unlock()
}

// Write puts records into batches. It returns before they are delivered, and an error if any of before was not.
func (p *Producer) Write(m *flow.Messages) error { return p.WriteFollowed(m, nil) }

// WriteFollowed is Write that calls delivered, which must not wait, when a record has been acknowledged, with its partition.
func (p *Producer) WriteFollowed(m *flow.Messages, delivered func(partition int32)) error {
	now := time.Now()
	for i := 0; ; i++ {
		r := outRecord{delivered: delivered}
		var err error
		if i, err = p.fill(m, i, now, &r); err != nil || i == m.Len() {
			return err
		}
		if err := p.put(&r, now); err != nil {
			return err
		}
	}
}

// fill adds records from the i-th on to open batches. It stops at one that needs a new batch, which r then is, or at the end,
// and returns its number.
func (p *Producer) fill(m *flow.Messages, i int, now time.Time, r *outRecord) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for ; i < m.Len(); i++ {
		*r = outRecord{delivered: r.delivered}
		if err := r.read(m, i, now.UnixMilli()); err != nil {
			return i, err
		}
		part := p.parts[p.turn]
		if r.key != nil {
			part = p.parts[p.partition(r.key)]
		}
		if p.err != nil || part.open == nil || !part.open.add(r) {
			return i, nil
		}
	}
	return i, nil
}

// put adds a record for which a batch has to be begun.
func (p *Producer) put(r *outRecord, now time.Time) error {
	need := batch.HeaderSize + batch.Room(len(r.key), len(r.value), len(r.headers))
	if size := len(r.key) + len(r.value) + len(r.headers); size > p.pcfg.MaxMessageBytes {
		return fmt.Errorf("cannot write a record of %d bytes to topic %s: at most %d are allowed (raise the sink's max_message_bytes, in Go MaxMessageBytes, and the topic's max.message.bytes)",
			size, p.topic, p.pcfg.MaxMessageBytes)
	}
	return p.wait(p.done, func() bool {
		part := p.target(r)
		if part.open != nil {
			if part.open.add(r) {
				return true
			}
			part.close()
			part.wakeSender()
			part = p.target(r)
		}
		buf := p.memory(need)
		if buf == nil {
			p.makeRoom()
			return false
		}
		part.begin(buf, now)
		part.wakeSender()
		return part.open.add(r)
	})
}

// target is the partition of a record: that of its key, or the one whose turn it is. A turn ends with its batch, and
// goes to a partition that can be written to if there is one.
func (p *Producer) target(r *outRecord) *outPart {
	n := len(p.parts)
	if r.key != nil {
		return p.parts[p.partition(r.key)]
	}
	if p.parts[p.turn].open != nil {
		return p.parts[p.turn]
	}
	for i := range n {
		if next := (p.turn + 1 + i) % n; p.parts[next].sender != nil {
			p.turn = next
			return p.parts[next]
		}
	}
	p.turn = (p.turn + 1) % n
	return p.parts[p.turn]
}

// partition is that of a key.
func (p *Producer) partition(key []byte) int {
	n := len(p.parts)
	if p.pcfg.Partition == nil {
		return int(KeyPartition(key, int32(n)))
	}
	return ((p.pcfg.Partition(key, n) % n) + n) % n
}

// makeRoom sends what is open, unless what is closed will make room when it is delivered.
func (p *Producer) makeRoom() {
	for _, part := range p.parts {
		if len(part.queue) > 0 {
			return
		}
	}
	for _, part := range p.parts {
		part.close()
		part.wakeSender()
	}
}

// memory returns memory for a batch of at least need bytes, or nil if there is too much in use.
func (p *Producer) memory(need int) []byte {
	size := max(p.room, need)
	if n := len(p.free); n > 0 && size == p.room {
		buf := p.free[n-1]
		p.free[n-1], p.free = nil, p.free[:n-1]
		p.bytes += cap(buf)
		return buf
	}
	if p.bytes > 0 && p.bytes+size > p.pcfg.Memory {
		return nil
	}
	p.bytes += size
	return make([]byte, size)
}

// release takes the memory of a batch back.
func (p *Producer) release(b *outBatch) {
	buf := b.Buf()
	p.bytes -= cap(buf)
	if cap(buf) == p.room && p.bytes+(len(p.free)+1)*p.room <= p.pcfg.Memory {
		p.free = append(p.free, buf)
	}
}

// Flush returns when all that was written is delivered.
func (p *Producer) Flush(ctx context.Context) error {
	defer func() {
		p.mu.Lock()
		p.hurry = false
		p.mu.Unlock()
	}()
	return p.wait(ctx.Done(), func() bool {
		if p.bytes == 0 {
			return true
		}
		if !p.hurry {
			p.hurry = true
			p.wakeSenders()
		}
		return false
	})
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

// wakeSenders wakes every sender. The lock is held.
func (p *Producer) wakeSenders() {
	for _, part := range p.parts {
		part.wakeSender()
	}
}

// fail ends writing. The lock is held.
func (p *Producer) fail(err error) {
	if p.err == nil {
		p.err = err
	}
	notify(p.moved)
}

// Failed tells why writing can't go on, without waiting for a Write that would; nil: it can.
func (p *Producer) Failed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// Close gives up what is not delivered (call Flush before) and waits for every goroutine.
func (p *Producer) Close() {
	p.closing.Store(true)
	p.cancel()
	p.running.Wait()
}

// outRecord is a record to be written. Its bytes are borrowed.
type outRecord struct {
	time                int64
	key, value, headers []byte
	delivered           func(partition int32) // nil: nobody asks
}

// read takes record i of m.
func (r *outRecord) read(m *flow.Messages, i int, now int64) error {
	r.value, r.time = bytesAt(m, m.Values[i]), now
	if len(m.Keys) > 0 {
		r.key = bytesAt(m, m.Keys[i])
	}
	if len(m.Times) > 0 && m.Times[i] != flow.MinTime {
		r.time = max(m.Times[i], 0) // Kafka refuses times before 1970
	}
	if len(m.Headers) > 0 {
		if r.headers = m.At(m.Headers[i]); len(r.headers) > 1 {
			if err := batch.CheckHeaders(r.headers); err != nil {
				return fmt.Errorf("cannot use headers of record %d: %w", i, err)
			}
		}
	}
	return nil
}

// bytesAt is m.At, but never nil for the empty string.
func bytesAt(m *flow.Messages, s flow.Span) []byte {
	if s.Len == 0 {
		return []byte{}
	}
	return m.At(s)
}
