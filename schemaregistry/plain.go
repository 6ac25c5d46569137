package schemaregistry

import "github.com/hamba/avro/v2"

// plain takes the library's names of types out of what it has read: a record in a union comes as an object of one field, which is the type's name.
func plain(s avro.Schema, v any) any {
	switch s := s.(type) {
	case *avro.RefSchema:
		return plain(s.Schema(), v)
	case *avro.RecordSchema:
		if doc, ok := v.(map[string]any); ok {
			for _, f := range s.Fields() {
				if x, ok := doc[f.Name()]; ok {
					doc[f.Name()] = plain(f.Type(), x)
				}
			}
		}
	case *avro.ArraySchema:
		if list, ok := v.([]any); ok {
			for i := range list {
				list[i] = plain(s.Items(), list[i])
			}
		}
	case *avro.MapSchema:
		if m, ok := v.(map[string]any); ok {
			for name := range m {
				m[name] = plain(s.Values(), m[name])
			}
		}
	case *avro.UnionSchema:
		return plainUnion(s, v)
	}
	return v
}

func plainUnion(s *avro.UnionSchema, v any) any {
	doc, ok := v.(map[string]any)
	if ok && len(doc) == 1 {
		for _, t := range s.Types() {
			if x, ok := doc[typeName(t)]; ok && natural(t, x) {
				return plain(t, x)
			}
		}
	}
	for _, t := range s.Types() {
		if natural(t, v) {
			return plain(t, v)
		}
	}
	return v
}

// typeName is what the library calls a type in a union.
func typeName(s avro.Schema) string {
	if r, ok := s.(*avro.RefSchema); ok {
		s = r.Schema()
	}
	if n, ok := s.(avro.NamedSchema); ok {
		return n.FullName()
	}
	if l, ok := s.(avro.LogicalTypeSchema); ok && l.Logical() != nil {
		return string(s.Type()) + "." + string(l.Logical().Type())
	}
	return string(s.Type())
}
