package kafkasink

import (
	"context"
	"errors"
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/kafka/batch"
)

// Record is a Kafka record to be written.
type Record struct {
	Key     []byte // nil: null
	Value   []byte // nil: null, a tombstone in compacted topics
	Headers []Header
	Time    time.Time // zero for all: the event times, if the stream has them; zero for one: the time of writing
}

// Header is a named value beside a record.
type Header struct {
	Key   string
	Value []byte // nil: null
}

// WithKey is format with a key for each record. The empty key is a key like any other.
func WithKey[T any](format flow.Format[T], key func(T) string) flow.Format[T] {
	return keyed[T]{Format: format, key: key}
}

type keyed[T any] struct {
	flow.Format[T]
	key func(T) string
}

// Open implements flow.Opener where the format does.
func (k keyed[T]) Open(ctx context.Context, option func(string) (string, bool)) (flow.Format[T], error) {
	o, ok := k.Format.(flow.Opener[T])
	if !ok {
		return k, nil
	}
	var err error
	k.Format, err = o.Open(ctx, option)
	return k, err
}

// Needs implements flow.Needing where the format does.
func (k keyed[T]) Needs() []flow.Need { return flow.NeedsOf(k.Format) }

// Encode implements flow.Format.
func (k keyed[T]) Encode(m *flow.Messages, recs []T) error {
	if err := k.Format.Encode(m, recs); err != nil {
		return err
	}
	m.Keys = m.Keys[:0]
	for _, r := range recs {
		key := k.key(r)
		m.Keys = append(m.Keys, span(m, len(key)))
		m.Buf = append(m.Buf, key...)
	}
	return nil
}

// RecordFormat is a format that makes whole records of T by encode, which fills r. name is for plans and errors.
func RecordFormat[T any](name string, encode func(rec T, r *Record) error) flow.Format[T] {
	return recordFormat[T]{name: name, encode: encode}
}

type recordFormat[T any] struct {
	name   string
	encode func(T, *Record) error
}

// Name implements flow.Format.
func (f recordFormat[T]) Name() string { return f.name }

// Fields implements flow.Format.
func (f recordFormat[T]) Fields() flow.MessageFields { return 0 }

// Decode implements flow.Format: a sink's format can't.
func (f recordFormat[T]) Decode(dst []T, _ *flow.Messages, _ int) ([]T, error) {
	return dst, errors.New("a kafkasink.RecordFormat can only be written by; read with kafkasource.RecordFormat")
}

// Encode implements flow.Format.
func (f recordFormat[T]) Encode(m *flow.Messages, recs []T) error {
	var hs []batch.RecordHeader
	timed := false
	for _, rec := range recs {
		var r Record
		if err := f.encode(rec, &r); err != nil {
			return err
		}
		m.Keys = append(m.Keys, bytesSpan(m, r.Key))
		m.Buf = append(m.Buf, r.Key...)
		m.Values = append(m.Values, bytesSpan(m, r.Value))
		m.Buf = append(m.Buf, r.Value...)
		hs = hs[:0]
		for _, h := range r.Headers {
			hs = append(hs, batch.RecordHeader(h))
		}
		from := len(m.Buf)
		m.Buf = batch.AppendHeaders(m.Buf, hs)
		m.Headers = append(m.Headers, flow.Span{Off: int32(from), Len: int32(len(m.Buf) - from)})
		at := flow.MinTime
		if !r.Time.IsZero() {
			at, timed = r.Time.UnixMilli(), true
		}
		m.Times = append(m.Times, at)
	}
	if !timed {
		m.Times = m.Times[:0]
	}
	return nil
}

func bytesSpan(m *flow.Messages, b []byte) flow.Span {
	if b == nil {
		return flow.Span{Len: -1}
	}
	return span(m, len(b))
}

func span(m *flow.Messages, n int) flow.Span { return flow.Span{Off: int32(len(m.Buf)), Len: int32(n)} }
