package heddletest_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/heddletest"
)

type click struct {
	User string
	At   time.Time
}

type count = heddle.Windowed[string, int64]

// clicksPerUser counts clicks per user and minute.
func clicksPerUser() *heddle.Job {
	job := heddle.NewJob("clicks-per-user")
	clicks := heddle.FromSource(job, heddle.Generate(0, func(int64) click { return click{} })).Name("clicks").
		Watermark(heddle.BoundedDelay(5*time.Second, func(c click) time.Time { return c.At }))
	perUser := heddle.KeyBy(clicks, func(c click) string { return c.User })
	counts := heddle.Aggregate(heddle.Tumbling(perUser, time.Minute), heddle.Count[click]())
	heddle.ToSink(counts, heddle.Discard[count]()).Name("counts")
	return job
}

var noon = time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC)

// fakeTB records a failure of the test under test.
type fakeTB struct {
	fatal    string
	cleanups []func()
}

func (f *fakeTB) Helper()          {}
func (f *fakeTB) Cleanup(c func()) { f.cleanups = append(f.cleanups, c) }
func (f *fakeTB) Fatalf(format string, args ...any) {
	f.fatal = fmt.Sprintf(format, args...)
	panic(f)
}

// fatal returns what f fails its test with.
func fatal(f func(t heddletest.TB)) string {
	tb := &fakeTB{}
	defer func() {
		for _, c := range tb.cleanups {
			c()
		}
	}()
	func() {
		defer func() {
			if p := recover(); p != nil && p != any(tb) {
				panic(p)
			}
		}()
		f(tb)
	}()
	return tb.fatal
}

func show(counts []count) string {
	var s []string
	for _, c := range counts {
		s = append(s, fmt.Sprintf("%s %s %d", c.Key, c.Start.Time().UTC().Format("15:04"), c.Value))
	}
	slices.Sort(s)
	return strings.Join(s, ", ")
}

func TestEventTime(t *testing.T) {
	for _, opts := range [][]heddletest.Option{nil, {heddletest.Parallelism(3)}, {heddletest.Unchained()}} {
		h := heddletest.New(t, clicksPerUser(), opts...)
		clicks := heddletest.Input[click](h, "clicks")
		counts := heddletest.Output[count](h, "counts")
		clicks.Send(click{"ann", noon}, click{"bob", noon.Add(time.Second)}, click{"ann", noon.Add(59 * time.Second)})
		if got := counts.Take(); len(got) != 0 {
			t.Errorf("windows fired before their end: %v", got)
		}
		clicks.Send(click{"ann", noon.Add(65 * time.Second)}) // 5 s of delay are over
		if got := show(counts.Take()); got != "ann 12:00 2, bob 12:00 1" {
			t.Errorf("first minute: %s", got)
		}
		clicks.Watermark(noon.Add(2 * time.Minute))
		if got := show(counts.Take()); got != "ann 12:01 1" {
			t.Errorf("second minute: %s", got)
		}
		clicks.Send(click{"late", noon}) // drops without a trace but a counter
		clicks.Send(click{"bob", noon.Add(3 * time.Minute)})
		h.End()
		if got := show(counts.Take()); got != "bob 12:03 1" {
			t.Errorf("at the end: %s", got)
		}
		if n := h.Counter("clicks", "records_out"); n != 6 {
			t.Errorf("source counted %d records, want 6", n)
		}
	}
}

func TestSplitsHoldTheWatermarkBack(t *testing.T) {
	h := heddletest.New(t, clicksPerUser(), heddletest.Parallelism(2))
	first := heddletest.Input[click](h, "")
	second, third := first.Split(1), first.Split(2)
	counts := heddletest.Output[count](h, "")
	first.Send(click{"ann", noon}, click{"ann", noon.Add(2 * time.Minute)})
	second.Send(click{"ann", noon}, click{"ann", noon.Add(2 * time.Minute)})
	if got := counts.Take(); len(got) != 0 {
		t.Errorf("windows fired although split 2 has said nothing: %v", got)
	}
	third.End()
	if got := show(counts.Take()); got != "ann 12:00 2" {
		t.Errorf("after the end of split 2: %s", got)
	}
	late := first.Split(3) // appears while the job runs: what it has is not late as long as it is behind
	first.Send(click{"ann", noon.Add(10 * time.Minute)})
	if got := counts.Take(); len(got) != 0 {
		t.Errorf("windows fired although split 3 has said nothing: %v", got)
	}
	late.Send(click{"ann", noon.Add(2 * time.Minute)})
	h.End()
	if got := show(counts.Take()); got != "ann 12:02 3, ann 12:10 1" {
		t.Errorf("at the end: %s", got)
	}
}

