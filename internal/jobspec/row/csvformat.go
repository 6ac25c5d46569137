package row

import (
	"fmt"
	"strings"
	"time"
	"unsafe"

	"github.com/heddle-stream/heddle/internal/flow"
)

// CSVOptions say how the lines of a CSV are written.
type CSVOptions struct {
	Delimiter byte  // ',' if 0
	Columns   []int // for each field of a line its column, -1 for a field that is left out
	Header    bool  // Decode: the message at offset 0 is no record but names: its row is Header
}

// NewCSV returns the format of one line of comma-separated values a message, quoted as in RFC 4180.
func NewCSV(s Schema, zone *time.Location, opt CSVOptions) *Format {
	if opt.Delimiter == 0 {
		opt.Delimiter = ','
	}
	f := newFormat("csv", s, zone)
	f.header = opt.Header
	if opt.Header {
		f.fields |= flow.FieldOffset
	}
	f.decode = func(f *Format, s *scratch, in []byte) error { return f.decodeCSV(s, opt, in) }
	f.encode = func(f *Format, s *scratch, b []byte, r Row) ([]byte, bool, error) {
		enc := s.spans.Split(r, len(f.schema.Cols))
		for i, c := range opt.Columns {
			if i > 0 {
				b = append(b, opt.Delimiter)
			}
			v, _, _ := Next(enc[c])
			b = appendCSVField(b, v.Text(f.out), opt.Delimiter, len(opt.Columns) == 1)
		}
		return b, false, nil
	}
	return f
}

func (f *Format) decodeCSV(s *scratch, opt CSVOptions, in []byte) error {
	if in == nil {
		return errNull
	}
	if err := s.splitCSV(in, opt.Delimiter); err != nil {
		return err
	}
	if len(s.fields) != len(opt.Columns) {
		return fmt.Errorf("the line has %d fields, not %d", len(s.fields), len(opt.Columns))
	}
	for i, c := range opt.Columns {
		if c < 0 {
			continue
		}
		v, err := FromText(s.fields[i], f.schema.Cols[c].Type, f.zone)
		if err != nil {
			return f.fieldError(c, err)
		}
		from := len(s.vals)
		s.vals = v.Append(s.vals)
		s.cols[c] = extent{from, len(s.vals)}
	}
	return nil
}

// splitCSV splits a line into s.fields, which point into s.text and in.
func (s *scratch) splitCSV(in []byte, delimiter byte) error {
	line := strings.TrimSuffix(borrow(in), "\r")
	s.fields = s.fields[:0]
	if s.text = s.text[:0]; cap(s.text) < len(line) {
		s.text = make([]byte, 0, len(line)) // so that fields in it never move
	}
	for {
		if !strings.HasPrefix(line, `"`) {
			field, rest, more := strings.Cut(line, string(rune(delimiter)))
			if strings.Contains(field, `"`) {
				return fmt.Errorf("field %d holds a quote, but is not in quotes", len(s.fields)+1)
			}
			s.fields = append(s.fields, field)
			if !more {
				return nil
			}
			line = rest
			continue
		}
		rest, ok := s.quoted(line[1:])
		if !ok {
			return fmt.Errorf("field %d has no closing quote", len(s.fields)+1)
		}
		if rest == "" {
			return nil
		}
		if rest[0] != delimiter {
			return fmt.Errorf("field %d goes on after its closing quote", len(s.fields))
		}
		line = rest[1:]
	}
}

// quoted takes a field up to its closing quote and returns what follows.
func (s *scratch) quoted(line string) (rest string, ok bool) {
	from := len(s.text)
	for {
		i := strings.IndexByte(line, '"')
		if i < 0 {
			return "", false
		}
		s.text = append(s.text, line[:i]...)
		line = line[i+1:]
		if !strings.HasPrefix(line, `"`) {
			s.fields = append(s.fields, borrow(s.text[from:]))
			return line, true
		}
		s.text, line = append(s.text, '"'), line[1:]
	}
}

// borrow is b as a string, as long as b does not change.
func borrow(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// appendCSVField appends a field, in quotes where it needs them; alone says that an empty field would make an empty line.
func appendCSVField(b []byte, s string, delimiter byte, alone bool) []byte {
	if !(alone && s == "") && !strings.ContainsAny(s, "\"\r\n") && strings.IndexByte(s, delimiter) < 0 {
		return append(b, s...)
	}
	b = append(b, '"')
	for i := range len(s) {
		if s[i] == '"' {
			b = append(b, '"')
		}
		b = append(b, s[i])
	}
	return append(b, '"')
}
