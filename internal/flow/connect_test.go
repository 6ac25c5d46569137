package flow

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestPorts holds conversations with ports: what comes on which, and what leads on.
func TestPorts(t *testing.T) {
	wm := func(t int64) Control { return Control{Kind: Watermark, Time: t} }
	kind := func(k ControlKind) Control { return Control{Kind: k} }
	bar := func(id uint64) Control { return Control{Kind: Barrier, ID: id} }
	type step struct {
		port int
		c    Control
		want string
	}
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"least watermark", []step{{0, wm(5), ""}, {1, wm(3), "watermark 3"}, {1, wm(4), "watermark 4"}, {1, wm(9), "watermark 5"}, {0, wm(7), "watermark 7"}}},
		{"never back", []step{{0, wm(5), ""}, {1, wm(5), "watermark 5"}, {0, wm(4), ""}, {1, wm(9), ""}}},
		{"idle port doesn't count", []step{{0, wm(5), ""}, {1, kind(Idle), "watermark 5"}, {0, wm(8), "watermark 8"}, {1, wm(6), ""}, {1, wm(9), ""}, {0, wm(20), "watermark 9"}}},
		{"all idle raises to the greatest", []step{{0, wm(9), ""}, {1, wm(3), "watermark 3"}, {1, kind(Idle), "watermark 9"}, {0, kind(Idle), "idle"}}},
		{"behind takes part once it caught up", []step{{0, wm(9), ""}, {1, kind(Idle), "watermark 9"}, {1, wm(3), ""}, {0, wm(12), "watermark 12"}, {1, wm(15), ""}, {0, wm(20), "watermark 15"}}},
		{"all idle", []step{{0, kind(Idle), ""}, {1, kind(Idle), "idle"}, {0, kind(Active), "active"}, {0, wm(3), "watermark 3"}}},
		{"watermark ends idleness", []step{{0, kind(Idle), ""}, {1, kind(Idle), "idle"}, {0, wm(4), "active watermark 4"}}},
		{"end of one", []step{{0, wm(5), ""}, {0, kind(End), ""}, {1, wm(9), "watermark 9"}, {1, kind(End), "end"}}},
		{"end of one lets the other's watermark through", []step{{1, wm(9), ""}, {0, kind(End), "watermark 9"}, {1, kind(Idle), "idle"}, {1, kind(End), "active end"}}},
		{"ends with the last watermark", []step{{0, wm(MaxTime), ""}, {0, kind(End), ""}, {1, wm(MaxTime), "watermark max"}, {1, kind(End), "end"}}},
		{"an idle port holds back the end of time", []step{{0, wm(MaxTime), ""}, {1, kind(Idle), ""}, {1, kind(Active), ""}, {1, wm(7), "watermark 7"}, {1, kind(End), "watermark max"}, {0, kind(End), "end"}}},
		{"barriers", []step{{0, bar(1), ""}, {1, bar(1), "barrier 1"}, {1, bar(2), ""}, {0, kind(End), "barrier 2"}, {1, bar(3), "barrier 3"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPorts()
			for i, s := range c.steps {
				var got []string
				for _, o := range p.take(s.port, s.c) {
					g := o.Kind.String()
					switch o.Kind {
					case Watermark:
						g += " " + showTime(o.Time)
					case Barrier:
						g += fmt.Sprint(" ", o.ID)
					}
					got = append(got, g)
				}
				if g := strings.Join(got, " "); g != s.want {
					t.Errorf("step %d, port %d %v: got %q, want %q", i, s.port, s.c, g, s.want)
				}
			}
		})
	}
}

// Whatever comes, watermarks rise, idle and active alternate, and exactly one end comes last.
func TestPortsKeepTheRules(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p, ended := newPorts(), [2]bool{}
		wm, idle, end := MinTime, false, false
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			i := rapid.IntRange(0, 1).Draw(rt, "port")
			if ended[i] {
				continue
			}
			c := Control{Kind: ControlKind(rapid.SampledFrom([]int{1, 1, 1, 2, 3, 5}).Draw(rt, "kind"))}
			if c.Kind == Watermark {
				c.Time = rapid.OneOf(rapid.Int64Range(-3, 9), rapid.Just(MaxTime)).Draw(rt, "time")
			}
			ended[i] = ended[i] || c.Kind == End
			for _, o := range p.take(i, c) {
				switch {
				case end:
					rt.Fatalf("%v after the end", o)
				case o.Kind == Watermark && (o.Time <= wm || idle):
					rt.Fatalf("watermark %d after %d, idle %v", o.Time, wm, idle)
				case o.Kind == Idle && idle, o.Kind == Active && !idle:
					rt.Fatalf("%v twice", o.Kind)
				}
				idle, end = o.Kind == Idle || idle && o.Kind != Active, o.Kind == End
				if o.Kind == Watermark {
					wm = o.Time
				}
			}
			if end != (ended[0] && ended[1]) {
				rt.Fatalf("ended %v, but end came: %v", ended, end)
			}
		}
	})
}

// rule is a record of a broadcast input.
type rule struct {
	Key   string
	Limit int64
}

