package flow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// processOf makes a process operator on events that puts out strings.
func processOf(policy *Policy, setup func(*States) Processor[string, event, string]) Factory {
	return NewProcess(ProcessParams[string, event, string]{Key: eventKey, Setup: setup, Policy: policy, Sides: lateSides()})
}

func showString(s string) string { return s }

// talk says lines and compares what comes out with want, both one line each.
func (c *conversation) talk(t *testing.T, lines, want string) {
	t.Helper()
	for line := range strings.Lines(lines) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if err := c.say(line); err != nil {
			fmt.Fprintf(&c.log, "error: %v\n", err)
		}
	}
	var w strings.Builder
	for line := range strings.Lines(want) {
		if line = strings.TrimSpace(line); line != "" {
			w.WriteString(line + "\n")
		}
	}
	if got := c.take(); got != w.String() {
		t.Errorf("after %s\ngot:\n%s\nwant:\n%s", lines, got, w.String())
	}
}

// sumUntilQuiet adds up a key's records and puts out the sum when none came for 10 ms of event time.
func sumUntilQuiet(s *States) Processor[string, event, string] {
	sum, due := NewValue[int64](s, "sum"), NewValue[Instant](s, "due")
	return Processor[string, event, string]{
		Process: func(c *ProcessContext[string, string], e event) error {
			at, _ := c.Time()
			if old, ok := due.Lookup(); ok {
				c.DeleteEventTimer(old)
			}
			sum.Set(sum.Get() + e.N)
			due.Set(at.Add(10 * time.Millisecond))
			c.SetEventTimer(due.Get())
			return nil
		},
		OnTimer: func(c *ProcessContext[string, string], t Timer) error {
			c.Emit(fmt.Sprintf("%s=%d at %d, watermark %s", c.Key(), sum.Get(), t.At, showTime(int64(c.Watermark()))))
			sum.Clear()
			due.Clear()
			return nil
		},
	}
}

func TestProcessEventTimers(t *testing.T) {
	c := newConversation(t, processOf(nil, sumUntilQuiet), showString)
	c.talk(t, `
		b 1 @3 a 2 @1 b 4 @5
		wm 10
		wm 11
		a 7 @12
		wm 30
		z 1 @40
		end`, `
		— watermark 10
		a=2 at 11, watermark 11 @11
		— watermark 11
		b=5 at 15, watermark 30 @15
		a=7 at 22, watermark 30 @22
		— watermark 30
		z=1 at 50, watermark max @50
		— end`)
	core := c.inst.Op.(*processOp[string, event, string])
	if n, free := len(core.keys.slots), len(core.keys.free); n != 0 || free != 2 {
		t.Errorf("when every key is done: got %d keys and %d free slots, want 0 and 2", n, free)
	}
}

// Timers fire in order of time and once each; those that a timer sets fire in the same go if they are due.
func TestProcessTimersInOrder(t *testing.T) {
	setup := func(s *States) Processor[string, event, string] {
		return Processor[string, event, string]{
			Process: func(c *ProcessContext[string, string], e event) error {
				c.SetEventTimer(Instant(e.N))
				c.SetEventTimer(Instant(e.N))
				return nil
			},
			OnTimer: func(c *ProcessContext[string, string], t Timer) error {
				c.Emit(c.Key())
				if t.At == 5 {
					c.SetEventTimer(6)
					c.SetEventTimer(9)
				}
				return nil
			},
		}
	}
	c := newConversation(t, processOf(nil, setup), showString)
	c.talk(t, `
		c 7 @0 a 5 @0 b 5 @0 d 3 @0
		wm 8
		late 2 @1
		wm 8
		end`, `
		d @3
		a @5
		b @5
		a @6
		b @6
		c @7
		— watermark 8
		late @2
		— watermark 8
		a @9
		b @9
		— end`)
}

func TestProcessProcessingTimers(t *testing.T) {
	setup := func(s *States) Processor[string, event, string] {
		n := NewValue[int](s, "n")
		return Processor[string, event, string]{
			Process: func(c *ProcessContext[string, string], e event) error {
				if e.N < 0 {
					c.DeleteProcessingTimer(Instant(-e.N))
					return nil
				}
				c.SetProcessingTimer(Instant(e.N))
				return nil
			},
			OnTimer: func(c *ProcessContext[string, string], t Timer) error {
				n.Set(n.Get() + 1)
				c.Emit(fmt.Sprintf("%s %d at %d, now %d, processing %v", c.Key(), n.Get(), t.At, c.Now(), t.Processing))
				c.SetProcessingTimer(t.At.Add(10 * time.Millisecond)) // and so on for ever
				return nil
			},
		}
	}
	t.Run("no event times", func(t *testing.T) {
		c := newConversation(t, processOf(nil, setup), showString)
		c.talk(t, `
			now 1
			a 5 b 3 x 4
			x -4
			now 14
			end`, `
			b 1 at 3, now 3, processing true
			a 1 at 5, now 5, processing true
			b 2 at 13, now 13, processing true
			a 2 at 15, now 14, processing true
			b 3 at 23, now 14, processing true
			— end`)
	})
	t.Run("with event times", func(t *testing.T) {
		c := newConversation(t, processOf(nil, setup), showString)
		c.talk(t, `
			a 5 @100
			now 5
			wm 200
			wm max`, `
			a 1 at 5, now 5, processing true @100
			— watermark 200
			a 2 at 15, now 5, processing true @201
			— watermark max`)
	})
}

