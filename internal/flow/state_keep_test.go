package flow

import (
	"net/netip"
	"strings"
	"testing"
	"time"
	"unsafe"
)

type keepInner struct {
	Tag  []byte
	Name string
}

type keepOuter struct {
	N     int64
	In    keepInner
	Arr   [2]string
	Names []string
	Deep  []keepInner
	Sub   []keepOuter
}

// borrowedString returns a string whose memory the test overwrites afterwards, as a segment's is.
func borrowedString(buf []byte) string { return unsafe.String(&buf[0], len(buf)) }

func TestKeeperSurvivesOverwrite(t *testing.T) {
	mem := []byte("alpha")
	s := borrowedString(mem)
	v := keepOuter{N: 7, In: keepInner{Tag: mem, Name: s}, Arr: [2]string{s, "x"}, Names: []string{s},
		Deep: []keepInner{{Tag: mem[:2], Name: s}}, Sub: []keepOuter{{Arr: [2]string{"", s}}}}
	keeperOf[keepOuter](nil, false).keep(&v)
	copy(mem, "XXXXX")
	got := []string{string(v.In.Tag), v.In.Name, v.Arr[0], v.Names[0], string(v.Deep[0].Tag), v.Deep[0].Name, v.Sub[0].Arr[1]}
	if want := "alpha alpha alpha alpha al alpha alpha"; strings.Join(got, " ") != want {
		t.Errorf("kept value after its source was overwritten: got %q, want %q", got, want)
	}
}

func TestKeeperLeavesPlainTypesAlone(t *testing.T) {
	if keeperOf[int64](nil, true).fn != nil || keeperOf[struct{ A, B float64 }](nil, false).fn != nil || keeperOf[*keepInner](nil, false).fn != nil ||
		keeperOf[[3]int8](nil, false).fn != nil || keeperOf[map[string]string](nil, false).fn != nil {
		t.Error("keeper of a type that borrows nothing: got a copy function, want none")
	}
}

func TestKeeperReplaceReusesWhatItHas(t *testing.T) {
	k := keeperOf[keepInner](nil, false)
	var dst keepInner
	mem := []byte("name")
	k.replace(&dst, keepInner{Name: borrowedString(mem), Tag: mem})
	kept := unsafe.StringData(dst.Name)
	allocs := testing.AllocsPerRun(100, func() {
		k.replaceKept(&dst, keepInner{Name: dst.Name, Tag: dst.Tag})
	})
	if allocs != 0 {
		t.Errorf("replace by the same memory: got %v allocations, want 0", allocs)
	}
	k.replace(&dst, keepInner{Name: borrowedString(mem), Tag: dst.Tag})
	if unsafe.StringData(dst.Name) != kept {
		t.Error("replace by an equal string: got a new copy, want the old one")
	}
	mem[0] = 'X'
	if dst.Name != "name" || string(dst.Tag) != "name" {
		t.Errorf("kept value after its source was overwritten: got %q, %q", dst.Name, dst.Tag)
	}
}

func TestKeeperAppendIsCheap(t *testing.T) {
	k := keeperOf[[]string](nil, false)
	var list []string
	mem := []byte("element")
	grown := 0
	for range 1000 {
		before := cap(list)
		k.replace(&list, append(list, borrowedString(mem)))
		if cap(list) != before {
			grown++
		}
	}
	mem[0] = 'X'
	for i, s := range list {
		if s != "element" {
			t.Fatalf("element %d: got %q, want %q", i, s, "element")
		}
	}
	if grown > 30 {
		t.Errorf("1000 appends: memory grew %d times, want the growth of append", grown)
	}
}

func TestKeeperFollowsPointersWhenDeep(t *testing.T) {
	mem := []byte("alpha")
	v := &keepInner{Tag: mem}
	p := v
	keeperOf[*keepInner](nil, true).keep(&p)
	mem[0] = 'X'
	if p == v || string(p.Tag) != "alpha" {
		t.Errorf("kept pointer after its source was overwritten: got %q", p.Tag)
	}
}

// A time keeps its zone and an address its family: their pointers say which, and are compared.
func TestKeeperLeavesIdentitiesAlone(t *testing.T) {
	type stamped struct {
		Name string
		At   time.Time
		From netip.Addr
	}
	v := stamped{Name: "a", At: time.Date(2026, 7, 1, 2, 3, 4, 0, time.FixedZone("X", 3600)), From: netip.MustParseAddr("10.1.2.3")}
	v.At = v.At.In(time.Local)
	kept := v
	keeperOf[stamped](nil, true).keep(&kept)
	if kept != v || kept.At.Location() != time.Local || !kept.From.Is4() {
		t.Errorf("kept %v at %p, want %v at %p", kept, kept.At.Location(), v, v.At.Location())
	}
}

func TestValueKeepsTheZoneOfATime(t *testing.T) {
	zone := time.FixedZone("X", 3600)
	at := time.Date(2026, 7, 1, 2, 3, 4, 0, zone)
	var dst time.Time
	keeperOf[time.Time](nil, true).replace(&dst, at)
	if dst != at {
		t.Errorf("got %v in %p, want %v in %p", dst, dst.Location(), at, zone)
	}
}
