package flow

import "context"

// Span is a run of bytes within Messages.Buf. A negative Len is a null, as Kafka has for tombstones.
type Span struct{ Off, Len int32 }

// Messages is a batch of messages of one split in the form an outside system keeps them: bytes to which
// a Format has yet to be applied (or was just applied). Slices hold one element a message, or are nil where nobody asked for them.
//
// It is borrowed for the call it is passed in. All spans lie in Buf, in order, so that one string(m.Buf) serves
// the strings of a whole batch.
type Messages struct {
	Buf     []byte
	Values  []Span  // always there
	Keys    []Span  // FieldKey
	Headers []Span  // FieldHeaders: in the connector's own encoding
	Offsets []int64 // FieldOffset
	Times   []int64 // FieldTime: milliseconds since the Unix epoch

	Topic     string // or file; "" where there is none
	Partition int32
	// Traces are the trace contexts of messages that have a sampled one, in order. A reader fills it in only for FieldTrace; a
	// writer sends it along where it can.
	Traces []MessageTrace

	Lines bool // the messages are lines of text: a blank one that the format can't decode is no message
}

// MessageTrace is the trace context of one message.
type MessageTrace struct {
	Index   int
	Context TraceContext
}

// Len is the number of messages.
func (m *Messages) Len() int { return len(m.Values) }

// Value returns the value of message i, nil for a null. It is borrowed.
func (m *Messages) Value(i int) []byte { return m.At(m.Values[i]) }

// At returns the bytes of s, nil for a null. They are borrowed.
func (m *Messages) At(s Span) []byte {
	if s.Len < 0 {
		return nil
	}
	return m.Buf[s.Off : s.Off+s.Len : s.Off+s.Len]
}

// Reset empties m and keeps its memory.
func (m *Messages) Reset() {
	m.Buf, m.Values, m.Keys = m.Buf[:0], m.Values[:0], m.Keys[:0]
	m.Headers, m.Offsets, m.Times, m.Traces = m.Headers[:0], m.Offsets[:0], m.Times[:0], m.Traces[:0]
}

// MessageFields says which parts of messages beside their values somebody wants.
type MessageFields uint8

// The parts of a message that a reader fills in only when asked.
const (
	FieldKey MessageFields = 1 << iota
	FieldHeaders
	FieldOffset
	FieldTime
	FieldTrace
)

// Format turns messages into records and records into messages. One value serves all subtasks at once, so it holds no scratch state.
type Format[T any] interface {
	// Name is for plans and errors, such as "json".
	Name() string
	// Fields says what Decode needs beside values.
	Fields() MessageFields
	// Decode appends to dst the record of each message from the from-th on, one a message.
	// At a message it can't decode it stops and returns the error with what it has: the bad message
	// is then number from + what was appended. Strings in records must not share memory with m.Buf, []byte may.
	// It may set m.Times, one for each message: the event times of the records where these hold them.
	Decode(dst []T, m *Messages, from int) ([]T, error)
	// Encode appends a message for each record to m: at least Buf and Values.
	// Where it sets Keys or Headers it does so for every record.
	Encode(m *Messages, recs []T) error
}

// MessageSource is a connector that reads messages and leaves their meaning to a Format. Decode makes an Input of it.
type MessageSource interface {
	Source
	// Describe is one line for plans, such as "kafka clicks".
	Describe() string
	// NewMessageReader makes the reader of one subtask; see Input.NewReader. want is what the Format and the stream need.
	NewMessageReader(ctx context.Context, env ReaderEnv, want MessageFields) (MessageReader, error)
}

// MessageReader reads splits into batches of messages, by the rules of Reader.
type MessageReader interface {
	AddSplits([]Split) error
	NoMoreSplits() error
	Poll(emit EmitMessages) (SourceStatus, error)
	Splits() []SplitStatus
	Close() error
}

// EmitMessages takes messages of one split; see Emit.
type EmitMessages func(split string, m *Messages, ended bool) error

// MessageSink is a connector that writes messages and leaves their meaning to a Format. Encode makes an Output of it.
type MessageSink interface {
	// Describe is one line for plans, such as "kafka counts".
	Describe() string
	NewMessageWriter(ctx context.Context, rt Runtime) (MessageWriter, error)
}

// MessageWriter writes one subtask's messages, by the rules of SinkWriter.
type MessageWriter interface {
	// Write takes messages, borrowed for the call. Times may be nil.
	Write(m *Messages) error
	Flush(ctx context.Context) error
	Close() error
}
