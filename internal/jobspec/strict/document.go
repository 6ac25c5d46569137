package strict

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// MaxBytes is the size of the largest file that is read.
const MaxBytes = 256 << 10

// maxNesting is how deep brackets and dashes may nest; the parser recurses on them.
const maxNesting = 100

// Document is a decoded file, which goes on collecting what is wrong with it.
type Document struct {
	name     string
	lines    []string
	problems []Problem
}

// Decode reads data into the struct that into points to. What is wrong is found in the result's Err;
// fields that were right are filled in all the same, so that the caller can look for more.
func Decode(name string, data []byte, into any) *Document {
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // a byte order mark, as some editors write it
	d := &Document{name: name, lines: strings.Split(string(data), "\n")}
	if len(data) > MaxBytes {
		d.Failf(Place{Line: 1, Column: 1}, "file is larger than %d bytes", MaxBytes)
		return d
	}
	if !utf8.Valid(data) {
		d.notUTF8()
		return d
	}
	if line := d.tooDeep(); line > 0 {
		d.Failf(Place{Line: line, Column: 1}, "nested deeper than %d", maxNesting)
		return d
	}
	body := d.parse(data)
	if body == nil {
		return d
	}
	dec := decoder{Document: d, anchors: map[string]ast.Node{}}
	ast.Walk(anchorCollector(dec.anchors), body)
	dec.value(body, reflect.ValueOf(into).Elem(), "the job")
	return d
}

// notUTF8 reports the first byte that is not of UTF-8.
func (d *Document) notUTF8() {
	for i, line := range d.lines {
		for at, r := range line {
			if _, n := utf8.DecodeRuneInString(line[at:]); r == utf8.RuneError && n == 1 {
				d.Failf(Place{Line: i + 1, Column: utf8.RuneCountInString(line[:at]) + 1, Width: 1}, "the file is not UTF-8: there is a byte 0x%02x here; save it as UTF-8", line[at])
				return
			}
		}
	}
}

// Failf records a problem at a place.
func (d *Document) Failf(at Place, format string, args ...any) {
	p := Problem{Place: at, Message: fmt.Sprintf(format, args...)}
	if !slices.Contains(d.problems, p) {
		d.problems = append(d.problems, p)
	}
}

// Failed reports whether anything is wrong so far.
func (d *Document) Failed() bool { return len(d.problems) > 0 }

// Err returns nil or an *Error with everything that is wrong.
func (d *Document) Err() error {
	if len(d.problems) == 0 {
		return nil
	}
	ps := slices.Clone(d.problems)
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return &Error{File: d.name, Problems: ps, lines: d.lines}
}

// parse returns the root of the only YAML document in data, or nil when there is a problem.
func (d *Document) parse(data []byte) (body ast.Node) {
	// The parser is somebody else's and a file is anybody's: a bug of the one must not be a crash by the other.
	defer func() {
		if r := recover(); r != nil {
			d.Failf(Place{Line: 1, Column: 1}, "cannot parse as YAML: %v", r)
			body = nil
		}
	}()
	f, err := parser.ParseBytes(data, 0)
	if err != nil {
		at, msg := Place{Line: 1, Column: 1}, err.Error()
		var ye yaml.Error
		if errors.As(err, &ye) {
			msg = ye.GetMessage()
			if t := ye.GetToken(); t != nil && t.Position != nil {
				at = Place{Line: t.Position.Line, Column: max(t.Position.Column, 1)}
			}
		}
		d.Failf(at, "not YAML: %s%s", msg, d.syntaxHint(at, msg))
		return nil
	}
	var bodies []ast.Node
	for _, doc := range f.Docs {
		if doc != nil && doc.Body != nil {
			bodies = append(bodies, doc.Body)
		}
	}
	switch {
	case len(bodies) == 0:
		d.Failf(Place{Line: 1, Column: 1}, "file is empty")
		return nil
	case len(bodies) > 1:
		d.Failf(placeOf(bodies[1]), "a second YAML document begins here; a file holds one")
		return nil
	}
	return bodies[0]
}

// syntaxHint explains what people most often trip over.
func (d *Document) syntaxHint(at Place, msg string) string {
	switch {
	case strings.Contains(msg, "mapping value is not allowed"), strings.Contains(msg, "reserved character"),
		strings.Contains(msg, "flow map content"), strings.Contains(msg, "directive"):
		return "; put the value in quotes"
	case strings.Contains(msg, "'\t'"):
		return "; indent with spaces"
	}
	return ""
}

// tooDeep returns the line at which brackets or dashes nest too deep, or 0.
func (d *Document) tooDeep() int {
	depth := 0
	for i, line := range d.lines {
		rest, inLine := strings.TrimLeft(line, " "), 0
		for len(rest) > 1 && strings.IndexByte("-?:", rest[0]) >= 0 && rest[1] == ' ' {
			rest = strings.TrimLeft(rest[1:], " ")
			inLine++
		}
		for _, c := range []byte(line) {
			switch c {
			case '[', '{':
				depth++
			case ']', '}':
				depth = max(depth-1, 0)
			}
			if depth > maxNesting {
				return i + 1
			}
		}
		if inLine > maxNesting || len(line)-len(strings.TrimLeft(line, " ")) > 20*maxNesting {
			return i + 1
		}
	}
	return 0
}

type anchorCollector map[string]ast.Node

// Visit implements ast.Visitor.
func (c anchorCollector) Visit(n ast.Node) ast.Visitor {
	if a, ok := n.(*ast.AnchorNode); ok && a.Name != nil && a.Value != nil {
		c[a.Name.String()] = a.Value
	}
	return c
}
