package flow

import "testing"

// State from a damaged checkpoint is refused or taken, but never makes an operator panic.
func FuzzRestore(f *testing.F) {
	names := []string{"tumbling", "sliding", "session", "global", "rolling", "process"}
	states := []string{windowState, sessionState, watermarkState, seenState, rollingState, eventTimers, clockTimers, "sum", "last", "seen"}
	f.Add(uint8(0), uint8(0), 5, []byte{1, 'a'}, []byte{0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0})
	f.Add(uint8(5), uint8(9), 5, []byte{1, 'a'}, []byte{8, 0, 0, 0, 0, 0, 0, 0, 1, 1, 'x'})
	f.Add(uint8(2), uint8(2), NoGroup, []byte{}, []byte{0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, op, state uint8, group int, key, value []byte) {
		c := statefulOperators[names[int(op)%len(names)]](t)
		s := c.inst.Op.(Stateful)
		e := StateEntry{State: states[int(state)%len(states)], Group: group, Key: key, Value: value}
		if s.Restore(e) != nil {
			return
		}
		snapshotOf(t, c.inst.Op)
		if err := c.say("end"); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzTimeParser(f *testing.F) {
	for _, s := range []string{"2024-05-05T12:00:00Z", "2024-05-05 12:00:00", "2024-05-05", "0000-01-01T00:00:00+24:00"} {
		f.Add(s)
	}
	p, err := NewTimeParser("")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ms, err := p.Parse(s)
		if err != nil {
			return
		}
		if again, err := p.Parse(Instant(ms).String()); Instant(ms).bounded() && (err != nil || again != ms) {
			t.Errorf("%q is %d, but %s is %d, %v", s, ms, Instant(ms), again, err)
		}
	})
}