func TestIdle(t *testing.T) {
	h := heddletest.New(t, clicksPerUser(), heddletest.Parallelism(2))
	first := heddletest.Input[click](h, "")
	second := first.Split(1)
	counts := heddletest.Output[count](h, "")
	first.Send(click{"ann", noon}, click{"ann", noon.Add(2 * time.Minute)})
	second.Send(click{"bob", noon})
	if got := counts.Take(); len(got) != 0 {
		t.Errorf("windows fired before split 1 is idle: %v", got)
	}
	second.Idle()
	if got := show(counts.Take()); got != "ann 12:00 1, bob 12:00 1" {
		t.Errorf("after split 1 became idle: %s", got)
	}
	second.Send(click{"bob", noon.Add(3 * time.Minute)})
	h.End()
	if got := show(counts.Take()); got != "ann 12:02 1, bob 12:03 1" {
		t.Errorf("at the end: %s", got)
	}
}

func TestProcessingTime(t *testing.T) {
	job := heddle.NewJob("per-minute")
	in := heddle.FromSource(job, heddle.Generate(0, func(int64) string { return "" }))
	counts := heddle.Aggregate(heddle.Tumbling(heddle.KeyBy(in, func(s string) string { return s }), time.Minute).ProcessingTime(), heddle.Count[string]())
	heddle.ToSink(counts, heddle.Discard[count]())
	h := heddletest.New(t, job, heddletest.StartAt(noon))
	words := heddletest.Input[string](h, "")
	out := heddletest.Output[count](h, "")
	words.Send("a", "b")
	h.Advance(30 * time.Second)
	words.Send("a")
	if got := out.Take(); len(got) != 0 {
		t.Errorf("windows fired before their time: %v", got)
	}
	h.Advance(time.Minute)
	if got := show(out.Take()); got != "a 12:00 2, b 12:00 1" {
		t.Errorf("first minute: %s", got)
	}
	if !h.Now().Equal(noon.Add(90 * time.Second)) {
		t.Errorf("clock shows %v", h.Now())
	}
}

func TestFailure(t *testing.T) {
	build := func() *heddle.Job {
		job := heddle.NewJob("shaky")
		in := heddle.FromSource(job, heddle.Generate(0, func(int64) string { return "" })).Rebalance()
		heddle.ToSink(heddle.TryMap(in, func(s string) (string, error) {
			if s == "bad" {
				return "", errors.New("I don't like it")
			}
			return s, nil
		}).Name("picky"), heddle.Discard[string]())
		return job
	}
	h := heddletest.New(t, build())
	in := heddletest.Input[string](h, "")
	err := h.Try(func() { in.Send("good"); in.Send("bad") })
	if err == nil || !strings.Contains(err.Error(), "picky") || !strings.Contains(err.Error(), "I don't like it") {
		t.Errorf("the job failed with %v", err)
	}
	got := fatal(func(t heddletest.TB) {
		h := heddletest.New(t, build())
		heddletest.Input[string](h, "").Send("bad")
	})
	if !strings.Contains(got, "I don't like it") {
		t.Errorf("the test failed with %q", got)
	}
}

