package schemaregistry

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/hamba/avro/v2"
)

// appendAvro appends a value in the encoding of Avro. What is written is decided by the schema; a value that it can't hold is an error which names the field.
func appendAvro(b []byte, s avro.Schema, v any) ([]byte, error) {
	switch s := s.(type) {
	case *avro.RefSchema:
		return appendAvro(b, s.Schema(), v)
	case *avro.RecordSchema:
		return appendRecord(b, s, v)
	case *avro.UnionSchema:
		return appendUnion(b, s, v)
	case *avro.ArraySchema:
		return appendArray(b, s, v)
	case *avro.MapSchema:
		return appendMap(b, s, v)
	case *avro.EnumSchema:
		if text, ok := v.(string); ok {
			if i := slices.Index(s.Symbols(), text); i >= 0 {
				return binary.AppendVarint(b, int64(i)), nil
			}
		}
		return b, misfit(v, "one of "+strings.Join(s.Symbols(), ", "))
	case *avro.FixedSchema:
		return appendFixed(b, s, v)
	case *avro.NullSchema:
		if v != nil {
			return b, misfit(v, "null")
		}
		return b, nil
	case *avro.PrimitiveSchema:
		return appendPrimitive(b, s, v)
	}
	return b, fmt.Errorf("its type %s can't be written", s.Type())
}

func appendRecord(b []byte, s *avro.RecordSchema, v any) (_ []byte, err error) {
	doc, ok := v.(map[string]any)
	if !ok {
		return b, misfit(v, "an object")
	}
	found := 0
	for _, f := range s.Fields() {
		x, ok := doc[f.Name()]
		switch {
		case ok:
			found++
		case f.HasDefault():
			x = f.Default()
		case !nullable(f.Type()):
			return b, within(f.Name(), &fieldError{why: "the record does not have it, and the schema has no default for it"})
		}
		if b, err = appendAvro(b, f.Type(), x); err != nil {
			return b, within(f.Name(), err)
		}
	}
	if found < len(doc) {
		if name, ok := unknown(doc, func(name string) bool { return fieldOf(s, name) != nil }); ok {
			return b, within(name, &fieldError{why: "the schema " + s.FullName() + " does not have it"})
		}
	}
	return b, nil
}

func fieldOf(s *avro.RecordSchema, name string) *avro.Field {
	for _, f := range s.Fields() {
		if f.Name() == name {
			return f
		}
	}
	return nil
}

// nullable reports whether a schema holds null.
func nullable(s avro.Schema) bool {
	u, ok := s.(*avro.UnionSchema)
	return s.Type() == avro.Null || ok && slices.ContainsFunc(u.Types(), nullable)
}

// appendUnion writes the first type of the union that holds the value as it is; if none does, the first that can hold it.
func appendUnion(b []byte, s *avro.UnionSchema, v any) ([]byte, error) {
	var tried []string
	for _, exact := range []bool{true, false} {
		for i, t := range s.Types() {
			if exact != natural(t, v) {
				continue
			}
			out, err := appendAvro(binary.AppendVarint(b, int64(i)), t, v)
			if err == nil {
				return out, nil
			}
			if f, ok := errors.AsType[*fieldError](err); exact && ok && f.path != "" {
				return b, err // the value is of this type, but for a field of it
			}
			tried = append(tried, string(t.Type()))
		}
	}
	return b, misfit(v, "one of "+strings.Join(tried, ", "))
}

// natural reports whether a type is the one that a value has by itself.
func natural(s avro.Schema, v any) bool {
	logical := avro.LogicalType("")
	if l, ok := s.(avro.LogicalTypeSchema); ok && l.Logical() != nil {
		logical = l.Logical().Type()
	}
	t := s.Type()
	if t == avro.Ref {
		t = s.(*avro.RefSchema).Schema().Type()
	}
	switch v.(type) {
	case nil:
		return t == avro.Null
	case bool:
		return t == avro.Boolean
	case string:
		return t == avro.String || t == avro.Enum
	case []byte:
		return t == avro.Bytes || t == avro.Fixed
	case time.Time:
		return logical != "" && (t == avro.Long || t == avro.Int)
	case []any:
		return t == avro.Array
	case map[string]any:
		return t == avro.Record || t == avro.Map
	case float64, float32:
		return t == avro.Double || t == avro.Float
	}
	return (t == avro.Long || t == avro.Int) && logical == ""
}

func appendArray(b []byte, s *avro.ArraySchema, v any) (_ []byte, err error) {
	list, ok := v.([]any)
	if !ok {
		return b, misfit(v, "a list")
	}
	if len(list) > 0 {
		b = binary.AppendVarint(b, int64(len(list)))
	}
	for i, x := range list {
		if b, err = appendAvro(b, s.Items(), x); err != nil {
			return b, within(fmt.Sprintf("[%d]", i), err)
		}
	}
	return append(b, 0), nil
}

func appendMap(b []byte, s *avro.MapSchema, v any) (_ []byte, err error) {
	m, ok := v.(map[string]any)
	if !ok {
		return b, misfit(v, "an object")
	}
	if len(m) > 0 {
		b = binary.AppendVarint(b, int64(len(m)))
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		b = appendText(b, name)
		if b, err = appendAvro(b, s.Values(), m[name]); err != nil {
			return b, within(name, err)
		}
	}
	return append(b, 0), nil
}

