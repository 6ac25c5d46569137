package strict

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// file is a small language.
type file struct {
	At
	Text  Text      `yaml:"text" doc:"A text."`
	Wait  Duration  `yaml:"wait" doc:"A duration."`
	Many  []String  `yaml:"many" doc:"A list."`
	Named Map[Int]  `yaml:"named" doc:"A map."`
	Left  *Bool     `yaml:"left" one:"side" doc:"One of two."`
	Right *Bool     `yaml:"right" one:"side" doc:"One of two."`
	Mode  *oneOrTwo `yaml:"mode" doc:"A name or a map."`
}

type oneOrTwo struct {
	At
	Name String `alt:"scalar" enum:"fast|slow"`
	File *file  `alt:"map"`
}

func decode(t testing.TB, text string) (file, *Document) {
	t.Helper()
	var f file
	d := Decode("f.yaml", []byte(text), &f)
	return f, d
}

func TestDecode(t *testing.T) {
	f, d := decode(t, `
text: 1 == 1
wait: 1h30m
many: &list [a, "b"]
named: { x: 1, y: -2 }
left: true
mode:
  right: false
  many: *list
  text: true
`)
	if err := d.Err(); err != nil {
		t.Fatal(err)
	}
	if f.Text.Value != "1 == 1" || f.Wait.Value != 90*time.Minute || f.Many[1].Value != "b" || f.Named.Entries[1].Value.Value != -2 ||
		!f.Left.Value || f.Right != nil || f.Mode.File.Many[0].Value != "a" || f.Mode.File.Text.Value != "true" {
		t.Errorf("got %+v", f)
	}
	if p := f.Mode.Place(); p.Line != 8 || p.Column != 3 {
		t.Errorf("mode is at %+v", p)
	}
}

func TestErrors(t *testing.T) {
	for in, want := range map[string]string{
		"left: true\nright: true":                        "2:1: the job takes only one of: left, right",
		"text: a":                                        "1:1: the job needs one of: left, right",
		"left: yes":                                      `1:7: left needs true or false, not the string "yes"`,
		"left: true\nmode: fsat":                         `2:7: unknown mode "fsat"; did you mean "fast"?`,
		"left: true\nmode: [a]":                          "2:7: mode needs a value or a map, not a list",
		"left: true\nmany: []":                           "2:7: many is empty",
		"left: true\nmany:":                              "2:7: many needs a list, but is empty",
		"left: true\nwait: 5x":                           `2:7: wait needs a duration such as 500ms, 90s, 1h30m or 1d, not "5x"`,
		"left: true\nwait: 1.5":                          "2:7: wait needs a duration such as 90s, not the number 1.5",
		"left: true\nnamed: {x: 99999999999999999999}":   "2:12: x needs a whole number, not the string \"99999999999999999999\"",
		"left: true\ntext: *a":                           "2:7: unknown alias *a",
		"left: true\nmode: &m\n  left: true\n  mode: *m": "too many or too deeply nested values",
		"- a":                              "1:1: the job needs a map, not a list",
		"just text":                        `1:1: the job needs a map, not the string "just text"`,
		strings.Repeat("[", maxNesting+1):  "1:1: nested deeper than 100",
		strings.Repeat("- ", maxNesting+2): "1:1: nested deeper than 100",
		"left: true\n? [a]\n: b":           "found an invalid key for this map",
		strings.Repeat("#", MaxBytes+1):    "1:1: file is larger than 262144 bytes",
		"left: true\n\"text\": {a: b}":     "2:9: text needs an expression, not a map",
		"left: true\ntext: x\ntext: y":     `mapping key "text" already defined`,
	} {
		_, d := decode(t, in)
		err := d.Err()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: got %v, want %q in it", in, err, want)
		}
	}
}

func TestMoreProblemsThanAreShown(t *testing.T) {
	_, d := decode(t, "left: true\n"+strings.Join(strings.Split(strings.Repeat("x", 13), ""), strconv.Quote(""))+": 1")
	for i := range 13 {
		d.Failf(Place{Line: 2, Column: 30 - i}, "problem %d", i)
	}
	text := d.Err().Error()
	if !strings.HasSuffix(text, "\nand 4 more") || strings.Index(text, "problem 12") > strings.Index(text, "problem 11") {
		t.Errorf("got %s", text)
	}
}

