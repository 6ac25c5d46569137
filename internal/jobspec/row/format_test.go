package row

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/heddle-stream/heddle/internal/flow"
)

var typed = Schema{Cols: []Column{{Name: "s", Type: StringType}, {Name: "i", Type: IntType}, {Name: "f", Type: FloatType},
	{Name: "b", Type: BoolType}, {Name: "t", Type: TimeType}, {Name: "l", Type: ListType}}}

// messages makes messages of texts; "NULL" is one without a value.
func messages(texts ...string) *flow.Messages {
	m := &flow.Messages{Topic: "topic", Partition: 3}
	for i, s := range texts {
		v := flow.Span{Off: int32(len(m.Buf)), Len: int32(len(s))}
		if s == "NULL" {
			v.Len = -1
		} else {
			m.Buf = append(m.Buf, s...)
		}
		m.Values = append(m.Values, v)
		m.Offsets = append(m.Offsets, int64(100+i))
		m.Times = append(m.Times, int64(1000*i))
	}
	return m
}

// encode writes rows and returns the texts.
func encode(t testing.TB, f *Format, rows ...Row) (out []string) {
	t.Helper()
	var m flow.Messages
	if err := f.Encode(&m, rows); err != nil {
		t.Fatal(err)
	}
	for i := range m.Len() {
		if m.Value(i) == nil {
			out = append(out, "NULL")
		} else {
			out = append(out, string(m.Value(i)))
		}
	}
	return out
}

// TestDecode decodes one message and prints the row, or the error.
func TestDecode(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	open := Schema{Cols: []Column{{Name: "a", Type: AnyType}}, Rest: true}
	csv := func(zone *time.Location) *Format {
		return NewCSV(typed, zone, CSVOptions{Columns: []int{0, 1, -1, 2, 3, 4, 5}})
	}
	for _, tt := range []struct {
		name, in, want string
		f              *Format
	}{
		{"all types", `{"s":"x","i":1,"f":2,"b":true,"t":"2026-03-01T12:00:00+01:00","l":[1,"a"]}`, `("x", 1, 2, true, "2026-03-01T11:00:00Z", [1,"a"])`, NewJSON(typed, nil)},
		{"other order, others left out", ` { "i" : 1.0 , "zzz" : {"s":[]} , "s":"x" } `, `("x", 1, absent, absent, absent, absent)`, NewJSON(typed, nil)},
		{"last counts", `{"i":1,"i":2}`, `(absent, 2, absent, absent, absent, absent)`, NewJSON(typed, nil)},
		{"null", `{"s":null}`, `(null, absent, absent, absent, absent, absent)`, NewJSON(typed, nil)},
		{"empty", `{}`, `(absent, absent, absent, absent, absent, absent)`, NewJSON(typed, nil)},
		{"rest", `{"x":1,"a":{"b":2},"y":[]}`, `({"b":2}, {"x":1,"y":[]})`, NewJSON(open, nil)},
		{"escaped name", `{"\u0061":1,"\"":2}`, `(1, {"\"":2})`, NewJSON(open, nil)},
		{"local time", `{"t":"2026-03-01 12:00"}`, `(absent, absent, absent, absent, "2026-03-01T11:00:00Z", absent)`, NewJSON(typed, berlin)},
		{"time without zone", `{"t":"2026-03-01 12:00"}`, `field "t": the time "2026-03-01 12:00" has no zone: set timezone, or write it with an offset such as Z`, NewJSON(typed, nil)},
		{"no time", `{"t":"noon"}`, `field "t": "noon" is no RFC 3339 time`, NewJSON(typed, nil)},
		{"no int", `{"i":1.5}`, `field "i": the float 1.5 is no int`, NewJSON(typed, nil)},
		{"large int", `{"i":18446744073709551615}`, `field "i": the number 18446744073709551615 is no int`, NewJSON(typed, nil)},
		{"no string", `{"s":1}`, `field "s": the int 1 is no string`, NewJSON(typed, nil)},
		{"no object", `[1]`, `at byte 0: want a JSON object, not '['`, NewJSON(typed, nil)},
		{"cut", `{"s":`, `at byte 5: no JSON value begins with the end`, NewJSON(typed, nil)},
		{"more", `{} x`, `at byte 3: 'x' after the JSON value`, NewJSON(typed, nil)},
		{"no value", `NULL`, `there is no value (a null)`, NewJSON(typed, nil)},
		{"csv", `"a ""b"", c",1,left out,2.5,true,2026-03-01T12:00:00Z,"[1]"`, `("a \"b\", c", 1, 2.5, true, "2026-03-01T12:00:00Z", [1])`, csv(nil)},
		{"csv of nothing", ",,,,,,\r", `("", null, null, null, null, null)`, csv(nil)},
		{"csv too short", "a,1", `the line has 2 fields, not 7`, csv(nil)},
		{"csv no int", "a,x,,,,,", `field "i": the string "x" is no int`, csv(nil)},
		{"csv quote", `a"b,,,,,,`, `field 1 holds a quote, but is not in quotes`, csv(nil)},
		{"csv open", `"a,,,,,,`, `field 1 has no closing quote`, csv(nil)},
		{"csv after quote", `"a"b,,,,,,`, `field 1 goes on after its closing quote`, csv(nil)},
		{"text", "a line", `("a line")`, NewText(Schema{Cols: []Column{{Name: "line", Type: StringType}}}, nil, 0, Template{})},
		{"raw null", "NULL", `(null)`, NewRaw(Schema{Cols: []Column{{Name: "value", Type: BytesType}}}, 0)},
		{"meta", "x", `("topic", 3, 100, "1970-01-01T00:00:00Z", null, null)`, NewText(Schema{Cols: MetaColumns}, nil, -1, Template{})},
	} {
		rows, err := tt.f.Decode(nil, messages(tt.in), 0)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = rows[0].String()
			if !rows[0].Valid(tt.f.schema.Width()) {
				t.Errorf("%s: %q is no row of %s", tt.name, string(rows[0]), tt.f.schema)
			}
		}
		if got != tt.want {
			t.Errorf("%s: %s is\n%s, want\n%s", tt.name, tt.in, got, tt.want)
		}
	}
}

