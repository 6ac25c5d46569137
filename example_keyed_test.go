package heddle_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/heddletest"
)

// Click is what the examples read.
type Click struct {
	User, URL string
	Bytes     int64
	At        time.Time
}

// at is a moment of the examples' day.
func at(clock string) time.Time {
	t, err := time.Parse(time.DateTime, "2025-06-01 "+clock)
	if err != nil {
		panic(err)
	}
	return t
}

// exampleClicks stands for a real source in the examples.
func exampleClicks(job *heddle.Job) heddle.Stream[Click] {
	return heddle.FromSource(job, heddle.Generate(0, func(int64) Click { return Click{} })).Name("clicks").
		Watermark(heddle.BoundedDelay(5*time.Second, func(c Click) time.Time { return c.At }))
}

func user(c Click) string { return c.User }

// printJob sends clicks through a job that puts results into the sink "out", and prints them.
func printJob[T any](job *heddle.Job, clicks ...Click) {
	h := heddletest.New(&testing.T{}, job)
	in, out := heddletest.Input[Click](h, "clicks"), heddletest.Output[T](h, "out")
	in.Send(clicks...)
	h.End()
	for _, r := range out.Take() {
		fmt.Printf("%v\n", r)
	}
}

func ExampleAggregate() {
	job := heddle.NewJob("traffic-per-user")
	type traffic struct {
		Clicks int64
		Bytes  int64
		Pages  int64
	}
	perUser := heddle.KeyBy(exampleClicks(job), user)
	sums := heddle.Aggregate(heddle.Tumbling(perUser, time.Minute),
		heddle.Combine(heddle.Count[Click](),
			heddle.Combine(heddle.Sum(func(c Click) int64 { return c.Bytes }), heddle.Distinct(func(c Click) string { return c.URL }),
				func(bytes, pages int64) traffic { return traffic{Bytes: bytes, Pages: pages} }),
			func(n int64, t traffic) traffic { t.Clicks = n; return t }))
	heddle.ToSink(sums, heddle.Discard[heddle.Windowed[string, traffic]]()).Name("out")

	printJob[heddle.Windowed[string, traffic]](job,
		Click{"ann", "/", 100, at("12:00:01")},
		Click{"bob", "/", 10, at("12:00:02")},
		Click{"ann", "/shop", 50, at("12:00:59")},
		Click{"ann", "/", 7, at("12:01:00")},
	)
	// Output:
	// {ann 2025-06-01T12:00:00.000Z 2025-06-01T12:01:00.000Z {2 150 2}}
	// {bob 2025-06-01T12:00:00.000Z 2025-06-01T12:01:00.000Z {1 10 1}}
	// {ann 2025-06-01T12:01:00.000Z 2025-06-01T12:02:00.000Z {1 7 1}}
}

func ExampleAggregateLate() {
	job := heddle.NewJob("late")
	perUser := heddle.KeyBy(exampleClicks(job), user)
	counts, late := heddle.AggregateLate(heddle.Tumbling(perUser, time.Minute), heddle.Count[Click]())
	heddle.ToSink(counts, heddle.Discard[heddle.Windowed[string, int64]]()).Name("counts")
	heddle.ToSink(late, heddle.Discard[Click]()).Name("out")

	h := heddletest.New(&testing.T{}, job)
	clicks, out := heddletest.Input[Click](h, "clicks"), heddletest.Output[Click](h, "out")
	clicks.Send(Click{"ann", "/", 1, at("12:00:30")})
	clicks.Watermark(at("12:01:00"))
	clicks.Send(Click{"ann", "/shop", 1, at("12:00:59")})
	h.End()
	for _, c := range out.Take() {
		fmt.Println(c.User, c.URL)
	}
	// Output: ann /shop
}

func ExampleCalendar() {
	job := heddle.NewJob("per-day")
	days := heddle.Calendar(heddle.All(exampleClicks(job)), heddle.Day, "Europe/Berlin")
	counts := heddle.Aggregate(days, heddle.Count[Click]())
	lengths := heddle.Map(counts, func(w heddle.Windowed[heddle.NoKey, int64]) string {
		return fmt.Sprint(w.Start, " ", w.End.Sub(w.Start), " ", w.Value)
	})
	heddle.ToSink(lengths, heddle.Discard[string]()).Name("out")

	printJob[string](job, // the clocks go forward in the night before, and back in the night of the last one
		Click{At: time.Date(2025, 3, 30, 12, 0, 0, 0, time.UTC)},
		Click{At: time.Date(2025, 3, 31, 12, 0, 0, 0, time.UTC)},
		Click{At: time.Date(2025, 10, 26, 12, 0, 0, 0, time.UTC)},
	)
	// Output:
	// 2025-03-29T23:00:00.000Z 23h0m0s 1
	// 2025-03-30T22:00:00.000Z 24h0m0s 1
	// 2025-10-25T22:00:00.000Z 25h0m0s 1
}

