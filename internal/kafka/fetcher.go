package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/heddle-stream/heddle/internal/kafka/batch"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ahead is how many Responses a fetcher has: one being read, one waiting, one being decoded.
const ahead = 3

// maxPartitionBytes bounds what is asked of one partition for the sake of a large batch.
const maxPartitionBytes = 1 << 30

// target is a Target while a fetcher has it.
type target struct {
	*Target
	pos   int64 // next offset to fetch
	epoch int32 // of the leader by our metadata
	last  int32 // epoch of the leader that appended what is before pos; -1: unknown
	bytes int32 // asked of the partition
}

// lost is a target that a fetcher gives back, with the reason.
type lost struct {
	target
	err    error
	waited time.Duration // of the time since it got the target, how long it waited for the consumer
}

// fetcher fetches from one broker all the targets given to it, one request at a time, and pushes what it gets.
// It ends when its connection does or the Puller closes, and gives back all targets.
type fetcher struct {
	// Immutable.
	id        int32
	addr      string
	puller    *Puller
	wake      chan struct{}  // one slot: there is something in added
	free      chan *Response // Responses not in use
	committed bool

	// Owned by run.
	targets []target
	conn    *Conn
	waited  time.Duration
	req     kmsg.FetchRequest

	mu    sync.Mutex
	added []target // guarded by mu
	ended bool     // guarded by mu: no more can be added
}

func newFetcher(p *Puller, id int32, addr string) *fetcher {
	f := &fetcher{id: id, addr: addr, puller: p, wake: make(chan struct{}, 1), free: make(chan *Response, ahead), committed: p.committed}
	for range ahead {
		f.free <- &Response{home: f.free}
	}
	return f
}

// add gives a target to the fetcher, unless that has ended.
func (f *fetcher) add(t target) bool {
	f.mu.Lock()
	ok := !f.ended
	if ok {
		f.added = append(f.added, t)
	}
	f.mu.Unlock()
	if ok {
		notify(f.wake)
	}
	return ok
}

// take moves what was added to the targets.
func (f *fetcher) take(last bool) {
	f.mu.Lock()
	added := f.added
	f.added, f.ended = nil, last
	f.mu.Unlock()
	f.targets = append(f.targets, added...)
}

// run is the fetcher's goroutine.
func (f *fetcher) run(ctx context.Context) {
	err := f.loop(ctx)
	if f.conn != nil {
		f.conn.Close()
	}
	f.take(true)
	f.giveBack(err)
	f.puller.ended(f)
}

func (f *fetcher) loop(ctx context.Context) (err error) {
	if f.conn, err = f.puller.opener.dialConn(ctx, f.addr); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { f.conn.link.conn.Close() })
	defer stop()
	var r *Response
	for {
		f.take(false)
		if len(f.targets) == 0 {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-f.wake:
			}
			continue
		}
		if r == nil {
			began := time.Now()
			select {
			case <-ctx.Done():
				return ctx.Err()
			case r = <-f.free:
			}
			f.waited += time.Since(began)
			if cap(r.buf) > 2*int(f.puller.fetchBytes()) { // grown for one large batch
				r.buf = nil
			}
		}
		if r.buf, err = f.conn.Fetch(f.request(), r.buf, &r.msg); err != nil {
			return err
		}
		if err := f.sort(r); err != nil {
			return err
		}
		f.waited = 0
		if len(r.Parts) > 0 {
			f.puller.queue.push(r)
			f.puller.wake()
			r = nil
		} else if wait := r.msg.ThrottleMillis; wait > 0 {
			if !sleep(ctx, min(time.Duration(wait)*time.Millisecond, 5*time.Second)) {
				return ctx.Err()
			}
		}
	}
}

// request builds the fetch of all targets. Those that brought something last stand at the end, so that
// each gets its turn when a response is full before all have been served.
func (f *fetcher) request() *kmsg.FetchRequest {
	req := &f.req
	req.Default()
	req.MaxWaitMillis = int32(f.puller.cfg.FetchWait.Milliseconds())
	req.MinBytes = 1
	req.MaxBytes = f.puller.fetchBytes()
	req.SessionEpoch = -1
	if f.committed {
		req.IsolationLevel = 1
	}
	req.Topics = req.Topics[:0]
	for i := range f.targets {
		t := &f.targets[i]
		if n := len(req.Topics); n == 0 || req.Topics[n-1].Topic != t.Topic {
			topic := kmsg.NewFetchRequestTopic()
			topic.Topic = t.Topic
			if n < cap(req.Topics) { // reuse the memory of the last request
				topic.Partitions = req.Topics[:n+1][n].Partitions[:0]
			}
			req.Topics = append(req.Topics, topic)
		}
		p := kmsg.NewFetchRequestTopicPartition()
		p.Partition, p.FetchOffset, p.PartitionMaxBytes, p.CurrentLeaderEpoch = t.Partition, t.pos, t.bytes, t.epoch
		p.LastFetchedEpoch = t.last
		req.Topics[len(req.Topics)-1].Partitions = append(req.Topics[len(req.Topics)-1].Partitions, p)
	}
	return req
}

