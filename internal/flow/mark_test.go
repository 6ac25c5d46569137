package flow

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// committing is a scripted source that commits every 100 ms.
type committing struct {
	pausing
	log *strings.Builder
}

func (c committing) Commits() bool                                               { return true }
func (c committing) NewReader(context.Context, ReaderEnv) (Reader[event], error) { return c, nil }
func (c committing) CommitEvery() time.Duration                                  { return 100 * time.Millisecond }
func (c committing) Mark(id uint64)                                              { fmt.Fprintf(c.log, "mark %d ", id) }
func (c committing) Delivered(id uint64)                                         { fmt.Fprintf(c.log, "delivered %d ", id) }
func (c committing) Enumerator(context.Context, EnumeratorEnv) (Enumerator, error) {
	return nil, nil
}
func (c committing) Bounded() bool { return true }

// TestMarks: a source that commits marks its stream every interval, behind what it emitted, and at its end.
func TestMarks(t *testing.T) {
	log := &strings.Builder{}
	s := &sourceTest{t: t, rt: newTestRuntime(), src: &scripted{wait: SourceWait}, log: log}
	src := committing{pausing{s.src, log}, log}
	g := &Graph{}
	g.Add(s.rt.Node()).Source = src
	out := &logOut[event]{log: log, show: func(e event) string { return fmt.Sprint(e.N) }}
	s.rt.now = 1000
	s.inst = start(t, NewSource[event](src, &Watermarks[event]{}, nil, nil), s.rt, Out[event](out))
	s.add("a")
	s.emit("a", 1)
	s.rt.now = 1100
	s.emit("a", 2)
	if s.rt.timer > 1200 {
		t.Errorf("the next timer is at %d", s.rt.timer)
	}
	s.inst.Source.(DeliveredTo).Delivered(1100)
	s.src.wait = SourceEnd
	s.poll()
	got := log.String()
	for _, want := range []string{"mark 1100", "delivered 1100", "mark 1101"} {
		at := strings.Index(got, want)
		if at < 0 {
			t.Fatalf("no %q, or not in order, in %q", want, log)
		}
		got = got[at:]
	}
	if last := s.inst.Source.(DeliveredTo).LastMark(); last != 1101 {
		t.Errorf("the last mark is %d", last)
	}
}

// TestNoMarks: where no source commits, none marks.
func TestNoMarks(t *testing.T) {
	s := newSourceTest(t, Watermarks[event]{})
	s.add("a")
	s.rt.now += 60_000
	s.emit("a", 1)
	if strings.Contains(s.log.String(), "mark") && !strings.Contains(s.log.String(), "watermark") {
		t.Errorf("got %q", s.log)
	}
}

// TestPortsMergeMarks: two inputs pass on the least mark of both, and do not wait for one that has ended.
func TestPortsMergeMarks(t *testing.T) {
	p := newPorts()
	for _, step := range []struct {
		port int
		c    Control
		want uint64
	}{
		{0, Control{Kind: Mark, ID: 5}, 0}, {1, Control{Kind: Mark, ID: 3}, 3}, {1, Control{Kind: Mark, ID: 9}, 5}, {0, Control{Kind: End}, 9},
	} {
		passed := uint64(0)
		for _, c := range p.take(step.port, step.c) {
			if c.Kind == Mark {
				passed = c.ID
			}
		}
		if passed != step.want {
			t.Errorf("after %v of port %d: passed %d, want %d", step.c, step.port, passed, step.want)
		}
	}
}
