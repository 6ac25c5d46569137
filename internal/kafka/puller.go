package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// DataLoss says what to do when the offset to be read does not exist any more.
type DataLoss uint8

// Policies for lost data.
const (
	FailOnLoss    DataLoss = iota // reading fails
	EarliestAfter                 // go on at the earliest offset there is
	LatestAfter                   // go on at the end
)

// PullerConfig is what a Puller needs beside the cluster's Config.
type PullerConfig struct {
	Committed bool // only data of committed transactions
	OnLoss    DataLoss
	Logger    *slog.Logger
	Wake      func()        // called when Next has something; must not block
	Waiting   *flow.Counter // gauge: targets whose leader does not answer
	Resets    *flow.Counter // how often DataLoss moved a target
	Throttled *flow.Counter // milliseconds that brokers made us wait; may be nil
}

// Puller fetches record batches of a set of targets from whichever brokers lead them. It follows leaders, survives
// brokers that go away, and fails when one stays away. Its memory is bounded: fetching stops while nobody takes what was fetched.
//
// Its loop owns which target is where; a goroutine per leading broker fetches.
type Puller struct {
	// Immutable.
	opener    *opener
	cfg       Config
	pcfg      PullerConfig
	committed bool
	kick      chan struct{} // one slot: look at in and gone
	cancel    context.CancelFunc

	queue    queue
	fetchers atomic.Int32
	running  sync.WaitGroup // the loop and the fetchers

	mu   sync.Mutex
	in   []lost     // guarded by mu: new targets (without err) and those that fetchers gave back
	gone []*fetcher // guarded by mu: ended

	// Owned by the loop.
	at      map[fetcherKey]*fetcher
	pending []pending
	targets []*Target
	warned  time.Time // when trouble was last logged; zero: there is none
}

// pending is a target without a fetcher.
type pending struct {
	target
	err    error     // why; nil: new
	due    time.Time // when to try again
	nearer int32     // the replica to be read; -1: the leader
}

// NewPuller starts a puller without targets. ctx ends with the task that it reads for; Close must be called all the same.
func NewPuller(ctx context.Context, cfg Config, pcfg PullerConfig) (*Puller, error) {
	o, err := newOpener(cfg)
	if err != nil {
		return nil, err
	}
	if pcfg.Throttled == nil {
		pcfg.Throttled = new(flow.Counter)
	}
	ctx, cancel := context.WithCancel(ctx)
	p := &Puller{opener: o, cfg: o.cfg, pcfg: pcfg, committed: pcfg.Committed, kick: make(chan struct{}, 1), cancel: cancel, at: map[fetcherKey]*fetcher{}}
	p.running.Go(func() { p.run(ctx) })
	return p, nil
}

// Add gives the puller targets to read.
func (p *Puller) Add(targets []*Target) {
	p.mu.Lock()
	for _, t := range targets {
		p.in = append(p.in, lost{target: p.fresh(t, t.Start, -1)})
	}
	p.mu.Unlock()
	notify(p.kick)
}

func (p *Puller) fresh(t *Target, pos int64, epoch int32) target {
	return target{Target: t, pos: pos, last: epoch, bytes: int32(p.cfg.PartitionBytes)}
}

// Resume makes a target that was paused go on at pos; epoch is that of the leader which appended what is before, -1 if that is not known.
// Parts with a lower Gen than what it returns are of before.
func (p *Puller) Resume(t *Target, pos int64, epoch int32) int64 {
	gen, again := t.resume(pos, epoch)
	if again {
		p.mu.Lock()
		p.in = append(p.in, lost{target: p.fresh(t, pos, epoch)})
		p.mu.Unlock()
		notify(p.kick)
	}
	return gen
}

// Next returns what was fetched first and not yet taken; nil if there is nothing, in which case Wake will be called.
// The responses of one target come in order. The caller must Release each.
func (p *Puller) Next() (*Response, error) { return p.queue.pop() }

