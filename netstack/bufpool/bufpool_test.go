package bufpool

import (
	"errors"
	"strings"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

func TestGuarantees(t *testing.T) {
	p := New(1024, 0, 10)
	a, err := p.Open("a", 4, 1, 100)
	if err != nil {
		t.Fatal(err)
	}
	if got := a.Borrow(100); got != 5 {
		t.Errorf("borrowed %d, want 1 of its own and 4 of the 5 that nobody set aside", got)
	}
	b, err := p.Open("b", 5, 0, 0)
	if err != nil {
		t.Fatalf("floating segments kept out a guarantee: %v", err)
	}
	if got := b.Borrow(1); got != 0 {
		t.Errorf("borrowed %d over its limit", got)
	}
	a.Repay(5)
	if got := a.Borrow(3); got != 1 {
		t.Errorf("borrowed %d, want its own one only: the rest is set aside for b", got)
	}
	_, err = p.Open("gate g of 3 channels", 6, 0, 0)
	if e, ok := errors.AsType[*MemoryError](err); !ok || e.Need != 6 || e.Have != 0 || e.Total != 10 {
		t.Errorf("got %v", err)
	}
	for _, part := range []string{"gate g of 3 channels", "needs 6 segments", "0 of 10", "of 1KiB", "exchange.memory to at least 16KiB"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
	a.Close()
	a.Close()
	b.Close()
	if s := p.Stats(); s.Reserved != 0 || s.Floating != 0 || s.Used != 0 {
		t.Errorf("after all is closed: %+v", s)
	}
}

// TestShares has accounts that come one after the other and want all they can get: once each has given back and taken
// again a few times, they have about the same.
func TestShares(t *testing.T) {
	p := New(64, 0, 1000)
	var accounts []*Account
	for range 40 {
		a, err := p.Open("a", 1, 1, 100)
		if err != nil {
			t.Fatal(err)
		}
		accounts = append(accounts, a)
		a.Borrow(100)
	}
	for range 300 {
		for _, a := range accounts {
			a.Repay(min(1, a.borrowed))
			a.Borrow(2)
		}
	}
	lo, hi := 1000, 0
	for _, a := range accounts {
		lo, hi = min(lo, a.borrowed), max(hi, a.borrowed)
	}
	if lo < 20 || hi > 28 {
		t.Errorf("between %d and %d segments an account, want about 23", lo, hi)
	}
}

func TestReach(t *testing.T) {
	p := New(64, 0, 20)
	a, errA := p.Open("a", 2, 1, 10)
	b, errB := p.Open("b", 3, 0, 10)
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	for _, step := range []struct {
		of     *Account
		borrow int
	}{{a, 1}, {b, 4}, {a, 3}, {b, 100}, {a, 100}} {
		step.of.Borrow(step.borrow)
		for _, of := range []*Account{a, b} {
			reach, has := of.Reach(), of.borrowed
			got := of.Borrow(1000)
			if reach != has+got {
				t.Errorf("reach is %d, but it had %d and got %d", reach, has, got)
			}
			of.Repay(got)
		}
	}
	a.Close()
	if n := a.Reach(); n != 0 {
		t.Errorf("a closed account could have %d", n)
	}
}

func TestSegments(t *testing.T) {
	for _, size := range []int{8, 1000, 32744} {
		p := New(size, 0, 3)
		seen := map[*byte]bool{}
		for range 5 { // two beyond the total
			s := p.Get()
			b := s.Bytes()
			if len(b) != size || cap(b) != size || uintptr(unsafe.Pointer(&b[0]))%64 != 0 || seen[&b[0]] {
				t.Fatalf("size %d: segment of %d bytes at %p", size, len(b), &b[0])
			}
			seen[&b[0]] = true
			f := s.Frame(24, size)
			if &f[24] != &b[0] || len(f) != size+24 {
				t.Error("header does not lie before the payload")
			}
			if r := s.Read(0, size+TailRoom); &r[0] != &b[0] {
				t.Error("read room is not the payload's")
			}
		}
		if s := p.Stats(); s.Used != 5 || s.Made != 5 {
			t.Errorf("%+v", s)
		}
	}
}

// TestExcessIsBounded opens accounts while floating segments are out, fills all that is promised, and gives it back.
func TestExcessIsBounded(t *testing.T) {
	const total = 100
	p := New(64, 0, total)
	a, err := p.Open("a", 0, 0, total)
	if err != nil {
		t.Fatal(err)
	}
	lent := a.Borrow(total)
	var segs []*Segment
	for range lent {
		segs = append(segs, p.Get())
	}
	b, err := p.Open("b", total, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range total {
		segs = append(segs, p.Get())
	}
	if s := p.Stats(); s.Used > total+lent || s.Made > total+lent {
		t.Errorf("%d segments used and %d made, at most %d may be", s.Used, s.Made, total+lent)
	}
	if n := a.Borrow(1) + b.Borrow(1); n != 0 {
		t.Errorf("lent %d above the total", n)
	}
	a.Repay(lent)
	p.Put(segs...)
	if s := p.Stats(); s.Used != 0 || s.Made > total {
		t.Errorf("all is back: %+v, want no memory beyond the total", s)
	}
}

func TestRetain(t *testing.T) {
	p := New(64, 0, 2)
	s := p.Get()
	s.Retain()
	s.Retain()
	for i := range 3 {
		if used := p.Stats().Used; used != 1 {
			t.Errorf("%d segments used after %d of 3 users gave it back", used, i)
		}
		p.Put(s)
	}
	if used := p.Stats().Used; used != 0 {
		t.Errorf("%d segments used after the last", used)
	}
}

func TestOverdraw(t *testing.T) {
	p := New(64, 0, 10)
	a, err := p.Open("a", 4, 1, 3)
	if err != nil {
		t.Fatal(err)
	}
	if n := a.Borrow(10); n != 3 {
		t.Fatalf("borrowed %d", n)
	}
	for i, want := range []bool{true, true, false} {
		if got := a.Overdraw(2); got != want {
			t.Errorf("overdraft %d: got %v, want exactly 2 beyond the most", i, got)
		}
	}
	if !a.Overdraw(9) || a.Overdraw(9) {
		t.Error("overdrew what was set aside or isn't there")
	}
	a.Repay(6)
	if s := p.Stats(); s.Floating != 0 {
		t.Errorf("%+v", s)
	}
}

// TestAccounting holds random histories of accounts against a plain count.
func TestAccounting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.IntRange(1, 50).Draw(t, "total")
		p := New(64, 0, total)
		type user struct {
			a         *Account
			need, out int
		}
		var users []*user
		reserved := 0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(users) == 0 || rapid.IntRange(0, 3).Draw(t, "op") == 0 {
				ex, own, most := rapid.IntRange(0, 10).Draw(t, "ex"), rapid.IntRange(0, 3).Draw(t, "own"), rapid.IntRange(0, 20).Draw(t, "max")
				a, err := p.Open("u", ex, own, most)
				if (err == nil) != (reserved+ex+own <= total) {
					t.Fatalf("open %d+%d with %d of %d set aside: %v", ex, own, reserved, total, err)
				}
				if err == nil {
					reserved += ex + own
					users = append(users, &user{a: a, need: ex + own})
				}
				continue
			}
			i := rapid.IntRange(0, len(users)-1).Draw(t, "user")
			u := users[i]
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0, 1:
				n := rapid.IntRange(0, 8).Draw(t, "n")
				before := p.Stats().Floating
				u.out += u.a.Borrow(n)
				if after := p.Stats(); after.Floating > before && after.Reserved+after.Floating > total {
					t.Fatalf("lent more than is there: %+v", after)
				}
			case 2, 3:
				n := rapid.IntRange(0, u.out).Draw(t, "n")
				u.a.Repay(n)
				u.out -= n
			case 4:
				u.a.Close()
				reserved -= u.need
				users = append(users[:i], users[i+1:]...)
			}
			if s := p.Stats(); s.Reserved != reserved || s.Floating < 0 {
				t.Fatalf("%+v, want %d set aside", s, reserved)
			}
		}
		for _, u := range users {
			u.a.Close()
		}
		if s := p.Stats(); s.Reserved != 0 || s.Floating != 0 {
			t.Fatalf("at the end: %+v", s)
		}
	})
}
