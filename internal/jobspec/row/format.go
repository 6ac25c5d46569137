package row

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
)

// MetaColumns are the columns about a message that a stream may have beside those of its format.
var MetaColumns = []Column{
	{Name: "_topic", Type: StringType, Meta: true},
	{Name: "_partition", Type: IntType, Meta: true},
	{Name: "_offset", Type: IntType, Meta: true},
	{Name: "_timestamp", Type: TimeType, Meta: true},
	{Name: "_key", Type: StringType, Meta: true},
	{Name: "_headers", Type: ObjectType, Meta: true},
}

// Format is a format of rows: the bytes of messages on one side, the rows of one schema on the other.
// It is immutable; its scratch memory comes from a pool.
type Format struct {
	name   string
	schema Schema
	zone   *time.Location // nil: a time without a zone is an error
	out    *time.Location // of times that are written
	fields flow.MessageFields
	meta   []int // for each column: which of MetaColumns it is, or -1
	keyCol int   // column that becomes the message's key, -1 none
	header bool  // the message at offset 0 is a Header
	parse  ParseHeaders
	event  *eventTime // nil: rows have the messages' times

	decode func(f *Format, s *scratch, value []byte) error // fills s.cols
	encode func(f *Format, s *scratch, b []byte, r Row) ([]byte, bool, error)
	pool   *sync.Pool // of *scratch
}

var _ flow.Format[Row] = (*Format)(nil)

// scratch is the memory of one Decode or Encode.
type scratch struct {
	arena  Arena
	vals   []byte   // values of the message being decoded
	cols   []extent // for each column its value in vals; an empty one is absent
	rest   []byte   // encoded fields that have no column
	spans  Spans    // for Encode
	fields []string // CSV
	text   []byte   // CSV
	reader jsonReader
}

// extent is a run of bytes.
type extent struct{ from, to int }

func newFormat(name string, s Schema, zone *time.Location) *Format {
	f := &Format{name: name, schema: s, zone: zone, out: zone, keyCol: -1, pool: &sync.Pool{New: func() any { return new(scratch) }}}
	if f.out == nil {
		f.out = time.UTC
	}
	for _, c := range s.Cols {
		f.meta = append(f.meta, -1)
		for i, m := range MetaColumns {
			if c.Meta && c.Name == m.Name {
				f.meta[len(f.meta)-1] = i
				f.fields |= [...]flow.MessageFields{0, 0, flow.FieldOffset, flow.FieldTime, flow.FieldKey, flow.FieldHeaders}[i]
			}
		}
	}
	return f
}

// WithKey returns the format with a column as the messages' key, as text; a null is no key.
func (f *Format) WithKey(col int) *Format {
	g := *f
	g.keyCol = col
	return &g
}

// Name implements flow.Format.
func (f *Format) Name() string { return f.name }

// Fields implements flow.Format.
func (f *Format) Fields() flow.MessageFields { return f.fields }

// Decode implements flow.Format.
func (f *Format) Decode(dst []Row, m *flow.Messages, from int) ([]Row, error) {
	s := f.pool.Get().(*scratch)
	defer f.pool.Put(s)
	if f.event != nil {
		m.Times = slices.Grow(m.Times, max(0, m.Len()-len(m.Times)))[:m.Len()]
	}
	for i := from; i < m.Len(); i++ {
		if f.header && i < len(m.Offsets) && m.Offsets[i] == 0 {
			s.arena.Buf = append(s.arena.Buf, Header...)
			s.arena.End()
			continue
		}
		if err := f.row(s, m, i); err != nil {
			s.arena.Cut()
			return s.arena.Rows(dst), err
		}
		s.arena.End()
	}
	return s.arena.Rows(dst), nil
}

// row appends the row of message i to the arena.
func (f *Format) row(s *scratch, m *flow.Messages, i int) error {
	s.vals, s.rest, s.cols = s.vals[:0], s.rest[:0], s.cols[:0]
	for range f.schema.Cols {
		s.cols = append(s.cols, extent{})
	}
	err := f.decode(f, s, m.Value(i))
	if err != nil {
		return err
	}
	b := s.arena.Buf
	start := len(b)
	for c := range f.schema.Cols {
		switch x := s.cols[c]; {
		case f.meta[c] >= 0:
			if f.meta[c] != headersMeta {
				b = appendMeta(b, m, i, f.meta[c])
			} else if b, err = f.appendHeaders(b, m, i); err != nil {
				return err
			}
		case x.to > x.from:
			b = append(b, s.vals[x.from:x.to]...)
		default:
			b = append(b, byte(Absent))
		}
	}
	if f.schema.Rest {
		b = appendBody(b, Object, s.rest)
	}
	s.arena.Buf = b
	if f.event == nil {
		return nil
	}
	return f.setTime(m, i, Row(borrow(b[start:])))
}

// ParseHeaders calls each for every header of a message, in their order, which are encoded as the connector has them. A null value is nil.
type ParseHeaders func(b []byte, each func(name string, value []byte)) error

// WithHeaders returns the format with what reads a message's headers.
func (f *Format) WithHeaders(parse ParseHeaders) *Format {
	g := *f
	g.parse = parse
	return &g
}