// Close stops fetching and waits for every goroutine. Responses not yet released stay good.
func (p *Puller) Close() {
	p.cancel()
	p.running.Wait()
}

func (p *Puller) wake() { p.pcfg.Wake() }

// fetchBytes is how much to ask of one broker at once.
func (p *Puller) fetchBytes() int32 {
	n := p.cfg.FetchMemory / (ahead * int(max(p.fetchers.Load(), 1)))
	return int32(min(max(n, 512<<10), 2<<20))
}

// lose takes targets back from a fetcher.
func (p *Puller) lose(back []lost) {
	p.mu.Lock()
	p.in = append(p.in, back...)
	p.mu.Unlock()
	notify(p.kick)
}

// ended says that a fetcher's goroutine is about to end.
func (p *Puller) ended(f *fetcher) {
	p.mu.Lock()
	p.gone = append(p.gone, f)
	p.mu.Unlock()
	p.fetchers.Add(-1)
	notify(p.kick)
}

// answered notes that the leader of t answered, and where its log ends.
func (p *Puller) answered(t *Target, a *kmsg.FetchResponseTopicPartition) {
	high := a.HighWatermark
	if p.committed && a.LastStableOffset >= 0 {
		high = a.LastStableOffset
	}
	t.high.Store(high)
	t.low.Store(a.LogStartOffset)
	if !t.healthy.Swap(true) {
		t.trouble.Store(nil)
		notify(p.kick)
	}
}

// run is the loop.
func (p *Puller) run(ctx context.Context) {
	client := newClient(p.opener)
	defer client.Close()
	timer := time.NewTimer(0)
	defer timer.Stop()
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
		p.absorb(now)
		p.place(ctx, client, now)
		p.status()
		timer.Reset(p.nextDue())
	}
}

// absorb takes what fetchers and Add have left.
func (p *Puller) absorb(now time.Time) {
	p.mu.Lock()
	in, gone := p.in, p.gone
	p.in, p.gone = nil, nil
	p.mu.Unlock()
	for _, f := range gone {
		if p.at[f.key] == f {
			delete(p.at, f.key)
		}
	}
	for _, l := range in {
		if l.err == nil {
			if !slices.Contains(p.targets, l.Target) {
				p.targets = append(p.targets, l.Target)
			}
			p.pending = append(p.pending, pending{target: l.target, due: now, nearer: -1})
			continue
		}
		if w, ok := p.redirected(l, now); ok {
			p.pending = append(p.pending, w)
			continue
		}
		if !l.since.IsZero() {
			l.since = l.since.Add(l.waited)
		}
		p.retry(l.target, l.err, now)
	}
}

// How long a replica other than the leader is read before the leader is asked again whether it is the right one, and
// how long the leader is read after such a replica failed.
const (
	replicaTime = 5 * time.Minute
	leaderTime  = 30 * time.Second
)

// redirected decides about a target that came back although nothing is wrong with its leader.
func (p *Puller) redirected(l lost, now time.Time) (pending, bool) {
	w := pending{target: l.target, due: now, nearer: -1}
	nearer, ok := errors.AsType[*nearerError](l.err)
	switch {
	case ok:
		w.nearer, w.replica, w.until = nearer.broker, true, now.Add(replicaTime)
		p.pcfg.Logger.Debug("a Kafka partition is read from a nearer replica", "partition", l.TP.String(), "broker", nearer.broker)
	case errors.Is(l.err, context.Canceled):
		return w, false
	case l.replica && !errors.Is(l.err, errRelocate):
		// Whatever it is, the leader knows better.
		w.replica, w.plain, w.until = false, true, now.Add(leaderTime)
		p.pcfg.Logger.Info("a Kafka partition is read from its leader again", "partition", l.TP.String(), "err", l.err)
	case !errors.Is(l.err, errRelocate):
		return w, false
	}
	return w, true
}

