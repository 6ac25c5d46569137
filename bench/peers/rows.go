package main

import (
	"context"
	"fmt"
	"time"

	"github.com/heddle-stream/heddle/bench"
	"github.com/heddle-stream/heddle/bench/flink"
)

// plan says what to measure and how long.
type plan struct {
	rounds    int
	own, peer time.Duration
	noFlink   bool
	only      []string
}

// The clusters that jobs run on, all of TaskManagers with one slot.
const (
	onTwo  = "two"  // 1→1
	onFour = "four" // 2→2, all between processes
	onTLS  = "tls"  // 1→1 with TLS
)

// row is one measurement of records' throughput, of which several goals may be held.
type row struct {
	name    string
	own     bench.ExchangeOptions
	cluster string // "": no peer but the raw loop
	job     flink.Job
	goals   []goal
}

// sample is what one round of a row gave.
type sample struct {
	own   bench.ExchangeResult // the mean of both halves
	flink flink.Result
	micro float64 // records a second of Flink's network benchmark
	one   float64 // records a second of Heddle's first row in this round
}

// goal is a ratio that must be reached.
type goal struct {
	what  string
	least float64
	most  float64 // instead of least, if > 0
	of    func(sample) float64
	flink bool // needs Flink
}

func (g goal) holds(v float64) bool {
	if g.most > 0 {
		return v <= g.most
	}
	return v >= g.least
}

func (g goal) bound() string {
	if g.most > 0 {
		return fmt.Sprintf("≤ %.3g", g.most)
	}
	return fmt.Sprintf("≥ %.3g", g.least)
}

func rateOf(least float64) goal {
	return goal{"records/s ÷ Flink's", least, 0, func(s sample) float64 { return s.own.RecordsPerSecond / s.flink.RecordsPerSecond }, true}
}

func cpuOf(most float64) goal {
	return goal{"CPU a record ÷ Flink's", 0, most, func(s sample) float64 { return s.own.CPUNsPerRecord / s.flink.CPUNs }, true}
}

func rawOf(least float64) goal {
	return goal{"bytes/s ÷ the raw loop's", least, 0, func(s sample) float64 { return s.own.BytesPerSecond / s.own.RawBytesPerSecond }, false}
}

var (
	microOf = goal{"records/s ÷ Flink's network benchmark", 2, 0, func(s sample) float64 { return s.own.RecordsPerSecond / s.micro }, true}
	oneOf   = goal{"records/s ÷ one channel's", 0.7, 0, func(s sample) float64 { return s.own.RecordsPerSecond / s.one }, false}
	allocs  = goal{"allocations a record", 0, 0.0005, func(s sample) float64 { return s.own.AllocsPerRecord }, false}
	memory  = goal{"resident ÷ a TaskManager's", 0, 0.125, func(s sample) float64 { return float64(s.own.ResidentBytes) / float64(s.flink.Resident) }, true}
)

func rows() []row {
	x := func(size, parallelism int, part string) bench.ExchangeOptions {
		return bench.ExchangeOptions{RecordSize: size, Parallelism: parallelism, Partitioner: part}
	}
	j := func(size, parallelism int, part string) flink.Job {
		return flink.Job{Size: size, Parallelism: parallelism, Part: part}
	}
	tls := func(size int) bench.ExchangeOptions {
		o := x(size, 1, "rebalance")
		o.TLS = true
		return o
	}
	return []row{
		{"8 B, 1→1", x(8, 1, "rebalance"), onTwo, j(8, 1, "rebalance"), []goal{rateOf(5), cpuOf(0.2), microOf, memory, allocs}},
		{"8 B, 2→2", x(8, 2, "rebalance"), onFour, j(8, 2, "rebalance"), []goal{rateOf(5), cpuOf(0.2), memory}},
		{"8 B, hash by key", x(8, 1, "hash"), onTwo, j(8, 1, "keyBy"), []goal{rateOf(5), cpuOf(0.2)}},
		{"8 B, hash by key, 2→2", x(8, 2, "hash"), onFour, j(8, 2, "keyBy"), []goal{rateOf(5)}},
		{"100 B, 1→1", x(100, 1, "rebalance"), onTwo, j(100, 1, "rebalance"), []goal{rateOf(2.5), allocs}},
		{"1,000 B, 1→1", x(1000, 1, "rebalance"), onTwo, j(1000, 1, "rebalance"), []goal{rateOf(1.6), rawOf(0.8)}},
		{"100 B, TLS", tls(100), onTLS, j(100, 1, "rebalance"), []goal{rateOf(2.3), rawOf(0.8)}},
		{"1,000 B, TLS", tls(1000), onTLS, j(1000, 1, "rebalance"), []goal{rateOf(2.3), rawOf(0.8)}},
		{"8 B, 32→32: 1,024 channels", x(8, 32, "rebalance"), "", flink.Job{}, []goal{oneOf}},
	}
}

// measure runs the row once: half of Heddle's time, the peer, the other half.
func (b *board) measure(ctx context.Context, r row) (s sample, err error) {
	o := r.own
	o.Duration = b.plan.own / 2
	first, err := bench.Exchange(ctx, o)
	if err != nil {
		return s, err
	}
	if c := b.clusters[r.cluster]; c != nil {
		j := r.job
		j.Warm, j.Measure = b.plan.peer/2, b.plan.peer
		if s.flink, err = c.Run(ctx, j); err != nil {
			return s, fmt.Errorf("%s: %w", r.name, err)
		}
	}
	second, err := bench.Exchange(ctx, o)
	if err != nil {
		return s, err
	}
	s.own = mean(first, second)
	s.micro = b.micro
	if b.one == 0 {
		b.one = s.own.RecordsPerSecond
	}
	s.one = b.one
	return s, nil
}

// mean is two results in one, the raw loop's too.
func mean(a, b bench.ExchangeResult) bench.ExchangeResult {
	m := a
	m.RecordsPerSecond = (a.RecordsPerSecond + b.RecordsPerSecond) / 2
	m.BytesPerSecond = (a.BytesPerSecond + b.BytesPerSecond) / 2
	m.CPUNsPerRecord = (a.CPUNsPerRecord + b.CPUNsPerRecord) / 2
	m.AllocsPerRecord = (a.AllocsPerRecord + b.AllocsPerRecord) / 2
	m.RawBytesPerSecond = (a.RawBytesPerSecond + b.RawBytesPerSecond) / 2
	m.RawCPUNsPerKB = (a.RawCPUNsPerKB + b.RawCPUNsPerKB) / 2
	m.ResidentBytes = max(a.ResidentBytes, b.ResidentBytes)
	return m
}