func appendText[S string | []byte](b []byte, s S) []byte {
	return append(binary.AppendVarint(b, int64(len(s))), s...)
}

func appendFixed(b []byte, s *avro.FixedSchema, v any) ([]byte, error) {
	if d, ok := s.Logical().(*avro.DecimalLogicalSchema); ok {
		raw, err := decimal(d, v)
		if err != nil {
			return b, err
		}
		if len(raw) > s.Size() {
			return b, misfit(v, fmt.Sprintf("a decimal of %d bytes", s.Size()))
		}
		fill := byte(0)
		if raw[0]&0x80 != 0 {
			fill = 0xff
		}
		for range s.Size() - len(raw) {
			b = append(b, fill)
		}
		return append(b, raw...), nil
	}
	raw, ok := bytesOf(v)
	if !ok || len(raw) != s.Size() {
		return b, misfit(v, fmt.Sprintf("%d bytes", s.Size()))
	}
	return append(b, raw...), nil
}

func bytesOf(v any) ([]byte, bool) {
	switch t := v.(type) {
	case []byte:
		return t, true
	case string:
		return []byte(t), true
	}
	return nil, false
}

func appendPrimitive(b []byte, s *avro.PrimitiveSchema, v any) ([]byte, error) {
	switch s.Type() {
	case avro.Boolean:
		t, ok := v.(bool)
		switch {
		case !ok:
			return b, misfit(v, "a bool")
		case t:
			return append(b, 1), nil
		}
		return append(b, 0), nil
	case avro.Int, avro.Long:
		i, err := integer(s, v)
		return binary.AppendVarint(b, i), err
	case avro.Float:
		f, ok := realNumber(v)
		if !ok {
			return b, misfit(v, "a number")
		}
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(f))), nil
	case avro.Double:
		f, ok := realNumber(v)
		if !ok {
			return b, misfit(v, "a number")
		}
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(f)), nil
	case avro.String:
		switch t := v.(type) {
		case string:
			return appendText(b, t), nil
		case time.Time:
			return appendText(b, t.Format(time.RFC3339Nano)), nil
		}
		return b, misfit(v, "a string")
	case avro.Bytes:
		if d, ok := s.Logical().(*avro.DecimalLogicalSchema); ok {
			raw, err := decimal(d, v)
			return appendText(b, raw), err
		}
		raw, ok := bytesOf(v)
		if !ok {
			return b, misfit(v, "bytes")
		}
		return appendText(b, raw), nil
	}
	return b, fmt.Errorf("its type %s can't be written", s.Type())
}

// integer is the number that stands for a value: a time is one of days, milliseconds, microseconds or nanoseconds, as the logical type says.
func integer(s *avro.PrimitiveSchema, v any) (int64, error) {
	logical := avro.LogicalType("")
	if s.Logical() != nil {
		logical = s.Logical().Type()
	}
	at, isTime := v.(time.Time)
	i, ok := wholeNumber(v)
	switch {
	case isTime && logical == avro.Date:
		i = at.Unix() / 86400
		if at.Unix()%86400 < 0 {
			i--
		}
	case isTime && (logical == avro.TimestampMillis || logical == avro.LocalTimestampMillis):
		i = at.UnixMilli()
	case isTime && (logical == avro.TimestampMicros || logical == avro.LocalTimestampMicros):
		i = at.UnixMicro()
	case isTime:
		return 0, misfit(v, "a number, since the schema does not say that it is a time (logicalType)")
	case !ok:
		return 0, misfit(v, "a whole number")
	}
	if s.Type() == avro.Int && i != int64(int32(i)) {
		return 0, misfit(v, "a number of 32 bits (int)")
	}
	return i, nil
}

// decimal is a number in two's complement, big-endian, without its scale.
func decimal(d *avro.DecimalLogicalSchema, v any) ([]byte, error) {
	r := new(big.Rat)
	switch t := v.(type) {
	case string:
		if _, ok := r.SetString(t); !ok {
			return nil, misfit(v, "a number")
		}
	default:
		if i, ok := wholeNumber(v); ok {
			r.SetInt64(i)
		} else if f, ok := realNumber(v); !ok || r.SetFloat64(f) == nil {
			return nil, misfit(v, "a number")
		} else {
			r.SetString(fmt.Sprint(f)) // as it is written, not as it is stored
		}
	}
	scaled := r.Mul(r, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(d.Scale())), nil)))
	if !scaled.IsInt() {
		return nil, misfit(v, fmt.Sprintf("a number with at most %d digits after the point", d.Scale()))
	}
	n := scaled.Num()
	if digits := len(new(big.Int).Abs(n).String()); digits > d.Precision() {
		return nil, misfit(v, fmt.Sprintf("a number of at most %d digits", d.Precision()))
	}
	if n.Sign() >= 0 {
		raw := n.Bytes()
		if len(raw) == 0 || raw[0]&0x80 != 0 {
			raw = append([]byte{0}, raw...)
		}
		return raw, nil
	}
	size := uint(new(big.Int).Not(n).BitLen()/8 + 1)
	raw := new(big.Int).Add(n, new(big.Int).Lsh(big.NewInt(1), 8*size)).Bytes()
	for uint(len(raw)) < size {
		raw = append([]byte{0}, raw...)
	}
	return raw, nil
}