func TestProcessListAndMap(t *testing.T) {
	setup := func(s *States) Processor[string, event, string] {
		list, byN := NewList[event](s, "list"), NewMapState[int64, string](s, "by n")
		return Processor[string, event, string]{
			Process: func(c *ProcessContext[string, string], e event) error {
				list.Add(e)
				byN.Set(e.N, e.Key)
				switch e.N {
				case 3:
					byN.Delete(1)
				case 4:
					list.Set(list.Get()[2:])
				case 5:
					list.Clear()
					byN.Clear()
				}
				var ns []int64
				for n := range byN.All() {
					ns = append(ns, n)
				}
				slices.Sort(ns)
				_, has := byN.Get(2)
				c.Emit(fmt.Sprintf("%s: %v %v, 2 %v, %d and %d", c.Key(), list.Get(), ns, has, list.Len(), byN.Len()))
				return nil
			},
		}
	}
	c := newConversation(t, processOf(nil, setup), showString)
	c.talk(t, `
		a 1
		b 9
		a 2
		a 3
		a 4
		a 5
		b 8`, `
		a: [{a 1}] [1], 2 false, 1 and 1
		b: [{b 9}] [9], 2 false, 1 and 1
		a: [{a 1} {a 2}] [1 2], 2 true, 2 and 2
		a: [{a 1} {a 2} {a 3}] [2 3], 2 true, 3 and 2
		a: [{a 3} {a 4}] [2 3 4], 2 true, 2 and 3
		a: [] [], 2 false, 0 and 0
		b: [{b 9} {b 8}] [8 9], 2 false, 2 and 2`)
}

func TestProcessErrors(t *testing.T) {
	fails := func(s *States) Processor[string, event, string] {
		return Processor[string, event, string]{
			Process: func(c *ProcessContext[string, string], e event) error {
				c.SetEventTimer(10)
				switch e.N {
				case 2:
					return errors.New("bad luck")
				case 3:
					panic("worse luck")
				}
				c.Emit(e.Key)
				return nil
			},
			OnTimer: func(c *ProcessContext[string, string], t Timer) error {
				if c.Key() == "t" {
					return errors.New("too late")
				}
				return nil
			},
		}
	}
	t.Run("fail", func(t *testing.T) {
		c := newConversation(t, processOf(nil, fails), showString)
		c.talk(t, "a 1 a 2", "error: operator window 3 (job/main.go:7): bad luck; record: {Key:a N:2}")
	})
	t.Run("panic", func(t *testing.T) {
		c := newConversation(t, processOf(&Policy{OnError: Skip}, fails), showString)
		if err := c.say("a 1 a 3"); err == nil || !strings.Contains(err.Error(), "operator window 3 (job/main.go:7): panic: worse luck at flow/process_test.go:") ||
			!strings.HasSuffix(err.Error(), "record: {Key:a N:3}") {
			t.Errorf("panic: got %v", err)
		}
	})
	t.Run("skip", func(t *testing.T) {
		c := newConversation(t, processOf(&Policy{OnError: Skip}, fails), showString)
		c.talk(t, "a 1 a 2 b 1 t 1\nwm 10", "a\nb\nt\n— watermark 10")
		if n := c.rt.Counter("skipped records").Load(); n != 2 {
			t.Errorf("skipped records: got %d, want 2", n)
		}
	})
	t.Run("timer", func(t *testing.T) {
		c := newConversation(t, processOf(nil, fails), showString)
		c.talk(t, "t 1\nwm 10", "t\nerror: operator window 3 (job/main.go:7): too late; record: {Key:t Timer:{At:1970-01-01T00:00:00.010Z Processing:false}}")
	})
}

