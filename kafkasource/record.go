package kafkasource

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/kafka/batch"
)

// Record is a Kafka record with all there is to it.
type Record struct {
	Topic     string
	Partition int32
	Offset    int64
	Time      time.Time // as the producer or the broker set it
	Key       []byte    // nil: null
	Value     []byte    // nil: null, as in a tombstone
	Headers   []Header
}

// Header is a named value beside a record.
type Header struct {
	Key   string
	Value []byte // nil: null
}

// Records is the format of whole records. The bytes in a Record are borrowed: see package heddle.
func Records() flow.Format[Record] {
	return RecordFormat("record", func(r *Record) (Record, error) { return *r, nil })
}

// RecordFormat is a format that sees whole records. decode must copy the bytes it keeps beyond the operator that gets the result;
// r itself is used again. name is for plans and errors.
func RecordFormat[T any](name string, decode func(r *Record) (T, error)) flow.Format[T] {
	return recordFormat[T]{name: name, decode: decode}
}

type recordFormat[T any] struct {
	name   string
	decode func(*Record) (T, error)
}

// Name implements flow.Format.
func (f recordFormat[T]) Name() string { return f.name }

// Fields implements flow.Format.
func (f recordFormat[T]) Fields() flow.MessageFields {
	return flow.FieldKey | flow.FieldHeaders | flow.FieldOffset | flow.FieldTime
}

// Decode implements flow.Format.
func (f recordFormat[T]) Decode(dst []T, m *flow.Messages, from int) ([]T, error) {
	r := Record{Topic: m.Topic, Partition: m.Partition}
	for i := from; i < m.Len(); i++ {
		r.Offset, r.Time = m.Offsets[i], time.UnixMilli(m.Times[i])
		r.Key, r.Value = m.At(m.Keys[i]), m.Value(i)
		r.Headers = nil // a decode function may keep them in its record
		if h := m.At(m.Headers[i]); !bytes.Equal(h, noHeaders) {
			hs, err := batch.Headers(nil, h)
			if err != nil {
				return dst, fmt.Errorf("offset %d: %w", r.Offset, err)
			}
			for _, h := range hs {
				r.Headers = append(r.Headers, Header(h))
			}
		}
		rec, err := f.decode(&r)
		if err != nil {
			return dst, err
		}
		dst = append(dst, rec)
	}
	return dst, nil
}

var noHeaders = []byte{0}

// Encode implements flow.Format: a source's format can't.
func (f recordFormat[T]) Encode(*flow.Messages, []T) error {
	return errors.New("a kafkasource.RecordFormat can only be read by; write with kafkasink.RecordFormat")
}
