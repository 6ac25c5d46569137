package heddletest_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/heddletest"
)

type order struct {
	ID string
	At time.Time
}

type payment struct {
	Order string
	Cents int64
	At    time.Time
}

func nothing[T any]() heddle.Source[T] {
	return heddle.Generate(0, func(int64) T { var v T; return v })
}

// paidOrders says of each order how much was paid for it within a minute.
func paidOrders() *heddle.Job {
	job := heddle.NewJob("paid-orders")
	orders := heddle.FromSource(job, nothing[order]()).Name("orders").
		Watermark(heddle.Monotonous(func(o order) time.Time { return o.At }))
	payments := heddle.FromSource(job, nothing[payment]()).Name("payments").
		Watermark(heddle.Monotonous(func(p payment) time.Time { return p.At }))
	paid := heddle.Connect(heddle.KeyBy(orders, func(o order) string { return o.ID }), heddle.KeyBy(payments, func(p payment) string { return p.Order }),
		func(s *heddle.States) heddle.CoProcessor[string, order, payment, string] {
			sum := heddle.NewValue[int64](s, "sum")
			return heddle.CoProcessor[string, order, payment, string]{
				First: func(c *heddle.ProcessContext[string, string], o order) error {
					c.SetEventTimer(heddle.InstantOf(o.At.Add(time.Minute)))
					return nil
				},
				Second: func(c *heddle.ProcessContext[string, string], p payment) error {
					sum.Set(sum.Get() + p.Cents)
					return nil
				},
				OnTimer: func(c *heddle.ProcessContext[string, string], _ heddle.Timer) error {
					c.Emit(fmt.Sprint(c.Key(), " ", sum.Get()))
					return nil
				},
			}
		})
	heddle.ToSink(paid, heddle.Discard[string]()).Name("paid")
	return job
}

func TestTwoInputs(t *testing.T) {
	for _, opts := range [][]heddletest.Option{nil, {heddletest.Parallelism(4)}} {
		h := heddletest.New(t, paidOrders(), opts...)
		orders := heddletest.Input[order](h, "orders")
		payments := heddletest.Input[payment](h, "payments")
		paid := heddletest.Output[string](h, "paid")
		orders.Send(order{"a", noon}, order{"b", noon.Add(time.Second)})
		payments.Send(payment{"a", 100, noon.Add(time.Second)}, payment{"b", 5, noon.Add(2 * time.Second)})
		orders.Send(order{"c", noon.Add(10 * time.Minute)})
		if got := paid.Take(); len(got) != 0 {
			t.Errorf("timers fired before payments got there: %v", got)
		}
		payments.Send(payment{"a", 20, noon.Add(30 * time.Second)}, payment{"c", 1, noon.Add(5 * time.Minute)})
		got := paid.Take()
		slices.Sort(got)
		if fmt.Sprint(got) != "[a 120 b 5]" {
			t.Errorf("after five minutes: %v", got)
		}
		payments.End() // holds nothing back any more
		orders.Watermark(noon.Add(time.Hour))
		if got := fmt.Sprint(paid.Take()); got != "[c 1]" {
			t.Errorf("after an hour: %v", got)
		}
		h.End()
	}
}

func TestBroadcastInput(t *testing.T) {
	job := heddle.NewJob("rules")
	words := heddle.FromSource(job, nothing[string]()).Name("words")
	rules := heddle.FromSource(job, nothing[string]()).Name("banned").Parallelism(1)
	kept := heddle.ConnectBroadcast(heddle.KeyBy(words, func(w string) string { return w }), rules,
		func(s *heddle.States) heddle.CoProcessor[string, string, string, string] {
			banned := heddle.NewSharedMap[string, bool](s, "banned")
			return heddle.CoProcessor[string, string, string, string]{
				First: func(c *heddle.ProcessContext[string, string], w string) error {
					if _, ok := banned.Get(w); !ok {
						c.Emit(w)
					}
					return nil
				},
				Second: func(_ *heddle.ProcessContext[string, string], w string) error {
					banned.Set(w, true)
					return nil
				},
			}
		})
	heddle.ToSink(kept, heddle.Discard[string]())
	h := heddletest.New(t, job, heddletest.Parallelism(3))
	in := heddletest.Input[string](h, "words")
	ban := heddletest.Input[string](h, "banned")
	out := heddletest.Output[string](h, "")
	in.Send("a", "b", "c", "d")
	ban.Send("a", "d")
	in.Send("a", "b", "c", "d")
	got := out.Take()
	slices.Sort(got)
	if fmt.Sprint(got) != "[a b b c c d]" {
		t.Errorf("got %v", got)
	}
	h.End()
}
