package heddle_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/heddletest"
)

// dayOf makes one of three moments, each time with a Location of its own: equal moments are not == as values.
func dayOf(v int64) time.Time {
	loc, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		panic(err)
	}
	return time.Date(2026, 1, 1+int(v%3), 0, 0, 0, 0, loc)
}

// Records whose keys are the same moment are one group in every operator on keys, whatever zone and clock the moments carry.
func TestMomentsAreOneKey(t *testing.T) {
	type numbers = heddle.Stream[int64]
	type dated struct {
		Name string
		Day  [1]time.Time
	}
	type ctx = *heddle.ProcessContext[time.Time, string]
	type proc = heddle.Processor[time.Time, int64, string]
	type co = heddle.CoProcessor[time.Time, int64, int64, string]
	count := heddle.Count[int64]()
	for name, c := range map[string]struct {
		build func(numbers) heddle.Stream[string]
		want  []string
	}{
		"global window": {func(in numbers) heddle.Stream[string] {
			return heddle.Map(heddle.Aggregate(heddle.Global(heddle.KeyBy(in, dayOf)), count),
				func(w heddle.Windowed[time.Time, int64]) string {
					return fmt.Sprint(w.Key.UnixMilli()/86400000, w.Value)
				})
		}, []string{"20453 100", "20454 100", "20455 100"}},
		"session of a struct key": {func(in numbers) heddle.Stream[string] {
			by := heddle.KeyBy(in, func(v int64) dated { return dated{"a", [1]time.Time{dayOf(v)}} })
			return heddle.Map(heddle.Aggregate(heddle.Session(by, time.Hour), count),
				func(w heddle.Windowed[dated, int64]) string { return fmt.Sprint(w.Key.Day[0].Weekday(), w.Value) })
		}, []string{"Friday 100", "Thursday 100", "Wednesday 100"}},
		"running": {func(in numbers) heddle.Stream[string] {
			sums := heddle.Running(heddle.KeyBy(in, dayOf), count)
			last := heddle.Filter(sums, func(kv heddle.KeyValue[time.Time, int64]) bool { return kv.Value == 100 })
			return heddle.Map(last, func(kv heddle.KeyValue[time.Time, int64]) string { return "full" })
		}, []string{"full", "full", "full"}},
		"dedupe": {func(in numbers) heddle.Stream[string] {
			return heddle.Map(heddle.Dedupe(heddle.KeyBy(in, dayOf), 0), func(v int64) string { return fmt.Sprint(v) })
		}, []string{"0", "1", "2"}},
		"distinct": {func(in numbers) heddle.Stream[string] {
			return heddle.Map(heddle.Aggregate(heddle.Global(heddle.All(in)), heddle.Distinct(dayOf)),
				func(w heddle.Windowed[heddle.NoKey, int64]) string { return fmt.Sprint(w.Value) })
		}, []string{"3"}},
		"process": {func(in numbers) heddle.Stream[string] {
			return heddle.Process(heddle.KeyBy(in, dayOf), func(s *heddle.States) proc {
				n := heddle.NewValue[int](s, "n")
				return proc{Process: func(c ctx, _ int64) error {
					n.Set(n.Get() + 1)
					if n.Get() == 100 {
						c.Emit(c.Key().Location().String())
					}
					return nil
				}}
			})
		}, []string{"UTC", "UTC", "UTC"}},
		"connect": {func(in numbers) heddle.Stream[string] {
			by := heddle.KeyBy(in, dayOf)
			return heddle.Connect(by, by, func(s *heddle.States) co {
				n := heddle.NewValue[int](s, "n")
				seen := func(c ctx, _ int64) error {
					if n.Set(n.Get() + 1); n.Get() == 200 {
						c.Emit("full")
					}
					return nil
				}
				return co{First: seen, Second: seen}
			})
		}, []string{"full", "full", "full"}},
	} {
		t.Run(name, func(t *testing.T) {
			job := heddle.NewJob("moments")
			in := heddle.FromSource(job, heddle.Generate(0, func(i int64) int64 { return i })).
				Watermark(heddle.Monotonous(func(int64) time.Time { return time.UnixMilli(0) }))
			heddle.ToSink(c.build(in), heddle.Discard[string]()).Name("out")
			h := heddletest.New(t, job, heddletest.Parallelism(2))
			feed, out := heddletest.Input[int64](h, ""), heddletest.Output[string](h, "out")
			for i := range int64(300) {
				feed.Send(i)
			}
			h.End()
			got := out.Take()
			slices.Sort(got)
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
