// Package testjob has sources and sinks for the tests of what runs jobs.
package testjob

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
)

// Source emits what At returns for each index, over a number of splits.
type Source[T any] struct {
	Splits int
	Each   int                          // records of each split; negative: no end
	At     func(split, index int) T     // makes a record
	Time   func(split, index int) int64 // event time; nil: none
	Batch  int                          // records a poll; 0: 100
	Pause  time.Duration                // the reader waits so long after each poll; 0: never
	Fail   error                        // of the enumerator
}

var _ flow.Input[int] = (*Source[int])(nil)

// Bounded implements flow.Source.
func (s *Source[T]) Bounded() bool { return s.Each >= 0 }

// Describe implements flow.Input.
func (s *Source[T]) Describe() string { return fmt.Sprintf("%d test splits", s.Splits) }

// Enumerator implements flow.Source.
func (s *Source[T]) Enumerator(context.Context, flow.EnumeratorEnv) (flow.Enumerator, error) {
	return &enumerator{splits: s.Splits, fail: s.Fail}, nil
}

// enumerator gives half of the splits at first and the rest a moment later.
type enumerator struct {
	splits, given int
	fail          error
}

func (e *enumerator) Discover(context.Context) (flow.Discovery, error) {
	if e.fail != nil {
		return flow.Discovery{}, e.fail
	}
	until := (e.splits + 1) / 2
	if e.given > 0 {
		until = e.splits
	}
	d := flow.Discovery{Final: until == e.splits, Next: time.Millisecond}
	for ; e.given < until; e.given++ {
		d.Added = append(d.Added, flow.Split{ID: strconv.Itoa(e.given)})
	}
	return d, nil
}

func (e *enumerator) Owner(s flow.Split, readers int) int {
	n, err := strconv.Atoi(s.ID)
	if err != nil {
		return 0
	}
	return n % readers
}

func (e *enumerator) Close() error { return nil }

// NewReader implements flow.Input.
func (s *Source[T]) NewReader(ctx context.Context, env flow.ReaderEnv) (flow.Reader[T], error) {
	return &reader[T]{s: s, env: env}, nil
}

type position struct {
	id           string
	split, index int
	ended        bool
}

type reader[T any] struct {
	s      *Source[T]
	env    flow.ReaderEnv
	splits []position
	next   int
	noMore bool
	recs   []T
	times  []int64
	timers sync.WaitGroup
	rest   bool // a pause is on
	mu     sync.Mutex
}

func (r *reader[T]) AddSplits(splits []flow.Split) error {
	for _, s := range splits {
		n, err := strconv.Atoi(s.ID)
		if err != nil {
			return err
		}
		r.splits = append(r.splits, position{id: s.ID, split: n, ended: r.s.Each == 0})
	}
	return nil
}

func (r *reader[T]) NoMoreSplits() error {
	r.noMore = true
	return nil
}

// resting reports whether a pause is on, and begins one where it is due.
func (r *reader[T]) resting() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rest
}

func (r *reader[T]) pause() {
	if r.s.Pause == 0 {
		return
	}
	r.mu.Lock()
	r.rest = true
	r.mu.Unlock()
	r.timers.Add(1)
	time.AfterFunc(r.s.Pause, func() {
		defer r.timers.Done()
		r.mu.Lock()
		r.rest = false
		r.mu.Unlock()
		r.env.Runtime.Wake()
	})
}

func (r *reader[T]) Poll(emit flow.Emit[T]) (flow.SourceStatus, error) {
	if r.resting() {
		return flow.SourceWait, nil
	}
	for range r.splits {
		p := &r.splits[r.next%len(r.splits)]
		r.next++
		if p.ended {
			continue
		}
		return flow.SourceMore, r.emit(p, emit)
	}
	if r.noMore {
		return flow.SourceEnd, nil
	}
	return flow.SourceWait, nil
}

func (r *reader[T]) emit(p *position, emit flow.Emit[T]) error {
	n := r.s.Batch
	if n == 0 {
		n = 100
	}
	if r.s.Each >= 0 {
		n = min(n, r.s.Each-p.index)
	}
	r.recs, r.times = r.recs[:0], r.times[:0]
	for range n {
		r.recs = append(r.recs, r.s.At(p.split, p.index))
		if r.s.Time != nil {
			r.times = append(r.times, r.s.Time(p.split, p.index))
		}
		p.index++
	}
	p.ended = r.s.Each >= 0 && p.index >= r.s.Each
	b := flow.Batch[T]{Recs: r.recs}
	if r.s.Time != nil {
		b.Times = r.times
	}
	r.pause()
	return emit(p.id, b, p.ended)
}

func (r *reader[T]) Splits() []flow.SplitStatus {
	out := make([]flow.SplitStatus, len(r.splits))
	for i, p := range r.splits {
		out[i] = flow.SplitStatus{ID: p.id, Position: int64(p.index), End: int64(r.s.Each)}
	}
	return out
}

func (r *reader[T]) Close() error {
	r.timers.Wait()
	return nil
}

// Sink keeps what all its subtasks are given.
type Sink[T any] struct {
	Block bool // Write does not return before the task is cancelled

	mu     sync.Mutex
	recs   []T // guarded by mu
	closed int // guarded by mu
	opened int // guarded by mu
}

var _ flow.Output[int] = (*Sink[int])(nil)

// Describe implements flow.Output.
func (s *Sink[T]) Describe() string { return "test sink" }

// NewWriter implements flow.Output.
func (s *Sink[T]) NewWriter(ctx context.Context, _ flow.Runtime) (flow.SinkWriter[T], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened++
	return &sinkWriter[T]{s: s, done: ctx.Done()}, nil
}

// Records returns what was written so far.
func (s *Sink[T]) Records() []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]T(nil), s.recs...)
}

// Open returns how many writers are not closed.
func (s *Sink[T]) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened - s.closed
}

type sinkWriter[T any] struct {
	s       *Sink[T]
	done    <-chan struct{}
	flushed bool
}

func (w *sinkWriter[T]) Write(b flow.Batch[T]) error {
	if w.s.Block {
		<-w.done
		return errors.New("interrupted")
	}
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	w.s.recs = append(w.s.recs, b.Recs...)
	return nil
}

func (w *sinkWriter[T]) Flush(context.Context) error {
	w.flushed = true
	return nil
}

func (w *sinkWriter[T]) Close() error {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	w.s.closed++
	return nil
}
