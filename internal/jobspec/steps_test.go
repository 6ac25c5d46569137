package jobspec

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/heddletest"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/jobspec/row"
)

// load loads a job, which must be right.
func load(t testing.TB, text string) (*heddle.Job, *planner) {
	t.Helper()
	plan, err := check("job.yaml", []byte(text), Options{})
	if err != nil {
		t.Fatalf("cannot load:\n%v", err)
	}
	job, err := plan.build()
	if err != nil {
		t.Fatalf("cannot load:\n%v", err)
	}
	return job, plan
}

// conversation is a job of one JSON source, driven by the test.
type conversation struct {
	t    *testing.T
	h    *heddletest.Harness
	in   *heddletest.Feed[row.Row]
	plan *planner
}

func converse(t *testing.T, text string) *conversation {
	t.Helper()
	job, plan := load(t, text)
	h := heddletest.New(t, job, heddletest.StartAt(noon))
	return &conversation{t: t, h: h, in: heddletest.Input[row.Row](h, "source"), plan: plan}
}

// row makes the row that the source would read from a JSON object.
func (c *conversation) row(object string) row.Row {
	c.t.Helper()
	s := c.plan.streams["source"].have
	m := &flow.Messages{Buf: []byte(object), Values: []flow.Span{{Len: int32(len(object))}}}
	rows, err := row.NewJSON(s, nil).Decode(nil, m, 0)
	if err != nil {
		c.t.Fatal(err)
	}
	return rows[0]
}

// send sends objects at a time after noon.
func (c *conversation) send(after time.Duration, objects ...string) {
	c.t.Helper()
	for _, o := range objects {
		c.in.SendAt(noon.Add(after), c.row(o))
	}
}

// want compares what a sink got since the last time with JSON objects.
func (c *conversation) want(out *heddletest.Results[row.Row], sink string, objects ...string) {
	c.t.Helper()
	have := c.plan.sinks[sink].have
	var m flow.Messages
	if err := row.NewJSON(have, nil).Encode(&m, out.Take()); err != nil {
		c.t.Fatal(err)
	}
	var got []string
	for i := range m.Len() {
		got = append(got, string(m.Value(i)))
	}
	if strings.Join(got, "\n") != strings.Join(objects, "\n") {
		c.t.Errorf("sink %s got\n%s\nwant\n%s", sink, strings.Join(got, "\n"), strings.Join(objects, "\n"))
	}
}

func TestLateRecords(t *testing.T) {
	c := converse(t, `
name: late
source: { file: { path: x, format: json }, event_time: at }
steps:
  - key_by: user
  - window: { tumbling: 1m, lateness: 1m, late: late, aggregate: { n: count(), sum: sum(v) } }
    name: counts
sinks:
  out: { from: counts, stdout: {} }
  late: { stdout: {} }
`)
	out, late := heddletest.Output[row.Row](c.h, "out"), heddletest.Output[row.Row](c.h, "late")
	c.send(0, `{"user":"a","v":1,"x":{"y":1}}`, `{"user":"a","v":2}`)
	c.in.Watermark(noon.Add(time.Minute))
	c.want(out, "out", `{"user":"a","window_start":"2026-03-01T12:00:00Z","window_end":"2026-03-01T12:01:00Z","n":2,"sum":3}`)
	c.send(time.Second, `{"user":"a","v":0.5}`)
	c.want(out, "out", `{"user":"a","window_start":"2026-03-01T12:00:00Z","window_end":"2026-03-01T12:01:00Z","n":3,"sum":3.5}`)
	c.in.Watermark(noon.Add(3 * time.Minute))
	c.send(time.Second, `{"user":"a","v":7,"x":{"y":2}}`)
	c.want(late, "late", `{"user":"a","v":7,"x":{"y":2}}`)
	c.h.End()
	c.want(out, "out")
}

func TestDedupe(t *testing.T) {
	const steps = `
steps:
  - dedupe: { by: [id, kind], within: 1m }
sink: { stdout: {} }
`
	t.Run("event time", func(t *testing.T) {
		c := converse(t, "name: d\nsource: { file: { path: x, format: json }, event_time: at }"+steps)
		out := heddletest.Output[row.Row](c.h, "sink")
		c.send(0, `{"id":1,"kind":"a","v":1}`, `{"id":1.0,"kind":"a","v":2}`, `{"id":"1","kind":"a","v":3}`, `{"id":1,"v":4}`)
		c.want(out, "sink", `{"id":1,"kind":"a","v":1}`, `{"id":"1","kind":"a","v":3}`, `{"id":1,"v":4}`)
		c.send(59*time.Second, `{"id":1,"kind":"a","v":5}`)
		c.want(out, "sink")
		c.send(60*time.Second, `{"id":1,"kind":"a","v":6}`)
		c.want(out, "sink", `{"id":1,"kind":"a","v":6}`)
		c.in.Watermark(noon.Add(61 * time.Second)) // the timer of the first is no reason to forget the second
		c.send(70*time.Second, `{"id":1,"kind":"a","v":7}`)
		c.want(out, "sink")
		c.h.End()
	})
	t.Run("processing time", func(t *testing.T) {
		c := converse(t, "name: d\nsource: { file: { path: x, format: json } }"+steps)
		out := heddletest.Output[row.Row](c.h, "sink")
		c.in.Send(c.row(`{"id":1}`), c.row(`{"id":1}`))
		c.h.Advance(59 * time.Second)
		c.in.Send(c.row(`{"id":1}`))
		c.want(out, "sink", `{"id":1}`)
		c.h.Advance(time.Second)
		c.in.Send(c.row(`{"id":1}`))
		c.want(out, "sink", `{"id":1}`)
		c.h.End()
	})
}

