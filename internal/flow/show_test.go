package flow

import (
	"errors"
	"strings"
	"testing"
	"time"
)

type shown struct {
	Name  string
	Price *float64
	Next  *shown
	Any   any
	Tags  map[string]*int
	raw   []byte
	at    time.Time
}

type loud struct{ n *int }

func (l *loud) String() string { return strings.Repeat("!", *l.n) }

func TestShowFollowsPointers(t *testing.T) {
	price, n := 2.5, 3
	loop := &shown{Name: "loop"}
	loop.Next = loop
	var none *shown
	for _, c := range []struct {
		rec  any
		want string
	}{
		{shown{Name: "a", Price: &price, Next: &shown{Name: "b"}, Any: []any{1, &n, nil}, Tags: map[string]*int{"y": &n, "x": nil}, raw: []byte("hi\n"), at: time.Unix(0, 0).UTC()},
			`{Name:a Price:&2.5 Next:&{Name:b Price:<nil> Next:<nil> Any:<nil> Tags:map[] raw:[] at:0001-01-01 00:00:00 +0000 UTC} Any:[1 &3 <nil>] Tags:map[x:<nil> y:&3] raw:"hi\n" at:1970-01-01 00:00:00 +0000 UTC}`},
		{&price, "&2.5"},
		{[2]*loud{{&n}, nil}, "[!!! <nil>]"},
		{&loud{}, "%!v(PANIC=String method: runtime error: invalid memory address or nil pointer dereference)"},
		{struct{ f func(int) int }{}, "{f:(func(int) int)}"},
		{struct{ err error }{errors.New("lost")}, "{err:lost}"},
		{[]byte("x\x00"), `"x\x00"`},
		{[][]byte{{0xff, 1}, nil}, "[[255 1] []]"},
		{none, "<nil>"},
		{nil, "<nil>"},
	} {
		if got := show(c.rec, 1000); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
	if got := show(loop, 10000); strings.Count(got, "Name:loop") != maxDeep || !strings.Contains(got, "Next:&… ") {
		t.Errorf("a value that leads to itself: %s", got)
	}
	if got := show(make([]*int, 1<<20), 50); len(got) > 60 || !strings.HasSuffix(got, "…") {
		t.Errorf("a long list: %s", got)
	}
}
