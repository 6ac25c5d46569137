package strict

import (
	"encoding/json"
	"reflect"
	"strings"
)

// Schema returns the JSON Schema (draft 2020-12) of what Decode accepts into a value of type t, a struct.
// It can't tell what only the meaning shows: names that refer to nothing, expressions that don't compile.
func Schema(t reflect.Type, title string) []byte {
	s := &schemaBuilder{defs: map[string]any{}}
	root := s.of(t)
	root["$schema"], root["title"] = "https://json-schema.org/draft/2020-12/schema", title
	root["$defs"] = s.defs
	b, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic(err) // maps, slices, strings and numbers: can't be
	}
	return append(b, '\n')
}

type schemaBuilder struct{ defs map[string]any }

// of describes a type; a struct by reference to its own definition.
func (s *schemaBuilder) of(t reflect.Type) map[string]any {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if u, ok := reflect.New(t).Interface().(unmarshaler); ok {
		return u.schema(s)
	}
	if t.Kind() == reflect.Slice {
		return map[string]any{"type": "array", "minItems": 1, "items": s.of(t.Elem())}
	}
	name := strings.ToLower(t.Name()[:1]) + t.Name()[1:]
	if _, ok := s.defs[name]; !ok {
		s.defs[name] = nil // holds the place while its fields are described
		if isAlternatives(t) {
			s.defs[name] = s.alternatives(t)
		} else {
			s.defs[name] = s.object(t)
		}
	}
	return map[string]any{"$ref": "#/$defs/" + name}
}

func (s *schemaBuilder) alternatives(t reflect.Type) map[string]any {
	var any_ []any
	for i := range t.NumField() {
		f := t.Field(i)
		if _, ok := f.Tag.Lookup("alt"); !ok {
			continue
		}
		d := s.of(f.Type)
		if e := f.Tag.Get("enum"); e != "" {
			d["enum"] = anySlice(strings.Split(e, "|"))
		}
		if doc := f.Tag.Get("doc"); doc != "" {
			d["description"] = doc
		}
		any_ = append(any_, d)
	}
	return map[string]any{"anyOf": any_}
}

func (s *schemaBuilder) object(t reflect.Type) map[string]any {
	fs := fieldsOf(t)
	props := map[string]any{}
	var required []string
	for _, f := range fs.list {
		d := s.of(f.typ)
		d["description"] = f.doc
		if len(f.enum) > 0 {
			d["enum"] = anySlice(f.enum)
		}
		if f.min != nil {
			d["minimum"] = *f.min
		}
		if len(f.values) > 0 {
			d["additionalProperties"].(map[string]any)["enum"] = anySlice(f.values)
		}
		if f.positive {
			d["allOf"] = []any{map[string]any{"pattern": "[1-9]"}}
		}
		props[f.name] = d
		if f.required {
			required = append(required, f.name)
		}
	}
	o := map[string]any{"type": "object", "properties": props, "additionalProperties": false}
	if len(required) > 0 {
		o["required"] = required
	}
	var all []any
	for _, g := range fs.groups {
		var one []any
		for _, name := range g {
			one = append(one, map[string]any{"required": []string{name}})
		}
		all = append(all, map[string]any{"oneOf": one})
	}
	if len(all) > 0 {
		o["allOf"] = all
	}
	return o
}

func anySlice(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}
