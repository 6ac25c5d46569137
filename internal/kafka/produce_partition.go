package kafka

import (
	"slices"
	"time"

	"github.com/IBM/sarama"
	"github.com/heddle-stream/heddle/internal/kafka/batch"
)

// maxInFlight is how many batches of a partition may be on their way: of so many a broker remembers the sequence numbers.
const maxInFlight = 5

// producerID names a writer to the brokers. Each partition counts its sequence under one of its own, so that an epoch
// begun after a loss of state concerns that partition alone. In transactions it would be the state that survives a writer.
type producerID struct {
	id    int64 // -1: none
	epoch int16
}

const maxEpoch = 1<<15 - 2

// outBatch is a batch to be written.
type outBatch struct {
	batch.Builder
	part   *outPart
	opened time.Time

	numbered bool
	who      producerID // under whom it is numbered
	seq      int32      // of its first record

	state    batchState
	sent     int  // how often
	tooLarge bool // the broker does not take it as it is

	followed []func(partition int32) // to call when it is delivered
}

// add adds a record, if there is room.
func (b *outBatch) add(r *outRecord) bool {
	if !b.Append(r.time, r.key, r.value, r.headers) {
		return false
	}
	if r.delivered != nil {
		b.followed = append(b.followed, r.delivered)
	}
	return true
}

type batchState uint8

const (
	toSend batchState = iota
	onItsWay
	delivered
)

// outPart is a partition being written to: the order of its batches and what is known of each. It does no I/O; its
// Producer guards it.
//
// The queue holds first what is on its way, then what is to be sent. When a batch fails nothing more is taken until all that
// are on their way have been answered; then those not delivered are sent again with the sequence numbers they had, by which the
// broker knows those it has; one at a time, for it remembers but five, and those after it may be in its log already. If the broker has forgotten our
// sequence, a new epoch begins and all are counted anew. The first batch of an epoch goes alone: a broker takes whatever comes first from a producer that it
// does not know, and if that were the second one, after the first was refused, they would change places.
type outPart struct {
	id     int32
	sender *sender // nil: its leader is to be found
	open   *outBatch
	queue  []*outBatch
	flying int // batches on their way
	who    producerID
	seq    int32 // of the next record
	known  bool  // a broker has taken something of who

	failing error // a batch failed and others are on their way
	renew   bool  // a new epoch is to begin
	since   time.Time
	tries   int       // failures since then
	due     time.Time // nothing is sent before
}

// begin opens a batch in buf.
func (t *outPart) begin(buf []byte, now time.Time) {
	b := &outBatch{part: t, opened: now}
	b.Begin(buf)
	t.open = b
}

// close ends the open batch.
func (t *outPart) close() {
	if t.open != nil && t.open.Len() > 0 {
		t.queue = append(t.queue, t.open)
		t.open = nil
	}
}

func (t *outPart) wakeSender() {
	if t.sender != nil {
		notify(t.sender.wake)
	}
}

// idle reports whether nothing waits for an answer or to be sent.
func (t *outPart) idle() bool { return len(t.queue) == 0 && t.open == nil }

// ready returns the batch to be sent next, nil if there is none now, and when to look again (zero: when something has changed).
func (t *outPart) ready(now time.Time, linger time.Duration, hurry bool) (*outBatch, time.Time) {
	if t.failing != nil || t.flying >= maxInFlight || t.who.id < 0 {
		return nil, time.Time{}
	}
	if t.due.After(now) {
		return nil, t.due
	}
	if t.flying == len(t.queue) {
		if t.open == nil || t.open.Len() == 0 {
			return nil, time.Time{}
		}
		if at := t.open.opened.Add(linger); !hurry && at.After(now) {
			return nil, at
		}
		t.close()
	}
	if t.flying > 0 && (!t.known || t.queue[0].sent > 1 || t.queue[t.flying].sent > 0) {
		return nil, time.Time{}
	}
	return t.queue[t.flying], time.Time{}
}

// take marks what ready returned as on its way.
func (t *outPart) take(b *outBatch) {
	if !b.numbered || b.who != t.who {
		b.numbered = true
		b.who, b.seq = t.who, t.seq
		t.seq = seqAfter(t.seq, int32(b.Len()))
	}
	b.state = onItsWay
	b.sent++
	t.flying++
}

func seqAfter(seq, n int32) int32 { return int32((uint32(seq) + uint32(n)) & 0x7fffffff) }

// answered notes that b was delivered (err nil) or not, and returns the batches whose memory is free.
// After the last answer to what was on its way it reports whether some of it failed: see failing.
func (t *outPart) answered(b *outBatch, err error) (free []*outBatch, failed bool) {
	t.flying--
	if err == nil {
		b.state = delivered
		t.known = t.known || b.who == t.who
		if t.failing == nil {
			t.since, t.tries = time.Time{}, 0
		}
	} else {
		b.state = toSend
		if forgotten(err) && t.first(b) {
			t.renew = true
		}
		if t.failing == nil {
			t.failing = err
		}
	}
	if t.failing == nil {
		n := 0
		for n < len(t.queue) && t.queue[n].state == delivered {
			n++
		}
		free = append(free, t.queue[:n]...)
		t.queue = append(t.queue[:0], t.queue[n:]...)
		return free, false
	}
	if t.flying > 0 {
		return nil, false
	}
	left := t.queue[:0]
	for _, q := range t.queue {
		if q.state == delivered {
			free = append(free, q)
		} else {
			left = append(left, q)
		}
	}
	clear(t.queue[len(left):])
	t.queue = left
	return free, true
}

// first reports whether every batch before b is delivered: then the sequence before b is not in doubt.
func (t *outPart) first(b *outBatch) bool {
	for _, q := range t.queue {
		if q == b {
			return true
		}
		if q.state != delivered {
			return false
		}
	}
	return true
}

// retry makes the partition ready to send again what failed.
func (t *outPart) retry(now time.Time) (err error) {
	err, t.failing = t.failing, nil
	switch {
	case t.idle():
		t.since = time.Time{} // nobody waits
	case t.since.IsZero():
		t.since = now
	}
	t.tries++
	t.due = now.Add(backoff(t.tries))
	if t.renew {
		t.renew, t.seq, t.known = false, 0, false
		if t.who.epoch++; t.who.epoch > maxEpoch {
			t.who = producerID{id: -1}
		}
	}
	return err
}

// forgotten says whether err means that the broker does not know our sequence.
func forgotten(err error) bool {
	switch err {
	case sarama.ErrOutOfOrderSequenceNumber, sarama.ErrUnknownProducerID, sarama.ErrInvalidProducerEpoch, sarama.ErrInvalidProducerIDMapping:
		return true
	}
	return false
}

// split makes two batches of b, which the broker finds too large. Their sequence numbers together are those that b had.
func (t *outPart) split(b *outBatch, buf []byte, d *batch.Decompressor) error {
	rest := &outBatch{part: t, opened: b.opened, who: b.who, numbered: b.numbered}
	rest.Begin(buf)
	if err := b.Split(&rest.Builder, d); err != nil {
		return err
	}
	b.tooLarge = false
	rest.followed, b.followed = b.followed, nil // whichever has them: the rest is delivered after b
	rest.seq = seqAfter(b.seq, int32(b.Len()))
	at := slices.Index(t.queue, b)
	t.queue = slices.Insert(t.queue, at+1, rest)
	return nil
}
