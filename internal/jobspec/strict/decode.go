package strict

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// maxDecoded bounds the values of a file, aliases expanded.
const maxDecoded = 100_000

type decoder struct {
	*Document
	anchors map[string]ast.Node
	depth   int
	decoded int
}

// unmarshaler is a type that decodes itself and describes itself.
type unmarshaler interface {
	// decode takes the node, aliases resolved; what says which thing is being decoded.
	decode(d *decoder, n ast.Node, what string)
	schema(s *schemaBuilder) map[string]any
}

// value decodes n into v.
func (d *decoder) value(n ast.Node, v reflect.Value, what string) {
	if d.decoded++; d.decoded > maxDecoded || d.depth > maxNesting {
		d.Failf(placeOf(n), "too many or too deeply nested values")
		return
	}
	d.depth++
	defer func() { d.depth-- }()
	if n = d.resolve(n); n == nil {
		return
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	if u, ok := v.Addr().Interface().(unmarshaler); ok {
		u.decode(d, n, what)
		return
	}
	if v.Kind() == reflect.Slice {
		d.list(n, v, what)
		return
	}
	if isAlternatives(v.Type()) {
		d.alternative(n, v, what)
		return
	}
	d.object(n, v, what)
}

// resolve follows anchors and aliases. It returns nil after reporting a problem.
func (d *decoder) resolve(n ast.Node) ast.Node {
	for range maxNesting {
		switch t := n.(type) {
		case *ast.AnchorNode:
			n = t.Value
		case *ast.AliasNode:
			name := t.Value.String()
			if n = d.anchors[name]; n == nil {
				d.Failf(placeOf(t), "unknown alias *%s", name)
				return nil
			}
		case *ast.TagNode:
			d.Failf(placeOf(t), "YAML tags are not used here; put the value in quotes")
			return nil
		case nil:
			return nil
		default:
			return n
		}
	}
	d.Failf(placeOf(n), "alias refers to itself")
	return nil
}

// list decodes a sequence into the slice v.
func (d *decoder) list(n ast.Node, v reflect.Value, what string) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		d.wrongKind(n, what, "a list")
		return
	}
	if len(seq.Values) == 0 {
		d.Failf(placeOf(n), "%s is empty", what)
	}
	for _, item := range seq.Values {
		e := reflect.New(v.Type().Elem()).Elem()
		d.value(item, e, singular(what))
		v.Set(reflect.Append(v, e))
	}
}

// alternative decodes n into the field of v that is for its kind.
func (d *decoder) alternative(n ast.Node, v reflect.Value, what string) {
	kind := "scalar"
	switch n.(type) {
	case *ast.SequenceNode:
		kind = "list"
	case *ast.MappingNode, *ast.MappingValueNode:
		kind = "map"
	}
	var wants []string
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			v.Field(i).Set(reflect.ValueOf(At{placeOf(n)}))
			continue
		}
		if f.Tag.Get("alt") == kind {
			tags := &field{}
			if e := f.Tag.Get("enum"); e != "" {
				tags.enum = strings.Split(e, "|")
			}
			d.field(n, v.Field(i), tags, what)
			return
		}
		wants = append(wants, map[string]string{"scalar": "a value", "list": "a list", "map": "a map"}[f.Tag.Get("alt")])
	}
	d.wrongKind(n, what, strings.Join(wants, " or "))
}

// object decodes a mapping into the struct v.
func (d *decoder) object(n ast.Node, v reflect.Value, what string) {
	pairs, ok := pairsOf(n)
	if !ok {
		d.wrongKind(n, what, "a map")
		return
	}
	fields := fieldsOf(v.Type())
	set, unknown := map[string]Place{}, false
	for _, p := range pairs {
		key, at, ok := d.key(p)
		if !ok {
			unknown = true
			continue
		}
		f := fields.byName[key]
		if f == nil {
			unknown = true
			d.Failf(at, "unknown field %q in %s%s", key, what, Suggest(key, fields.names))
			continue
		}
		if before, twice := set[key]; twice {
			d.Failf(at, "%q is already set in line %d", key, before.Line)
			continue
		}
		set[key] = at
		d.field(p.Value, v.FieldByIndex(f.index), f, key)
	}
	at := placeOfMapping(n, pairs)
	if fields.at != nil {
		v.FieldByIndex(fields.at).Set(reflect.ValueOf(At{at}))
	}
	if !unknown { // an unknown field is most likely the missing one, misspelt
		d.missing(fields, set, at, what)
	}
}

// field decodes the value of a key and checks what its tags ask for.
func (d *decoder) field(n ast.Node, v reflect.Value, f *field, key string) {
	d.value(n, v, key)
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	switch s := v.Addr().Interface().(type) {
	case *String:
		if len(f.enum) > 0 && s.set && !contains(f.enum, s.Value) {
			d.Failf(s.Place(), "unknown %s %q%s", key, s.Value, Suggest(s.Value, f.enum))
		}
	case *Int:
		if f.min != nil && s.set && s.Value < *f.min {
			d.Failf(s.Place(), "%s must be at least %d", key, *f.min)
		}
	case *Duration:
		if f.positive && s.set && s.Value <= 0 {
			d.Failf(s.Place(), "%s must be more than 0", key)
		}
	case *Map[String]:
		for _, e := range s.Entries {
			if len(f.values) > 0 && e.Value.set && !contains(f.values, e.Value.Value) {
				d.Failf(e.Value.Place(), "unknown type %q%s", e.Value.Value, Suggest(e.Value.Value, f.values))
			}
		}
	}
}

