package flow

import "unsafe"

// batchLen is how many records of type T make a batch of about BatchBytes.
func batchLen[T any]() int {
	var v T
	return max(1, min(1024, BatchBytes/max(1, int(unsafe.Sizeof(v)))))
}

// Buffer gathers records one by one into batches for an Out.
// Its owner must Flush it before anything else goes to that Out, and before it returns to its caller.
type Buffer[T any] struct {
	out   Out[T]
	recs  []T
	times []int64
	timed bool
}

// NewBuffer returns an empty Buffer for out.
func NewBuffer[T any](out Out[T]) *Buffer[T] {
	return &Buffer[T]{out: out, recs: make([]T, 0, batchLen[T]())}
}

// Add appends a record; time counts only if timed. It pushes a batch when it is full, or when timed changes.
func (b *Buffer[T]) Add(rec T, time int64, timed bool) error {
	if timed != b.timed {
		if err := b.Flush(); err != nil {
			return err
		}
		b.timed = timed
	}
	b.recs = append(b.recs, rec)
	if timed {
		b.times = append(b.times, time)
	}
	if len(b.recs) == cap(b.recs) {
		return b.Flush()
	}
	return nil
}

// Flush pushes what there is.
func (b *Buffer[T]) Flush() error {
	if len(b.recs) == 0 {
		return nil
	}
	batch := Batch[T]{Recs: b.recs}
	if b.timed {
		batch.Times = b.times
	}
	b.recs, b.times = b.recs[:0], b.times[:0]
	return b.out.Push(batch)
}

// Len is the number of records held.
func (b *Buffer[T]) Len() int { return len(b.recs) }
