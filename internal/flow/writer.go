package flow

import (
	"fmt"
	"reflect"
)

// encoder puts records into the segments of a writer's channels.
type encoder[T any] interface {
	// fill puts as many of b as the channel's segment takes and returns how many. It sends the segment if that is full.
	fill(ch int, b Batch[T]) (n int, full bool, err error)
	// scatter puts each record into the segment of its channel.
	scatter(b Batch[T], chs []uint16) error
	// followed is fill for the one record of b, which is being followed: it tells where in the segment it is.
	followed(ch int, b Batch[T]) error
	// flush sends the channel's segment, if it holds a record, and says whether it did.
	flush(ch int) (bool, error)
	// pending is how many channels have a segment that holds a record.
	pending() int
}

// writer implements Out and Writer: it chooses channels and leaves the rest to its encoder. Owned by the task's goroutine.
type writer[T any] struct {
	cfg  WriterConfig
	enc  encoder[T]
	step int // records that make a batch

	next   int // round robin: the channel whose turn it is
	keys   *KeyBy[T]
	owner  []uint16 // [key group] → channel
	choose func(T, int) int
	chs    []uint16 // the channel of each record of a batch
}

func newWriter[T any](cfg WriterConfig, l *layout) (*writer[T], error) {
	if cfg.Channels < 1 || cfg.Channels > MaxKeyGroups {
		return nil, fmt.Errorf("a writer of %s records can't have %d channels", l.typ, cfg.Channels)
	}
	w := &writer[T]{cfg: cfg, step: batchLen[T](), next: cfg.Subtask % cfg.Channels}
	if cfg.Records == nil {
		w.cfg.Records = new(Counter)
	}
	if cfg.Bytes == nil {
		w.cfg.Bytes = new(Counter)
	}
	switch cfg.Part.Kind {
	case Hash:
		var ok bool
		if w.keys, ok = cfg.Part.Impl.(*KeyBy[T]); !ok {
			return nil, fmt.Errorf("hash partitioning of %s records needs a *flow.KeyBy of them, not %T", l.typ, cfg.Part.Impl)
		}
		if cfg.MaxParallelism < cfg.Channels || cfg.MaxParallelism > MaxKeyGroups {
			return nil, fmt.Errorf("%d key groups for %d subtasks", cfg.MaxParallelism, cfg.Channels)
		}
		w.owner = make([]uint16, cfg.MaxParallelism)
		for g := range w.owner {
			w.owner[g] = uint16(GroupSubtask(g, cfg.MaxParallelism, cfg.Channels))
		}
	case Custom:
		var ok bool
		if w.choose, ok = cfg.Part.Impl.(func(T, int) int); !ok {
			return nil, fmt.Errorf("custom partitioning of %s records needs a func(%[1]s, int) int, not %T", l.typ, cfg.Part.Impl)
		}
	}
	if l.fixed {
		w.enc = newFixedEncoder[T](&w.cfg, l)
	} else {
		w.enc = newPlanEncoder[T](&w.cfg, l)
	}
	return w, nil
}

// Push implements Out.
func (w *writer[T]) Push(b Batch[T]) error {
	w.cfg.Records.Add(int64(len(b.Recs)))
	if w.cfg.Tracer.Active() {
		return w.pushFollowed(b)
	}
	return w.push(b)
}

func (w *writer[T]) push(b Batch[T]) error {
	switch w.cfg.Part.Kind {
	case Broadcast:
		for ch := range w.cfg.Channels {
			if err := w.fill(ch, b); err != nil {
				return err
			}
		}
		return nil
	case Hash, Custom:
		if w.cfg.Channels > 1 || w.choose != nil {
			return w.scatter(b)
		}
	case Rebalance, Rescale:
		if w.cfg.Channels > 1 {
			return w.spread(b)
		}
	}
	return w.fill(0, b)
}

// fill puts all of b into one channel.
func (w *writer[T]) fill(ch int, b Batch[T]) error {
	for len(b.Recs) > 0 {
		n, _, err := w.enc.fill(ch, b)
		if err != nil {
			return err
		}
		b = tail(b, n)
	}
	return nil
}

// spread is round robin. A batch of at least half the usual size goes into the segment being filled, and the turn passes
// with each segment: this is fastest and, at the rate that makes such batches, even. A smaller batch is cut into even pieces.
func (w *writer[T]) spread(b Batch[T]) error {
	if len(b.Recs) >= w.step/2 {
		for len(b.Recs) > 0 {
			n, full, err := w.enc.fill(w.next, b)
			if err != nil {
				return err
			}
			if full {
				w.turn()
			}
			b = tail(b, n)
		}
		return nil
	}
	each, more := len(b.Recs)/w.cfg.Channels, len(b.Recs)%w.cfg.Channels
	first := w.next
	for i := 0; len(b.Recs) > 0; i++ {
		n := each
		if i < more {
			n++
		}
		if err := w.fill(w.next, Batch[T]{Recs: b.Recs[:n], Times: headTimes(b.Times, n)}); err != nil {
			return err
		}
		w.turn()
		b = tail(b, n)
	}
	w.next = (first + more) % w.cfg.Channels // the next batch begins with those that got one less
	return nil
}

func (w *writer[T]) turn() {
	if w.next++; w.next == w.cfg.Channels {
		w.next = 0
	}
}

// scatter is hash and custom partitioning.
func (w *writer[T]) scatter(b Batch[T]) error {
	if len(b.Recs) > len(w.chs) {
		w.chs = make([]uint16, max(w.step, len(b.Recs)))
	}
	chs := w.chs[:len(b.Recs)]
	if err := w.channels(b.Recs, chs); err != nil {
		return err
	}
	return w.enc.scatter(b, chs)
}

// channels finds the channel of each record. It runs the author's function.
func (w *writer[T]) channels(recs []T, chs []uint16) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("cannot partition %s records: %w", reflect.TypeFor[T](), panicked(p, panicSite()))
		}
	}()
	if w.choose == nil {
		w.keys.find(recs, len(w.owner), w.owner, chs)
		return nil
	}
	for i := range recs {
		ch := w.choose(recs[i], w.cfg.Channels)
		if uint(ch) >= uint(w.cfg.Channels) {
			logged := fmt.Sprintf("cannot partition %s records: the function for PartitionBy returned %d of %d", reflect.TypeFor[T](), ch, w.cfg.Channels)
			return &DataError{fmt.Errorf("%s; record: %s", logged, show(recs[i], maxShown)), logged}
		}
		chs[i] = uint16(ch)
	}
	return nil
}

// Control implements Out: to every channel, after the records before it.
func (w *writer[T]) Control(c Control) error {
	if err := w.Flush(); err != nil {
		return err
	}
	for ch := range w.cfg.Channels {
		if err := w.cfg.Segments.Control(ch, c); err != nil {
			return err
		}
	}
	return nil
}

// Flush implements Writer.
func (w *writer[T]) Flush() error {
	if w.enc.pending() == 0 {
		return nil
	}
	for ch := range w.cfg.Channels {
		sent, err := w.enc.flush(ch)
		if err != nil {
			return err
		}
		if sent && ch == w.next {
			w.turn()
		}
	}
	return nil
}

// Pending implements Writer.
func (w *writer[T]) Pending() bool { return w.enc.pending() > 0 }
