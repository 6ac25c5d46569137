package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"github.com/heddle-stream/heddle/internal/kafka/batch"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	produceVersion  = 9       // Kafka 2.4 and later
	maxRequestBytes = 4 << 20 // of batches in one request, unless one is larger
	maxRequests     = 5       // on their way on one connection
)

// sender sends the batches of the partitions that one broker leads, over one connection, several requests at a time.
// It ends when its connection does or the Producer closes, and leaves its partitions to the loop.
type sender struct {
	// Immutable.
	id   int32
	addr string
	p    *Producer
	wake chan struct{} // one slot: something may be ready

	// Guarded by the Producer's mu.
	parts []*outPart
	from  int       // whose turn it is among parts
	hold  time.Time // the broker wants nothing before
	ended bool

	flying atomic.Int32 // requests without an answer

	// Owned by run.
	pack batch.Compressor
	req  kmsg.ProduceRequest
}

// produced is a request on its way.
type produced struct {
	corr    int32
	batches []*outBatch
}

// run is the sender's goroutine.
func (s *sender) run(ctx context.Context) {
	s.p.senderEnded(s, s.loop(ctx))
}

// loop sends until something breaks, and returns when all requests have been answered or given up.
func (s *sender) loop(ctx context.Context) error {
	conn, err := s.p.opener.dialConn(ctx, s.addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.link.conn.Close() })
	defer stop()
	flying := make(chan produced, maxRequests-1) // and one that receive has
	broken := make(chan error, 1)
	received := make(chan struct{})
	go func() {
		defer close(received)
		s.receive(conn, flying, broken)
	}()
	defer func() {
		conn.Close()
		close(flying)
		<-received
	}()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		now := time.Now()
		over := !conn.link.renew.IsZero() && now.After(conn.link.renew)
		if over && s.flying.Load() == 0 {
			return errHungUp // before the broker does: on the next connection we say anew who we are
		}
		var batches []*outBatch
		again := time.Hour
		if !over {
			batches, again = s.collect(now)
			if at := conn.link.renew; !at.IsZero() {
				again = min(again, at.Sub(now)+time.Millisecond)
			}
		}
		if len(batches) == 0 {
			timer.Reset(again)
			select {
			case <-ctx.Done():
				return ctx.Err()
			case err := <-broken:
				return err
			case <-s.wake:
			case <-timer.C:
			}
			continue
		}
		if err := s.send(conn, flying, broken, batches); err != nil {
			return err
		}
	}
}

// collect takes what is ready, at most one batch a partition; or says how long to wait.
func (s *sender) collect(now time.Time) (out []*outBatch, again time.Duration) {
	p := s.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.hold.After(now) {
		return nil, s.hold.Sub(now)
	}
	size, n := 0, len(s.parts)
	next := now.Add(time.Hour)
	for i := range n {
		t := s.parts[(s.from+i)%n]
		b, at := t.ready(now, p.pcfg.Linger, p.hurry)
		if b == nil {
			if !at.IsZero() && at.Before(next) {
				next = at
			}
			continue
		}
		if size += len(b.Buf()); size > maxRequestBytes && len(out) > 0 {
			s.from = (s.from + i) % n
			break
		}
		t.take(b)
		out = append(out, b)
	}
	return out, next.Sub(now)
}

// send seals batches and sends them in one request.
func (s *sender) send(conn *Conn, flying chan<- produced, broken <-chan error, batches []*outBatch) error {
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic = s.p.topic
	if len(s.req.Topics) > 0 { // reuse the memory of the last request
		topic.Partitions = s.req.Topics[0].Partitions[:0]
	}
	for _, b := range batches {
		raw, err := b.Seal(batch.Header{LeaderEpoch: -1, ProducerID: b.who.id, Epoch: b.who.epoch, Sequence: b.seq}, s.p.pcfg.Codec, &s.pack)
		if err != nil {
			s.settle(batches, func(*outBatch) error { return &fatalError{err} })
			return err
		}
		part := kmsg.NewProduceRequestTopicPartition()
		part.Partition, part.Records = b.part.id, raw
		topic.Partitions = append(topic.Partitions, part)
	}
	s.req.Default()
	s.req.Version, s.req.Acks, s.req.TimeoutMillis = produceVersion, -1, int32(conn.timeout.Milliseconds())
	s.req.Topics = append(s.req.Topics[:0], topic)
	corr := conn.frame(&s.req)
	s.flying.Add(1)
	select {
	case flying <- produced{corr, batches}: // from now on receive settles them
	case err := <-broken:
		s.settle(batches, func(*outBatch) error { return err })
		return err
	}
	return conn.write()
}

// receive reads the answers, in the order of the requests, until there are no more requests. After an error it gives up all that are left.
func (s *sender) receive(conn *Conn, flying <-chan produced, broken chan<- error) {
	var buf []byte
	resp := kmsg.ProduceResponse{Version: produceVersion}
	var err error
	for r := range flying {
		if err == nil {
			if buf, err = conn.answer(r.corr, 2*conn.timeout, &resp, buf); err == nil {
				s.flying.Add(-1) // settling wakes the loop, which may wait for that
				s.settle(r.batches, answersOf(&resp))
				s.throttle(resp.ThrottleMillis)
				continue
			}
			err = fmt.Errorf("cannot write to Kafka broker %s: %w", conn.addr, err)
			conn.Close()
			broken <- err
		}
		s.settle(r.batches, func(*outBatch) error { return err })
	}
}

var errLeftOut = errors.New("the answer leaves it out")

// answersOf finds what a response says of a batch.
func answersOf(resp *kmsg.ProduceResponse) func(*outBatch) error {
	return func(b *outBatch) error {
		for i := range resp.Topics {
			for j := range resp.Topics[i].Partitions {
				a := &resp.Topics[i].Partitions[j]
				if a.Partition != b.part.id {
					continue
				}
				switch k := sarama.KError(a.ErrorCode); k {
				case sarama.ErrNoError, sarama.ErrDuplicateSequenceNumber:
					return nil
				default:
					return k
				}
			}
		}
		return errLeftOut
	}
}

// throttle makes the sender wait as long as the broker will not listen anyway.
func (s *sender) throttle(ms int32) {
	if ms > 0 {
		s.p.mu.Lock()
		s.hold = time.Now().Add(min(time.Duration(ms)*time.Millisecond, 5*time.Second))
		s.p.mu.Unlock()
	}
}

// settle tells the Producer what became of batches.
func (s *sender) settle(batches []*outBatch, result func(*outBatch) error) {
	p := s.p
	now := time.Now()
	p.mu.Lock()
	for _, b := range batches {
		p.settle(b, result(b), now)
	}
	told := p.told
	p.told = nil
	p.mu.Unlock()
	for _, f := range told {
		f()
	}
	notify(p.moved)
	notify(s.wake)
}
