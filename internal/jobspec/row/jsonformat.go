package row

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/heddle-stream/heddle/internal/flow"
)

// NewJSON returns the format of one JSON object a message.
func NewJSON(s Schema, zone *time.Location) *Format {
	f := newFormat("json", s, zone)
	names := make([][]byte, len(s.Cols))
	for i, c := range s.Cols {
		names[i] = append(appendJSONString(nil, c.Name), ':')
	}
	f.decode = (*Format).decodeJSON
	f.encode = func(f *Format, s *scratch, b []byte, r Row) ([]byte, bool, error) {
		return f.encodeJSON(s, names, b, r), false, nil
	}
	return f
}

var errNull = errors.New("there is no value (a null)")

func (f *Format) decodeJSON(s *scratch, in []byte) error {
	if in == nil {
		return errNull
	}
	s.reader = jsonReader{in: in}
	p := &s.reader
	if p.space() != '{' {
		return p.errorf("want a JSON object, not %s", p.found())
	}
	p.pos++
	if p.space() == '}' {
		p.pos++
		return p.end()
	}
	next := 0 // the column that most likely comes next: fields mostly come in one order
	for {
		if err := f.decodeField(s, p, &next); err != nil {
			return err
		}
		switch p.space() {
		case ',':
			p.pos++
		case '}':
			p.pos++
			return p.end()
		default:
			return p.errorf("want ',' or '}' after a field, not %s", p.found())
		}
	}
}

// decodeField reads one field into its column, or into the rest.
func (f *Format) decodeField(s *scratch, p *jsonReader, next *int) error {
	start := len(s.vals)
	b, err := p.name(s.vals)
	if err != nil {
		return err
	}
	s.vals = b
	_, n := uvarint(unsafe.String(&b[start], len(b)-start))
	name := unsafe.String(unsafe.SliceData(b[start+n:]), len(b)-start-n) // borrowed from s.vals until its next use
	c := f.column(name, *next)
	if c < 0 && f.schema.Rest {
		s.rest = append(s.rest, b[start:]...)
		s.rest, err = p.value(s.rest, 1)
		return err
	}
	s.vals = s.vals[:start] // the name is not needed any more
	if s.vals, err = p.value(s.vals, 1); err != nil {
		return err
	}
	if c < 0 {
		s.vals = s.vals[:start]
		return nil
	}
	*next = c + 1
	s.cols[c] = extent{start, len(s.vals)}
	if f.schema.Cols[c].Type == AnyType {
		return nil
	}
	v, _, _ := Next(unsafe.String(&s.vals[start], len(s.vals)-start))
	if v.IsNull() || kindType(v.Kind) == f.schema.Cols[c].Type && v.Kind != Number {
		return nil
	}
	return f.put(s, c, v)
}

// column returns the index of the column of that name, -1 if there is none; guess is tried first.
func (f *Format) column(name string, guess int) int {
	if guess < len(f.schema.Cols) && f.schema.Cols[guess].Name == name && f.meta[guess] < 0 {
		return guess
	}
	for i, c := range f.schema.Cols {
		if c.Name == name && f.meta[i] < 0 {
			return i
		}
	}
	return -1
}

func (f *Format) encodeJSON(s *scratch, names [][]byte, b []byte, r Row) []byte {
	b = append(b, '{')
	in := string(r)
	for i, c := range f.schema.Cols {
		v, rest, ok := Next(in)
		if !ok {
			break
		}
		in = rest
		if v.Kind == Absent || c.Meta {
			continue
		}
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		b = AppendJSON(append(b, names[i]...), v, f.out)
	}
	if f.schema.Rest {
		if v, _, ok := Next(in); ok && v.Kind == Object {
			b = appendJSONFields(b, v.str, f.out)
		}
	}
	return append(b, '}')
}

// fieldError names the column an error is about.
func (f *Format) fieldError(c int, err error) error {
	return fmt.Errorf("field %q: %w", f.schema.Cols[c].Name, err)
}

// Show prints a row as a JSON object, for errors.
func (s Schema) Show(r Row) string {
	if !r.Valid(s.Width()) {
		return r.String()
	}
	var m flow.Messages
	if err := NewJSON(s, nil).Encode(&m, []Row{r}); err != nil || m.Len() != 1 {
		return r.String()
	}
	return string(m.Value(0))
}
