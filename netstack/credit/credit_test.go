package credit

import (
	"errors"
	"testing"

	"pgregory.net/rapid"
)

func TestWindow(t *testing.T) {
	var w Window
	if w.Spend() {
		t.Error("spent a credit that was not granted")
	}
	if err := w.Add(2); err != nil || !w.Spend() || !w.Spend() || w.Spend() {
		t.Errorf("2 credits, %v: want exactly 2 spent", err)
	}
	for _, n := range []uint32{MaxCredit + 1, 1<<32 - 1} {
		if err := w.Add(n); !errors.Is(err, ErrOverflow) {
			t.Errorf("added %d: got %v, want %v", n, err, ErrOverflow)
		}
	}
	if err := w.Add(MaxCredit); err != nil {
		t.Error(err)
	}
	if err := w.Add(1); !errors.Is(err, ErrOverflow) || w.Credit() != MaxCredit {
		t.Errorf("one over the limit: got %v with %d credits", err, w.Credit())
	}
}

func TestLedger(t *testing.T) {
	l := NewLedger(2, 8)
	must := func(what string, got, want any) {
		t.Helper()
		if got != want {
			t.Fatalf("%s: got %v, want %v", what, got, want)
		}
	}
	must("wants of an idle channel", l.Want(), 0)
	must("receive", l.Receive(0), nil)
	must("repay of an exclusive segment", l.Recycle(false), false)
	must("announce half", l.Announce(), 1)
	must("receive", l.Receive(10), nil)
	must("want up to max", l.Want(), 6)
	l.Lend(4)
	must("want the rest", l.Want(), 2)
	must("announce what was lent", l.Announce(), 4)
	for range 5 {
		must("receive", l.Receive(0), nil)
	}
	must("receive without credit", l.Receive(0), ErrNoCredit)
	must("keep the first", l.Recycle(false), false)
	must("announce at once, the sender has none", l.Announce(), 1)
	must("keep the second", l.Recycle(false), false)
	must("one of six waits for more", l.Announce(), 0)
	must("give the third back: no backlog", l.Recycle(false), true)
	must("end gives back those that are not held", l.End(), 0)
	must("held floating one comes back", l.Recycle(false), true)
	must("no credit after the end", l.Announce(), 0)
	must("nothing is received after the end", l.Receive(0), ErrNoCredit)
}

// TestContended shows that a channel in full swing passes its only floating segment on.
func TestContended(t *testing.T) {
	l := NewLedger(0, 4)
	l.Backlog(100)
	l.Lend(min(1, l.Want()))
	if n := l.Announce(); n != 1 {
		t.Fatalf("announced %d, want 1", n)
	}
	if err := l.Receive(99); err != nil {
		t.Fatal(err)
	}
	if !l.Recycle(true) {
		t.Error("kept a floating segment that others wait for")
	}
}

// TestInvariants runs random histories of one channel: a sender with data, a wire each way, a consumer and a lender.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		exclusive, most := rapid.IntRange(0, 4).Draw(t, "exclusive"), rapid.IntRange(1, 40).Draw(t, "max")
		spare := rapid.IntRange(0, 20).Draw(t, "spare")
		if exclusive == 0 {
			spare = max(spare, 1)
		}
		most = max(most, exclusive)
		total := spare
		l := NewLedger(exclusive, most)
		var w Window
		if err := w.Add(uint32(exclusive)); err != nil {
			t.Fatal(err)
		}
		var queue, sent, received, held, told int
		var grants []int
		var data []int // backlogs of frames on the wire; -1-b for a backlog frame
		lend := func() {
			n := min(l.Want(), spare)
			spare -= n
			l.Lend(n)
			if n := l.Announce(); n > 0 {
				grants = append(grants, n)
			}
		}
		send := func() {
			switch {
			case queue > 0 && w.Spend():
				queue--
				sent++
				data = append(data, queue)
				told = queue
			case queue > 0 && told == 0:
				told = queue
				data = append(data, -1-queue)
			}
		}
		deliver := func() {
			if len(data) == 0 {
				return
			}
			if b := data[0]; b < 0 {
				l.Backlog(uint32(-1 - b))
			} else {
				if err := l.Receive(uint32(b)); err != nil {
					t.Fatal(err)
				}
				received++
				held++
			}
			data = data[1:]
			lend()
		}
		credit := func() {
			if len(grants) > 0 {
				if err := w.Add(uint32(grants[0])); err != nil {
					t.Fatal(err)
				}
				grants = grants[1:]
			}
		}
		recycle := func() {
			if held == 0 {
				return
			}
			held--
			if l.Recycle(false) {
				spare++
			}
			lend()
		}
		check := func() {
			onWay := 0
			for _, g := range grants {
				onWay += g
			}
			frames := 0
			for _, b := range data {
				if b >= 0 {
					frames++
				}
			}
			switch {
			case l.granted+l.pending+l.held != l.exclusive+l.floating:
				t.Fatalf("%+v: segments don't add up", l)
			case l.exclusive+l.floating > most || l.granted < 0 || l.pending < 0:
				t.Fatalf("%+v: out of bounds", l)
			case int(w.Credit())+onWay+frames != l.granted:
				t.Fatalf("sender has %d, %d credits and %d frames on the way, %d granted", w.Credit(), onWay, frames, l.granted)
			case l.held != held:
				t.Fatalf("ledger holds %d, consumer %d", l.held, held)
			case spare+l.floating != total:
				t.Fatalf("floating segments don't add up: %d + %d of %d", spare, l.floating, total)
			}
		}
		for _, op := range rapid.SliceOfN(rapid.IntRange(0, 4), 0, 300).Draw(t, "ops") {
			switch op {
			case 0:
				queue++
			case 1:
				send()
			case 2:
				deliver()
			case 3:
				credit()
			case 4:
				recycle()
			}
			check()
		}
		// No stall: left alone, everything arrives, and floating segments come back.
		for i := 0; queue+held+len(data)+len(grants) > 0; i++ {
			if i > 10_000 {
				t.Fatalf("stalled: %d queued, %d sent, %d received, %+v, window %d", queue, sent, received, l, w.Credit())
			}
			send()
			deliver()
			credit()
			recycle()
			check()
		}
		if repay := l.End(); sent != received || spare+repay != total || l.floating != 0 {
			t.Fatalf("sent %d, received %d; %d of %d floating segments came back", sent, received, spare+repay, total)
		}
	})
}
