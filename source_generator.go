package heddle

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/heddle-stream/heddle/internal/flow"
)

// Generate is a source that makes n records by calling make with 0, 1, 2 … n-1; for n < 0 it never ends.
// Each subtask makes its share: with two, one makes the even ones. As event time a record has the time when it was made.
func Generate[T any](n int64, make func(i int64) T) *Generator[T] {
	return &Generator[T]{n: n, make: make}
}

// Generator is a source of made-up records.
type Generator[T any] struct {
	n    int64
	rate float64
	make func(i int64) T
}

// Rate limits all subtasks together to so many records a second; 0 is no limit.
func (g *Generator[T]) Rate(perSecond float64) *Generator[T] {
	g.rate = perSecond
	return g
}

// Describe implements Source.
func (g *Generator[T]) Describe() string {
	s := "generator"
	if g.n >= 0 {
		s += fmt.Sprintf(" of %d", g.n)
	}
	if g.rate > 0 {
		s += fmt.Sprintf(", %g/s", g.rate)
	}
	return s
}

// Bounded implements Source.
func (g *Generator[T]) Bounded() bool { return g.n >= 0 }

// Enumerator implements Source.
func (g *Generator[T]) Enumerator(_ context.Context, env flow.EnumeratorEnv) (flow.Enumerator, error) {
	if g.make == nil || g.rate < 0 {
		return nil, errors.New("cannot generate records without a function, or at a negative rate")
	}
	splits := make([]flow.Split, env.Readers)
	for i := range splits {
		state := binary.AppendUvarint(nil, uint64(i))
		state = binary.AppendUvarint(state, uint64(env.Readers))
		splits[i] = flow.Split{ID: fmt.Sprintf("generator-%d", i), State: state}
	}
	return &staticSplits{splits: splits}, nil
}

// NewReader implements Source.
func (g *Generator[T]) NewReader(_ context.Context, env flow.ReaderEnv) (flow.Reader[T], error) {
	return &generatorReader[T]{g: g, env: env, perPoll: 1024}, nil
}

// generatorReader is owned by the task's goroutine.
type generatorReader[T any] struct {
	g       *Generator[T]
	env     flow.ReaderEnv
	perPoll int

	splits []*generatorSplit
	turn   int
	last   bool // no more splits
	recs   []T
	times  []int64
}

// generatorSplit makes the records i, i+step, i+2·step …
type generatorSplit struct {
	id      string
	i, step int64
	made    int64
	start   int64 // processing time of the first poll, moved on where the reader fell behind; MinTime before
}

func (r *generatorReader[T]) AddSplits(splits []flow.Split) error {
	for _, s := range splits {
		i, n := binary.Uvarint(s.State)
		if n <= 0 {
			return fmt.Errorf("cannot read state of split %s", s.ID)
		}
		step, m := binary.Uvarint(s.State[n:])
		if m <= 0 || step == 0 {
			return fmt.Errorf("cannot read state of split %s", s.ID)
		}
		r.splits = append(r.splits, &generatorSplit{id: s.ID, i: int64(i), step: int64(step), start: flow.MinTime})
	}
	return nil
}

func (r *generatorReader[T]) NoMoreSplits() error { r.last = true; return nil }

func (r *generatorReader[T]) Close() error { return nil }

func (r *generatorReader[T]) Splits() []flow.SplitStatus {
	st := make([]flow.SplitStatus, len(r.splits))
	for i, s := range r.splits {
		st[i] = flow.SplitStatus{ID: s.id, Position: s.i, End: -1}
		if r.g.n >= 0 {
			st[i].End = r.g.n
		}
	}
	return st
}

// Poll implements Reader: it makes a batch of one split.
func (r *generatorReader[T]) Poll(emit flow.Emit[T]) (flow.SourceStatus, error) {
	if len(r.splits) == 0 {
		if r.last {
			return flow.SourceEnd, nil
		}
		return flow.SourceWait, nil
	}
	now := r.env.Runtime.Now()
	next := flow.MaxTime
	for range r.splits {
		r.turn = (r.turn + 1) % len(r.splits)
		s := r.splits[r.turn]
		n, at := r.due(s, now)
		next = min(next, at)
		if n == 0 {
			continue
		}
		return flow.SourceMore, r.produce(s, n, now, emit)
	}
	r.env.Runtime.SetTimer(next)
	return flow.SourceWait, nil
}

// maxBehind is how far, in milliseconds, a limited generator catches up after it was held up.
const maxBehind = 1000

// due is how many records s may make at now; if none, when it may.
func (r *generatorReader[T]) due(s *generatorSplit, now int64) (int, int64) {
	if r.g.rate <= 0 {
		return r.perPoll, now
	}
	perMilli := r.g.rate / float64(s.step) / 1000
	if s.start == flow.MinTime {
		s.start = now
	}
	due := func() float64 { return float64(now-s.start)*perMilli + 1 - float64(s.made) }
	if late := (due() - 1) / perMilli; late > maxBehind {
		s.start += int64(late) - maxBehind
	}
	if n := due(); n >= 1 {
		return min(int(n), r.perPoll), now
	}
	return 0, max(now+1, s.start+int64(float64(s.made)/perMilli))
}

func (r *generatorReader[T]) produce(s *generatorSplit, n int, now int64, emit flow.Emit[T]) error {
	r.recs, r.times = r.recs[:0], r.times[:0]
	for range n {
		if r.g.n >= 0 && s.i >= r.g.n {
			break
		}
		r.recs = append(r.recs, r.g.make(s.i))
		r.times = append(r.times, now)
		s.i += s.step
		s.made++
	}
	b := Batch[T]{Recs: r.recs}
	if r.env.Times {
		b.Times = r.times
	}
	ended := r.g.n >= 0 && s.i >= r.g.n
	if ended {
		r.splits = append(r.splits[:r.turn:r.turn], r.splits[r.turn+1:]...)
		r.turn = 0
	}
	return emit(s.id, b, ended)
}
