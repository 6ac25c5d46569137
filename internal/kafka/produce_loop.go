package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/IBM/sarama"
	"github.com/heddle-stream/heddle/internal/kafka/batch"
)

// lookAround is how often a Producer looks for new partitions.
const lookAround = 5 * time.Minute

// run is the loop: it finds leaders.
func (p *Producer) run(ctx context.Context, client *Client) {
	defer client.Close()
	timer := time.NewTimer(0)
	defer timer.Stop()
	look := time.Now().Add(lookAround)
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.kick:
		case <-timer.C:
		}
		if ctx.Err() != nil {
			return
		}
		now := time.Now()
		lost, next := p.homeless(now)
		if len(lost) > 0 || look.Before(now) {
			look = now.Add(lookAround)
			p.place(ctx, client, lost)
			lost, next = p.homeless(time.Now())
		}
		if len(lost) == 0 {
			next = min(next, time.Until(look))
		}
		p.status()
		timer.Reset(next)
	}
}

// homeless returns the partitions whose leader is to be found now, and when there will be more.
func (p *Producer) homeless(now time.Time) (lost []*outPart, next time.Duration) {
	next = time.Hour
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.parts {
		switch {
		case t.sender != nil && t.who.id >= 0 || t.failing != nil:
		case t.due.After(now):
			next = min(next, t.due.Sub(now))
		default:
			lost, next = append(lost, t), 0
		}
	}
	return lost, next
}

// place finds the leaders of partitions and gives them to those brokers' senders.
func (p *Producer) place(life context.Context, client *Client, lost []*outPart) {
	ctx, cancel := context.WithTimeout(life, p.cfg.RequestTimeout)
	defer cancel()
	md, err := client.Metadata(ctx, p.topic)
	var id *producerID
	if err == nil {
		if n := len(md.Topics[p.topic].Partitions); n > len(p.parts) {
			p.grow(n)
			notify(p.kick)
		}
		if id, err = p.newID(ctx, client, lost); isDenied(err) {
			p.mu.Lock()
			p.fail(err)
			p.mu.Unlock()
			return
		}
	}
	for _, t := range lost {
		why := err
		var addr string
		var broker int32
		if why == nil {
			addr, broker, _, why = md.Leader(TP{p.topic, t.id})
		}
		p.mu.Lock()
		if id != nil && t.who.id < 0 {
			t.who, t.seq, t.known = *id, 0, false
		}
		if why != nil {
			t.failing = why
			p.retry(t, time.Now())
		} else {
			p.house(life, t, broker, addr)
		}
		p.mu.Unlock()
	}
}

// newID gets a producer id if one of the partitions needs one.
func (p *Producer) newID(ctx context.Context, client *Client, lost []*outPart) (*producerID, error) {
	if !slices.ContainsFunc(lost, func(t *outPart) bool { return t.who.id < 0 }) {
		return nil, nil
	}
	id, err := client.producerID(ctx)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.id = id
	p.mu.Unlock()
	return &id, nil
}

// house gives a partition to its leader's sender, starting that if need be. The lock is held.
func (p *Producer) house(life context.Context, t *outPart, id int32, addr string) {
	s := p.senders[id]
	if s == nil || s.ended || s.addr != addr {
		s = &sender{id: id, addr: addr, p: p, wake: make(chan struct{}, 1)}
		p.senders[id] = s
		p.running.Go(func() { s.run(life) })
	}
	if t.sender != s {
		t.sender = s
		s.parts = append(s.parts, t)
	}
	notify(s.wake)
}

// senderEnded takes the partitions of a sender whose connection broke. Nothing of it is on its way any more.
func (p *Producer) senderEnded(s *sender, err error) {
	now := time.Now()
	p.mu.Lock()
	s.ended = true
	for _, t := range slices.Clone(s.parts) {
		if t.sender == s {
			t.failing = err
			p.retry(t, now)
		}
	}
	p.mu.Unlock()
	notify(p.kick)
}

// settle notes what became of a batch. The lock is held.
func (p *Producer) settle(b *outBatch, err error, now time.Time) {
	t := b.part
	switch {
	case err == nil:
		p.pcfg.Sent.Add(int64(len(b.Buf())))
		for _, f := range b.followed {
			p.told = append(p.told, func() { f(t.id) })
		}
	case isTooLarge(err) && b.Len() > 1:
		b.tooLarge = true
	case !forgotten(err) && isFatal(err):
		p.fail(fmt.Errorf("cannot write to %s: %w%s", TP{p.topic, t.id}, err, writeHint(err)))
	}
	if err != nil {
		p.pcfg.Retries.Add(1)
	} else if t.tries > 0 {
		notify(p.kick) // to say that all is well again
	}
	free, failed := t.answered(b, err)
	for _, f := range free {
		p.release(f)
	}
	if failed && p.err == nil {
		p.retry(t, now)
	}
}

