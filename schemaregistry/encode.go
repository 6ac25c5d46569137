package schemaregistry

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"
)

// fieldError says which field of a record can't be written.
type fieldError struct {
	path string // such as user.addresses[2].zip; "": the whole record
	why  string
}

func (e *fieldError) Error() string {
	if e.path == "" {
		return e.why
	}
	return fmt.Sprintf("field %q: %s", e.path, e.why)
}

func misfit(v any, want string) error { return &fieldError{why: want + " is wanted, not " + kindOf(v)} }

// within adds to an error in which field it is.
func within(name string, err error) error {
	f, ok := errors.AsType[*fieldError](err)
	if !ok {
		return &fieldError{path: name, why: err.Error()}
	}
	switch {
	case f.path == "":
	case f.path[0] == '[':
		name += f.path
	default:
		name += "." + f.path
	}
	return &fieldError{path: name, why: f.why}
}

// kindOf says what a value is, in the words of job files.
func kindOf(v any) string {
	switch t := v.(type) {
	case nil:
		return "null"
	case bool:
		return "a bool"
	case string:
		return "the string " + strconv.Quote(short(t))
	case []byte:
		return "bytes"
	case time.Time:
		return "the time " + t.Format(time.RFC3339Nano)
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	case json.Number:
		return "the number " + t.String()
	}
	return fmt.Sprintf("the number %v", v)
}

func short(s string) string {
	const most = 40
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// wholeNumber returns a value as an integer; ok is false if it is none, or has a fraction.
func wholeNumber(v any) (int64, bool) {
	switch t := v.(type) {
	case int:
		return int64(t), true
	case int32:
		return int64(t), true
	case int64:
		return t, true
	case float64:
		i := int64(t)
		return i, t == math.Trunc(t) && t >= -(1<<63) && t < 1<<63
	case json.Number:
		i, err := strconv.ParseInt(t.String(), 10, 64)
		return i, err == nil
	}
	return 0, false
}

// realNumber returns a value as a float.
func realNumber(v any) (float64, bool) {
	switch t := v.(type) {
	case int:
		return float64(t), true
	case int32:
		return float64(t), true
	case int64:
		return float64(t), true
	case float32:
		return float64(t), true
	case float64:
		return t, true
	case json.Number:
		f, err := t.Float64()
		return f, err == nil
	}
	return 0, false
}

// unknown returns the first field, by name, that a schema does not have.
func unknown(doc map[string]any, has func(string) bool) (string, bool) {
	for _, name := range slices.Sorted(maps.Keys(doc)) {
		if !has(name) {
			return name, true
		}
	}
	return "", false
}
