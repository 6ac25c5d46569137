package jobspec

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/jobspec/row"
	"github.com/heddle-stream/heddle/internal/jobspec/strict"
)

// testSchema has a column of every type.
var testSchema = row.Schema{Cols: []row.Column{
	{Name: "s", Type: row.StringType}, {Name: "i", Type: row.IntType}, {Name: "f", Type: row.FloatType}, {Name: "b", Type: row.BoolType},
	{Name: "a", Type: row.AnyType}, {Name: "l", Type: row.ListType}, {Name: "t", Type: row.TimeType}, {Name: "o", Type: row.ObjectType},
}}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func rowOf(t testing.TB, values ...any) row.Row {
	t.Helper()
	var b []byte
	for _, x := range values {
		var err error
		if b, err = row.AppendAny(b, x); err != nil {
			t.Fatal(err)
		}
	}
	return row.Row(b)
}

// compileText compiles one expression on testSchema.
func compileText(t testing.TB, src string) (*expression, error) {
	t.Helper()
	var f struct {
		X strict.Text `yaml:"x" doc:"The expression."`
	}
	doc := strict.Decode("x.yaml", []byte("x: "+fmt.Sprintf("%q", src)+"\n"), &f)
	e := compileExpr(doc, scope{schema: testSchema}, "x", f.X)
	return e, doc.Err()
}

// TestExpressions evaluates each expression on a full row and on one of nulls.
func TestExpressions(t *testing.T) {
	full := rowOf(t, "Hello w", 5, 2.5, true, map[string]any{"q": 1}, []any{3, 4}, noon, map[string]any{"a": map[string]any{"b": 7}})
	nulls := rowOf(t, nil, nil, nil, nil, nil, nil, nil, nil)
	null := "null"
	for _, tt := range []struct {
		src      string
		typ      row.Type
		full     any
		onNull   any // null: fails
		failText string
	}{
		{`s == "Hello w"`, row.BoolType, true, false, ""},
		{`s == nil`, row.BoolType, false, true, ""},
		{`s ?? "none"`, row.StringType, "Hello w", "none", ""},
		{`i + 1`, row.IntType, 6, null, "null + int (i is null)"},
		{`(i ?? 0) + 1`, row.IntType, 6, 1, ""},
		{`i / 2`, row.FloatType, 2.5, null, "null / int"},
		{`i % 2`, row.IntType, 1, null, ""},
		{`f * i`, row.FloatType, 12.5, null, ""},
		{`i > 3 && b`, row.BoolType, true, null, ""},
		{`i in [4, 5]`, row.BoolType, true, false, ""},
		{`lower(s)`, row.StringType, "hello w", null, "null where there must be a string"},
		{`s contains "ell"`, row.BoolType, true, false, ""},
		{`s matches "^H.*w$"`, row.BoolType, true, false, ""},
		{`words(s)`, row.ListType, []string{"Hello", "w"}, null, "null where there must be a string"},
		{`split(s, " ")`, row.ListType, []string{"Hello", "w"}, null, ""},
		{`find_all(s, "[a-z]+")`, row.ListType, []string{"ello", "w"}, null, ""},
		{`replace_all(s, "(l+)", "<$1>")`, row.StringType, "He<ll>o w", null, ""},
		{`string(i) + string(f) + (string(a) ?? "-")`, row.StringType, `52.5{"q":1}`, null, ""},
		{`string(t)`, row.StringType, "2026-03-01T12:00:00Z", nil, ""},
		{`millis(t)`, row.IntType, int(noon.UnixMilli()), null, "null where there must be a time"},
		{`from_millis(1000)`, row.TimeType, time.Unix(1, 0).UTC(), time.Unix(1, 0).UTC(), ""},
		{`parse_time("2026-03-01T13:00:00+01:00") == t`, row.BoolType, true, false, ""},
		{`parse_time("2026-03-01")`, row.TimeType, null, null, "has no zone"},
		{`t.Hour()`, row.IntType, 12, null, "null"},
		{`t == nil`, row.BoolType, false, true, ""},
		{`t ?? parse_time("2000-01-01T00:00:00Z")`, row.TimeType, noon, time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), ""},
		{`t.Format("Mon 15:04")`, row.StringType, "Sun 12:00", null, ""},
		{`t - duration("1h") < t`, row.BoolType, true, null, ""},
		{`t > parse_time("2026-01-01T00:00:00Z")`, row.BoolType, true, null, ""},
		{`o.a.b`, row.AnyType, 7, null, "cannot fetch"},
		{`o?.a?.b`, row.AnyType, 7, nil, ""},
		{`a.q`, row.AnyType, 1, null, ""},
		{`l[0]`, row.AnyType, 3, null, ""},
		{`map(l, # * 2)`, row.ListType, []any{6, 8}, null, "null where there must be a list"},
		{`filter(l, # > 3)`, row.ListType, []any{4}, null, ""},
		{`len(l)`, row.IntType, 2, null, ""},
		{`let x = i ?? 0; x * x`, row.IntType, 25, 0, ""},
		{`b ? 1 : 2`, row.IntType, 1, null, ""},
		{`{"x": i}`, row.ObjectType, map[string]any{"x": 5}, map[string]any{"x": nil}, ""},
		{`i`, row.IntType, 5, nil, ""},
		{`true`, row.BoolType, true, true, ""},
	} {
		e, err := compileText(t, tt.src)
		if err != nil {
			t.Errorf("%s: %v", tt.src, err)
			continue
		}
		if e.typ != tt.typ {
			t.Errorf("%s is a %s, want %s", tt.src, e.typ, tt.typ)
		}
		v := e.evaluator(testSchema)
		for i, want := range []any{tt.full, tt.onNull} {
			got, err := v.run([]row.Row{full, nulls}[i])
			switch {
			case want == null && err == nil:
				t.Errorf("%s is %#v, want an error", tt.src, got)
			case want == null && !strings.Contains(err.Error(), tt.failText):
				t.Errorf("%s fails with %q, want %q in it", tt.src, err, tt.failText)
			case want == null:
			case err != nil:
				t.Errorf("%s: %v", tt.src, err)
			case !reflect.DeepEqual(got, want):
				t.Errorf("%s is %#v, want %#v", tt.src, got, want)
			}
		}
	}
}

