package row

import (
	"fmt"
	"strings"
	"time"
)

// LineColumn is the column of the text format, ValueColumn that of the raw one.
const (
	LineColumn  = "line"
	ValueColumn = "value"
)

// NewText returns the format of one string a message. Decode fills column col, Encode writes the template.
func NewText(s Schema, zone *time.Location, col int, t Template) *Format {
	f := newFormat("text", s, zone)
	f.decode = func(f *Format, s *scratch, in []byte) error { return f.take(s, col, String, in) }
	f.encode = func(f *Format, s *scratch, b []byte, r Row) ([]byte, bool, error) {
		enc := s.spans.Split(r, len(f.schema.Cols))
		for _, p := range t.parts {
			b = append(b, p.text...)
			if p.col >= 0 {
				v, _, _ := Next(enc[p.col])
				b = append(b, v.Text(f.out)...)
			}
		}
		return b, false, nil
	}
	return f
}

// NewRaw returns the format of plain bytes: column col holds the message's value, null where it has none.
func NewRaw(s Schema, col int) *Format {
	f := newFormat("raw", s, nil)
	f.decode = func(f *Format, s *scratch, in []byte) error { return f.take(s, col, Bytes, in) }
	f.encode = func(f *Format, _ *scratch, b []byte, r Row) ([]byte, bool, error) {
		v := r.At(col)
		return append(b, v.Text(f.out)...), v.IsNull(), nil
	}
	return f
}

// take puts a message's bytes into column col, if that is wanted at all.
func (f *Format) take(s *scratch, col int, k Kind, in []byte) error {
	if col < 0 {
		return nil
	}
	if in == nil {
		s.vals = append(s.vals, byte(Null))
	} else {
		s.vals = appendBytes(append(s.vals, byte(k)), in)
	}
	s.cols[col] = extent{0, len(s.vals)}
	return nil
}

// Template is a text with the values of columns in it.
type Template struct{ parts []part }

type part struct {
	text string
	col  int // whose value follows the text, -1 none
}

// Names returns the columns that a template such as "{word} {count}" names; {{ and }} stand for braces.
// On an error, off is the number of the character that is wrong.
func TemplateNames(s string) (names []string, off int, err error) {
	_, off, err = parseTemplate(s, func(name string) (int, error) {
		names = append(names, name)
		return 0, nil
	})
	return names, off, err
}

// NewTemplate makes a template of s for rows of the schema.
func NewTemplate(s string, schema Schema) (Template, error) {
	t, _, err := parseTemplate(s, func(name string) (int, error) {
		if i := schema.Index(name); i >= 0 {
			return i, nil
		}
		return 0, fmt.Errorf("unknown column %q", name)
	})
	return t, err
}

// ColumnTemplate is the template that is one column's value.
func ColumnTemplate(col int) Template { return Template{[]part{{col: col}}} }

func parseTemplate(s string, column func(string) (int, error)) (t Template, off int, err error) {
	var text strings.Builder
	in := []rune(s)
	for i := 0; i < len(in); i++ {
		c := in[i]
		if c != '{' && c != '}' {
			text.WriteRune(c)
			continue
		}
		if i+1 < len(in) && in[i+1] == c {
			text.WriteRune(c)
			i++
			continue
		}
		if c == '}' {
			return t, i, fmt.Errorf("'}' without '{'; write }} for a brace")
		}
		end := i + 1
		for end < len(in) && in[end] != '}' {
			end++
		}
		if end == len(in) {
			return t, i, fmt.Errorf("'{' without '}'; write {{ for a brace")
		}
		col, err := column(string(in[i+1 : end]))
		if err != nil {
			return t, i + 1, err
		}
		t.parts = append(t.parts, part{text.String(), col})
		text.Reset()
		i = end
	}
	if text.Len() > 0 {
		t.parts = append(t.parts, part{text.String(), -1})
	}
	return t, 0, nil
}
