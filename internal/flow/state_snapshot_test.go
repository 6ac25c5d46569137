package flow

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// statefulOperators are operators on events, each opened with state.
var statefulOperators = map[string]func(t *testing.T, state ...StateEntry) *conversation{
	"tumbling": windowsFrom(WindowSpec{Kind: TumblingWindow, Size: 10 * time.Millisecond, Lateness: 5 * time.Millisecond}),
	"sliding":  windowsFrom(WindowSpec{Kind: SlidingWindow, Size: 10 * time.Millisecond, Slide: 4 * time.Millisecond, Lateness: 7 * time.Millisecond}),
	"session":  windowsFrom(WindowSpec{Kind: SessionWindow, Gap: 5 * time.Millisecond, Lateness: 10 * time.Millisecond}),
	"global":   windowsFrom(WindowSpec{Kind: GlobalWindow}),
	"rolling": func(t *testing.T, state ...StateEntry) *conversation {
		join := func(k string, n int64) string { return fmt.Sprint(k, " ", n) }
		return newConversation(t, NewRolling(RollingParams[string, event, int64, int64, string]{Key: eventKey, Agg: sumEvents{}, Join: join}), showString, state...)
	},
	"process": func(t *testing.T, state ...StateEntry) *conversation {
		return newConversation(t, processOf(nil, everyState), showString, state...)
	},
}

func windowsFrom(s WindowSpec) func(*testing.T, ...StateEntry) *conversation {
	return func(t *testing.T, state ...StateEntry) *conversation { return newWindowConversation(t, &s, state...) }
}

// everyState uses each kind of state and timer.
func everyState(s *States) Processor[string, event, string] {
	sum, last, seen := NewValue[event](s, "sum"), NewList[int64](s, "last"), NewMapState[int64, string](s, "seen")
	return Processor[string, event, string]{
		Process: func(c *ProcessContext[string, string], e event) error {
			at, _ := c.Time()
			e.N += sum.Get().N
			sum.Set(e)
			if last.Add(e.N); last.Len() > 3 {
				last.Set(last.Get()[1:])
			}
			seen.Set(e.N%4, e.Key)
			c.SetEventTimer(at + 5)
			c.SetProcessingTimer(at + 20)
			return nil
		},
		OnTimer: func(c *ProcessContext[string, string], t Timer) error {
			c.Emit(fmt.Sprint(c.Key(), t, sum.Get(), last.Get(), seen.Len()))
			if t.At%3 == 0 {
				seen.Clear()
			}
			if t.At%7 == 0 {
				sum.Clear()
			}
			return nil
		},
	}
}

// An operator that goes on from a snapshot, in as many subtasks as you like, says what it would have said without.
func TestSnapshotAndRestore(t *testing.T) {
	for name, open := range statefulOperators {
		// What has no time of its own gets one from all that its subtask saw, which differs.
		timed := name != "global" && name != "process"
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				whole := open(t)
				n := rapid.IntRange(0, 25).Draw(rt, "before")
				wm, now := int64(0), int64(0)
				for range n {
					tell(rt, randomLine(rt, &wm, &now), whole)
				}
				whole.take()
				state := snapshotOf(t, whole.inst.Op)

				parts := make([]*conversation, rapid.IntRange(1, 3).Draw(rt, "subtasks"))
				owner := func(group int) int { return GroupSubtask(group, 128, len(parts)) }
				for i := range parts {
					parts[i] = open(t, slices.DeleteFunc(slices.Clone(state), func(e StateEntry) bool {
						return e.Group != NoGroup && owner(e.Group) != i
					})...)
					if err := parts[i].rt.advanceTo(now, parts[i].inst.Op); err != nil {
						rt.Fatal(err)
					}
				}
				for range rapid.IntRange(0, 25).Draw(rt, "after") {
					line := randomLine(rt, &wm, &now)
					to := parts
					if f := strings.Fields(line); f[0] != "wm" && f[0] != "now" {
						i := owner(KeyGroup(HashString(f[0]), 128))
						to = parts[i : i+1]
					}
					compareSaid(rt, timed, line, whole, to)
				}
				compareSaid(rt, timed, "wm max", whole, parts)
				compareSaid(rt, timed, "end", whole, parts)
			})
		})
	}
}

func randomLine(rt *rapid.T, wm, now *int64) string {
	switch rapid.IntRange(0, 5).Draw(rt, "what") {
	case 0:
		*wm += rapid.Int64Range(0, 8).Draw(rt, "wm")
		return fmt.Sprint("wm ", *wm)
	case 1:
		*now += rapid.Int64Range(0, 8).Draw(rt, "now")
		return fmt.Sprint("now ", *now)
	}
	key := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(rt, "key")
	return fmt.Sprintf("%s %d @%d", key, rapid.Int64Range(1, 50).Draw(rt, "n"), *wm+rapid.Int64Range(-8, 20).Draw(rt, "at"))
}

func tell(rt *rapid.T, line string, to ...*conversation) {
	for _, c := range to {
		if err := c.say(line); err != nil {
			rt.Fatalf("%s: %v", line, err)
		}
	}
}

// compareSaid says line to one operator and to its parts, and compares what they say, whatever the order.
func compareSaid(rt *rapid.T, timed bool, line string, whole *conversation, parts []*conversation) {
	tell(rt, line, whole)
	tell(rt, line, parts...)
	var got []string
	for _, p := range parts {
		got = append(got, records(p.take(), timed)...)
	}
	want := records(whole.take(), timed)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		rt.Fatalf("%s after restoring:\ngot  %q\nwant %q", line, got, want)
	}
}

// records returns the lines of a log that aren't controls.
func records(log string, timed bool) []string {
	var recs []string
	for line := range strings.Lines(log) {
		if strings.HasPrefix(line, "—") {
			continue
		}
		if i := strings.LastIndex(line, " @"); i >= 0 && !timed {
			line = line[:i]
		}
		recs = append(recs, strings.TrimSpace(line))
	}
	return recs
}

func TestRestoreRefuses(t *testing.T) {
	for _, c := range []struct {
		name, op string
		e        StateEntry
		want     string
	}{
		{"state that is gone", "process", StateEntry{State: "old", Key: []byte{1, 'a'}}, `state "old"`},
		{"windows of another size", "tumbling", StateEntry{State: windowState, Key: []byte{1, 'a'}, Value: []byte{3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}}, "cut differently"},
		{"short window", "tumbling", StateEntry{State: windowState, Key: []byte{1, 'a'}, Value: []byte{3}}, "ends too early"},
		{"short session", "session", StateEntry{State: sessionState, Key: []byte{1, 'a'}, Value: []byte{3}}, "ends too early"},
		{"bad watermark", "session", StateEntry{State: watermarkState, Group: NoGroup, Value: []byte{3}}, "ends too early"},
		{"bad key", "rolling", StateEntry{State: rollingState, Key: []byte{9, 'a'}}, "ends too early"},
		{"left over", "rolling", StateEntry{State: rollingState, Key: []byte{1, 'a'}, Value: make([]byte, 9)}, "left over"},
		{"bad timer", "process", StateEntry{State: eventTimers, Key: []byte{1, 'a'}, Value: []byte{1}}, "8 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			op := statefulOperators[c.op](t).inst.Op.(Stateful)
			if err := op.Restore(c.e); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "window 3 (job/main.go:7)") {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}