func TestMisuse(t *testing.T) {
	invalid := func() *heddle.Job {
		job := heddle.NewJob("no-sink")
		heddle.FromSource(job, heddle.Generate(0, func(int64) string { return "" }))
		return job
	}
	for name, tt := range map[string]struct {
		f    func(t heddletest.TB)
		want string
	}{
		"invalid job": {func(t heddletest.TB) { heddletest.New(t, invalid()) }, "cannot compile job"},
		"no input":    {func(t heddletest.TB) { heddletest.New(t, clicksPerUser()).End() }, `call heddletest.Input[heddletest_test.click](h, "clicks")`},
		"wrong type":  {func(t heddletest.TB) { heddletest.Input[string](heddletest.New(t, clicksPerUser()), "clicks") }, "of type heddletest_test.click, not string"},
		"wrong name":  {func(t heddletest.TB) { heddletest.Output[count](heddletest.New(t, clicksPerUser()), "clocks") }, `the job has no sink "clocks"; there are: counts`},
		"near name": {func(t heddletest.TB) {
			h := heddletest.New(t, clicksPerUser())
			heddletest.Input[click](h, "")
			h.Counter("window-1", "records_in")
		}, `the job has no operator "window-1"; did you mean "window 1"? there are: clicks, window 1, counts`},
		"too late": {func(t heddletest.TB) {
			h := heddletest.New(t, clicksPerUser())
			heddletest.Input[click](h, "").Send()
			heddletest.Output[count](h, "")
		}, "call Output before anything is sent"},
		"after the end": {func(t heddletest.TB) {
			h := heddletest.New(t, clicksPerUser())
			in := heddletest.Input[click](h, "")
			h.End()
			in.Send(click{})
		}, "Send on a split that has ended"},
	} {
		if got := fatal(tt.f); !strings.Contains(got, tt.want) {
			t.Errorf("%s: test fails with %q, want %q", name, got, tt.want)
		}
	}
}

func init() {
	heddle.DeclareOption(heddle.Option{Name: "heddletest.greeting", Default: "hello", Doc: "For a test."})
}

// greeter says the option's value.
type greeter struct{ word string }

func (g *greeter) Open(_ context.Context, env heddle.Env) error {
	g.word, _ = env.Option("heddletest.greeting")
	return nil
}

func (g *greeter) Apply(name string, emit func(string)) error {
	emit(g.word + " " + name)
	return nil
}

func (g *greeter) Close() error { return nil }

func TestOptions(t *testing.T) {
	for _, tt := range []struct {
		opts []heddletest.Option
		want string
	}{{nil, "[hello ann]"}, {[]heddletest.Option{heddletest.Set("heddletest.greeting", "hi")}, "[hi ann]"}} {
		job := heddle.NewJob("greeter")
		in := heddle.FromSource(job, heddle.Generate(0, func(int64) string { return "" }))
		heddle.ToSink(heddle.Apply(in, func() heddle.Func[string, string] { return &greeter{} }), heddle.Discard[string]())
		h := heddletest.New(t, job, tt.opts...)
		names := heddletest.Input[string](h, "")
		out := heddletest.Output[string](h, "")
		names.Send("ann")
		if got := fmt.Sprint(out.Take()); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}

type blob struct {
	Name string
	Data []byte
	List [][]byte
}

func TestResultsOutliveWhatTheyBorrowed(t *testing.T) {
	job := heddle.NewJob("blobs")
	in := heddle.FromSource(job, heddle.Generate(0, func(int64) blob { return blob{} })).Rebalance()
	heddle.ToSink(heddle.Map(in, func(b blob) blob { return b }), heddle.Discard[blob]())
	h := heddletest.New(t, job)
	feed := heddletest.Input[blob](h, "")
	out := heddletest.Output[blob](h, "")
	want := []blob{{"a", []byte("first"), [][]byte{[]byte("x"), []byte("y")}}, {"b", []byte("second"), [][]byte{[]byte("z")}}}
	feed.Send(want[0])
	feed.Send(want[1])
	if got := out.All(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func Example() {
	t := &testing.T{} // in a test, the one it was given
	h := heddletest.New(t, clicksPerUser())
	clicks := heddletest.Input[click](h, "clicks")
	counts := heddletest.Output[count](h, "counts")

	clicks.Send(click{"ann", noon}, click{"ann", noon.Add(time.Second)})
	clicks.Watermark(noon.Add(time.Minute))
	for _, c := range counts.Take() {
		fmt.Println(c.Key, c.Value)
	}
	h.End()
	// Output: ann 2
}
