// Package connector is what the author of a connector writes with: the types that the interfaces of package heddle's
// Source, Sink, MessageSource and MessageSink speak of.
//
// A source has two halves. Its enumerator runs in the application master: it finds the splits of the input (the partitions
// of a topic, the pieces of files) and says which subtask reads each. Its readers run in the subtasks. A connector declares its
// options with heddle.DeclareOption.
package connector

import "github.com/heddle-stream/heddle/internal/flow"

// What an enumerator is made of.
type (
	// Split is a part of a source's input that one subtask reads.
	Split = flow.Split
	// Enumerator finds splits.
	Enumerator = flow.Enumerator
	// EnumeratorEnv is what the master offers an enumerator.
	EnumeratorEnv = flow.EnumeratorEnv
	// Discovery is what an enumerator found.
	Discovery = flow.Discovery
)

// What readers are made of.
type (
	// Batch is records with their event times; see its fields for what may be kept.
	Batch[T any] = flow.Batch[T]
	// Runtime is what a task offers a connector.
	Runtime = flow.Runtime
	// ReaderEnv is what a task offers a reader.
	ReaderEnv = flow.ReaderEnv
	// Reader reads the splits of one subtask into records.
	Reader[T any] = flow.Reader[T]
	// Emit takes the records of one split.
	Emit[T any] = flow.Emit[T]
	// MessageReader reads the splits of one subtask into messages.
	MessageReader = flow.MessageReader
	// EmitMessages takes the messages of one split.
	EmitMessages = flow.EmitMessages
	// MessageFields says which parts of messages beside their values somebody wants.
	MessageFields = flow.MessageFields
	// Span is a run of bytes within a batch of messages.
	Span = flow.Span
	// SourceStatus is what a poll came to.
	SourceStatus = flow.SourceStatus
	// SplitStatus is the progress of one split.
	SplitStatus = flow.SplitStatus
)

// The parts of a message that a reader fills in only when asked.
const (
	FieldKey     = flow.FieldKey
	FieldHeaders = flow.FieldHeaders
	FieldOffset  = flow.FieldOffset
	FieldTime    = flow.FieldTime
)

// What a poll came to.
const (
	More = flow.SourceMore // it emitted, or may have more at once
	Wait = flow.SourceWait // nothing now: poll again after Runtime.Wake, a timer or an added split
	End  = flow.SourceEnd  // every split is read to its end and no more will come
)

// What writers are made of.
type (
	// SinkWriter writes the records of one subtask.
	SinkWriter[T any] = flow.SinkWriter[T]
	// MessageWriter writes the messages of one subtask.
	MessageWriter = flow.MessageWriter
	// Finisher is a writer that does something once all was written.
	Finisher = flow.Finisher
)