// missing reports required fields that are not set and groups that don't have exactly one.
func (d *decoder) missing(fields *fields, set map[string]Place, at Place, what string) {
	for _, f := range fields.list {
		if _, ok := set[f.name]; f.required && !ok {
			d.Failf(at, "%s needs the field %q", what, f.name)
		}
	}
	for _, g := range fields.groups {
		var got []string
		var last Place
		for _, name := range g {
			if p, ok := set[name]; ok {
				got = append(got, name)
				if p.Line > last.Line || p.Line == last.Line && p.Column > last.Column {
					last = p
				}
			}
		}
		switch {
		case len(got) == 0 && len(g) == 1:
			d.Failf(at, "%s needs the field %q", what, g[0])
		case len(got) == 0:
			d.Failf(at, "%s needs one of: %s", what, strings.Join(g, ", "))
		case len(got) > 1:
			d.Failf(last, "%s takes only one of: %s", what, strings.Join(got, ", "))
		}
	}
}

// key returns the name and place of a mapping's key.
func (d *decoder) key(p *ast.MappingValueNode) (string, Place, bool) {
	at := placeOf(p.Key)
	switch k := p.Key.(type) {
	case *ast.StringNode:
		at.Width = keyWidth(k)
		return k.Value, at, true
	case *ast.MergeKeyNode:
		d.Failf(at, "merge keys (<<) are not used here; write the fields out")
		return "", at, false
	}
	if s, ok := p.Key.(ast.ScalarNode); ok && s.GetToken() != nil {
		return s.GetToken().Value, at, true
	}
	d.Failf(at, "a key must be a plain name")
	return "", at, false
}

// wrongKind reports that n is not what was wanted.
func (d *decoder) wrongKind(n ast.Node, what, want string) {
	if _, null := n.(*ast.NullNode); null {
		d.Failf(placeOf(n), "%s needs %s, but is empty", what, want)
		return
	}
	d.Failf(placeOf(n), "%s needs %s, not %s", what, want, describe(n))
}

// describe says what n is, for people.
func describe(n ast.Node) string {
	switch t := n.(type) {
	case *ast.SequenceNode:
		return "a list"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a map"
	case *ast.NullNode:
		return "null"
	case *ast.BoolNode:
		return fmt.Sprintf("the boolean %v", t.Value)
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "the number " + n.GetToken().Value
	case *ast.StringNode:
		return fmt.Sprintf("the string %q", shorten(t.Value))
	case *ast.LiteralNode:
		return "a block of text"
	}
	return "this"
}

func shorten(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}

func contains(list []string, s string) bool {
	for _, v := range list {
		if v == s {
			return true
		}
	}
	return false
}

// pairsOf returns the key and value pairs of a mapping.
func pairsOf(n ast.Node) ([]*ast.MappingValueNode, bool) {
	switch t := n.(type) {
	case *ast.MappingNode:
		return t.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{t}, true
	}
	return nil, false
}

// placeOf returns where a node begins.
func placeOf(n ast.Node) Place {
	if n == nil {
		return Place{Line: 1, Column: 1}
	}
	if pairs, ok := pairsOf(n); ok && len(pairs) > 0 {
		if m, flow := n.(*ast.MappingNode); !flow || !m.IsFlowStyle {
			return placeOf(pairs[0].Key)
		}
	}
	t := n.GetToken()
	if t == nil || t.Position == nil {
		return Place{Line: 1, Column: 1}
	}
	p := Place{Line: t.Position.Line, Column: max(t.Position.Column, 1), Width: 1}
	switch s := n.(type) {
	case *ast.StringNode:
		p.Width = keyWidth(s)
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		p.Width = len([]rune(t.Value))
	}
	return p
}

func placeOfMapping(n ast.Node, pairs []*ast.MappingValueNode) Place {
	p := placeOf(n)
	if m, ok := n.(*ast.MappingNode); ok && m.IsFlowStyle {
		return p
	}
	if len(pairs) > 0 {
		if k, ok := pairs[0].Key.(*ast.StringNode); ok {
			p.Width = keyWidth(k)
		}
	}
	return p
}

// keyWidth is the width of a scalar in its file, as far as its own line goes.
func keyWidth(s *ast.StringNode) int {
	o := strings.TrimSpace(s.Token.Origin)
	if i := strings.IndexByte(o, '\n'); i >= 0 {
		o = o[:i]
	}
	return max(1, len([]rune(o)))
}

// singular names an element of a list: steps are made of a step.
func singular(list string) string {
	if one, ok := strings.CutSuffix(list, "s"); ok {
		return "a " + one
	}
	return "an element of " + list
}
