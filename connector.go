package heddle

import "github.com/heddle-stream/heddle/internal/flow"

// The interfaces of connectors. A connector is a package of its own that implements Source or Sink.
type (
	// Source finds splits in the master and reads them in its subtasks.
	Source[T any] = flow.Input[T]
	// Sink writes records in its subtasks.
	Sink[T any] = flow.Output[T]
	// Reader reads the splits of one subtask of a Source.
	Reader[T any] = flow.Reader[T]
	// SinkWriter writes the records of one subtask of a Sink.
	SinkWriter[T any] = flow.SinkWriter[T]
	// Batch is records with their event times; see its fields for what may be kept.
	Batch[T any] = flow.Batch[T]
)

// From adds a source of messages and reads their values as records by the format:
//
//	heddle.From(job, kafkasource.Topics("clicks"), heddle.JSON[Click]())
func From[T any](j *Job, src flow.MessageSource, f flow.Format[T]) Stream[T] {
	return FromSource(j, flow.Decode(src, f, flow.FailOnBad))
}

// To adds a sink of messages and writes records by the format.
func To[T any](s Stream[T], sink flow.MessageSink, f flow.Format[T]) {
	ToSink(s, flow.Encode(sink, f))
}

// FromSource adds a source of typed records.
func FromSource[T any](j *Job, src Source[T]) Stream[T] {
	marks := new(flow.Watermarks[T])
	s := addNode[T](j, nodeSpec{kind: "source", detail: src.Describe(), source: src, new: flow.NewSource(src, marks)})
	s.op.marks = marks
	return s
}

// ToSink adds a sink of typed records.
func ToSink[T any](s Stream[T], sink Sink[T]) {
	addOp(s.job, nodeSpec{kind: "sink", detail: sink.Describe(), sink: true, new: flow.NewSink(sink)}, nil, s.edges(0))
}
