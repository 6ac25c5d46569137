package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	tick    = 10 * time.Millisecond // how often the generator writes
	maxHeld = 1_000_000             // events that the broker may hold, about 150 MB: the generator waits for the job to read
)

// Produce writes clicks at the configured rate until ctx ends, then waits until the broker has them all.
// It is called once.
func (d *Demo) Produce(ctx context.Context) error {
	var failure firstError
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	start, sent := time.Now(), 0
	for ctx.Err() == nil && failure.get() == nil {
		now := time.Now()
		due := int(now.Sub(start).Seconds() * float64(d.cfg.Rate))
		// After a stall, catch up by a second's worth at most.
		if late := due - sent - d.cfg.Rate; late > 0 {
			start = start.Add(time.Duration(float64(late) / float64(d.cfg.Rate) * float64(time.Second)))
			due -= late
		}
		due = min(due, int(d.freed.Load())+maxHeld)
		for ; sent < due && failure.get() == nil; sent++ {
			d.send(d.next.click(now), &failure)
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	return d.flush(&failure)
}

// Finish writes one event of another kind, far ahead in time, into every partition: it belongs to no window
// and lets the watermark pass the end of all windows, as time would. Call it after Produce.
func (d *Demo) Finish() error {
	var failure firstError
	for p := range d.cfg.Partitions {
		value := appendEvent(nil, "close", "", "", time.Now().Add(time.Hour))
		d.client.Produce(context.Background(), &kgo.Record{Topic: Clicks, Partition: p, Value: value}, func(_ *kgo.Record, err error) { failure.set(err) })
	}
	return d.flush(&failure)
}

func (d *Demo) flush(failure *firstError) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := errors.Join(d.client.Flush(ctx), failure.get()); err != nil {
		return fmt.Errorf("cannot write to the embedded broker: %w", err)
	}
	return nil
}

// send writes one click and, once the broker has it, enters it into the ledger.
// It blocks while too many are on their way.
func (d *Demo) send(c click, failure *firstError) {
	d.client.Produce(context.Background(), &c.record, func(_ *kgo.Record, err error) {
		if err != nil {
			failure.set(err)
			return
		}
		d.ledger.produced(c.user, c.at)
	})
}

// click is one event on its way.
type click struct {
	record kgo.Record
	user   int
	at     time.Time
}

// nextEvent makes events up.
type nextEvent struct {
	random     *rand.Rand
	popular    *rand.Zipf
	n          int64
	partitions int32
}

func newNextEvent(cfg Config) nextEvent {
	random := rand.New(rand.NewPCG(cfg.Seed, 0x4e4))
	return nextEvent{random: random, popular: rand.NewZipf(random, 1.1, 4, users-1), partitions: cfg.Partitions}
}

// click makes the next event: a little out of order, some users far busier than others, the partitions in turn.
func (e *nextEvent) click(now time.Time) click {
	c := click{user: int(e.popular.Uint64()), at: now.Add(-time.Duration(e.random.Int64N(int64(disorder)))).Truncate(time.Millisecond)}
	c.record = kgo.Record{Topic: Clicks, Partition: int32(e.n % int64(e.partitions))}
	url := "/page/" + strconv.Itoa(e.random.IntN(50))
	c.record.Value = appendEvent(make([]byte, 0, 96), "click", userName(c.user), url, c.at)
	e.n++
	return c
}

// appendEvent appends an event as JSON. The texts need no escaping.
func appendEvent(b []byte, kind, user, url string, at time.Time) []byte {
	b = append(b, `{"kind":"`...)
	b = append(b, kind...)
	b = append(b, `","user":"`...)
	b = append(b, user...)
	b = append(b, `","url":"`...)
	b = append(b, url...)
	b = append(b, `","at":"`...)
	b = at.UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z")
	return append(b, `"}`...)
}

var names = [...]string{"ada", "grace", "edsger", "barbara", "alan", "katherine", "donald", "frances", "dennis", "radia"}

// userName is the name of user i: ada … radia, ada-1 ….
func userName(i int) string {
	name := names[i%len(names)]
	if i >= len(names) {
		name += "-" + strconv.Itoa(i/len(names))
	}
	return name
}

// firstError keeps the first error it is given.
type firstError struct {
	mu  sync.Mutex
	err error // guarded by mu
}

func (f *firstError) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
	}
}

func (f *firstError) get() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}