func TestDecodeGoesOnAfterABadMessage(t *testing.T) {
	f := NewJSON(Schema{Cols: []Column{{Name: "i", Type: IntType}}}, nil)
	m := messages(`{"i":1}`, `{"i":2}`, `{"i":"x"}`, `{"i":4}`)
	rows, err := f.Decode(nil, m, 0)
	if err == nil || len(rows) != 2 {
		t.Fatalf("got %v, %v", rows, err)
	}
	rows, err = f.Decode(rows, m, 3)
	if err != nil || len(rows) != 3 || rows[2].At(0).Int() != 4 {
		t.Fatalf("got %v, %v", rows, err)
	}
}

func TestEventTimes(t *testing.T) {
	s := Schema{Cols: []Column{{Name: "t", Type: AnyType}}}
	for _, tt := range []struct {
		in   string
		unit time.Duration
		want int64
	}{
		{`{"t":"2026-03-01T00:00:00.5Z"}`, time.Millisecond, 1772323200500},
		{`{"t":1772323200500}`, time.Millisecond, 1772323200500},
		{`{"t":1772323200}`, time.Second, 1772323200000},
		{`{"t":1772323200.25}`, time.Second, 1772323200250},
		{`{"t":1772323200500999}`, time.Microsecond, 1772323200500},
		{`{"t":-1}`, time.Second, -1000},
		{`{"t":9223372036854775807}`, time.Second, -7},
		{`{"t":1e300}`, time.Second, -7},
		{`{"t":null}`, time.Second, -7},
		{`{"t":[]}`, time.Second, -7},
		{`{"t":"2026-03-01T00:00:00"}`, time.Second, -7},
	} {
		m := messages("{}", tt.in)
		m.Times = nil // a source that has no times
		_, err := NewJSON(s, nil).WithEventTime(0, tt.unit).Decode(nil, m, 1)
		switch {
		case tt.want == -7 && err == nil:
			t.Errorf("%s was accepted as %d", tt.in, m.Times[1])
		case tt.want != -7 && (err != nil || m.Times[1] != tt.want):
			t.Errorf("%s is %v, %v, want %d", tt.in, m.Times, err, tt.want)
		}
	}
}

func TestHeader(t *testing.T) {
	f := NewCSV(Schema{Cols: []Column{{Name: "a", Type: IntType}}}, nil, CSVOptions{Columns: []int{0}, Header: true})
	m := messages("a", "1")
	m.Offsets = []int64{0, 2}
	rows, err := f.Decode(nil, m, 0)
	if err != nil || len(rows) != 2 || rows[0] != Header || rows[1].At(0).Int() != 1 {
		t.Errorf("got %v, %v", rows, err)
	}
}

