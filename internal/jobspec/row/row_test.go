package row

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// anyValue generates what an expression can come to.
func anyValue(depth int) *rapid.Generator[any] {
	leaf := []*rapid.Generator[any]{
		rapid.Just[any](nil),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(rapid.Int(), func(i int) any { return i }),
		rapid.Map(rapid.Float64(), func(f float64) any { return f }),
		rapid.Map(rapid.String(), func(s string) any { return s }),
		rapid.Map(rapid.Int64Range(-1<<40, 1<<40), func(s int64) any { return time.Unix(s, (s&0xffff)*1000).UTC() }),
	}
	if depth == 0 {
		return rapid.OneOf(leaf...)
	}
	return rapid.OneOf(append(leaf,
		rapid.Map(rapid.SliceOfN(anyValue(depth-1), 0, 4), func(l []any) any {
			if l == nil {
				l = []any{}
			}
			return l
		}),
		rapid.Map(rapid.MapOfN(rapid.String(), anyValue(depth-1), 0, 4), func(m map[string]any) any { return m }))...)
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(anyValue(3), 0, 6).Draw(t, "values")
		var a Arena
		for _, x := range want {
			b, err := AppendAny(a.Buf, x)
			if err != nil {
				t.Fatal(err)
			}
			a.Buf = b
		}
		a.End()
		r := a.Rows(nil)[0]
		if !r.Valid(len(want)) {
			t.Fatalf("row %q of %v is not valid", string(r), want)
		}
		var s Spans
		enc := s.Split(r, len(want))
		for i, x := range want {
			v := r.At(i)
			if got := v.Any(); !reflect.DeepEqual(got, x) {
				t.Fatalf("value %d: got %#v, want %#v", i, got, x)
			}
			if enc[i] != string(v.Append(nil)) {
				t.Fatalf("value %d is encoded as %q, again as %q", i, enc[i], v.Append(nil))
			}
		}
		for n := range len(r) {
			if len(want) > 0 && r[:n].Valid(len(want)) {
				t.Fatalf("the first %d bytes of %q are a valid row", n, string(r))
			}
		}
	})
}

// equalKeys is what two values with equal keys must be.
func equalKeys(a, b any) bool {
	if f, ok := a.(float64); ok && f == math.Trunc(f) && math.Abs(f) <= 1<<53 {
		a = int(f)
	}
	if f, ok := b.(float64); ok && f == math.Trunc(f) && math.Abs(f) <= 1<<53 {
		b = int(f)
	}
	return reflect.DeepEqual(a, b)
}

func TestKeysTellValuesApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.SliceOfN(anyValue(0), 2, 2).Draw(t, "a"), rapid.SliceOfN(anyValue(0), 2, 2).Draw(t, "b")
		ka, kb := keyOf(t, a), keyOf(t, b)
		if want := equalKeys(a[0], b[0]) && equalKeys(a[1], b[1]); (ka == kb) != want {
			t.Fatalf("keys of %#v and %#v are %q and %q", a, b, ka, kb)
		}
	})
}

func keyOf(t *rapid.T, vals []any) string {
	var key []byte
	for _, x := range vals {
		b, err := AppendAny(nil, x)
		if err != nil {
			t.Fatal(err)
		}
		v, _, _ := Next(string(b))
		key = v.AppendKey(key)
	}
	return string(key)
}

func TestKeysOfEqualNumbers(t *testing.T) {
	for _, pair := range [][2]string{{"1", "1.0"}, {"1", "1e0"}, {"-0", "0"}, {"100", "1E2"}, {`{"a":1,"b":[1.0]}`, `{"b":[1],"a":1.0}`}, {`{"a":1,"a":2}`, `{"a":2}`}} {
		var keys [2]string
		for i, in := range pair {
			b, err := AppendFromJSON(nil, []byte(in))
			if err != nil {
				t.Fatal(err)
			}
			v, _, _ := Next(string(b))
			keys[i] = string(v.AppendKey(nil))
		}
		if keys[0] != keys[1] {
			t.Errorf("keys of %s and %s differ: %q, %q", pair[0], pair[1], keys[0], keys[1])
		}
	}
}

func TestJSONKeepsNumbers(t *testing.T) {
	for _, in := range []string{"0", "-1", "9007199254740993", "9223372036854775807", "-9223372036854775808", "18446744073709551615",
		"123456789012345678901234567890", "1.5", "0.1", "1e400", "-2.5e-7"} {
		b, err := AppendFromJSON(nil, []byte(in))
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		v, _, _ := Next(string(b))
		if got := string(AppendJSON(nil, v, time.UTC)); got != in {
			t.Errorf("%s is written as %s", in, got)
		}
	}
}