func TestStepsOnUnknownFields(t *testing.T) {
	c := converse(t, `
name: rest
source: { file: { path: x, format: json } }
steps:
  - set: { a: b, c: (a ?? 0) + 1 }
  - drop: [d]
  - flat_map: { e: e }
  - filter: e != 2
sink: { stdout: {} }
`)
	out := heddletest.Output[row.Row](c.h, "sink")
	c.in.Send(c.row(`{"z":{"k":[1]},"a":5,"b":"B","d":0,"e":[1,2,null]}`), c.row(`{"e":[]}`), c.row(`{"e":null}`), c.row(`{"e":["x"]}`))
	c.want(out, "sink",
		`{"a":"B","c":6,"e":1,"b":"B","z":{"k":[1]}}`,
		`{"a":"B","c":6,"e":null,"b":"B","z":{"k":[1]}}`,
		`{"c":1,"e":"x"}`)
	c.h.End()
}

func TestUnionOfUnknownFields(t *testing.T) {
	c := converse(t, `
name: union
source: { file: { path: x, format: json } }
steps:
  - route: { a: kind == "a", b: kind == "b", c: "true" }
  - from: a
    filter: x > 1
    name: big
  - from: b
    set: { x: y + 1, n: 1 }
    name: made
  - from: c
    keep: [kind]
    name: kinds
  - union: [big, made, kinds]
sink: { stdout: {} }
`)
	out := heddletest.Output[row.Row](c.h, "sink")
	c.in.Send(c.row(`{"kind":"a","x":2,"q":"A"}`), c.row(`{"kind":"b","y":1,"x":0}`), c.row(`{"kind":null,"q":1}`))
	c.want(out, "sink",
		`{"x":2,"kind":"a","q":"A"}`,
		`{"x":2,"n":1,"kind":"b","y":1}`,
		`{"kind":null}`)
	c.h.End()
}

func TestKeepOrderAndTypes(t *testing.T) {
	c := converse(t, `
name: keep
source: { file: { path: x, format: json }, fields: { a: int, b: float, c: any, d: list } }
steps:
  - keep: [c, a, b]
  - set: { b: b * 2 }
sink: { stdout: {} }
`)
	out := heddletest.Output[row.Row](c.h, "sink")
	c.in.Send(c.row(`{"a":1,"b":2,"c":"x","d":[1],"e":3}`))
	c.want(out, "sink", `{"c":"x","a":1,"b":4}`)
	c.h.End()
}

func TestSessionAndSliding(t *testing.T) {
	for _, tt := range []struct{ window, want string }{
		{"session: 10s", `{"k":1,"window_start":"2026-03-01T12:00:00Z","window_end":"2026-03-01T12:00:15Z","n":2}
{"k":1,"window_start":"2026-03-01T12:01:00Z","window_end":"2026-03-01T12:01:10Z","n":1}`},
		{"sliding: 1m, slide: 30s", `{"k":1,"window_start":"2026-03-01T11:59:30Z","window_end":"2026-03-01T12:00:30Z","n":2}
{"k":1,"window_start":"2026-03-01T12:00:00Z","window_end":"2026-03-01T12:01:00Z","n":2}
{"k":1,"window_start":"2026-03-01T12:00:30Z","window_end":"2026-03-01T12:01:30Z","n":1}
{"k":1,"window_start":"2026-03-01T12:01:00Z","window_end":"2026-03-01T12:02:00Z","n":1}`},
	} {
		c := converse(t, `
name: w
source: { file: { path: x, format: json }, event_time: at }
steps:
  - key_by: { k: user % 2 }
  - window: { `+tt.window+`, aggregate: { n: count() } }
sink: { stdout: {} }
`)
		out := heddletest.Output[row.Row](c.h, "sink")
		c.send(0, `{"user":1}`)
		c.send(5*time.Second, `{"user":3}`)
		c.send(time.Minute, `{"user":5}`)
		c.h.End()
		c.want(out, "sink", strings.Split(tt.want, "\n")...)
	}
}