func TestExpressionsRefused(t *testing.T) {
	for src, want := range map[string]string{
		`now()`:                "there is no now()",
		`$env`:                 "there is no $env",
		`foo`:                  `unknown column "foo"`,
		`wrds(s)`:              `unknown function "wrds"; did you mean "words"?`,
		`find_all(s, s)`:       "the pattern of find_all must be a constant",
		`find_all(s, "(")`:     "bad pattern",
		`s matches "("`:        "missing closing )",
		`s + 1`:                "mismatched types string and int",
		`lower(i)`:             "cannot use int as argument (type string) to call lower",
		`i >`:                  "unexpected token",
		`let x = i; foo`:       `unknown column "foo"`,
		`let words = i; words`: "cannot redeclare function words",
		`lower(s) == lower(q)`: `unknown column "q"`,
	} {
		_, err := compileText(t, src)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q in it", src, err, want)
		}
	}
}

func TestExpressionReadsTheRest(t *testing.T) {
	s := row.Schema{Cols: []row.Column{{Name: "x", Type: row.IntType}}, Rest: true}
	doc := strict.Decode("x", []byte("x: 1"), &struct {
		X strict.Text `yaml:"x" doc:"The expression."`
	}{})
	var f struct {
		X strict.Text `yaml:"x" doc:"The expression."`
	}
	strict.Decode("x", []byte("x: 'x + y + (z ?? 10)'"), &f)
	e := compileExpr(doc, scope{schema: s}, "x", f.X)
	if err := doc.Err(); err != nil {
		t.Fatal(err)
	}
	got, err := e.evaluator(s).run(rowOf(t, 1, map[string]any{"y": 2}))
	if err != nil || got != 13 {
		t.Errorf("got %v, %v", got, err)
	}
}
