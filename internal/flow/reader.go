package flow

import (
	"errors"
	"fmt"
	"unsafe"
)

// newReader returns what decodes segments of records with layout l into out.
func newReader[T any](out Out[T], l *layout) *reader[T] { return &reader[T]{Out: out, l: l} }

// reader implements SegmentReader. Owned by the task's goroutine.
type reader[T any] struct {
	Out[T]
	l     *layout
	dec   decoder
	buf   []T // records being decoded, of a type that isn't fixed
	parts fragments

	tracer *Tracer
	passed int // records of the segment that were pushed, while some of it are followed
}

// Trace implements TracedReader.
func (r *reader[T]) Trace(t *Tracer) { r.tracer = t }

// TracedReader is a SegmentReader that pushes records which are followed by a Tracer in batches of their own.
type TracedReader interface{ Trace(t *Tracer) }

// pass pushes the next records of the segment.
func (r *reader[T]) pass(b Batch[T]) error {
	if r.tracer == nil || len(r.tracer.marks) == 0 {
		return r.Push(b)
	}
	first := r.passed
	r.passed += len(b.Recs)
	return pushMarked(r.tracer, r.Out, first, b)
}

// Consume implements SegmentReader.
func (r *reader[T]) Consume(payload []byte) error {
	if err := r.consume(payload, false); err != nil {
		var bad malformed
		if errors.As(err, &bad) {
			return &SegmentError{fmt.Errorf("cannot decode segment of %s records: %w", r.l.typ, bad.error)}
		}
		return err
	}
	return nil
}

// SegmentError says that the bytes of a segment can't be right. No operator is to blame.
type SegmentError struct{ Err error }

func (e *SegmentError) Error() string { return e.Err.Error() }
func (e *SegmentError) Unwrap() error { return e.Err }

// malformed marks the errors that a segment is to blame for, not the operators after the reader.
type malformed struct{ error }

// consume decodes one segment; whole says that it was put together from fragments.
func (r *reader[T]) consume(b []byte, whole bool) error {
	if !aligned(b) {
		b = append(alignedBytes(len(b))[:0], b...)
	}
	h, err := parseHead(b, r.l)
	if err != nil {
		return malformed{err}
	}
	if h.kind == kindFragment {
		if whole {
			return malformed{errors.New("a fragment holds fragments")}
		}
		b, err := r.parts.add(b, h)
		if err != nil {
			return malformed{err}
		}
		if b == nil {
			return nil
		}
		return r.consume(b, true)
	}
	times, end, err := timesOf(b, h)
	if err != nil {
		return malformed{err}
	}
	r.passed = 0
	if r.l.fixed {
		return r.fixed(b, h, times, end)
	}
	return r.decode(b[headBytes:end], int(h.count), times)
}

// fixed pushes the records where they lie.
func (r *reader[T]) fixed(b []byte, h head, times []int64, end int) error {
	n, size := int(h.count), int(r.l.size)
	if size == 0 && n > maxEmpty || size > 0 && n > (len(b)-headBytes)/size {
		return malformed{errLength}
	}
	last := headBytes + n*size
	if times != nil {
		last = pad8(last)
	}
	if last != end {
		return malformed{errLength}
	}
	var recs []T
	if size == 0 {
		recs = make([]T, n) // takes no memory
	} else {
		recs = unsafe.Slice((*T)(unsafe.Pointer(&b[headBytes])), n)
	}
	if err := r.checkBools(recs); err != nil {
		return err
	}
	for step := batchLen[T](); len(recs) > 0; {
		k := min(step, len(recs))
		if err := r.pass(Batch[T]{Recs: recs[:k:k], Times: headTimes(times, k)}); err != nil {
			return err
		}
		recs = recs[k:]
		if times != nil {
			times = times[k:]
		}
	}
	return nil
}

func (r *reader[T]) checkBools(recs []T) error {
	if len(r.l.bools) == 0 {
		return nil
	}
	for i := range recs {
		p := unsafe.Pointer(&recs[i])
		for _, off := range r.l.bools {
			if *(*byte)(unsafe.Add(p, off)) > 1 {
				return malformed{errBool}
			}
		}
	}
	return nil
}

// decode decodes n records from b, which also holds up to 7 bytes before the times.
func (r *reader[T]) decode(b []byte, n int, times []int64) error {
	if n > len(b)/max(1, r.l.least) {
		return malformed{errLength}
	}
	if r.buf == nil {
		r.buf = make([]T, batchLen[T]())
	}
	r.dec.start(r.l, b)
	pos := 0
	for n > 0 {
		k := min(n, len(r.buf))
		recs := r.buf[:k]
		var err error
		if pos, err = r.decodeBatch(recs, pos); err != nil {
			return malformed{err}
		}
		if n -= k; n == 0 && !atEnd(pos, len(b), times != nil) {
			return malformed{errLength}
		}
		if err := r.pass(Batch[T]{Recs: recs, Times: headTimes(times, k)}); err != nil {
			return err
		}
		if times != nil {
			times = times[k:]
		}
	}
	return nil
}

// atEnd reports whether records that end at pos end where they should.
func atEnd(pos, end int, timed bool) bool {
	if timed {
		return pad8(pos) == end
	}
	return pos == end
}

// decodeBatch fills recs with what begins at pos.
func (r *reader[T]) decodeBatch(recs []T, pos int) (int, error) {
	if r.l.custom {
		clear(recs)
	}
	switch r.l.plain {
	case opString:
		return r.dec.strings(sameMemory[string](recs), pos)
	case opBytes:
		return r.dec.bytes(sameMemory[[]byte](recs), pos)
	}
	var err error
	for i := range recs {
		if pos, err = r.dec.value(r.l, pos, unsafe.Pointer(&recs[i])); err != nil {
			return 0, err
		}
	}
	return pos, nil
}
