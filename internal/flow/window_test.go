package flow

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// TestWindowScripts holds conversations with window operators. Commands:
//
//	windows tumbling size=10 [offset=3] [lateness=5] [processing]
//	windows sliding size=10 slide=5 …   windows session gap=10 …   windows global   windows day zone=Europe/Berlin
//	    makes an operator that sums; times are milliseconds, or RFC 3339
//	in
//	    one line each: records "key n @time …" (one batch a line), "wm time", "now time", "idle", "end"
//
// What comes out follows: results "key [start, end) sum @time", late records after "late:", controls after a dash.
func TestWindowScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/window", func(t *testing.T, path string) {
		var c *conversation
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "windows":
				c = newWindowConversation(t, windowSpecOf(t, d))
				return c.take()
			case "in":
				for line := range strings.Lines(d.Input) {
					if err := c.say(strings.TrimSpace(line)); err != nil {
						fmt.Fprintf(&c.log, "error: %v\n", err)
					}
				}
				return c.take()
			}
			return "unknown command " + d.Cmd
		})
	})
}

func windowSpecOf(t *testing.T, d *datadriven.TestData) *WindowSpec {
	s := &WindowSpec{}
	ms := func(v string) time.Duration { return time.Duration(scriptTime(v)) * time.Millisecond }
	for i, a := range d.CmdArgs {
		v := ""
		if len(a.Vals) > 0 {
			v = a.Vals[0]
		}
		switch a.Key {
		case "tumbling":
			s.Kind = TumblingWindow
		case "sliding":
			s.Kind = SlidingWindow
		case "session":
			s.Kind = SessionWindow
		case "global":
			s.Kind = GlobalWindow
		case "day":
			s.Kind, s.Unit = CalendarWindow, Day
		case "size":
			s.Size = ms(v)
		case "slide":
			s.Slide = ms(v)
		case "gap":
			s.Gap = ms(v)
		case "offset":
			s.Offset = ms(v)
		case "lateness":
			s.Lateness = ms(v)
		case "zone":
			s.Zone = v
		case "processing":
			s.Processing = true
		default:
			t.Fatalf("argument %d: unknown %q", i, a.Key)
		}
	}
	return s
}

// scriptTime reads a time of a script: milliseconds, min, max or RFC 3339.
func scriptTime(s string) int64 {
	switch s {
	case "max":
		return MaxTime
	case "max-1":
		return MaxTime - 1
	case "min":
		return MinTime
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}
	return t.UnixMilli()
}

// conversation is an operator on events whose outputs are noted.
type conversation struct {
	log  strings.Builder
	rt   *testRuntime
	inst Instance
	in   Out[event]
}

// newConversation opens an operator with results of type U and a side output of late events.
func newConversation[U any](t *testing.T, f Factory, show func(U) string, state ...StateEntry) *conversation {
	c := &conversation{rt: newTestRuntime()}
	main := &logOut[U]{log: &c.log, show: show}
	late := &logOut[event]{log: &c.log, prefix: "late: ", show: func(e event) string { return fmt.Sprintf("%s %d", e.Key, e.N) }}
	c.inst = startFrom(t, state, f, c.rt, Out[U](main), Out[event](late))
	c.in = c.inst.Inputs[0].(Out[event])
	return c
}

// lateSides routes late records to port 1.
func lateSides() *Sides { return &Sides{tags: []string{LateTag}, ports: []int{1}} }

func newWindowConversation(t *testing.T, s *WindowSpec, state ...StateEntry) *conversation {
	show := func(w Windowed[string, int64]) string {
		if s.Kind == CalendarWindow {
			return fmt.Sprintf("%s [%s, %s) %d", w.Key, w.Start, w.End, w.Value)
		}
		return fmt.Sprintf("%s [%s, %s) %d", w.Key, showTime(int64(w.Start)), showTime(int64(w.End)), w.Value)
	}
	p := WindowParams[string, event, int64, int64]{Spec: s, Key: eventKey, Agg: sumEvents{}, Sides: lateSides()}
	return newConversation(t, NewWindow(p), show, state...)
}

// take returns what was said since the last call.
func (c *conversation) take() string {
	s := c.log.String()
	c.log.Reset()
	return s
}

// say tells the operator a line of a script, and calls its timer if that has come.
func (c *conversation) say(line string) error {
	if err := c.tell(line); err != nil {
		return err
	}
	return c.rt.advanceTo(c.rt.now, c.inst.Op)
}

