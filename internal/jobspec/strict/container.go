package strict

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Map is a mapping with names of the author's own, in the order of the file.
type Map[T any] struct {
	At
	Entries []Entry[T]
}

// Entry is one pair of a Map.
type Entry[T any] struct {
	Key   String
	Value T
}

func (m *Map[T]) decode(d *decoder, n ast.Node, what string) {
	pairs, ok := pairsOf(n)
	if !ok {
		d.wrongKind(n, what, "a map")
		return
	}
	m.place = placeOfMapping(n, pairs)
	if len(pairs) == 0 {
		d.Failf(m.place, "%s is empty", what)
	}
	for _, p := range pairs {
		name, at, ok := d.key(p)
		if !ok {
			continue
		}
		e := Entry[T]{Key: String{At: At{at}, Value: name, set: true, lines: d.lines}}
		if name == "" {
			d.Failf(at, "a name in %s is empty", what)
		}
		d.value(p.Value, reflect.ValueOf(&e.Value).Elem(), name)
		m.Entries = append(m.Entries, e)
	}
}

func (m *Map[T]) schema(s *schemaBuilder) map[string]any {
	return map[string]any{"type": "object", "minProperties": 1, "additionalProperties": s.of(reflect.TypeFor[T]())}
}

// field is one key of a struct.
type field struct {
	name, doc string
	index     []int
	required  bool
	enum      []string
	min       *int
	values    []string // of a Map of Strings, the only ones
	positive  bool     // a Duration that can't be 0
	typ       reflect.Type
}

// fields are the keys that a struct allows.
type fields struct {
	list   []*field
	names  []string
	byName map[string]*field
	groups [][]string // names of which exactly one must be set
	at     []int      // index of an embedded At
}

// fieldsOf reads the tags of a struct type. A mistake in them is ours, so it panics.
func fieldsOf(t reflect.Type) *fields {
	fs := &fields{byName: map[string]*field{}}
	groups := map[string]int{}
	for _, sf := range reflect.VisibleFields(t) {
		if sf.Type == reflect.TypeFor[At]() {
			fs.at = sf.Index
			continue
		}
		tag, ok := sf.Tag.Lookup("yaml")
		if !ok {
			continue
		}
		name, opts, _ := strings.Cut(tag, ",")
		f := &field{name: name, doc: sf.Tag.Get("doc"), index: sf.Index, required: opts == "required", typ: sf.Type}
		if e := sf.Tag.Get("enum"); e != "" {
			f.enum = strings.Split(e, "|")
		}
		if v := sf.Tag.Get("values"); v != "" {
			f.values = strings.Split(v, "|")
		}
		_, f.positive = sf.Tag.Lookup("positive")
		if m := sf.Tag.Get("min"); m != "" {
			v, err := strconv.Atoi(m)
			if err != nil {
				panic(err)
			}
			f.min = &v
		}
		if f.doc == "" {
			panic("strict: field " + t.String() + "." + sf.Name + " has no doc")
		}
		fs.list, fs.names, fs.byName[name] = append(fs.list, f), append(fs.names, name), f
		if g := sf.Tag.Get("one"); g != "" {
			i, known := groups[g]
			if !known {
				i = len(fs.groups)
				groups[g], fs.groups = i, append(fs.groups, nil)
			}
			fs.groups[i] = append(fs.groups[i], name)
		}
	}
	return fs
}

// isAlternatives reports whether t is a struct of alternatives by YAML kind.
func isAlternatives(t reflect.Type) bool {
	for i := range t.NumField() {
		if _, ok := t.Field(i).Tag.Lookup("alt"); ok {
			return true
		}
	}
	return false
}

// element is the type of the map's values, for Reference.
func (*Map[T]) element() reflect.Type { return reflect.TypeFor[T]() }