// retry plans another attempt for a partition that failed, or gives up. The lock is held.
func (p *Producer) retry(t *outPart, now time.Time) {
	if p.closing.Load() {
		return
	}
	tooLarge := isTooLarge(t.failing)
	renew := t.renew
	err := t.retry(now)
	if away := now.Sub(t.since); !t.idle() && away > p.cfg.UnavailableTimeout {
		p.fail(fmt.Errorf("cannot write to %s: tried for %v (%s): %w%s", TP{p.topic, t.id}, away.Round(time.Second), OptUnavailableTimeout, err, writeHint(err)))
		return
	}
	for _, b := range slices.Clone(t.queue) {
		if b.tooLarge {
			buf := make([]byte, cap(b.Buf()))
			p.bytes += len(buf)
			if err := t.split(b, buf, new(batch.Decompressor)); err != nil {
				p.fail(fmt.Errorf("cannot split a batch for %s: %w", TP{p.topic, t.id}, err))
				return
			}
		}
	}
	if tooLarge {
		t.due = now
		t.wakeSender()
		return
	}
	if t.sender != nil { // look for the leader anew
		t.sender.parts = slices.DeleteFunc(t.sender.parts, func(o *outPart) bool { return o == t })
		t.sender = nil
	}
	notify(p.kick)
	if renew {
		p.pcfg.Logger.Warn("a Kafka broker has lost count of what was written to a partition: records not yet acknowledged may be there twice",
			"partition", TP{p.topic, t.id}.String(), "err", err)
	}
	if _, moved := errors.AsType[sarama.KError](err); t.tries < 2 && (moved || errors.Is(err, errHungUp)) {
		return // a leader that moved, or a connection that the broker ended in good order, is no trouble yet
	}
	if !t.idle() {
		p.warn(t, err, now)
	}
}

func (p *Producer) warn(t *outPart, err error, now time.Time) {
	if !p.warned.IsZero() && now.Sub(p.warned) < warnEvery {
		return
	}
	p.warned = now
	p.pcfg.Logger.Warn("a Kafka partition can't be written to, trying again", "partition", TP{p.topic, t.id}.String(), "since", t.since, "err", err)
}

// status counts who waits, and says so when nobody does any more.
func (p *Producer) status() {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := int64(0)
	for _, t := range p.parts {
		if t.tries > 0 && !t.idle() {
			n++
		}
	}
	p.pcfg.Waiting.Set(n)
	if n == 0 && !p.warned.IsZero() {
		p.warned = time.Time{}
		p.pcfg.Logger.Info("all Kafka partitions can be written to again")
	}
}

func isTooLarge(err error) bool {
	return errors.Is(err, sarama.ErrMessageSizeTooLarge) || errors.Is(err, sarama.ErrMessageSetSizeTooLarge)
}

func isDenied(err error) bool {
	_, fatal := errors.AsType[*fatalError](err)
	return fatal
}

func writeHint(err error) string {
	switch {
	case isTooLarge(err):
		return " (raise the topic's max.message.bytes)"
	case errors.Is(err, sarama.ErrTopicAuthorizationFailed), errors.Is(err, sarama.ErrClusterAuthorizationFailed):
		return " (" + OptSASLUser + " needs the right to write to the topic)"
	}
	return ""
}

// producerID gets a new producer id from the cluster. It retries until ctx ends what may pass.
func (c *Client) producerID(ctx context.Context) (producerID, error) {
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		var resp *sarama.InitProducerIDResponse
		err := c.any(ctx, func(b *sarama.Broker) (err error) {
			resp, err = b.InitProducerID(&sarama.InitProducerIDRequest{Version: 4, ProducerID: -1, ProducerEpoch: -1})
			return err
		})
		switch {
		case err != nil:
		case resp.Err == sarama.ErrNoError:
			return producerID{resp.ProducerID, resp.ProducerEpoch}, nil
		case resp.Err == sarama.ErrConcurrentTransactions, resp.Err == sarama.ErrOffsetsLoadInProgress, resp.Err == sarama.ErrNotCoordinatorForConsumer, retriable(resp.Err):
			err = resp.Err
		default:
			return producerID{}, &fatalError{fmt.Errorf("cannot get a producer id: %w%s", resp.Err, writeHint(resp.Err))}
		}
		if !sleep(ctx, wait) {
			return producerID{}, fmt.Errorf("cannot get a producer id: %w", err)
		}
	}
}