// TestFailures: what an expression that fails does to the job.
func TestFailures(t *testing.T) {
	text := func(policy string) string {
		return `
name: fail
source: { file: { path: x, format: json } }
steps:
  - filter: amount > 1
    name: big` + policy + `
sinks:
  out: { from: big, stdout: {} }
  bad: { stdout: {} }
`
	}
	c := converse(t, strings.Replace(text(""), "  bad: { stdout: {} }\n", "", 1))
	err := c.h.Try(func() { c.in.Send(c.row(`{"amount":"much"}`)) })
	for _, part := range []string{"big (job.yaml:5)", "cannot evaluate filter: amount > 1", `amount is "much"`, `"much"`} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("got error %v, want %q in it", err, part)
		}
	}

	c = converse(t, text("\n    on_error: { dead_letter: bad }"))
	out, bad := heddletest.Output[row.Row](c.h, "out"), heddletest.Output[row.Row](c.h, "bad")
	c.in.Send(c.row(`{"amount":2}`), c.row(`{"amount":null,"id":7}`), c.row(`{"amount":3}`))
	c.want(out, "out", `{"amount":2}`, `{"amount":3}`)
	got := bad.Take()
	if len(got) != 1 || got[0].At(0).Str() != "big" || !strings.Contains(got[0].At(1).Str(), "null > int (amount is null)") || !strings.Contains(got[0].At(2).Str(), "7") {
		t.Errorf("dead letters are %v", got)
	}
	c.h.End()

	c = converse(t, strings.Replace(text("\n    on_error: skip"), "  bad: { stdout: {} }\n", "", 1))
	out = heddletest.Output[row.Row](c.h, "out")
	c.in.Send(c.row(`{}`), c.row(`{"amount":3}`))
	c.want(out, "out", `{"amount":3}`)
	c.h.End()
}

// TestOnlyWhatIsNeeded: columns that nobody reads are not even read.
func TestOnlyWhatIsNeeded(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"aggregate", `
source: { kafka: { topics: [t], format: json }, event_time: at }
steps:
  - set: { unused: zzz, host: lower(h) }
  - filter: kind == "click" && _partition >= 0
  - key_by: user
  - window: { tumbling: 1m, aggregate: { n: count(), s: sum(v), hosts: distinct(host) } }
sink: { stdout: {} }`, "_partition int, at any, h any, kind any, user any, v any"},
		{"all", `
source: { kafka: { topics: [t], format: json } }
steps: [ { filter: a > 1 } ]
sink: { stdout: {} }`, "a any, …"},
		{"declared", `
source: { kafka: { topics: [t], format: json }, fields: { a: int, b: int, c: int } }
steps: [ { drop: [a] } ]
sink: { stdout: { format: { text: "{c}" } } }`, "c int"},
		{"nothing", `
source: { kafka: { topics: [t], format: json } }
sink: { discard: {} }`, ""},
		{"offset", `
source: { kafka: { topics: [t], format: text } }
steps: [ { set: { offset: _offset } } ]
sink: { stdout: {} }`, "line string, _offset int"},
	} {
		_, plan := load(t, "name: x"+tt.text)
		if got := plan.streams["source"].have.String(); got != tt.want {
			t.Errorf("%s: the source reads %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestSameEverywhere: every process builds the job for itself, and rows of one must be read by another.
func TestSameEverywhere(t *testing.T) {
	for _, name := range files(t, "testdata/good/*.yaml") {
		first := ""
		for range 20 {
			_, plan := load(t, string(read(t, name)))
			got := ""
			for _, s := range plan.all {
				got += s.title + ": " + s.have.String() + "\n"
			}
			if first == "" {
				first = got
			}
			if got != first {
				t.Fatalf("%s: one process has\n%s\nanother\n%s", name, first, got)
			}
		}
	}
}

func TestTimezoneOption(t *testing.T) {
	const text = `{"name": "x", "source": {"kafka": {"topics": ["t"], "format": "json", "stop": {"timestamp": "2026-03-01"}}}, "sink": {"discard": {}}}`
	if !json.Valid([]byte(text)) {
		t.Fatal("not JSON")
	}
	if _, err := Load("x", []byte(text), Options{}); err == nil || !strings.Contains(err.Error(), "has no zone") {
		t.Errorf("without a time zone: %v", err)
	}
	if _, err := Load("x", []byte(text), Options{Timezone: "Europe/Berlin"}); err != nil {
		t.Errorf("with a time zone: %v", err)
	}
	if _, err := Load("x", []byte(text), Options{Timezone: "Europe/Berln"}); err == nil {
		t.Error("a time zone that isn't one was accepted")
	}
}
