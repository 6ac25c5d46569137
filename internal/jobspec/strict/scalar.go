package strict

import (
	"math"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// At is embedded where a struct wants to know where it stood in its file.
type At struct{ place Place }

// Place returns where the value stood.
func (a At) Place() Place { return a.place }

// String is a string.
type String struct {
	At
	Value string

	set   bool
	style token.Type
	lines []string
	start Place  // of the whole value
	whole string // the whole value, where Value is a part of it; from is where that begins, in characters
	from  int
}

// all is the whole value.
func (s String) all() string {
	if s.whole != "" {
		return s.whole
	}
	return s.Value
}

// IsSet reports whether the file gave a value.
func (s String) IsSet() bool { return s.set }

func (s *String) decode(d *decoder, n ast.Node, what string) {
	if !s.take(d, n) {
		d.wrongKind(n, what, "a string")
	}
}

// take accepts strings only.
func (s *String) take(d *decoder, n ast.Node) bool {
	switch t := n.(type) {
	case *ast.StringNode:
		s.place, s.Value, s.set, s.style = placeOf(n), t.Value, true, t.Token.Type
	case *ast.LiteralNode:
		s.place, s.Value, s.set, s.style = placeOf(n), t.Value.Value, true, t.Start.Type
	default:
		return false
	}
	s.lines, s.start = d.lines, s.place
	return true
}

func (*String) schema(*schemaBuilder) map[string]any { return map[string]any{"type": "string"} }

// PlaceAt returns where the character number off of Value stands in the file, with the width given.
func (s String) PlaceAt(off, width int) Place {
	if s.start.Line < 1 {
		return s.place // no file has it
	}
	off += s.from
	line, col := s.start.Line, s.start.Column // of the next character, from 1
	switch s.style {
	case token.LiteralType, token.FoldedType:
		line++
		for line <= len(s.lines) && strings.TrimSpace(s.lines[line-1]) == "" {
			line++
		}
		col = 1 + indent(s.lines, line)
	case token.SingleQuoteType, token.DoubleQuoteType:
		col++
	}
	base := col
	for i, r := range []rune(s.all()) {
		if i == off {
			break
		}
		rest := restOf(s.lines, line, col)
		switch {
		case r == '\n' && s.style == token.LiteralType:
			line, col = line+1, base
		case (r == ' ' || r == '\n') && strings.TrimSpace(string(rest)) == "":
			line++
			col = 1 + indent(s.lines, line)
		default:
			col += s.consumed(rest)
		}
	}
	if line > len(s.lines) || len(restOf(s.lines, line, col)) == 0 && line != s.start.Line {
		return s.place
	}
	return Place{Line: line, Column: col, Width: width}
}

// consumed is how many characters of the file make the next one of the value.
func (s String) consumed(rest []rune) int {
	switch {
	case s.style == token.SingleQuoteType && len(rest) > 1 && rest[0] == '\'' && rest[1] == '\'':
		return 2
	case s.style == token.DoubleQuoteType && len(rest) > 1 && rest[0] == '\\':
		switch rest[1] {
		case 'x':
			return 4
		case 'u':
			return 6
		case 'U':
			return 10
		}
		return 2
	}
	return 1
}

func indent(lines []string, line int) int {
	if line > len(lines) {
		return 0
	}
	return len(lines[line-1]) - len(strings.TrimLeft(lines[line-1], " "))
}

// restOf returns the line from the column on.
func restOf(lines []string, line, col int) []rune {
	if line > len(lines) {
		return nil
	}
	r := []rune(lines[line-1])
	return r[min(col-1, len(r)):]
}

// Text is a string that may look like a number or a boolean, such as an expression.
type Text struct{ String }

func (s *Text) decode(d *decoder, n ast.Node, what string) {
	if s.take(d, n) {
		return
	}
	switch n.(type) {
	case *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode:
		s.place, s.Value, s.set, s.style, s.lines = placeOf(n), n.GetToken().Value, true, token.StringType, d.lines
		s.start = s.place
		return
	}
	d.wrongKind(n, what, "an expression")
}

func (*Text) schema(*schemaBuilder) map[string]any {
	return map[string]any{"type": []any{"string", "number", "boolean"}}
}

// Int is a whole number.
type Int struct {
	At
	Value int
	set   bool
}

// IsSet reports whether the file gave a value.
func (i Int) IsSet() bool { return i.set }

func (i *Int) decode(d *decoder, n ast.Node, what string) {
	t, ok := n.(*ast.IntegerNode)
	if !ok {
		d.wrongKind(n, what, "a whole number")
		return
	}
	i.place = placeOf(n)
	switch v := t.Value.(type) {
	case int64:
		i.Value = int(v)
	case uint64:
		if v > math.MaxInt64 {
			d.Failf(i.place, "%s is too large", what)
			return
		}
		i.Value = int(v)
	default:
		d.wrongKind(n, what, "a whole number")
		return
	}
	i.set = true
}

func (*Int) schema(*schemaBuilder) map[string]any { return map[string]any{"type": "integer"} }

// Bool is true or false.
type Bool struct {
	At
	Value bool
	set   bool
}

// IsSet reports whether the file gave a value.
func (b Bool) IsSet() bool { return b.set }

func (b *Bool) decode(d *decoder, n ast.Node, what string) {
	t, ok := n.(*ast.BoolNode)
	if !ok {
		d.wrongKind(n, what, "true or false")
		return
	}
	b.place, b.Value, b.set = placeOf(n), t.Value, true
}

func (*Bool) schema(*schemaBuilder) map[string]any { return map[string]any{"type": "boolean"} }

// Duration is a length of time with its unit, such as 90s, 1h30m or 1d.
type Duration struct {
	At
	Value time.Duration
	// Days is the number of days where the file wrote whole days, such as 7d; else 0.
	Days int
	set  bool
}

// IsSet reports whether the file gave a value.
func (d Duration) IsSet() bool { return d.set }

const (
	durationPattern = `^([0-9]+d|([0-9]+d)?([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+)$`
	maxDays         = 36500
)

func (t *Duration) decode(d *decoder, n ast.Node, what string) {
	var s String
	if !s.take(d, n) {
		if _, number := n.(*ast.IntegerNode); number {
			d.Failf(placeOf(n), "%s needs a unit: ms, s, m, h or d, such as %ss", what, n.GetToken().Value)
			return
		}
		d.wrongKind(n, what, "a duration such as 90s")
		return
	}
	t.place = s.place
	v, days, ok := parseDuration(s.Value)
	if !ok {
		d.Failf(s.place, "%s needs a duration such as 500ms, 90s, 1h30m or 1d, not %q", what, shorten(s.Value))
		return
	}
	t.Value, t.Days, t.set = v, days, true
}

// parseDuration reads Go's notation with d for 24 hours in front.
func parseDuration(s string) (v time.Duration, days int, ok bool) {
	digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
	rest := s
	if digits > 0 && digits < len(s) && s[digits] == 'd' {
		for _, c := range s[:digits] {
			if days = days*10 + int(c-'0'); days > maxDays {
				return 0, 0, false
			}
		}
		v, rest = time.Duration(days)*24*time.Hour, s[digits+1:]
		if rest == "" {
			return v, days, true
		}
	}
	if rest == "" || rest[0] < '0' || rest[0] > '9' {
		return 0, 0, false
	}
	r, err := time.ParseDuration(rest)
	if err != nil || r > maxDays*24*time.Hour {
		return 0, 0, false
	}
	return v + r, 0, true
}

func (*Duration) schema(*schemaBuilder) map[string]any {
	return map[string]any{"type": "string", "pattern": durationPattern}
}

// Call splits a text such as sum(a + b) into the name and what is in the brackets, each with its place.
func (s Text) Call() (name, arg Text, ok bool) {
	open := strings.IndexByte(s.Value, '(')
	end := strings.TrimRight(s.Value, " \t\n")
	if open < 0 || !strings.HasSuffix(end, ")") {
		return name, arg, false
	}
	name, arg = s, s
	name.Value = strings.TrimSpace(s.Value[:open])
	inside := end[open+1 : len(end)-1]
	arg.Value = strings.TrimSpace(inside)
	for _, r := range name.Value {
		if r != '_' && (r < 'a' || r > 'z') {
			return name, arg, false
		}
	}
	name.place = s.PlaceAt(len([]rune(s.Value))-len([]rune(strings.TrimLeft(s.Value, " \t\n"))), len(name.Value))
	skipped := open + 1 + len(inside) - len(strings.TrimLeft(inside, " \t\n"))
	arg.from = s.from + len([]rune(s.Value[:skipped]))
	arg.whole = s.all()
	arg.place = s.PlaceAt(len([]rune(s.Value[:skipped])), max(1, len([]rune(arg.Value))))
	return name, arg, name.Value != ""
}