// newConnectConversation opens an operator with two inputs, the second of which is returned.
func newConnectConversation[B any](t *testing.T, p ConnectParams[string, event, B, string], state ...StateEntry) (*conversation, Out[B]) {
	p.Sides = lateSides()
	c := newConversation(t, NewConnect(p), showString, state...)
	return c, c.inst.Inputs[1].(Out[B])
}

// join pairs each record with what the other side had last.
func join(s *States) CoProcessor[string, event, event, string] {
	left, right := NewValue[int64](s, "left"), NewValue[int64](s, "right")
	type ctx = *ProcessContext[string, string]
	return CoProcessor[string, event, event, string]{
		First: func(c ctx, e event) error {
			left.Set(e.N)
			at, _ := c.Time()
			c.SetEventTimer(at + 100)
			c.Emit(fmt.Sprint(e.Key, " ", e.N, "+", right.Get()))
			return nil
		},
		Second: func(c ctx, e event) error {
			right.Set(e.N)
			c.Emit(fmt.Sprint(e.Key, " ", left.Get(), "+", e.N))
			return nil
		},
		OnTimer: func(c ctx, _ Timer) error {
			left.Clear()
			c.Emit(c.Key() + " forgotten")
			return nil
		},
	}
}

func TestConnectByKey(t *testing.T) {
	c, second := newConnectConversation(t, ConnectParams[string, event, event, string]{First: eventKey, Second: eventKey, Setup: join})
	c.talk(t, "a 1 @5 b 2 @6", "a 1+0 @5\nb 2+0 @6")
	if err := second.Push(Batch[event]{Recs: []event{{"a", 10}, {"z", 20}}, Times: []int64{7, 8}}); err != nil {
		t.Fatal(err)
	}
	c.talk(t, "wm 105", "a 1+10 @7\nz 0+20 @8")
	if err := second.Control(Control{Kind: Watermark, Time: 200}); err != nil {
		t.Fatal(err)
	}
	c.talk(t, "a 3 @150", "a forgotten @105\n— watermark 105\na 3+10 @150")
	c.talk(t, "end", "b forgotten @106\n— watermark 200")
	if err := second.Control(Control{Kind: End}); err != nil {
		t.Fatal(err)
	}
	c.talk(t, "now 1", "a forgotten @250\n— end")
}

func TestConnectBroadcast(t *testing.T) {
	setup := func(s *States) CoProcessor[string, event, rule, string] {
		limits, over := NewSharedMap[string, int64](s, "limits"), NewValue[int](s, "over")
		return CoProcessor[string, event, rule, string]{
			First: func(c *ProcessContext[string, string], e event) error {
				if limit, ok := limits.Get(e.Key); ok && e.N > limit {
					over.Set(over.Get() + 1)
					c.Emit(fmt.Sprint(e.Key, " over ", limit, ": ", over.Get()))
				}
				if e.N < 0 {
					limits.Set(e.Key, e.N)
				}
				return nil
			},
			Second: func(c *ProcessContext[string, string], r rule) error {
				if r.Limit == 0 {
					limits.Delete(r.Key)
					return nil
				}
				if r.Limit < 0 {
					over.Set(1)
				}
				limits.Set(r.Key, r.Limit)
				return nil
			},
		}
	}
	p := ConnectParams[string, event, rule, string]{First: eventKey, Broadcast: true, Setup: setup}
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	c, rules := newConnectConversation(t, p)
	tell := func(r rule) error { return rules.Push(Batch[rule]{Recs: []rule{r}}) }
	if err := tell(rule{"a", 10}); err != nil {
		t.Fatal(err)
	}
	c.talk(t, "a 9 a 11 b 99 a 12", "a over 10: 1\na over 10: 2")

	restored, _ := newConnectConversation(t, p, snapshotOf(t, c.inst.Op)...)
	restored.talk(t, "a 11 b 99", "a over 10: 3")

	if err := tell(rule{"a", 0}); err != nil {
		t.Fatal(err)
	}
	c.talk(t, "a 11", "")
	if err := tell(rule{"a", -1}); err == nil || !strings.Contains(err.Error(), "no current key") {
		t.Errorf("keyed state used by a broadcast record: got %v", err)
	}
	if err := c.say("a -1"); err == nil || !strings.Contains(err.Error(), "only the broadcast input may change it") {
		t.Errorf("shared state changed by a keyed record: got %v", err)
	}
}

func TestConnectChecksStates(t *testing.T) {
	type co = CoProcessor[string, event, event, string]
	nothing := func(*ProcessContext[string, string], event) error { return nil }
	for _, c := range []struct {
		name string
		p    ConnectParams[string, event, event, string]
		want string
	}{
		{"keyed state without keys", ConnectParams[string, event, event, string]{Setup: func(s *States) co {
			NewValue[int](s, "n")
			return co{First: nothing, Second: nothing}
		}}, "has no keys"},
		{"shared state without broadcast", ConnectParams[string, event, event, string]{First: eventKey, Second: eventKey, Setup: func(s *States) co {
			NewSharedMap[string, int](s, "rules")
			return co{First: nothing, Second: nothing}
		}}, "no input is broadcast"},
		{"no Second", ConnectParams[string, event, event, string]{Setup: func(s *States) co { return co{First: nothing} }}, "no Second"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.p.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
