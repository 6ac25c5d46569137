package row

import (
	"slices"
	"strings"
)

// Row is a record: the encoded values of its columns. It is immutable and may be kept.
type Row string

// Type is the declared or inferred type of a column. Every column may be null.
type Type string

// The types of columns.
const (
	AnyType    Type = "any"
	StringType Type = "string"
	IntType    Type = "int"
	FloatType  Type = "float"
	BoolType   Type = "bool"
	TimeType   Type = "time"
	BytesType  Type = "bytes"
	ListType   Type = "list"
	ObjectType Type = "object"
)

// Types are all types that a file may declare.
var Types = []Type{AnyType, StringType, IntType, FloatType, BoolType, TimeType, ListType, ObjectType}

// Column is a column of a stream's rows.
type Column struct {
	Name string
	Type Type
	Meta bool // about the message, not in it: such as _offset; not written by sinks
}

// Schema says which columns the rows of a stream have, in order.
type Schema struct {
	Cols []Column
	Rest bool // after the columns comes an object of all fields that have no column
}

// Index returns the index of a column, -1 if there is none.
func (s Schema) Index(name string) int {
	return slices.IndexFunc(s.Cols, func(c Column) bool { return c.Name == name })
}

// Names returns the names of the columns.
func (s Schema) Names() []string {
	names := make([]string, len(s.Cols))
	for i, c := range s.Cols {
		names[i] = c.Name
	}
	return names
}

// Width is the number of values in a row.
func (s Schema) Width() int {
	if s.Rest {
		return len(s.Cols) + 1
	}
	return len(s.Cols)
}

// String prints the columns for people.
func (s Schema) String() string {
	var b strings.Builder
	for i, c := range s.Cols {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(c.Name + " " + string(c.Type))
	}
	if s.Rest {
		if len(s.Cols) > 0 {
			b.WriteString(", ")
		}
		b.WriteString("…")
	}
	return b.String()
}

// At returns value i of the row, absent if the row has fewer.
func (r Row) At(i int) Value {
	v, _ := r.span(i)
	return v
}

// span returns value i and its encoding.
func (r Row) span(i int) (Value, string) {
	s := string(r)
	for {
		v, rest, ok := Next(s)
		if !ok {
			return Value{}, ""
		}
		if i == 0 {
			return v, s[:len(s)-len(rest)]
		}
		i, s = i-1, rest
	}
}

// Valid reports whether the row is width well-formed values.
func (r Row) Valid(width int) bool {
	s := string(r)
	for range width {
		v, rest, ok := Next(s)
		if !ok || !v.Valid() {
			return false
		}
		s = rest
	}
	return s == ""
}

// String prints the values for people.
func (r Row) String() string {
	var b strings.Builder
	for s := string(r); s != ""; {
		v, rest, ok := Next(s)
		if !ok {
			b.WriteString(" (malformed)")
			break
		}
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(v.String())
		s = rest
	}
	return "(" + b.String() + ")"
}

// Spans splits a row into the encodings of its values. It keeps its memory: one for each goroutine.
type Spans struct {
	enc []string
}

// Split returns the encodings of the first width values of r, valid until the next call; those that r lacks are absent.
func (s *Spans) Split(r Row, width int) []string {
	s.enc = s.enc[:0]
	in := string(r)
	for range width {
		_, rest, ok := Next(in)
		if !ok {
			s.enc = append(s.enc, absent)
			continue
		}
		s.enc = append(s.enc, in[:len(in)-len(rest)])
		in = rest
	}
	return s.enc
}

const absent = "\x00"

// Arena builds rows that share one string. It keeps its memory: one for each goroutine.
type Arena struct {
	Buf  []byte // append the values of the row here, then call End
	ends []int
}

// End ends the row being appended.
func (a *Arena) End() { a.ends = append(a.ends, len(a.Buf)) }

// Cut takes back what was appended since the last End.
func (a *Arena) Cut() {
	n := 0
	if len(a.ends) > 0 {
		n = a.ends[len(a.ends)-1]
	}
	a.Buf = a.Buf[:n]
}

// Len is the number of rows ended.
func (a *Arena) Len() int { return len(a.ends) }

// Rows appends the rows to dst and empties the arena.
func (a *Arena) Rows(dst []Row) []Row {
	n := 0
	if len(a.ends) > 0 {
		n = a.ends[len(a.ends)-1]
	}
	s, from := string(a.Buf[:n]), 0
	for _, to := range a.ends {
		dst = append(dst, Row(s[from:to]))
		from = to
	}
	a.Buf, a.ends = a.Buf[:0], a.ends[:0]
	return dst
}
