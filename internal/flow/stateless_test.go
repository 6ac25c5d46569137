package flow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// opRuntime is a testRuntime for an operator called name, whose node has outputs for side ports.
func opRuntime(name string) *testRuntime {
	rt := newTestRuntime()
	rt.node = &Node{Kind: "map", Name: name, Where: "job/main.go:7", Outputs: []Type{nil}}
	return rt
}

func TestStatelessOperators(t *testing.T) {
	even := func(v int) bool { return v%2 == 0 }
	for _, c := range []struct {
		name  string
		f     Factory
		recs  []int // of 0 … 4999, at times 0 … 4999
		times []int64
	}{
		{"map", NewMap(func(v int) int { return -v }), mapped(5000, func(v int) []int { return []int{-v} }), ints(5000)},
		{"filter", NewFilter(even), mapped(5000, func(v int) []int { return []int{v}[:1-v%2] }), slices.DeleteFunc(ints(5000), func(v int64) bool { return v%2 != 0 })},
		{"flatmap", NewFlatMap(func(v int, emit func(int)) error {
			for range v % 3 {
				emit(v)
			}
			return nil
		}, nil, nil), mapped(5000, func(v int) []int { return slices.Repeat([]int{v}, v%3) }), nil},
	} {
		for _, timed := range []bool{false, true} {
			for _, step := range []int{1, 999, 5000} {
				got := &collect[int]{}
				inst := start(t, c.f, opRuntime(c.name), Out[int](got))
				in := inst.Inputs[0].(Out[int])
				all := mapped(5000, func(v int) []int { return []int{v} })
				for recs := range slices.Chunk(all, step) {
					b := Batch[int]{Recs: recs}
					if timed {
						b.Times = ints(5000)[recs[0] : recs[0]+len(recs)]
					}
					if err := in.Push(b); err != nil {
						t.Fatal(err)
					}
				}
				if err := in.Control(Control{Kind: End}); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got.recs, c.recs) {
					t.Errorf("%s by %d: got other records", c.name, step)
				}
				if timed && c.times != nil && !slices.Equal(got.times, c.times) || !timed && got.times != nil {
					t.Errorf("%s by %d, timed %v: got other times", c.name, step, timed)
				}
				if len(got.ctl) != 1 {
					t.Errorf("%s: got controls %v", c.name, got.ctl)
				}
			}
		}
	}
}

func mapped(n int, f func(int) []int) []int {
	var all []int
	for i := range n {
		all = append(all, f(i)...)
	}
	return all
}

func TestPanicsNameOperatorAndRecord(t *testing.T) {
	type order struct {
		ID    int
		Notes string
	}
	bad := order{7, strings.Repeat("n", 500)}
	zero := 0
	div := func(o order) order {
		if o.ID == 7 {
			o.ID /= zero
		}
		return o
	}
	for _, f := range []Factory{
		NewMap(div),
		NewFilter(func(o order) bool { return div(o).ID >= 0 }),
		NewFlatMap(func(o order, emit func(order)) error { emit(div(o)); return nil }, &Policy{OnError: Skip}, nil),
	} {
		inst := start(t, f, opRuntime("parse"), Out[order](&collect[order]{}))
		err := inst.Inputs[0].(Out[order]).Push(Batch[order]{Recs: []order{{1, ""}, bad, {2, ""}}})
		want := "operator parse (job/main.go:7): panic: runtime error: integer divide by zero at flow/stateless_test.go:"
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Fatalf("got %v\nwant %s…", err, want)
		}
		if s := err.Error(); !strings.Contains(s, "; record: {ID:7 Notes:nnn") || !strings.HasSuffix(s, "n…") || len(s) > 400 {
			t.Errorf("the record is not shown, or too much of it: %s", s)
		}
	}
}

func TestConsumersPanicIsTheirs(t *testing.T) {
	next := start(t, NewMap(func(v int) int { panic("next") }), opRuntime("second"), Out[int](&collect[int]{}))
	inst := start(t, NewFlatMap(func(v int, emit func(int)) error {
		for range 3000 {
			emit(v) // pushes from within
		}
		return nil
	}, nil, nil), opRuntime("first"), next.Inputs[0])
	err := inst.Inputs[0].(Out[int]).Push(Batch[int]{Recs: []int{1}})
	if err == nil || !strings.HasPrefix(err.Error(), "operator second (job/main.go:7): panic: next") {
		t.Errorf("got %v", err)
	}
}

