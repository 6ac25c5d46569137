package flow

import "encoding/binary"

// Where lets only records through to agg for which keep is true.
func Where[T, A, R any](keep func(T) bool, agg Aggregator[T, A, R]) Aggregator[T, A, R] {
	return whereAgg[T, A, R]{agg, keep}
}

type whereAgg[T, A, R any] struct {
	Aggregator[T, A, R]
	keep func(T) bool
}

func (w whereAgg[T, A, R]) Add(acc A, rec T) A {
	if !w.keep(rec) {
		return acc
	}
	return w.Aggregator.Add(acc, rec)
}

// Codec implements AccumulatorCodec.
func (w whereAgg[T, A, R]) Codec(cs *Codecs) (Codec[A], error) {
	return accumulatorCodec(w.Aggregator, cs)
}

// Then makes something else of the result of agg.
func Then[T, A, R, S any](agg Aggregator[T, A, R], f func(R) S) Aggregator[T, A, S] {
	return thenAgg[T, A, R, S]{agg, f}
}

type thenAgg[T, A, R, S any] struct {
	agg Aggregator[T, A, R]
	f   func(R) S
}

func (t thenAgg[T, A, R, S]) Zero() A                            { return t.agg.Zero() }
func (t thenAgg[T, A, R, S]) Add(acc A, rec T) A                 { return t.agg.Add(acc, rec) }
func (t thenAgg[T, A, R, S]) Merge(into, from A) A               { return t.agg.Merge(into, from) }
func (t thenAgg[T, A, R, S]) Result(acc A) S                     { return t.f(t.agg.Result(acc)) }
func (t thenAgg[T, A, R, S]) Codec(cs *Codecs) (Codec[A], error) { return accumulatorCodec(t.agg, cs) }

// Two is the accumulator of Combine.
type Two[A, B any] struct {
	A A
	B B
}

// Combine runs two aggregators over the same records and joins their results.
func Combine[T, A1, R1, A2, R2, R any](a Aggregator[T, A1, R1], b Aggregator[T, A2, R2], join func(R1, R2) R) Aggregator[T, Two[A1, A2], R] {
	return combineAgg[T, A1, R1, A2, R2, R]{a, b, join}
}

type combineAgg[T, A1, R1, A2, R2, R any] struct {
	a    Aggregator[T, A1, R1]
	b    Aggregator[T, A2, R2]
	join func(R1, R2) R
}

func (c combineAgg[T, A1, R1, A2, R2, R]) Zero() Two[A1, A2] {
	return Two[A1, A2]{c.a.Zero(), c.b.Zero()}
}

func (c combineAgg[T, A1, R1, A2, R2, R]) Add(acc Two[A1, A2], rec T) Two[A1, A2] {
	return Two[A1, A2]{c.a.Add(acc.A, rec), c.b.Add(acc.B, rec)}
}

func (c combineAgg[T, A1, R1, A2, R2, R]) Merge(into, from Two[A1, A2]) Two[A1, A2] {
	return Two[A1, A2]{c.a.Merge(into.A, from.A), c.b.Merge(into.B, from.B)}
}

func (c combineAgg[T, A1, R1, A2, R2, R]) Result(acc Two[A1, A2]) R {
	return c.join(c.a.Result(acc.A), c.b.Result(acc.B))
}

// Codec implements AccumulatorCodec.
func (c combineAgg[T, A1, R1, A2, R2, R]) Codec(cs *Codecs) (Codec[Two[A1, A2]], error) {
	a, err := accumulatorCodec(c.a, cs)
	if err != nil {
		return nil, err
	}
	b, err := accumulatorCodec(c.b, cs)
	if err != nil {
		return nil, err
	}
	return twoCodec[A1, A2]{a, b}, nil
}

// twoCodec encodes the length of the first part (4 bytes, little-endian), the first and the second part.
type twoCodec[A, B any] struct {
	a Codec[A]
	b Codec[B]
}

func (c twoCodec[A, B]) Append(b []byte, v *Two[A, B]) ([]byte, error) {
	start := len(b)
	b, err := c.a.Append(append(b, 0, 0, 0, 0), &v.A)
	if err != nil {
		return b, err
	}
	binary.LittleEndian.PutUint32(b[start:], uint32(len(b)-start-4))
	return c.b.Append(b, &v.B)
}

func (c twoCodec[A, B]) Decode(b []byte, v *Two[A, B]) error {
	if len(b) < 4 {
		return errShort
	}
	n := int(binary.LittleEndian.Uint32(b))
	if n > len(b)-4 {
		return errShort
	}
	if err := c.a.Decode(b[4:4+n], &v.A); err != nil {
		return err
	}
	return c.b.Decode(b[4+n:], &v.B)
}