// retry notes a failure of t and plans the next attempt, or gives up.
func (p *Puller) retry(t target, err error, now time.Time) {
	if errors.Is(err, context.Canceled) {
		return // we are closing
	}
	if isFatal(err) && !errors.Is(err, sarama.ErrOffsetOutOfRange) {
		if _, ok := errors.AsType[*fatalError](err); !ok {
			err = fmt.Errorf("cannot read %s at offset %d: %w%s", t.TP, t.pos, err, ReadHint(err))
		}
		p.fail(err)
		return
	}
	if t.healthy.Swap(false) || t.since.IsZero() {
		t.since, t.tries = now, 0
	}
	t.tries++
	if away := now.Sub(t.since); away > p.cfg.UnavailableTimeout {
		p.fail(fmt.Errorf("cannot read %s at offset %d: its leader has not answered for %v (%s): %w", t.TP, t.pos, away.Round(time.Second), OptUnavailableTimeout, err))
		return
	}
	p.pending = append(p.pending, pending{target: t, err: err, due: now.Add(backoff(t.tries)), nearer: -1})
	if _, moved := errors.AsType[sarama.KError](err); t.tries < 2 && (moved || errors.Is(err, errHungUp)) {
		return // a leader that moved, or a connection that the broker ended in good order, is no trouble yet
	}
	text := err.Error()
	t.trouble.Store(&text)
	p.warn(t, err, now)
}

// ReadHint says what may help where a topic can't be read; "" if nothing is known to.
func ReadHint(err error) string {
	if errors.Is(err, sarama.ErrTopicAuthorizationFailed) {
		return " (our user needs the rights to describe and to read the topic)"
	}
	return ""
}

// warnEvery is how often lasting trouble is logged again.
const warnEvery = 30 * time.Second

func (p *Puller) warn(t target, err error, now time.Time) {
	if !p.warned.IsZero() && now.Sub(p.warned) < warnEvery {
		return
	}
	p.warned = now
	p.pcfg.Logger.Warn("a Kafka partition can't be read, trying again", "partition", t.TP.String(), "offset", t.pos, "since", t.since, "err", err)
}

func (p *Puller) fail(err error) {
	p.queue.fail(err)
	p.wake()
}

// backoff is how long to wait after the n-th failure in a row: 20 ms to 2 s.
func backoff(n int) time.Duration {
	return min(10*time.Millisecond<<min(n, 10), 2*time.Second)
}

// status counts who waits, and says so when nobody does any more.
func (p *Puller) status() {
	n := int64(0)
	for _, t := range p.targets {
		if t.tries > 0 && t.healthy.Load() {
			t.tries, t.since = 0, time.Time{}
		}
		if t.tries > 0 {
			n++
		}
	}
	p.pcfg.Waiting.Set(n)
	if n == 0 && !p.warned.IsZero() {
		p.warned = time.Time{}
		p.pcfg.Logger.Info("all Kafka partitions can be read again")
	}
}

func (p *Puller) nextDue() time.Duration {
	if len(p.pending) == 0 {
		return time.Hour
	}
	first := slices.MinFunc(p.pending, func(a, b pending) int { return a.due.Compare(b.due) })
	return time.Until(first.due)
}

