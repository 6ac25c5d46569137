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
	gen   int64 // of the Target when pos was set
	pos   int64 // next offset to fetch
	epoch int32 // of the leader by our metadata
	last  int32 // epoch of the leader that appended what is before pos; -1: unknown
	bytes int32 // asked of the partition

	replica bool      // it is read from a follower
	plain   bool      // the leader is not asked for a nearer replica
	until   time.Time // when the leader is to be asked about replicas again; zero: never
	brought bool      // something, by the last response
}

// lost is a target that a fetcher gives back, with the reason.
type lost struct {
	target
	err    error
	waited time.Duration // of the time since it got the target, how long it waited for the consumer
}

// fetcher fetches from one broker all the targets given to it, one request at a time, and pushes what it gets.
// It ends when its connection does, when it has long had nothing to do or the Puller closes, and gives back all targets.
type fetcher struct {
	// Immutable.
	key       fetcherKey
	addr      string
	puller    *Puller
	wake      chan struct{}  // one slot: there is something in added, or a target goes on
	free      chan *Response // Responses not in use
	committed bool

	// Owned by run.
	targets []*target // the order of a full request
	byTP    map[TP]*target
	conn    *Conn
	unwatch func() bool // ends the watch that closes conn at the end of the context
	session fetchSession
	reading []*target // those of the request
	waited  time.Duration
	req     kmsg.FetchRequest

	mu    sync.Mutex
	added []target // guarded by mu
	ended bool     // guarded by mu: no more can be added
}

// fetcherKey says what a fetcher is for: a broker, and whether that may name replicas that are nearer.
type fetcherKey struct {
	broker int32
	rack   string
}

func newFetcher(p *Puller, key fetcherKey, addr string) *fetcher {
	f := &fetcher{key: key, addr: addr, puller: p, wake: make(chan struct{}, 1), free: make(chan *Response, ahead), committed: p.committed, byTP: map[TP]*target{}}
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

// isOver reports whether the fetcher has ended.
func (f *fetcher) isOver() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ended
}

// take moves what was added to the targets.
func (f *fetcher) take(last bool) {
	f.mu.Lock()
	added := f.added
	f.added, f.ended = nil, last
	f.mu.Unlock()
	for i := range added {
		t := &added[i]
		t.Target.setWake(f.wake)
		f.targets = append(f.targets, t)
		f.byTP[t.TP] = t
	}
}

// run is the fetcher's goroutine.
func (f *fetcher) run(ctx context.Context) {
	err := f.loop(ctx)
	f.hangUp()
	f.take(true)
	f.giveBack(err)
	f.puller.ended(f)
}

// idleFetcher is how long a fetcher without targets keeps its connection.
const idleFetcher = time.Minute

func (f *fetcher) loop(ctx context.Context) error {
	if err := f.connect(ctx); err != nil {
		return err
	}
	var r *Response
	for {
		f.take(false)
		if f.choose(time.Now()); len(f.reading) == 0 {
			if err := f.rest(ctx); err != nil {
				return err
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
			continue // what is to be read may have changed meanwhile
		}
		if at := f.conn.link.renew; !at.IsZero() && time.Now().After(at) {
			if err := f.connect(ctx); err != nil {
				return err
			}
		}
		brought, err := f.fetch(ctx, r)
		if err != nil {
			return err
		}
		if brought {
			r = nil
		}
	}
}

// fetch asks once, and reports whether r was pushed.
func (f *fetcher) fetch(ctx context.Context, r *Response) (bool, error) {
	began := time.Now()
	var err error
	if r.buf, err = f.conn.Fetch(f.request(), r.buf, &r.msg); err != nil {
		return false, err
	}
	if !f.session.answered(&r.msg) {
		return false, nil
	}
	if err := f.sort(r, time.Since(began)); err != nil {
		return false, err
	}
	f.waited = 0
	if len(r.Parts) > 0 {
		f.puller.queue.push(r) // it is the reader's from here on
		f.puller.wake()
		return true, nil
	}
	// A broker that throttles does not listen meanwhile either.
	if wait := time.Duration(r.msg.ThrottleMillis) * time.Millisecond; wait > 0 {
		f.puller.pcfg.Throttled.Add(wait.Milliseconds())
		if !sleep(ctx, min(wait, maxThrottle)) {
			return false, ctx.Err()
		}
	}
	return false, nil
}

// maxThrottle bounds how long a broker may make a fetcher wait.
const maxThrottle = 30 * time.Second

// connect opens the connection, in place of the one there is.
func (f *fetcher) connect(ctx context.Context) error {
	f.hangUp()
	conn, err := f.puller.opener.dialConn(ctx, f.addr)
	if err != nil {
		return err
	}
	f.conn, f.session = conn, fetchSession{}
	f.unwatch = context.AfterFunc(ctx, func() { conn.link.conn.Close() })
	return nil
}

func (f *fetcher) hangUp() {
	if f.conn != nil {
		f.unwatch()
		f.conn.Close()
		f.conn = nil
	}
}

// rest waits until there may be something to read.
func (f *fetcher) rest(ctx context.Context) error {
	timer := time.NewTimer(idleFetcher)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		if len(f.targets) == 0 {
			return errRelocate
		}
	case <-f.wake:
	}
	return nil
}