// sort goes through a response: it moves positions, collects the Parts and gives back targets with errors.
func (f *fetcher) sort(r *Response) error {
	if r.msg.ErrorCode != 0 {
		return fmt.Errorf("cannot fetch from Kafka broker %s: %w", f.addr, sarama.KError(r.msg.ErrorCode))
	}
	var back []lost
	for i := range r.msg.Topics {
		topic := &r.msg.Topics[i]
		for j := range topic.Partitions {
			p := &topic.Partitions[j]
			at := slices.IndexFunc(f.targets, func(t target) bool { return t.Partition == p.Partition && t.Topic == topic.Topic })
			if at < 0 {
				continue
			}
			t := f.targets[at]
			part, err := f.part(&t, p)
			done := err == nil && t.pos >= t.Stop
			switch {
			case err != nil:
				back = append(back, lost{t, err, f.waited})
				f.targets = slices.Delete(f.targets, at, at+1)
			case done:
				f.targets = slices.Delete(f.targets, at, at+1)
			case part.Batches != nil:
				f.targets = append(slices.Delete(f.targets, at, at+1), t)
			default:
				f.targets[at] = t
			}
			if part.Batches != nil {
				r.Parts = append(r.Parts, part)
			}
		}
	}
	if len(back) > 0 {
		f.puller.lose(back)
	}
	return nil
}

// part looks at one partition's answer and moves its target on.
func (f *fetcher) part(t *target, p *kmsg.FetchResponseTopicPartition) (Part, error) {
	if p.ErrorCode != 0 {
		return Part{}, sarama.KError(p.ErrorCode)
	}
	if d := p.DivergingEpoch; d.EndOffset >= 0 && d.EndOffset < t.pos {
		return Part{}, &truncatedError{at: d.EndOffset}
	}
	f.puller.answered(t.Target, p.HighWatermark, p.LastStableOffset)
	if len(p.RecordBatches) == 0 {
		return Part{}, nil
	}
	next, epoch, n, err := batch.Scan(p.RecordBatches, t.pos)
	if err != nil {
		return Part{}, &fatalError{fmt.Errorf("cannot read %s at offset %d: %w", t.TP, t.pos, err)}
	}
	if n == 0 {
		return Part{}, f.grow(t, p.RecordBatches)
	}
	t.bytes = max(int32(f.puller.cfg.PartitionBytes), t.bytes/2)
	t.pos, t.last = next, epoch
	part := Part{Target: t.Target, Batches: p.RecordBatches[:n:n], Next: next}
	for _, a := range p.AbortedTransactions {
		part.Aborted = append(part.Aborted, batch.Transaction{ProducerID: a.ProducerID, FirstOffset: a.FirstOffset})
	}
	return part, nil
}

// grow asks more of a partition whose next batch did not fit into what was asked.
func (f *fetcher) grow(t *target, got []byte) error {
	want := max(batch.Size(got), 2*int(t.bytes))
	if want > maxPartitionBytes || int(t.bytes) >= maxPartitionBytes {
		return &fatalError{fmt.Errorf("cannot read %s at offset %d: its next record batch takes %d bytes", t.TP, t.pos, want)}
	}
	t.bytes = int32(want)
	return nil
}

// giveBack returns all targets to the Puller.
func (f *fetcher) giveBack(err error) {
	back := make([]lost, len(f.targets))
	for i, t := range f.targets {
		back[i] = lost{t, err, f.waited}
	}
	f.targets = nil
	f.puller.lose(back)
}

// truncatedError says that the leader's log is another one than ours from offset at on: a replica that was behind became
// the leader, and what it lacked is gone.
type truncatedError struct{ at int64 }

func (e *truncatedError) Error() string { return fmt.Sprintf("the log was cut at offset %d", e.at) }

// fatalError is one that no retry cures.
type fatalError struct{ error }

func (e *fatalError) Unwrap() error { return e.error }

func isFatal(err error) bool {
	if _, ok := errors.AsType[*fatalError](err); ok {
		return true
	}
	return !retriableError(err)
}

func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// sleep waits for d, and reports false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