func (c *conversation) tell(line string) error {
	f := strings.Fields(line)
	switch f[0] {
	case "wm":
		return c.in.Control(Control{Kind: Watermark, Time: scriptTime(f[1])})
	case "now":
		return c.rt.advanceTo(scriptTime(f[1]), c.inst.Op)
	case "idle":
		return c.in.Control(Control{Kind: Idle})
	case "end":
		return c.in.Control(Control{Kind: End})
	}
	var b Batch[event]
	for len(f) > 0 {
		n, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil {
			return err
		}
		b.Recs = append(b.Recs, event{f[0], n})
		f = f[2:]
		if len(f) > 0 && strings.HasPrefix(f[0], "@") {
			b.Times = append(b.Times, scriptTime(f[0][1:]))
			f = f[1:]
		}
	}
	return c.in.Push(b)
}

// failingSum panics at a record, or at a result.
type failingSum struct{ sumEvents }

func (failingSum) Add(acc int64, e event) int64 {
	if e.N == 13 {
		panic("unlucky")
	}
	return acc + e.N
}

func (failingSum) Result(acc int64) int64 {
	if acc == 100 {
		panic("too much")
	}
	return acc
}

func TestWindowPanicsNameOperatorAndRecord(t *testing.T) {
	for _, spec := range []WindowSpec{{Kind: TumblingWindow, Size: time.Second}, {Kind: SessionWindow, Gap: time.Second}} {
		open := func() *conversation {
			p := WindowParams[string, event, int64, int64]{Spec: &spec, Key: eventKey, Agg: failingSum{}, Sides: lateSides()}
			return newConversation(t, NewWindow(p), func(w Windowed[string, int64]) string { return w.Key })
		}
		err := open().say("a 1 @1 a 13 @2")
		for _, want := range []string{"operator window 3 (job/main.go:7): panic: unlucky at flow/window_test.go:", "record: {Key:a N:13}"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: panic in Add: got %v, want %q", &spec, err, want)
			}
		}
		c := open()
		if err := c.say("a 100 @1"); err != nil {
			t.Fatal(err)
		}
		if err := c.say("end"); err == nil || !strings.Contains(err.Error(), "panic: too much") {
			t.Errorf("%s: panic in Result: got %v", &spec, err)
		}
	}
}

func TestLateRecordsAreCounted(t *testing.T) {
	c := newWindowConversation(t, &WindowSpec{Kind: TumblingWindow, Size: 10 * time.Millisecond})
	c.talk(t, "wm 30\na 1 @1 a 2 @2 a 3 @31\na 4 @3", "— watermark 30\nlate: a 1 @1\nlate: a 2 @2\nlate: a 4 @3")
	if n := c.rt.Counter("late records").Load(); n != 3 {
		t.Errorf("late records: got %d, want 3", n)
	}
}

func TestKeysMustEqualThemselves(t *testing.T) {
	key := func(e event) float64 { return 0 / float64(e.N) }
	for _, spec := range []WindowSpec{{Kind: GlobalWindow}, {Kind: SessionWindow, Gap: time.Second}} {
		p := WindowParams[float64, event, int64, int64]{Spec: &spec, Key: key, Agg: sumEvents{}, Sides: lateSides()}
		c := newConversation(t, NewWindow(p), func(w Windowed[float64, int64]) string { return fmt.Sprint(w.Key) })
		if err := c.say("a 1 @1 a 0 @1"); err == nil || !strings.Contains(err.Error(), "not equal to itself") {
			t.Errorf("%s by NaN: got %v", &spec, err)
		}
	}
}

func TestInstantText(t *testing.T) {
	for _, c := range []struct {
		at         Instant
		text, json string
	}{
		{0, "1970-01-01T00:00:00.000Z", `"1970-01-01T00:00:00.000Z"`},
		{1_000_000_000_123, "2001-09-09T01:46:40.123Z", `"2001-09-09T01:46:40.123Z"`},
		{Instant(MinTime), "-∞", "null"},
		{Instant(MaxTime), "∞", "null"},
	} {
		b, err := json.Marshal(c.at)
		if err != nil || string(b) != c.json || c.at.String() != c.text {
			t.Errorf("%d: got %s and %s, %v, want %s and %s", int64(c.at), b, c.at, err, c.json, c.text)
		}
		back := c.at
		if err := json.Unmarshal(b, &back); err != nil || back != c.at {
			t.Errorf("%s read back: got %d, %v", b, back, err)
		}
	}
	var i Instant
	if err := json.Unmarshal([]byte(`"2001-09-09T03:46:40.123+02:00"`), &i); err != nil || i != 1_000_000_000_123 {
		t.Errorf("with an offset: got %d, %v", i, err)
	}
	if err := json.Unmarshal([]byte(`17`), &i); err == nil {
		t.Error("a number: got no error")
	}
	if got := Instant(MaxTime - 5).Add(time.Second); got != Instant(MaxTime) {
		t.Errorf("beyond the end of time: got %d", got)
	}
	if got := Instant(5).Add(-time.Second); got != -995 {
		t.Errorf("back: got %d", got)
	}
}