func ExampleSession() {
	job := heddle.NewJob("visits")
	visits := heddle.Aggregate(heddle.Session(heddle.KeyBy(exampleClicks(job), user), 30*time.Minute),
		heddle.Collect(func(c Click) string { return c.URL }))
	heddle.ToSink(visits, heddle.Discard[heddle.Windowed[string, []string]]()).Name("out")

	printJob[heddle.Windowed[string, []string]](job,
		Click{"ann", "/", 0, at("12:00:00")},
		Click{"ann", "/shop", 0, at("12:20:00")},
		Click{"ann", "/cart", 0, at("13:00:00")},
	)
	// Output:
	// {ann 2025-06-01T12:00:00.000Z 2025-06-01T12:50:00.000Z [/ /shop]}
	// {ann 2025-06-01T13:00:00.000Z 2025-06-01T13:30:00.000Z [/cart]}
}

// A user who came but did not buy within ten minutes.
func ExampleProcess() {
	job := heddle.NewJob("lost-carts")
	type ctx = *heddle.ProcessContext[string, string]
	lost := heddle.Process(heddle.KeyBy(exampleClicks(job), user), func(s *heddle.States) heddle.Processor[string, Click, string] {
		due := heddle.NewValue[heddle.Instant](s, "due")
		return heddle.Processor[string, Click, string]{
			Process: func(c ctx, click Click) error {
				switch click.URL {
				case "/cart":
					due.Set(heddle.InstantOf(click.At).Add(10 * time.Minute))
					c.SetEventTimer(due.Get())
				case "/buy":
					c.DeleteEventTimer(due.Get())
					due.Clear()
				}
				return nil
			},
			OnTimer: func(c ctx, t heddle.Timer) error {
				due.Clear()
				c.Emit(fmt.Sprint(c.Key(), " at ", t.At))
				return nil
			},
		}
	})
	heddle.ToSink(lost, heddle.Discard[string]()).Name("out")

	printJob[string](job,
		Click{"ann", "/cart", 0, at("12:00:00")},
		Click{"bob", "/cart", 0, at("12:01:00")},
		Click{"ann", "/buy", 0, at("12:05:00")},
	)
	// Output: bob at 2025-06-01T12:11:00.000Z
}

func ExampleReduce() {
	job := heddle.NewJob("totals")
	totals := heddle.Reduce(heddle.KeyBy(exampleClicks(job), user), func(sofar, c Click) Click {
		c.Bytes += sofar.Bytes
		return c
	})
	lines := heddle.Map(totals, func(c Click) string { return fmt.Sprint(c.User, " ", c.Bytes) })
	heddle.ToSink(lines, heddle.Discard[string]()).Name("out")

	printJob[string](job, Click{User: "ann", Bytes: 3}, Click{User: "bob", Bytes: 5}, Click{User: "ann", Bytes: 4})
	// Output:
	// ann 3
	// bob 5
	// ann 7
}

func ExampleConnectBroadcast() {
	job := heddle.NewJob("limits")
	type limit struct {
		URL string
		Max int64
	}
	limits := heddle.FromSource(job, heddle.Generate(0, func(int64) limit { return limit{} })).Name("limits")
	type ctx = *heddle.ProcessContext[string, string]
	over := heddle.ConnectBroadcast(heddle.KeyBy(exampleClicks(job), user), limits,
		func(s *heddle.States) heddle.CoProcessor[string, Click, limit, string] {
			max, count := heddle.NewSharedMap[string, int64](s, "max"), heddle.NewMapState[string, int64](s, "count")
			return heddle.CoProcessor[string, Click, limit, string]{
				First: func(c ctx, click Click) error {
					n, _ := count.Get(click.URL)
					count.Set(click.URL, n+1)
					if m, ok := max.Get(click.URL); ok && n+1 > m {
						c.Emit(fmt.Sprintf("%s called %s %d times", c.Key(), click.URL, n+1))
					}
					return nil
				},
				Second: func(c ctx, l limit) error {
					max.Set(l.URL, l.Max)
					return nil
				},
			}
		})
	heddle.ToSink(over, heddle.Discard[string]()).Name("out")

	h := heddletest.New(&testing.T{}, job)
	rules, clicks := heddletest.Input[limit](h, "limits"), heddletest.Input[Click](h, "clicks")
	out := heddletest.Output[string](h, "out")
	rules.Send(limit{"/export", 1})
	clicks.Send(Click{User: "ann", URL: "/export"}, Click{User: "bob", URL: "/export"}, Click{User: "ann", URL: "/export"})
	h.End()
	for _, line := range out.Take() {
		fmt.Println(line)
	}
	// Output: ann called /export 2 times
}
