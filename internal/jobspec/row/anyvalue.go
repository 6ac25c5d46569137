package row

import (
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"math"
	"reflect"
	"slices"
	"time"
)

// sortedFields returns the fields of an Object as keys have them: by name, the last of each name.
func (v Value) sortedFields() (body []byte) {
	last := map[string]Value{}
	for s := v.str; s != ""; {
		n, e, rest, ok := nextField(s)
		if !ok {
			break
		}
		last[n], s = e, rest
	}
	for _, n := range slices.Sorted(maps.Keys(last)) {
		body = appendName(body, n)
		body = last[n].AppendKey(body)
	}
	return body
}

// appendName appends a length and a string.
func appendName(b []byte, name string) []byte {
	return append(appendUvarint(b, len(name)), name...)
}

func appendUvarint(b []byte, n int) []byte { return binary.AppendUvarint(b, uint64(n)) }

// AppendAny appends what an expression came to. The fields of a map are in the order of their names.
func AppendAny(b []byte, x any) ([]byte, error) { return appendAny(b, x, 0) }

func appendAny(b []byte, x any, depth int) ([]byte, error) {
	switch t := x.(type) {
	case nil:
		return append(b, byte(Null)), nil
	case bool:
		return appendBool(b, t), nil
	case int:
		return IntValue(int64(t)).Append(b), nil
	case int64:
		return IntValue(t).Append(b), nil
	case float64:
		return FloatValue(t).Append(b), nil
	case string:
		return StringValue(t).Append(b), nil
	case time.Time:
		return TimeValue(t).Append(b), nil
	case time.Duration:
		return StringValue(t.String()).Append(b), nil
	case []byte:
		return Value{Kind: Bytes, str: string(t)}.Append(b), nil
	case Value:
		return t.Append(b), nil
	}
	return appendReflected(b, reflect.ValueOf(x), depth)
}

func appendBool(b []byte, t bool) []byte {
	if t {
		return append(b, byte(True))
	}
	return append(b, byte(False))
}

// appendReflected does the less common types.
func appendReflected(b []byte, v reflect.Value, depth int) (_ []byte, err error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("value is nested deeper than %d", maxDepth)
	}
	switch v.Kind() {
	case reflect.Bool:
		return appendBool(b, v.Bool()), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return IntValue(v.Int()).Append(b), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if u := v.Uint(); u > math.MaxInt64 {
			return Value{Kind: Number, str: fmt.Sprint(u)}.Append(b), nil
		}
		return IntValue(int64(v.Uint())).Append(b), nil
	case reflect.Float32, reflect.Float64:
		return FloatValue(v.Float()).Append(b), nil
	case reflect.String:
		return StringValue(v.String()).Append(b), nil
	case reflect.Slice, reflect.Array:
		var body []byte
		for i := range v.Len() {
			if body, err = appendAny(body, v.Index(i).Interface(), depth+1); err != nil {
				return nil, err
			}
		}
		return appendBody(b, List, body), nil
	case reflect.Map:
		names := map[string]any{}
		for it := v.MapRange(); it.Next(); {
			names[fmt.Sprint(it.Key().Interface())] = it.Value().Interface()
		}
		var body []byte
		for _, n := range slices.Sorted(maps.Keys(names)) {
			if body, err = appendAny(appendName(body, n), names[n], depth+1); err != nil {
				return nil, err
			}
		}
		return appendBody(b, Object, body), nil
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return append(b, byte(Null)), nil
		}
		return appendAny(b, v.Elem().Interface(), depth+1)
	}
	return nil, fmt.Errorf("a value of type %s can't be in a record", v.Type())
}

// AppendObject appends an object without fields.
func AppendObject(b []byte) []byte { return append(b, byte(Object), 0) }

// AppendWithout appends an Object without the fields named; anything else is appended as an object without fields.
func (v Value) AppendWithout(b []byte, names []string) []byte {
	if v.Kind != Object {
		return AppendObject(b)
	}
	b = append(b, byte(Object))
	start := len(b)
	for s := v.str; s != ""; {
		name, _, rest, ok := nextField(s)
		if !ok {
			break
		}
		if !slices.Contains(names, name) {
			b = append(b, s[:len(s)-len(rest)]...)
		}
		s = rest
	}
	return insertLength(b, start)
}

// Elements returns the elements of a List.
func (v Value) Elements() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if v.Kind != List {
			return
		}
		for s := v.str; s != ""; {
			e, rest, ok := Next(s)
			if !ok || !yield(e) {
				return
			}
			s = rest
		}
	}
}
