package row

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Kind is what a value is. The numbers are part of the encoding.
type Kind uint8

// The kinds of values.
const (
	Absent Kind = iota // the field was not there; for expressions the same as Null
	Null
	False
	True
	Int
	Float
	Number // decimal text of a number that neither Int nor Float holds exactly
	String
	Bytes
	Time
	List
	Object
	kinds // their number
)

func (k Kind) String() string {
	if k >= kinds {
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
	return [...]string{"absent", "null", "bool", "bool", "int", "float", "number", "string", "bytes", "time", "list", "object"}[k]
}

// Value is one decoded value. Its zero value is an absent one.
type Value struct {
	Kind  Kind
	num   uint64 // Int, Float: bits; Time: seconds
	nanos uint32 // Time
	str   string // String, Bytes, Number: the text; List, Object: the encoded elements
}

// IsNull reports whether there is nothing: null or absent.
func (v Value) IsNull() bool { return v.Kind <= Null }

// Int returns the value of an Int.
func (v Value) Int() int64 { return int64(v.num) }

// Float returns the value of a Float.
func (v Value) Float() float64 { return math.Float64frombits(v.num) }

// Str returns the text of a String, Bytes or Number.
func (v Value) Str() string { return v.str }

// Time returns the value of a Time, in UTC.
func (v Value) Time() time.Time { return time.Unix(int64(v.num), int64(v.nanos)).UTC() }

// IntValue makes an Int.
func IntValue(i int64) Value { return Value{Kind: Int, num: uint64(i)} }

// FloatValue makes a Float.
func FloatValue(f float64) Value { return Value{Kind: Float, num: math.Float64bits(f)} }

// StringValue makes a String.
func StringValue(s string) Value { return Value{Kind: String, str: s} }

// TimeValue makes a Time.
func TimeValue(t time.Time) Value {
	return Value{Kind: Time, num: uint64(t.Unix()), nanos: uint32(t.Nanosecond())}
}

// Append appends the encoding of v.
func (v Value) Append(b []byte) []byte {
	b = append(b, byte(v.Kind))
	switch v.Kind {
	case Int:
		b = binary.AppendVarint(b, int64(v.num))
	case Float:
		b = binary.LittleEndian.AppendUint64(b, v.num)
	case Time:
		b = binary.AppendVarint(b, int64(v.num))
		b = binary.AppendUvarint(b, uint64(v.nanos))
	case Number, String, Bytes, List, Object:
		b = binary.AppendUvarint(b, uint64(len(v.str)))
		b = append(b, v.str...)
	}
	return b
}

// Next reads the first value of s and returns what follows it; ok is false for what Append didn't write.
func Next(s string) (v Value, rest string, ok bool) {
	if s == "" {
		return Value{}, "", false
	}
	v.Kind, s = Kind(s[0]), s[1:]
	switch v.Kind {
	case Absent, Null, False, True:
		return v, s, true
	case Int:
		i, n := varint(s)
		v.num = uint64(i)
		return v, s[n:], n > 0
	case Float:
		if len(s) < 8 {
			return v, "", false
		}
		v.num = uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		return v, s[8:], true
	case Time:
		sec, n := varint(s)
		nanos, m := uvarint(s[n:])
		v.num, v.nanos = uint64(sec), uint32(nanos)
		return v, s[n+m:], n > 0 && m > 0 && nanos < 1e9
	case Number, String, Bytes, List, Object:
		l, n := uvarint(s)
		if n == 0 || l > uint64(len(s)-n) {
			return v, "", false
		}
		v.str = s[n : n+int(l)]
		return v, s[n+int(l):], true
	}
	return v, "", false
}

// uvarint is binary.Uvarint of a string; n is 0 where there is none.
func uvarint(s string) (x uint64, n int) {
	var shift uint
	for n < len(s) && n < binary.MaxVarintLen64 {
		c := s[n]
		n++
		if c < 0x80 {
			if n == binary.MaxVarintLen64 && c > 1 {
				return 0, 0
			}
			return x | uint64(c)<<shift, n
		}
		x |= uint64(c&0x7f) << shift
		shift += 7
	}
	return 0, 0
}

func varint(s string) (int64, int) {
	u, n := uvarint(s)
	x := int64(u >> 1)
	if u&1 != 0 {
		x = ^x
	}
	return x, n
}

// Valid reports whether v's elements are well formed; a value that is no list or object is. Nesting ends at maxDepth.
func (v Value) Valid() bool { return v.valid(0) }

func (v Value) valid(depth int) bool {
	if depth > maxDepth {
		return false
	}
	ok := true
	switch v.Kind {
	case List:
		for s := v.str; s != ""; {
			var e Value
			if e, s, ok = Next(s); !ok || !e.valid(depth+1) {
				return false
			}
		}
	case Object:
		for s := v.str; s != ""; {
			var e Value
			if _, e, s, ok = nextField(s); !ok || !e.valid(depth+1) {
				return false
			}
		}
	}
	return true
}

// maxDepth is how deep lists and objects may nest.
const maxDepth = 500

// nextField reads the first field of an object's elements.
func nextField(s string) (name string, v Value, rest string, ok bool) {
	l, n := uvarint(s)
	if n == 0 || l > uint64(len(s)-n) {
		return "", Value{}, "", false
	}
	name = s[n : n+int(l)]
	v, rest, ok = Next(s[n+int(l):])
	return name, v, rest, ok
}

// Field returns the field of an Object; the last one of that name, as with JSON. It is absent where there is none.
func (v Value) Field(name string) (found Value) {
	if v.Kind != Object {
		return Value{}
	}
	for s := v.str; s != ""; {
		n, e, rest, ok := nextField(s)
		if !ok {
			return Value{}
		}
		if n == name {
			found = e
		}
		s = rest
	}
	return found
}

// Any returns v as expressions see it: nil, bool, int, float64, string, time.Time, []any or map[string]any.
func (v Value) Any() any {
	switch v.Kind {
	case False:
		return false
	case True:
		return true
	case Int:
		return int(int64(v.num))
	case Float:
		return v.Float()
	case Number:
		f, _ := strconv.ParseFloat(v.str, 64) // out of range: ±Inf
		return f
	case String, Bytes:
		return v.str
	case Time:
		return v.Time()
	case List:
		l := []any{}
		for s := v.str; s != ""; {
			e, rest, ok := Next(s)
			if !ok {
				break
			}
			l, s = append(l, e.Any()), rest
		}
		return l
	case Object:
		m := map[string]any{}
		for s := v.str; s != ""; {
			n, e, rest, ok := nextField(s)
			if !ok {
				break
			}
			m[n], s = e.Any(), rest
		}
		return m
	}
	return nil
}

// String prints v for people: as JSON, bytes as text.
func (v Value) String() string {
	if v.Kind == Absent {
		return "absent"
	}
	return string(AppendJSON(nil, v, time.UTC))
}

// Text returns v as a text or CSV field holds it: a string without quotes, null as nothing, lists and objects as JSON.
func (v Value) Text(zone *time.Location) string {
	switch v.Kind {
	case Absent, Null:
		return ""
	case String, Bytes, Number:
		return v.str
	case Time:
		return v.Time().In(zone).Format(time.RFC3339Nano)
	}
	return string(AppendJSON(nil, v, zone))
}

// AppendKey appends v so that equal values have equal bytes: an integral Float or Number as the Int that it equals, absent as null,
// the fields of an object by name. A key made of several values is unambiguous.
func (v Value) AppendKey(b []byte) []byte {
	switch v.Kind {
	case Absent:
		return append(b, byte(Null))
	case Number:
		if f, err := strconv.ParseFloat(v.str, 64); err == nil && strings.ContainsAny(v.str, ".eE") {
			return FloatValue(f).AppendKey(b)
		}
	case Float:
		f := v.Float()
		if i := int64(f); float64(i) == f && f >= -(1<<53) && f <= 1<<53 {
			return IntValue(i).Append(b)
		}
		if f != f {
			return FloatValue(math.NaN()).Append(b)
		}
	case List:
		var body []byte
		for s := v.str; s != ""; {
			e, rest, ok := Next(s)
			if !ok {
				break
			}
			body, s = e.AppendKey(body), rest
		}
		return appendBody(b, List, body)
	case Object:
		return appendBody(b, Object, v.sortedFields())
	}
	return v.Append(b)
}

func appendBody(b []byte, k Kind, body []byte) []byte {
	b = append(b, byte(k))
	b = binary.AppendUvarint(b, uint64(len(body)))
	return append(b, body...)
}

// Peek reads the first value of b. It points into b.
func Peek(b []byte) Value {
	v, _, _ := Next(borrow(b))
	return v
}
