package row

import (
	"cmp"
	"strconv"
	"strings"
)

// Number returns what an Int, Float or Number is worth, 0 for another kind.
func (v Value) Number() float64 {
	switch v.Kind {
	case Int:
		return float64(v.Int())
	case Float:
		return v.Float()
	case Number:
		f, _ := strconv.ParseFloat(v.str, 64) // out of range: ±Inf
		return f
	}
	return 0
}

// rank orders kinds: values of different ranks compare by it.
func (k Kind) rank() int {
	switch k {
	case Absent, Null:
		return 0
	case False, True:
		return 1
	case Int, Float, Number:
		return 2
	case String:
		return 3
	case Bytes:
		return 4
	case Time:
		return 5
	case List:
		return 6
	}
	return 7
}

// Compare orders values: null, booleans, numbers, strings, bytes, times, lists and objects, each among themselves; the last two by their bytes.
func (v Value) Compare(o Value) int {
	if c := cmp.Compare(v.Kind.rank(), o.Kind.rank()); c != 0 {
		return c
	}
	switch v.Kind {
	case False, True:
		return cmp.Compare(v.Kind, o.Kind)
	case Int:
		if o.Kind == Int {
			return cmp.Compare(v.Int(), o.Int())
		}
		return cmp.Compare(v.Number(), o.Number())
	case Float, Number:
		return cmp.Compare(v.Number(), o.Number())
	case Time:
		return cmp.Or(cmp.Compare(int64(v.num), int64(o.num)), cmp.Compare(v.nanos, o.nanos))
	}
	return strings.Compare(v.str, o.str)
}

// Prefix returns the encoding of the first n values.
func (r Row) Prefix(n int) Row {
	s := string(r)
	for range n {
		_, s, _ = Next(s)
	}
	return r[:len(r)-len(s)]
}