func TestErrorPolicies(t *testing.T) {
	parse := func(v int, emit func(int)) error {
		if v%10 == 3 {
			return errors.New("three")
		}
		emit(v)
		return nil
	}
	in := Batch[int]{Recs: mapped(25, func(v int) []int { return []int{v} }), Times: ints(25)}
	run := func(p *Policy, s *Sides, rt *testRuntime, outs ...any) error {
		inst := start(t, NewFlatMap(parse, p, s), rt, outs...)
		if err := inst.Inputs[0].(Out[int]).Push(in); err != nil {
			return err
		}
		return inst.Inputs[0].(Out[int]).Control(Control{Kind: End})
	}

	err := run(&Policy{}, nil, opRuntime("parse"), Out[int](&collect[int]{}))
	if want := "operator parse (job/main.go:7): three; record: 3"; err == nil || err.Error() != want {
		t.Errorf("fail: got %v, want %s", err, want)
	}

	rt, got := opRuntime("parse"), &collect[int]{}
	if err := run(&Policy{OnError: Skip}, nil, rt, Out[int](got)); err != nil {
		t.Fatal(err)
	}
	if n := rt.Counter("skipped records").Load(); n != 3 || len(got.recs) != 22 {
		t.Errorf("skip: %d records, %d skipped", len(got.recs), n)
	}

	rt, got = opRuntime("parse"), &collect[int]{}
	dead, sides := &collect[DeadRecord]{}, &Sides{}
	port, err := sides.Add(rt.node, "", TypeOf[DeadRecord](nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := run(&Policy{OnError: DeadLetter, Port: port}, sides, rt, Out[int](got), Out[DeadRecord](dead)); err != nil {
		t.Fatal(err)
	}
	want := DeadRecord{Operator: "parse", Reason: "three", Record: "13"}
	if len(dead.recs) != 3 || fmt.Sprint(dead.recs[1]) != fmt.Sprint(want) || !slices.Equal(dead.times, []int64{3, 13, 23}) || len(dead.ctl) != 1 {
		t.Errorf("dead letters: got %+v at %v, controls %v", dead.recs, dead.times, dead.ctl)
	}
	if len(got.recs) != 22 {
		t.Errorf("dead letters: %d records went on", len(got.recs))
	}
}

// lifeFunc notes its life.
type lifeFunc struct {
	calls   *[]string
	env     Env
	openErr error
}

func (f *lifeFunc) Open(_ context.Context, env Env) error {
	f.env = env
	*f.calls = append(*f.calls, "open")
	return f.openErr
}

func (f *lifeFunc) Apply(v int, emit func(string)) error {
	if v < 0 {
		return EmitFrom(f.env, "negative", v)
	}
	emit(fmt.Sprint(v))
	return nil
}

func (f *lifeFunc) Close() error {
	*f.calls = append(*f.calls, "close")
	return errors.New("still busy")
}

func TestApplyHasALifeAndSideOutputs(t *testing.T) {
	var calls []string
	sides, rt := &Sides{}, opRuntime("apply")
	if _, err := sides.Add(rt.node, "negative", TypeOf[int](nil)); err != nil {
		t.Fatal(err)
	}
	got, neg := &collect[string]{}, &collect[int]{}
	f := NewApply(func() Func[int, string] { return &lifeFunc{calls: &calls} }, nil, sides)
	inst, err := f(rt, []any{Out[string](got), Out[int](neg)})
	if err != nil {
		t.Fatal(err)
	}
	if err := inst.Op.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := inst.Inputs[0].(Out[int]).Push(Batch[int]{Recs: []int{1, -2, 3, -4}, Times: []int64{1, 2, 3, 4}}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.recs, []string{"1", "3"}) || !slices.Equal(neg.recs, []int{-2, -4}) || !slices.Equal(neg.times, []int64{2, 4}) {
		t.Errorf("got %q and %v at %v", got.recs, neg.recs, neg.times)
	}
	if err := inst.Op.Close(); err == nil || err.Error() != "cannot close operator apply (job/main.go:7): still busy" {
		t.Errorf("Close: %v", err)
	}
	if !slices.Equal(calls, []string{"open", "close"}) {
		t.Errorf("calls: %v", calls)
	}
	if _, err := sides.Add(rt.node, "negative", TypeOf[string](nil)); err == nil {
		t.Error("a tag of two types is taken")
	}
	refused := NewApply(func() Func[int, string] { return &lifeFunc{calls: &calls, openErr: errors.New("no route")} }, nil, nil)
	inst, err = refused(rt, []any{Out[string](got)})
	if err != nil {
		t.Fatal(err)
	}
	if err := inst.Op.Open(t.Context()); err == nil || err.Error() != "cannot open operator apply (job/main.go:7): no route" {
		t.Errorf("Open: %v", err)
	}
}

func TestTeeAndCounted(t *testing.T) {
	typ := TypeOf[int](nil)
	a, b, n := &collect[int]{}, &collect[int]{}, new(Counter)
	tee, err := typ.Tee([]any{Out[int](a), Out[int](b)})
	if err != nil {
		t.Fatal(err)
	}
	out, err := typ.Counted(tee, n)
	if err != nil {
		t.Fatal(err)
	}
	if err := out.(Out[int]).Push(Batch[int]{Recs: []int{1, 2}}); err != nil {
		t.Fatal(err)
	}
	if err := out.(Out[int]).Control(Control{Kind: End}); err != nil {
		t.Fatal(err)
	}
	if n.Load() != 2 || len(a.recs) != 2 || len(b.recs) != 2 || len(b.ctl) != 1 {
		t.Errorf("counted %d, got %v and %v", n.Load(), a.recs, b.recs)
	}
	if _, err := typ.Tee([]any{Out[string](&collect[string]{})}); err == nil {
		t.Error("a tee of ints takes an Out of strings")
	}
	none, err := typ.Tee(nil)
	if err != nil || none.(Out[int]).Push(Batch[int]{Recs: []int{1}}) != nil {
		t.Error("an empty tee does not discard")
	}
}

func TestStatelessOperatorsDontAllocate(t *testing.T) {
	out := Out[int](&discardOut[int]{})
	b := Batch[int]{Recs: make([]int, 1024), Times: make([]int64, 1024)}
	for name, f := range map[string]Factory{
		"map":     NewMap(func(v int) int { return v + 1 }),
		"filter":  NewFilter(func(v int) bool { return true }),
		"flatmap": NewFlatMap(func(v int, emit func(int)) error { emit(v); return nil }, nil, nil),
	} {
		in := start(t, f, opRuntime(name), out).Inputs[0].(Out[int])
		if n := testing.AllocsPerRun(20, func() {
			if err := in.Push(b); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("%s: %v allocations a batch", name, n)
		}
	}
}
