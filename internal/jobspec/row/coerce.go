package row

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Coerce makes v a value of a column's type, or says why it can't be one. It changes the form, never the meaning:
// an integral number is an int, an int a float, an RFC 3339 string a time; a zone-less time is in the zone, an error without one (nil).
func Coerce(v Value, t Type, zone *time.Location) (Value, error) {
	if v.IsNull() || t == AnyType {
		return v, nil
	}
	switch t {
	case IntType:
		switch v.Kind {
		case Int:
			return v, nil
		case Float:
			if f := v.Float(); f == math.Trunc(f) && math.Abs(f) <= 1<<53 {
				return IntValue(int64(f)), nil
			}
		}
	case FloatType:
		switch v.Kind {
		case Float:
			return v, nil
		case Int:
			return FloatValue(float64(v.Int())), nil
		case Number:
			if f, err := strconv.ParseFloat(v.str, 64); err == nil {
				return FloatValue(f), nil
			}
		}
	case TimeType:
		switch v.Kind {
		case Time:
			return v, nil
		case String:
			at, err := ParseTime(v.str, zone)
			return TimeValue(at), err
		}
	case StringType:
		if v.Kind == Bytes {
			return StringValue(v.str), nil
		}
	case BytesType:
		if v.Kind == String {
			return Value{Kind: Bytes, str: v.str}, nil
		}
	}
	if t == kindType(v.Kind) {
		return v, nil
	}
	return Value{}, fmt.Errorf("%s is no %s", article(v), t)
}

// kindType is the type of which a kind is.
func kindType(k Kind) Type {
	switch k {
	case False, True:
		return BoolType
	case Int:
		return IntType
	case Float, Number:
		return FloatType
	case String:
		return StringType
	case Bytes:
		return BytesType
	case Time:
		return TimeType
	case List:
		return ListType
	case Object:
		return ObjectType
	}
	return AnyType
}

// article names a value for an error: the string "x".
func article(v Value) string {
	s := v.String()
	if len(s) > 60 {
		s = strings.ToValidUTF8(s[:60], "") + "…"
	}
	return "the " + v.Kind.String() + " " + s
}

// zoneless are the layouts of times that say nothing of their zone.
var zoneless = []string{"2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02"}

// ParseTime reads an RFC 3339 time (a space may stand for the T), or one without a zone if zone is not nil.
func ParseTime(s string, zone *time.Location) (time.Time, error) {
	for _, layout := range [...]string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	for _, layout := range zoneless {
		u, err := time.Parse(layout, s)
		if err != nil {
			continue
		}
		if zone == nil {
			return time.Time{}, fmt.Errorf("the time %q has no zone: set timezone, or write it with an offset such as Z", s)
		}
		return atClock(u, zone), nil
	}
	return time.Time{}, fmt.Errorf("%q is no RFC 3339 time", s)
}

// atClock is the moment at which clocks of the zone show what u shows. When they are put back, the first of the two; a
// time that they skip is taken by the offset before, so it comes out that much later.
func atClock(u time.Time, zone *time.Location) time.Time {
	_, before := u.Add(-24 * time.Hour).In(zone).Zone()
	_, after := u.Add(24 * time.Hour).In(zone).Zone()
	first := u.Add(-time.Duration(before) * time.Second).In(zone)
	if _, offset := first.Zone(); before == after || offset == before {
		return first
	}
	second := u.Add(-time.Duration(after) * time.Second).In(zone)
	if _, offset := second.Zone(); offset == after {
		return second
	}
	return first
}

// FromText reads a text field, such as one of a CSV line, as a value of the type. An empty one is null, save as a string.
func FromText(s string, t Type, zone *time.Location) (Value, error) {
	if s == "" && t != StringType {
		return Value{Kind: Null}, nil
	}
	switch t {
	case IntType:
		if i, err := strconv.ParseInt(s, 10, 64); err == nil {
			return IntValue(i), nil
		}
	case FloatType:
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			return FloatValue(f), nil
		}
	case BoolType:
		switch s {
		case "true", "True", "TRUE":
			return Value{Kind: True}, nil
		case "false", "False", "FALSE":
			return Value{Kind: False}, nil
		}
	case TimeType:
		at, err := ParseTime(s, zone)
		return TimeValue(at), err
	case ListType, ObjectType:
		b, err := AppendFromJSON(nil, []byte(s))
		if err == nil {
			v, _, _ := Next(string(b))
			return Coerce(v, t, zone)
		}
	default:
		return StringValue(s), nil
	}
	return Value{}, fmt.Errorf("%s is no %s", article(StringValue(s)), t)
}