// headersMeta is the index of _headers among MetaColumns.
const headersMeta = 5

// appendHeaders appends the headers of message i as an object.
func (f *Format) appendHeaders(b []byte, m *flow.Messages, i int) ([]byte, error) {
	if f.parse == nil || i >= len(m.Headers) {
		return append(b, byte(Null)), nil
	}
	var body []byte
	err := f.parse(m.At(m.Headers[i]), func(name string, value []byte) {
		body = appendName(body, name)
		if value == nil {
			body = append(body, byte(Null))
			return
		}
		body = appendBytes(append(body, byte(String)), value)
	})
	return appendBody(b, Object, body), err
}

// appendMeta appends what MetaColumns[which] is for message i.
func appendMeta(b []byte, m *flow.Messages, i, which int) []byte {
	switch {
	case which == 0:
		b = append(b, byte(String))
		return appendName(b, m.Topic)
	case which == 1:
		return IntValue(int64(m.Partition)).Append(b)
	case which == 2 && i < len(m.Offsets):
		return IntValue(m.Offsets[i]).Append(b)
	case which == 3 && i < len(m.Times):
		return TimeValue(time.UnixMilli(m.Times[i])).Append(b)
	case which == 4 && i < len(m.Keys) && m.Keys[i].Len >= 0:
		k := m.At(m.Keys[i])
		b = append(b, byte(String))
		return appendBytes(b, k)
	}
	return append(b, byte(Null))
}

// put sets column c to the value v, coerced to the column's type.
func (f *Format) put(s *scratch, c int, v Value) error {
	v, err := Coerce(v, f.schema.Cols[c].Type, f.zone)
	if err != nil {
		return fmt.Errorf("field %q: %w", f.schema.Cols[c].Name, err)
	}
	from := len(s.vals)
	s.vals = v.Append(s.vals)
	s.cols[c] = extent{from, len(s.vals)}
	return nil
}

// Encode implements flow.Format.
func (f *Format) Encode(m *flow.Messages, recs []Row) error {
	s := f.pool.Get().(*scratch)
	defer f.pool.Put(s)
	for _, r := range recs {
		if f.keyCol >= 0 {
			span := flow.Span{Off: int32(len(m.Buf)), Len: -1}
			if k := r.At(f.keyCol); !k.IsNull() {
				m.Buf = append(m.Buf, k.Text(f.out)...)
				span.Len = int32(len(m.Buf)) - span.Off
			}
			m.Keys = append(m.Keys, span)
		}
		span := flow.Span{Off: int32(len(m.Buf))}
		b, null, err := f.encode(f, s, m.Buf, r)
		if err != nil {
			return err
		}
		if m.Buf = b; null {
			span.Len = -1
		} else {
			span.Len = int32(len(m.Buf)) - span.Off
		}
		m.Values = append(m.Values, span)
	}
	return nil
}

// appendBytes appends a length and bytes.
func appendBytes(b, s []byte) []byte {
	b = appendUvarint(b, len(s))
	return append(b, s...)
}

// Header is the row of a file's first line where that is a header. No other row is empty of columns.
const Header Row = ""

// eventTime is where a format finds the event times of rows.
type eventTime struct {
	col  int
	unit time.Duration
}

// WithEventTime returns the format with a column as the rows' event times, in place of the messages' own. unit is that of numbers.
func (f *Format) WithEventTime(col int, unit time.Duration) *Format {
	g := *f
	g.event = &eventTime{col, unit}
	return &g
}

// setTime sets the time of message i, whose row is r.
func (f *Format) setTime(m *flow.Messages, i int, r Row) error {
	at, err := EventTime(r.At(f.event.col), f.event.unit, f.zone)
	if err != nil {
		return f.fieldError(f.event.col, fmt.Errorf("no event time: %w", err))
	}
	m.Times[i] = at.UnixMilli()
	return nil
}

// EventTime reads a value as a time: a time, text as ParseTime has it, or a number of units since the Unix epoch.
func EventTime(v Value, unit time.Duration, zone *time.Location) (time.Time, error) {
	switch v.Kind {
	case Time:
		return v.Time(), nil
	case String, Bytes:
		return ParseTime(v.str, zone)
	case Int:
		per := int64(time.Second / unit)
		sec, part := v.Int()/per, v.Int()%per
		if sec > maxSeconds || sec < -maxSeconds {
			return time.Time{}, fmt.Errorf("%d is out of range for its unit %v", v.Int(), unit)
		}
		return time.Unix(sec, part*int64(unit)).UTC(), nil
	case Float:
		sec := v.Float() * unit.Seconds()
		if !(sec < maxSeconds && sec > -maxSeconds) {
			return time.Time{}, fmt.Errorf("%v is out of range for its unit %v", v.Float(), unit)
		}
		return time.UnixMicro(int64(sec * 1e6)).UTC(), nil
	}
	if v.IsNull() {
		return time.Time{}, errors.New("it is null")
	}
	return time.Time{}, fmt.Errorf("%s is no time", article(v))
}

// maxSeconds bounds event times: the year 9999.
const maxSeconds = 253402300799
