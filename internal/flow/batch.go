package flow

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Batch is what operators pass to each other: records of one type, in order,
// with their event times beside them where the stream has any.
//
// A batch is borrowed for the call it is passed in: the callee may neither keep
// nor modify Recs or Times. A string in a record may be kept, a []byte may not.
// A batch never spans a Control.
type Batch[T any] struct {
	Recs  []T
	Times []int64 // event time of each record, milliseconds since the Unix epoch; nil where the stream has none
}

// BatchBytes is about how much operators gather before they push, in bytes of records.
const BatchBytes = 8 << 10

// Bounds of event time, in milliseconds since the Unix epoch.
const (
	MinTime int64 = math.MinInt64 // before every record: no watermark yet
	MaxTime int64 = math.MaxInt64 // after every record: the last watermark of a bounded input
)

// Out takes what an operator emits: batches and controls, in order.
// Only the goroutine of the task calls it. An error fails the task.
type Out[T any] interface {
	Push(Batch[T]) error
	Controller
}

// Controller is the part of every Out that does not depend on the record type.
type Controller interface {
	Control(Control) error
}

// ControlKind tells the kinds of Control apart. The numbers cross the wire.
type ControlKind uint8

const (
	Watermark ControlKind = 1 // Time: no record at or before Time follows, save late ones
	Idle      ControlKind = 2 // the stream takes no part in downstream watermarks until Active
	Active    ControlKind = 3 // the stream takes part again; a Watermark implies it
	Barrier   ControlKind = 4 // ID: checkpoint; separates what belongs to it from what follows
	End       ControlKind = 5 // nothing follows
	Mark      ControlKind = 6 // ID: a place; a source is told when everything before it has left every sink, see Committer
)

func (k ControlKind) String() string {
	switch k {
	case Watermark:
		return "watermark"
	case Idle:
		return "idle"
	case Active:
		return "active"
	case Barrier:
		return "barrier"
	case End:
		return "end"
	case Mark:
		return "mark"
	}
	return fmt.Sprintf("control(%d)", uint8(k))
}

// Control travels in order among the batches of a stream.
type Control struct {
	Kind ControlKind
	Time int64  // Watermark: milliseconds since the Unix epoch
	ID   uint64 // Barrier: checkpoint id; Mark: the mark
}

// AppendControl appends the wire form of c: kind (1 byte), then Time and ID as zig-zag and plain varints.
func AppendControl(b []byte, c Control) []byte {
	b = append(b, byte(c.Kind))
	b = binary.AppendVarint(b, c.Time)
	return binary.AppendUvarint(b, c.ID)
}

var errControl = errors.New("malformed control")

// ParseControl reads what AppendControl wrote; anything else is an error.
func ParseControl(b []byte) (Control, error) {
	if len(b) < 3 || b[0] < byte(Watermark) || b[0] > byte(Mark) {
		return Control{}, errControl
	}
	c := Control{Kind: ControlKind(b[0])}
	t, n := binary.Varint(b[1:])
	if n <= 0 {
		return Control{}, errControl
	}
	id, m := binary.Uvarint(b[1+n:])
	if m <= 0 || 1+n+m != len(b) {
		return Control{}, errControl
	}
	c.Time, c.ID = t, id
	return c, nil
}
