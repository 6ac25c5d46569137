package kafka

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/heddle-stream/heddle/internal/kafka/batch"
)

// fakeLog is a partition as a broker keeps it: it checks sequence numbers and knows the last five batches of a producer.
type fakeLog struct {
	records []int
	who     producerID
	next    int32
	last    []int32 // first sequence numbers of the last batches
}

func (l *fakeLog) append(b *outBatch, recs []int) error {
	if len(recs) > 6 {
		return sarama.ErrMessageSizeTooLarge
	}
	if b.who != l.who {
		if b.who.id == l.who.id && b.who.epoch < l.who.epoch {
			return sarama.ErrInvalidProducerEpoch
		}
		if b.seq != 0 && b.who.id == l.who.id {
			return sarama.ErrOutOfOrderSequenceNumber
		}
		l.who, l.next, l.last = b.who, b.seq, nil // of a producer that it does not know a broker takes any number for the first
	}
	for _, s := range l.last {
		if s == b.seq {
			return nil // a duplicate
		}
	}
	if b.seq != l.next {
		return sarama.ErrOutOfOrderSequenceNumber
	}
	l.records = append(l.records, recs...)
	l.last = append(l.last, b.seq)
	l.last = l.last[max(0, len(l.last)-maxInFlight):]
	l.next = seqAfter(b.seq, int32(len(recs)))
	return nil
}

// Whatever becomes of batches and answers, each record is in the log once and in order; where the broker forgets its
// producers, at least once.
func TestPartitionModel(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 0))
		forgets := seed%4 == 0
		now := time.Unix(1000, 0)
		p := &outPart{who: producerID{id: 7, epoch: maxEpoch - 1}, seq: 1<<31 - 20}
		log := &fakeLog{}
		contents := map[*outBatch][]int{}
		var flying []*outBatch
		written, total := 0, 200
		answer := func(b *outBatch, err error) {
			b.tooLarge = err == sarama.ErrMessageSizeTooLarge
			_, failed := p.answered(b, err)
			if !failed {
				return
			}
			tooLarge := false
			_ = p.retry(now)
			for _, q := range append([]*outBatch(nil), p.queue...) {
				if q.tooLarge {
					recs := contents[q]
					if err := p.split(q, make([]byte, 4096), new(batch.Decompressor)); err != nil {
						t.Fatal(err)
					}
					for i, o := range p.queue {
						if o == q {
							contents[q], contents[p.queue[i+1]] = recs[:q.Len()], recs[q.Len():]
						}
					}
					tooLarge = true
				}
			}
			if p.who.id < 0 {
				p.who, p.seq = producerID{id: 8}, 0
			}
			if !tooLarge {
				now = now.Add(3 * time.Second)
			}
		}
		for steps := 0; written < total || !p.idle(); steps++ {
			if steps > 100_000 {
				t.Fatalf("seed %d: stuck: %+v", seed, p)
			}
			switch k := r.IntN(10); {
			case k < 3 && written < total:
				if p.open == nil {
					p.begin(make([]byte, 4096), now)
				}
				b := p.open
				b.Append(1, nil, fmt.Append(nil, written), nil)
				contents[b] = append(contents[b], written)
				written++
				if r.IntN(5) == 0 {
					p.close()
				}
			case k < 6:
				if b, _ := p.ready(now, time.Millisecond, written == total); b != nil {
					p.take(b)
					flying = append(flying, b)
				}
			case k < 9 && len(flying) > 0:
				b := flying[0]
				flying = flying[1:]
				switch f := r.IntN(20); {
				case f == 0:
					answer(b, sarama.ErrNotLeaderForPartition)
				case f == 1:
					_ = log.append(b, contents[b])
					answer(b, sarama.ErrNotEnoughReplicasAfterAppend)
				default:
					answer(b, log.append(b, contents[b]))
				}
			case k == 9 && r.IntN(10) == 0: // the connection breaks: some were received
				n := r.IntN(len(flying) + 1)
				for i, b := range flying {
					if i < n {
						_ = log.append(b, contents[b])
					}
				}
				for _, b := range flying {
					answer(b, errHungUp)
				}
				flying = nil
			case k == 9 && forgets && r.IntN(20) == 0:
				log.who, log.last = producerID{}, nil
			}
			now = now.Add(time.Millisecond)
		}
		seen, last := map[int]bool{}, -1
		for _, x := range log.records {
			if !forgets && x != last+1 {
				t.Fatalf("seed %d: %d after %d", seed, x, last)
			}
			seen[x], last = true, x
		}
		if len(seen) != total {
			t.Fatalf("seed %d: %d of %d records", seed, len(seen), total)
		}
	}
}