// checkJSON compares the reader with encoding/json: what is accepted, and what it means.
func checkJSON(t *testing.T, in []byte) {
	b, err := AppendFromJSON(nil, in)
	if valid := json.Valid(in); valid != (err == nil) {
		if valid && bytes.Count(in, []byte("["))+bytes.Count(in, []byte("{")) > maxDepth {
			return
		}
		t.Fatalf("%q: got error %v, encoding/json says valid: %v", in, err, valid)
	}
	if err != nil {
		return
	}
	v, rest, ok := Next(string(b))
	if !ok || rest != "" || !v.Valid() {
		t.Fatalf("%q is encoded as %q, which is not one value", in, b)
	}
	out := AppendJSON(nil, v, time.UTC)
	var want, got any
	for i, into := range []*any{&want, &got} {
		d := json.NewDecoder(bytes.NewReader([][]byte{in, out}[i]))
		d.UseNumber()
		if err := d.Decode(into); err != nil {
			t.Fatalf("%q is written as %q: %v", in, out, err)
		}
	}
	if !sameJSON(got, want) {
		t.Fatalf("%q is written as %q", in, out)
	}
}

// sameJSON compares values, numbers by what they are worth.
func sameJSON(a, b any) bool {
	switch x := a.(type) {
	case json.Number:
		y, ok := b.(json.Number)
		fx, ex := x.Float64()
		fy, ey := y.Float64()
		return ok && (x == y || ex == nil && ey == nil && fx == fy)
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !sameJSON(x[i], y[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for k := range x {
			if !sameJSON(x[k], y[k]) {
				return false
			}
		}
		return true
	}
	return a == b
}

func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5,"x\u00e9\ud83d\ude00\ud800",null,true],"b":{}}`, `"\"\\\/\b\f\n\r\t"`, `[1,]`, `{"a" 1}`, `01`, `-`, `1.`, `1e+`, "\"\xff\"", "\"\\n\xff\xfe\"", `[[[]]]`, ` 1 x`, `nul`, "\"\x01\"", `"\x"`, ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(checkJSON)
}

func FuzzRow(f *testing.F) {
	b, err := AppendAny(nil, map[string]any{"a": []any{1, 2.5, "x", nil, true, time.Unix(1, 2)}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte{byte(List), 3, byte(Int), 0x80, 0x80})
	f.Add([]byte{byte(Object), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := Row(b)
		_ = r.String()
		v := r.At(0)
		_, _, _ = v.Any(), v.AppendKey(nil), v.Field("a")
		if !r.Valid(1) {
			return
		}
		if again, rest, ok := Next(string(v.Append(nil))); !ok || rest != "" || !reflect.DeepEqual(again, v) {
			t.Fatalf("%q: read as %v, written and read as %v", b, v, again)
		}
	})
}

// TestParseTimeAtChanges pins what becomes of clock times that there are not, or twice, when clocks change.
func TestParseTimeAtChanges(t *testing.T) {
	for _, c := range []struct{ zone, text, want string }{
		{"Europe/Berlin", "2026-03-29 01:59", "2026-03-29T01:59:00+01:00"},
		{"Europe/Berlin", "2026-03-29 02:30", "2026-03-29T03:30:00+02:00"}, // there is none: an hour later
		{"Europe/Berlin", "2026-03-29 03:00", "2026-03-29T03:00:00+02:00"},
		{"Europe/Berlin", "2026-10-25 02:30", "2026-10-25T02:30:00+02:00"}, // there are two: the first
		{"Europe/Berlin", "2026-10-25 03:00", "2026-10-25T03:00:00+01:00"},
		{"America/New_York", "2026-03-08 02:30", "2026-03-08T03:30:00-04:00"},
		{"America/New_York", "2026-11-01 01:30", "2026-11-01T01:30:00-04:00"},
		{"America/New_York", "2026-11-01 02:00", "2026-11-01T02:00:00-05:00"},
		{"Asia/Kolkata", "2026-11-01 02:00", "2026-11-01T02:00:00+05:30"},
	} {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ParseTime(c.text, zone); err != nil || got.In(zone).Format(time.RFC3339) != c.want {
			t.Errorf("%s in %s is %s (%v), want %s", c.text, c.zone, got.In(zone).Format(time.RFC3339), err, c.want)
		}
	}
}