// errRelocate gives targets back that nothing is wrong with: where to read them is to be found anew.
var errRelocate = errors.New("where to read is to be found anew")

// nearerError says that the leader wants a partition to be read from another replica.
type nearerError struct{ broker int32 }

func (e *nearerError) Error() string { return fmt.Sprintf("replica %d is nearer", e.broker) }

// choose collects the targets to be read: all but those that are paused. It gives back those whose leader is to be asked again.
func (f *fetcher) choose(now time.Time) {
	var back []lost
	f.reading = f.reading[:0]
	for _, t := range f.targets {
		if !t.until.IsZero() && now.After(t.until) {
			t.until, t.plain, t.replica = time.Time{}, false, false
			back = append(back, lost{*t, errRelocate, 0})
			continue
		}
		if t.catchUp() {
			f.reading = append(f.reading, t)
		}
	}
	f.lose(back)
}

// request builds the fetch.
func (f *fetcher) request() *kmsg.FetchRequest {
	req := &f.req
	topics, forgotten := req.Topics, req.ForgottenTopics
	req.Default()
	req.MaxWaitMillis = int32(f.puller.cfg.FetchWait.Milliseconds())
	req.MinBytes = 1
	req.MaxBytes = f.puller.fetchBytes()
	req.Rack = f.key.rack
	if f.committed {
		req.IsolationLevel = 1
	}
	req.Topics, req.ForgottenTopics = topics, forgotten
	f.session.build(req, f.reading)
	return req
}

// sort goes through a response: it moves positions, collects the Parts and gives back targets with errors.
func (f *fetcher) sort(r *Response, took time.Duration) error {
	if r.msg.ErrorCode != 0 {
		return fmt.Errorf("cannot fetch from Kafka broker %s: %w", f.addr, sarama.KError(r.msg.ErrorCode))
	}
	var back []lost
	for i := range r.msg.Topics {
		topic := &r.msg.Topics[i]
		for j := range topic.Partitions {
			p := &topic.Partitions[j]
			t := f.byTP[TP{topic.Topic, p.Partition}]
			if t == nil || !t.current() {
				continue // it was paused, or is not ours any more
			}
			part, err := f.part(t, p)
			switch {
			case err != nil:
				back = append(back, lost{*t, err, f.waited})
			case part.Batches != nil:
				t.brought = true
				t.figures.fetched(len(part.Batches), took)
				r.Parts = append(r.Parts, part)
			}
		}
	}
	f.settle()
	f.lose(back)
	return nil
}

// settle drops the targets that have come to their stop, and puts those that brought something last: so each gets its
// turn when a response is full before all have been served. In a session the broker sees to that.
func (f *fetcher) settle() {
	for _, t := range f.reading {
		if !t.brought {
			t.figures.empty.Add(1)
		}
	}
	f.targets = slices.DeleteFunc(f.targets, func(t *target) bool {
		done := t.pos >= t.Stop && t.finish()
		if done {
			delete(f.byTP, t.TP)
		}
		return done
	})
	if f.session.id != 0 {
		for _, t := range f.reading {
			t.brought = false
		}
		return
	}
	slices.SortStableFunc(f.targets, func(a, b *target) int {
		switch {
		case a.brought == b.brought:
			return 0
		case a.brought:
			return 1
		}
		return -1
	})
	for _, t := range f.targets {
		t.brought = false
	}
}

// lose gives targets back.
func (f *fetcher) lose(back []lost) {
	if len(back) == 0 {
		return
	}
	f.targets = slices.DeleteFunc(f.targets, func(t *target) bool {
		gone := slices.ContainsFunc(back, func(l lost) bool { return l.Target == t.Target })
		if gone {
			delete(f.byTP, t.TP)
		}
		return gone
	})
	f.puller.lose(back)
}

// part looks at one partition's answer and moves its target on.
func (f *fetcher) part(t *target, p *kmsg.FetchResponseTopicPartition) (Part, error) {
	if p.ErrorCode != 0 {
		return Part{}, sarama.KError(p.ErrorCode)
	}
	if p.PreferredReadReplica >= 0 && p.PreferredReadReplica != f.key.broker && !t.replica {
		return Part{}, &nearerError{p.PreferredReadReplica}
	}
	if d := p.DivergingEpoch; d.EndOffset >= 0 && d.EndOffset < t.pos {
		return Part{}, &truncatedError{at: d.EndOffset}
	}
	f.puller.answered(t.Target, p)
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
	part := Part{Target: t.Target, Gen: t.gen, Batches: p.RecordBatches[:n:n], Next: next, Epoch: epoch}
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
		back[i] = lost{*t, err, f.waited}
	}
	f.targets = nil
	clear(f.byTP)
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
