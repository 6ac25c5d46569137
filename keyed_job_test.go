package heddle_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/heddletest"
)

// keyedJobs are jobs over clicks with a sink "out" of strings, whose results must not depend on how they are run.
var keyedJobs = map[string]func(job *heddle.Job, clicks heddle.Stream[Click]) heddle.Stream[string]{
	"windows follow windows": func(_ *heddle.Job, clicks heddle.Stream[Click]) heddle.Stream[string] {
		type count = heddle.Windowed[string, int64]
		perUser := heddle.Aggregate(heddle.Tumbling(heddle.KeyBy(clicks, user), time.Minute), heddle.Count[Click]())
		most := heddle.Aggregate(heddle.Sliding(heddle.All(perUser), 10*time.Minute, 5*time.Minute), heddle.Max(func(c count) int64 { return c.Value }))
		return heddle.Map(most, func(w heddle.Windowed[heddle.NoKey, int64]) string { return fmt.Sprint(w) })
	},
	"sessions": func(_ *heddle.Job, clicks heddle.Stream[Click]) heddle.Stream[string] {
		visits := heddle.Aggregate(heddle.Session(heddle.KeyBy(clicks, user), 45*time.Second), heddle.Sum(func(c Click) int64 { return c.Bytes }))
		return heddle.Map(visits, func(w heddle.Windowed[string, int64]) string { return fmt.Sprint(w) })
	},
	"dedupe": func(_ *heddle.Job, clicks heddle.Stream[Click]) heddle.Stream[string] {
		type page struct{ User, URL string }
		first := heddle.Dedupe(heddle.KeyBy(clicks, func(c Click) page { return page{c.User, c.URL} }), 5*time.Minute)
		return heddle.Map(first, func(c Click) string { return fmt.Sprint(c.User, c.URL, c.At.Unix()) })
	},
	"running": func(_ *heddle.Job, clicks heddle.Stream[Click]) heddle.Stream[string] {
		sums := heddle.Running(heddle.KeyBy(clicks, user), heddle.Sum(func(c Click) int64 { return c.Bytes }))
		return heddle.Map(sums, func(kv heddle.KeyValue[string, int64]) string { return fmt.Sprint(kv) })
	},
	"connect without keys": func(_ *heddle.Job, clicks heddle.Stream[Click]) heddle.Stream[string] {
		type ctx = *heddle.ProcessContext[heddle.NoKey, string]
		type co = heddle.CoProcessor[heddle.NoKey, Click, int64, string]
		bytes := heddle.Map(clicks, func(c Click) int64 { return c.Bytes })
		return heddle.ConnectStreams(clicks, bytes.Rebalance(), func(*heddle.States) co {
			return co{
				First:  func(c ctx, click Click) error { c.Emit(click.URL); return nil },
				Second: func(c ctx, n int64) error { c.Emit(fmt.Sprint(n)); return nil },
			}
		})
	},
	"join": func(_ *heddle.Job, clicks heddle.Stream[Click]) heddle.Stream[string] {
		type ctx = *heddle.ProcessContext[string, string]
		type co = heddle.CoProcessor[string, Click, heddle.Windowed[string, int64], string]
		byUser := heddle.KeyBy(clicks, user)
		counts := heddle.Aggregate(heddle.Tumbling(byUser, time.Minute), heddle.Count[Click]())
		byKey := heddle.KeyBy(counts, func(w heddle.Windowed[string, int64]) string { return w.Key })
		return heddle.Connect(byUser, byKey, func(s *heddle.States) co {
			urls, n := heddle.NewList[string](s, "urls"), heddle.NewValue[int64](s, "n")
			return co{
				First: func(c ctx, click Click) error {
					urls.Add(click.URL)
					c.SetEventTimer(1 << 50)
					return nil
				},
				Second: func(_ ctx, w heddle.Windowed[string, int64]) error {
					n.Set(n.Get() + w.Value)
					return nil
				},
				OnTimer: func(c ctx, _ heddle.Timer) error {
					c.Emit(fmt.Sprint(c.Key(), urls.Len(), " ", n.Get()))
					return nil
				},
			}
		})
	},
}

// The results of a keyed job are the same for any parallelism, chained or not.
func TestKeyedJobsDontDependOnParallelism(t *testing.T) {
	var clicks []Click
	for i := range 400 {
		clicks = append(clicks, Click{
			User: fmt.Sprint("user-", i*i%11), URL: fmt.Sprint("/", i%7), Bytes: int64(i),
			At: at("12:00:00").Add(time.Duration(i*10) * time.Second),
		})
	}
	for _, name := range slices.Sorted(maps.Keys(keyedJobs)) {
		t.Run(name, func(t *testing.T) {
			var want []string
			for i, opts := range [][]heddletest.Option{{}, {heddletest.Unchained()}, {heddletest.Parallelism(3)}, {heddletest.Parallelism(7), heddletest.Unchained()}} {
				job := heddle.NewJob("keyed")
				heddle.ToSink(keyedJobs[name](job, exampleClicks(job)), heddle.Discard[string]()).Name("out")
				h := heddletest.New(t, job, opts...)
				in, out := heddletest.Input[Click](h, "clicks"), heddletest.Output[string](h, "out")
				for batch := range slices.Chunk(clicks, 50) {
					in.Send(batch...)
				}
				h.End()
				got := out.Take()
				slices.Sort(got)
				if i == 0 {
					want = got
				}
				if len(got) == 0 || !slices.Equal(got, want) {
					t.Errorf("run %d: got %d results %.300q, want %d %.300q", i, len(got), got, len(want), want)
				}
			}
		})
	}
}