func TestDurations(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "1d": 24 * time.Hour, "1d12h": 36 * time.Hour, "1.5h": 90 * time.Minute, "0s": 0,
		"d": -1, "": -1, "5": -1, "1d5": -1, "-5s": -1, "99999d": -1, "1d1d": -1, "9999999999h": -1,
	} {
		got, days, ok := parseDuration(in)
		if !ok {
			got = -1
		}
		if got != want || days > 0 != (in == "1d") {
			t.Errorf("%q is %v, %d days, want %v", in, got, days, want)
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"filter", "flat_map", "key_by", "set", "window"}
	for in, want := range map[string]string{"fliter": "filter", "Filter": "filter", "flatmap": "flat_map", "st": "set", "windw": "window", "x": "", "aggregate": "", "": ""} {
		if got := Nearest(in, names); got != want {
			t.Errorf("nearest of %q is %q, want %q", in, got, want)
		}
	}
}

// TestPlaces writes a text in each of YAML's styles and looks up where its characters are.
func TestPlaces(t *testing.T) {
	styles := map[string]func(string) string{
		"double":  func(s string) string { return "text: " + strconv.QuoteToGraphic(s) },
		"single":  func(s string) string { return "text: '" + strings.ReplaceAll(s, "'", "''") + "'" },
		"flow":    func(s string) string { return "{ left: true, text: '" + strings.ReplaceAll(s, "'", "''") + "' }" },
		"literal": func(s string) string { return "text: |\n    " + s },
		"folded":  func(s string) string { return "text: >-\n  " + s },
	}
	for name, write := range styles {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				// X marks the character that is looked up; it must not be first or last, where YAML takes space away.
				before := "a" + rapid.StringOfN(rapid.RuneFrom([]rune(`ab é'"\=`)), 0, 8, -1).Draw(rt, "before")
				after := rapid.StringOfN(rapid.RuneFrom([]rune(`ab é'"`)), 0, 8, -1).Draw(rt, "after") + "b"
				text := before + "X" + after
				in := write(text)
				f, _ := decode(t, in)
				if f.Text.Value != text && f.Text.Value != text+"\n" {
					rt.Skip() // YAML took something away
				}
				p := f.Text.PlaceAt(len([]rune(before)), 1)
				lines := strings.Split(in, "\n")
				if p.Line > len(lines) || p.Column > len([]rune(lines[p.Line-1])) || []rune(lines[p.Line-1])[p.Column-1] != 'X' {
					rt.Fatalf("in %q the X is said to be at %+v", in, p)
				}
			})
		})
	}
}

func TestCall(t *testing.T) {
	for in, want := range map[string]string{
		"'sum(a + b)'": "1:8 sum, 1:12 a + b", "count()": "1:7 count, 1:13 ", "sum( a )": "1:7 sum, 1:12 a", "sum(f(x))": "1:7 sum, 1:11 f(x)",
		"a": "none", "(a)": "none", "a b(c)": "none", "sum(a": "none", "sum(a) / 2": "none",
	} {
		f, _ := decode(t, "text: "+in)
		name, arg, ok := f.Text.Call()
		got := "none"
		if ok {
			p, q := name.Place(), arg.Place()
			got = fmt.Sprintf("%d:%d %s, %d:%d %s", p.Line, p.Column, name.Value, q.Line, q.Column, arg.Value)
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("text: a\nmany: [a, b]\nnamed: {x: 1}\nleft: true\nmode: fast\n"))
	f.Add([]byte("text: |\n  a\n  b\nwait: 1d\nmode: &m {left: true, mode: *m}\n"))
	f.Add([]byte("0"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, d := decode(t, string(data))
		if err := d.Err(); err != nil {
			_ = err.Error()
		}
		for i := range len([]rune(got.Text.Value)) + 2 {
			_ = got.Text.PlaceAt(i, 1)
		}
		_, _, _ = got.Text.Call()
	})
}