func TestEncode(t *testing.T) {
	rows, err := NewJSON(typed, nil).Decode(nil, messages(`{"s":"a;\"b","i":1,"f":0.5,"b":false,"t":"2026-03-01T11:00:00Z","l":[1]}`, `{"s":""}`), 0)
	if err != nil {
		t.Fatal(err)
	}
	template, err := NewTemplate("{s}={i}{{}}", typed)
	if err != nil {
		t.Fatal(err)
	}
	zone := time.FixedZone("", 3600)
	for _, tt := range []struct {
		name string
		f    *Format
		want []string
	}{
		{"json", NewJSON(typed, zone), []string{`{"s":"a;\"b","i":1,"f":0.5,"b":false,"t":"2026-03-01T12:00:00+01:00","l":[1]}`, `{"s":""}`}},
		{"csv", NewCSV(typed, nil, CSVOptions{Delimiter: ';', Columns: []int{4, 0, 5}}), []string{`2026-03-01T11:00:00Z;"a;""b";[1]`, ";;"}},
		{"csv of one column", NewCSV(typed, nil, CSVOptions{Columns: []int{0}}), []string{`"a;""b"`, `""`}},
		{"text", NewText(typed, nil, -1, template), []string{`a;"b=1{}`, "={}"}},
		{"raw", NewRaw(typed, 1), []string{"1", "NULL"}},
	} {
		if got := encode(t, tt.f, rows...); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	var m flow.Messages
	if err := NewRaw(typed, 0).WithKey(1).Encode(&m, rows); err != nil {
		t.Fatal(err)
	}
	if string(m.At(m.Keys[0])) != "1" || m.At(m.Keys[1]) != nil || len(m.Keys) != 2 {
		t.Errorf("keys are %v in %q", m.Keys, m.Buf)
	}
}

func TestTemplates(t *testing.T) {
	for in, want := range map[string]string{"{a": "'{' without '}'", "a}": "'}' without '{'", "{b}": `unknown column "b"`, "{}": `unknown column ""`} {
		if _, err := NewTemplate(in, Schema{Cols: []Column{{Name: "a"}}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", in, err, want)
		}
	}
}

// TestCSVRoundTrip writes any strings and reads them again.
func TestCSVRoundTrip(t *testing.T) {
	s := Schema{Cols: []Column{{Name: "a", Type: StringType}, {Name: "b", Type: StringType}}}
	f := NewCSV(s, nil, CSVOptions{Columns: []int{0, 1}})
	rapid.Check(t, func(rt *rapid.T) {
		var want []string
		var b []byte
		for range 2 {
			want = append(want, rapid.StringOf(rapid.RuneFrom([]rune("a,\"\r\n é"))).Draw(rt, "field"))
			b = StringValue(want[len(want)-1]).Append(b)
		}
		line := encode(t, f, Row(b))
		rows, err := f.Decode(nil, messages(line[0]), 0)
		if err != nil {
			rt.Fatalf("%q is written as %q, and read as %v", want, line, err)
		}
		if got := []string{rows[0].At(0).Str(), rows[0].At(1).Str()}; !slices.Equal(got, want) {
			rt.Fatalf("%q is written as %q, and read as %q", want, line, got)
		}
	})
}

func FuzzCSV(f *testing.F) {
	f.Add([]byte(`a,"b ""c""",1`))
	f.Add([]byte("\"\"\r"))
	f.Fuzz(func(t *testing.T, in []byte) {
		format := NewCSV(typed, time.UTC, CSVOptions{Columns: []int{0, 1, 2}})
		rows, err := format.Decode(nil, messages(string(in)), 0)
		if err == nil && len(rows) == 1 && !rows[0].Valid(typed.Width()) {
			t.Fatalf("%q is decoded as %q, which is no row", in, string(rows[0]))
		}
	})
}

func TestStringsDontShareTheMessages(t *testing.T) {
	f := NewText(Schema{Cols: []Column{{Name: "line", Type: StringType}}}, nil, 0, Template{})
	m := messages("one", "two")
	rows, err := f.Decode(nil, m, 0)
	if err != nil {
		t.Fatal(err)
	}
	clear(m.Buf)
	if rows[0].At(0).Str() != "one" || rows[1].At(0).Str() != "two" {
		t.Errorf("got %v after the messages were overwritten", rows)
	}
}
