package heddle

import (
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
)

// Watermarks says how a stream gets event times and watermarks; see Stream.Watermark.
type Watermarks[T any] = flow.Watermarks[T]

// WatermarkGenerator works out the watermark of a stream, or of one split of a source.
type WatermarkGenerator[T any] = flow.Generator[T]

// BoundedDelay expects no record more than delay behind the latest. at takes the event time from a record; with nil it is
// what the source gives, such as a Kafka message's timestamp.
func BoundedDelay[T any](delay time.Duration, at func(T) time.Time) Watermarks[T] {
	return Watermarks[T]{Time: at, New: flow.BoundedDelay[T](max(0, delay))}
}

// Monotonous expects times that never go back within a split. at is as for BoundedDelay.
func Monotonous[T any](at func(T) time.Time) Watermarks[T] { return BoundedDelay(0, at) }

// GeneratedBy takes watermarks from generators of the author's own, one for each split of a source. at is as for BoundedDelay.
func GeneratedBy[T any](generator func() WatermarkGenerator[T], at func(T) time.Time) Watermarks[T] {
	return Watermarks[T]{Time: at, New: generator}
}

// Watermark gives the stream event times and watermarks. Right after a source it works for each split on its own,
// so that splits which are read at different speeds make no record late; elsewhere for each subtask.
// At the end of a bounded input every window fires, with or without it.
func (s Stream[T]) Watermark(w Watermarks[T]) Stream[T] {
	if w.New == nil {
		s.job.errorf("Watermark without a strategy: use BoundedDelay, Monotonous or GeneratedBy")
		return s
	}
	if s.op != nil && len(s.ups) == 1 && s.ups[0].FromPort == 0 && s.ups[0].Part.Auto {
		if marks, ok := s.op.marks.(*Watermarks[T]); ok {
			*marks = w
			s.op.node.Align = w.Alignment()
			return s
		}
	}
	if w.Group != "" {
		s.job.errorf("Watermark with the alignment group %q that is not right after a source: only sources can wait", w.Group)
	}
	return addNode[T](s.job, nodeSpec{kind: "watermark", new: flow.NewAssigner(&w)}, s.edges(0)...)
}