func TestProcessMisuse(t *testing.T) {
	var kept *Value[int]
	for _, c := range []struct {
		name  string
		setup func(*States) Processor[string, event, string]
		want  string
	}{
		{"state twice", func(s *States) Processor[string, event, string] {
			NewValue[int](s, "n")
			NewList[int](s, "n")
			return Processor[string, event, string]{Process: func(*ProcessContext[string, string], event) error { return nil }}
		}, `state "n" is declared twice`},
		{"no name", func(s *States) Processor[string, event, string] {
			NewValue[int](s, "")
			return Processor[string, event, string]{Process: func(*ProcessContext[string, string], event) error { return nil }}
		}, "is no name for a state"},
		{"no codec", func(s *States) Processor[string, event, string] {
			NewValue[map[string]int](s, "m")
			return Processor[string, event, string]{Process: func(*ProcessContext[string, string], event) error { return nil }}
		}, `state "m": records of type map[string]int can't be`},
		{"no Process", func(s *States) Processor[string, event, string] { return Processor[string, event, string]{} }, "has no Process"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := ProcessParams[string, event, string]{Key: eventKey, Setup: c.setup}
			if err := p.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("check: got %v, want %q", err, c.want)
			}
		})
	}
	t.Run("timer without OnTimer", func(t *testing.T) {
		c := newConversation(t, processOf(nil, func(s *States) Processor[string, event, string] {
			return Processor[string, event, string]{Process: func(c *ProcessContext[string, string], _ event) error { c.SetEventTimer(1); return nil }}
		}), showString)
		if err := c.say("a 1"); err == nil || !strings.Contains(err.Error(), "no OnTimer") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("state in Open", func(t *testing.T) {
		f := processOf(nil, func(s *States) Processor[string, event, string] {
			kept = NewValue[int](s, "n")
			return Processor[string, event, string]{
				Open:    func(context.Context, Env) error { kept.Get(); return nil },
				Process: func(*ProcessContext[string, string], event) error { return nil },
			}
		})
		inst, err := f(newTestRuntime(), []any{Out[string](&discardOut[string]{}), Out[event](&discardOut[event]{})})
		if err != nil {
			t.Fatal(err)
		}
		if err := inst.Op.Open(t.Context()); err == nil || !strings.Contains(err.Error(), "no current key") {
			t.Errorf("got %v", err)
		}
	})
}

// Neither state nor timers allocate once their memory is there.
func TestProcessDoesntAllocate(t *testing.T) {
	f := NewProcess(ProcessParams[uint64, numEvent, numEvent]{Key: numKey, Setup: func(s *States) Processor[uint64, numEvent, numEvent] {
		n := NewValue[int64](s, "n")
		return Processor[uint64, numEvent, numEvent]{
			Process: func(c *ProcessContext[uint64, numEvent], e numEvent) error {
				n.Set(n.Get() + e.N)
				at, _ := c.Time()
				c.SetEventTimer(at + 5)
				c.Emit(e)
				return nil
			},
			OnTimer: func(c *ProcessContext[uint64, numEvent], _ Timer) error { n.Clear(); return nil },
		}
	}})
	in := start(t, f, newTestRuntime(), Out[numEvent](&discardOut[numEvent]{})).Inputs[0].(Out[numEvent])
	b, now := numBatches(100, 1)[0], int64(0)
	step := func() {
		now++
		for i := range b.Times {
			b.Times[i] = now
		}
		if err := in.Push(b); err != nil {
			t.Fatal(err)
		}
		if err := in.Control(Control{Kind: Watermark, Time: now}); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		step()
	}
	if allocs := testing.AllocsPerRun(200, step); allocs > 0.1 {
		t.Errorf("a batch of %d records with state and timers: got %v allocations, want 0", len(b.Recs), allocs)
	}
}

func TestDeduper(t *testing.T) {
	f := func(within time.Duration) Factory {
		return NewProcess(ProcessParams[string, event, event]{Key: eventKey, Setup: Deduper[string, event](within), Sides: lateSides()})
	}
	show := func(e event) string { return fmt.Sprint(e.Key, e.N) }
	t.Run("for ever", func(t *testing.T) {
		c := newConversation(t, f(0), show)
		c.talk(t, "a 1 b 2 a 3\na 4 @900\nwm 1000\na 5\nend", "a1\nb2\n— watermark 1000\n— end")
	})
	t.Run("by event time", func(t *testing.T) {
		c := newConversation(t, f(10*time.Millisecond), show)
		c.talk(t, "a 1 @0 a 2 @9 a 3 @10 a 4 @19\nwm 30\na 5 @31\nend", "a1 @0\na3 @10\n— watermark 30\na5 @31\n— end")
		if n := len(c.inst.Op.(*processOp[string, event, event]).keys.slots); n != 0 {
			t.Errorf("keys held at the end: got %d, want 0", n)
		}
	})
	t.Run("by the clock", func(t *testing.T) {
		c := newConversation(t, f(10*time.Millisecond), show)
		c.talk(t, "a 1\nnow 9\na 2\nnow 10\na 3\nend", "a1\na3\n— end")
	})
}