// place finds the leaders of the targets that are due and gives them to those brokers' fetchers.
func (p *Puller) place(life context.Context, client *Client, now time.Time) {
	var due []pending
	p.pending = slices.DeleteFunc(p.pending, func(w pending) bool {
		if w.due.After(now) {
			return false
		}
		due = append(due, w)
		return true
	})
	if len(due) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(life, p.cfg.RequestTimeout)
	defer cancel()
	var topics []string
	for _, w := range due {
		if !slices.Contains(topics, w.Topic) {
			topics = append(topics, w.Topic)
		}
	}
	md, err := client.Metadata(ctx, topics...)
	for _, w := range due {
		if err != nil {
			p.retry(w.target, err, time.Now())
			continue
		}
		anew := p.madeAnew(md, w.Target)
		if !w.current() {
			w.err = nil // of where it was before it was paused; if it is true of where it goes on, we will hear it again
		}
		if cut, ok := errors.AsType[*truncatedError](w.err); ok && !anew {
			if !p.goOn(&w.target, cut.at, "a replica that lacked it became the leader", fmt.Sprintf("%s was read up to offset %d, and its log was cut at %d", w.TP, w.pos, cut.at)) {
				continue
			}
		} else if (anew || errors.Is(w.err, sarama.ErrOffsetOutOfRange)) && !p.relocate(ctx, client, &w, anew) {
			continue
		}
		addr, id, epoch, err := md.Leader(w.TP)
		if err != nil {
			p.retry(w.target, err, time.Now())
			continue
		}
		w.epoch = epoch
		if near, ok := md.Brokers[w.nearer]; ok {
			addr, id = near, w.nearer
		} else {
			w.replica = false
		}
		key := fetcherKey{id, p.cfg.Rack}
		if w.plain {
			key.rack = ""
		}
		if !p.fetcher(life, key, addr).add(w.target) {
			p.pending = append(p.pending, pending{target: w.target, err: w.err, due: time.Now().Add(backoff(1)), nearer: w.nearer})
		}
	}
}

// fetcher returns the fetcher of a broker, starting it if need be.
func (p *Puller) fetcher(life context.Context, key fetcherKey, addr string) *fetcher {
	f := p.at[key]
	if f == nil || f.addr != addr || f.isOver() {
		f = newFetcher(p, key, addr)
		p.at[key] = f
		p.fetchers.Add(1)
		p.running.Go(func() { f.run(life) })
	}
	return f
}

// madeAnew notes which topic of its name is read, and reports whether it is another one than before.
func (p *Puller) madeAnew(md *Metadata, t *Target) bool {
	id, none := md.Topics[t.Topic].ID, [16]byte{}
	if id == none || id == t.topicID {
		return false
	}
	was := t.topicID
	t.topicID = id
	return was != none
}

// relocate decides about a target whose offset is out of range, or means nothing in a topic made anew: whether it goes on, and where.
func (p *Puller) relocate(ctx context.Context, client *Client, w *pending, anew bool) bool {
	first, err := client.Offsets(ctx, []OffsetQuery{{w.TP, Earliest}}, false)
	var end map[TP]int64
	if err == nil {
		end, err = client.Offsets(ctx, []OffsetQuery{{w.TP, Latest}}, false)
	}
	if err != nil {
		if anew {
			w.topicID = [16]byte{0xff} // another one than any: so it is found again
		}
		p.retry(w.target, fmt.Errorf("%w, and %w", sarama.ErrOffsetOutOfRange, err), time.Now())
		return false
	}
	lo, hi := first[w.TP], end[w.TP]
	if !anew && w.pos >= lo && w.pos <= hi {
		w.last = -1 // a new leader was behind, or does not know an epoch so old
		return true
	}
	why := "retention has deleted it"
	if anew {
		why = "the topic was deleted and made anew"
	}
	to := lo
	if p.pcfg.OnLoss == LatestAfter {
		to = hi
	}
	return p.goOn(&w.target, to, why, fmt.Sprintf("%s has offsets %d to %d, and %d was to be read next", w.TP, lo, hi, w.pos))
}

// goOn makes a target whose data was lost go on at offset to, if it may, and reports whether there is anything to be read.
func (p *Puller) goOn(t *target, to int64, why, what string) bool {
	if p.pcfg.OnLoss == FailOnLoss {
		p.fail(fmt.Errorf("data of a Kafka topic is lost: %s; %s. To go on without it, set the source's OnDataLoss to earliest or latest", what, why))
		return false
	}
	t.pos, t.last = to, -1
	p.pcfg.Resets.Add(1)
	p.pcfg.Logger.Warn("data of a Kafka topic is lost", "why", why+": "+what, "going on at", to)
	p.queue.push(&Response{Parts: []Part{{Target: t.Target, Gen: t.gen, Next: to, Epoch: -1, Reset: true}}})
	p.wake()
	return to < t.Stop
}
