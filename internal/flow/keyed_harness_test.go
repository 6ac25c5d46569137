package flow

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// testRuntime is a Runtime with virtual time.
type testRuntime struct {
	node     *Node
	now      int64
	timer    int64
	counters map[string]*Counter
}

func newTestRuntime() *testRuntime {
	return &testRuntime{node: &Node{ID: 3, Kind: "window", Where: "job/main.go:7"}, timer: MaxTime, counters: map[string]*Counter{}}
}

func (r *testRuntime) JobName() string              { return "job" }
func (r *testRuntime) Node() *Node                  { return r.node }
func (r *testRuntime) Subtask() int                 { return 0 }
func (r *testRuntime) Parallelism() int             { return 1 }
func (r *testRuntime) MaxParallelism() int          { return 128 }
func (r *testRuntime) Now() int64                   { return r.now }
func (r *testRuntime) SetTimer(at int64)            { r.timer = at }
func (r *testRuntime) Wake()                        {}
func (r *testRuntime) Option(string) (string, bool) { return "", false }
func (r *testRuntime) Logger() *slog.Logger         { return slog.New(slog.DiscardHandler) }
func (r *testRuntime) FlushTimeout() time.Duration  { return 0 }
func (r *testRuntime) Counter(name string) *Counter {
	if r.counters[name] == nil {
		r.counters[name] = &Counter{}
	}
	return r.counters[name]
}

// advanceTo moves the clock, and calls op.Timer whenever its timer has come.
func (r *testRuntime) advanceTo(now int64, op Operator) error {
	for r.timer <= now {
		r.now = max(r.now, r.timer)
		r.timer = MaxTime
		if err := op.Timer(r.now); err != nil {
			return err
		}
	}
	r.now = now
	return nil
}

// logOut notes what it is given, one line each, after a prefix.
type logOut[T any] struct {
	prefix string
	log    *strings.Builder
	show   func(T) string
	recs   []T
	times  []int64
}

func (l *logOut[T]) Push(b Batch[T]) error {
	for i, r := range b.Recs {
		fmt.Fprintf(l.log, "%s%s", l.prefix, l.show(r))
		if b.Times != nil {
			fmt.Fprintf(l.log, " @%s", showTime(b.Times[i]))
			l.times = append(l.times, b.Times[i])
		}
		l.log.WriteByte('\n')
		l.recs = append(l.recs, r)
	}
	return nil
}

func (l *logOut[T]) Control(c Control) error {
	if l.prefix != "" {
		return nil // the main output tells
	}
	fmt.Fprintf(l.log, "— %s", c.Kind)
	if c.Kind == Watermark {
		fmt.Fprintf(l.log, " %s", showTime(c.Time))
	}
	l.log.WriteByte('\n')
	return nil
}

func showTime(t int64) string {
	switch t {
	case MinTime:
		return "min"
	case MaxTime:
		return "max"
	case MaxTime - 1:
		return "max-1"
	}
	return fmt.Sprint(t)
}

// discardOut counts.
type discardOut[T any] struct{ n, controls int }

func (d *discardOut[T]) Push(b Batch[T]) error { d.n += len(b.Recs); return nil }
func (d *discardOut[T]) Control(Control) error { d.controls++; return nil }

// start opens an instance.
func start(t testing.TB, f Factory, rt Runtime, outs ...any) Instance {
	t.Helper()
	return startFrom(t, nil, f, rt, outs...)
}

// startFrom opens an instance whose state is restored from entries.
func startFrom(t testing.TB, state []StateEntry, f Factory, rt Runtime, outs ...any) Instance {
	t.Helper()
	in, err := f(rt, outs)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range state {
		if err := in.Op.(Stateful).Restore(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := in.Op.Open(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := in.Op.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return in
}

// event is the record type of these tests.
type event struct {
	Key string
	N   int64
}

func eventKey(e event) string { return e.Key }

// sumEvents adds up event.N.
type sumEvents struct{}

func (sumEvents) Zero() int64                  { return 0 }
func (sumEvents) Add(acc int64, e event) int64 { return acc + e.N }
func (sumEvents) Merge(into, from int64) int64 { return into + from }
func (sumEvents) Result(acc int64) int64       { return acc }

// snapshotOf returns all entries of an operator's state, and checks their order.
func snapshotOf(t testing.TB, op Operator) []StateEntry {
	t.Helper()
	var all []StateEntry
	err := op.(Stateful).Snapshot(func(e StateEntry) error {
		if n := len(all); n > 0 && e.Group < all[n-1].Group {
			t.Errorf("snapshot: group %d after %d", e.Group, all[n-1].Group)
		}
		e.Key, e.Value = bytes.Clone(e.Key), bytes.Clone(e.Value)
		all = append(all, e)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
