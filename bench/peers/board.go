package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/heddle-stream/heddle/bench"
	"github.com/heddle-stream/heddle/bench/flink"
)

// board gathers what the rounds give.
type board struct {
	plan     plan
	rows     []row
	clusters map[string]*flink.Cluster
	micro    float64 // records a second of Flink's network benchmark
	one      float64 // in this round

	samples map[string][]sample
	lines   []*line // of the other rows
}

// line is a figure that isn't a row's, over the rounds.
type line struct {
	name, what string
	goal       goal
	values     []float64
	note       string
}

func newBoard(ctx context.Context, dir string, p plan) (_ *board, err error) {
	b := &board{plan: p, clusters: map[string]*flink.Cluster{}, samples: map[string][]sample{}}
	for _, r := range rows() {
		if p.wants(r.name) {
			b.rows = append(b.rows, r)
		}
	}
	if p.noFlink {
		return b, nil
	}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	home, err := flink.SetUp(ctx, dir)
	if err != nil {
		return nil, err
	}
	if p.wants("8 B, 1→1") {
		fmt.Println("Flink's network benchmark")
		if b.micro, _, err = flink.NetworkBenchmark(ctx, home); err != nil {
			return nil, err
		}
	}
	return b, b.startClusters(ctx, home)
}

// startClusters starts what the rows need and warms it up: Java is slow until it has compiled what runs often.
func (b *board) startClusters(ctx context.Context, home flink.Home) error {
	for _, r := range b.rows {
		if r.cluster == "" || b.clusters[r.cluster] != nil {
			continue
		}
		workers := 2 * r.job.Parallelism
		fmt.Printf("Flink: cluster %s of %d TaskManagers\n", r.cluster, workers)
		c, err := flink.Start(ctx, home, r.cluster, workers, r.cluster == onTLS)
		if err != nil {
			return err
		}
		b.clusters[r.cluster] = c
	}
	for _, r := range b.rows {
		if c := b.clusters[r.cluster]; c != nil {
			j := r.job
			j.Warm, j.Measure = b.plan.peer, time.Second/2
			if _, err := c.Run(ctx, j); err != nil {
				return fmt.Errorf("warm-up of %s: %w", r.name, err)
			}
		}
	}
	return nil
}

func (p plan) wants(name string) bool {
	return len(p.only) == 0 || slices.ContainsFunc(p.only, func(w string) bool { return strings.Contains(name, strings.TrimSpace(w)) })
}

func (b *board) close() {
	for _, c := range b.clusters {
		c.Stop()
	}
}

// round measures everything once.
func (b *board) round(ctx context.Context) error {
	b.one = 0
	for _, r := range b.rows {
		s, err := b.measure(ctx, r)
		if err != nil {
			return err
		}
		b.samples[r.name] = append(b.samples[r.name], s)
		fmt.Printf("  %-28s %s\n", r.name, s)
	}
	if err := b.latency(ctx); err != nil {
		return err
	}
	return b.slowChannel(ctx)
}

func (s sample) String() string {
	t := fmt.Sprintf("%7.1f M/s %7.1f ns; raw %6.0f MB/s, %6.2f of it", s.own.RecordsPerSecond/1e6, s.own.CPUNsPerRecord,
		s.own.RawBytesPerSecond/1e6, s.own.BytesPerSecond/s.own.RawBytesPerSecond)
	if s.flink.RecordsPerSecond > 0 {
		t += fmt.Sprintf("; Flink %6.2f M/s %7.1f ns", s.flink.RecordsPerSecond/1e6, s.flink.CPUNs)
	}
	return t
}

// enter adds a value to a line.
func (b *board) enter(name string, g goal, v float64, note string) {
	for _, l := range b.lines {
		if l.name == name && l.what == g.what {
			l.values, l.note = append(l.values, v), note
			return
		}
	}
	b.lines = append(b.lines, &line{name: name, what: g.what, goal: g, values: []float64{v}, note: note})
}

const latencyRow = "latency, 1,000/s of 100 B"

func (b *board) latency(ctx context.Context) error {
	if !b.plan.wants(latencyRow) {
		return nil
	}
	own, err := bench.MeasureLatency(ctx, bench.LatencyOptions{Duration: 4 * time.Second})
	if err != nil {
		return err
	}
	x, bare := own.Exchange, own.Bare
	note := fmt.Sprintf("p50 %v, p99 %v; bare hop %v, %v; with hand-offs %v, %v", x.P50, x.P99, bare.P50, bare.P99, own.HandOff.P50, own.HandOff.P99)
	ratio := func(a, b time.Duration) float64 { return float64(a) / float64(b) }
	b.enter(latencyRow, goal{what: "p50 ÷ a bare hop's", most: 1.5}, ratio(x.P50, bare.P50), note)
	if c := b.clusters[onTwo]; c != nil {
		p50, p99, err := c.Latency(100, 1000, 8*time.Second)
		if err != nil {
			return fmt.Errorf("latency: %w", err)
		}
		note += fmt.Sprintf("; Flink %v, %v", p50, p99)
		b.enter(latencyRow, goal{what: "p50 ÷ Flink's", most: 1}, ratio(x.P50, p50), note)
		b.enter(latencyRow, goal{what: "p99 ÷ Flink's", most: 0.25}, ratio(x.P99, p99), note)
	}
	fmt.Printf("  %-28s %s\n", latencyRow, note)
	return nil
}

const slowRow = "one slow channel of 100"

func (b *board) slowChannel(ctx context.Context) error {
	if !b.plan.wants(slowRow) {
		return nil
	}
	r, err := bench.SlowChannel(ctx, bench.SlowChannelOptions{})
	if err != nil {
		return err
	}
	note := fmt.Sprintf("others %.3f by rate, %.3f by CPU; the slow one %.0f segments/s", r.Bytes, r.PerCPU, r.Slow)
	b.enter(slowRow, goal{what: "others' bytes/s with it ÷ without", least: 0.95}, r.Bytes, note)
	b.enter(slowRow, goal{what: "bytes a CPU second with it ÷ without", least: 0.95}, r.PerCPU, note)
	fmt.Printf("  %-28s %s\n", slowRow, note)
	return nil
}

// print writes the table and returns how many goals were missed.
func (b *board) print(w io.Writer) (missed int) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nmeasure\t\tgoal\tmedian\trange\t")
	put := func(name string, g goal, values []float64) {
		slices.Sort(values)
		v, verdict := middle(values), "holds"
		if !g.holds(v) {
			verdict = "MISSED"
			missed++
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%.3g\t%.3g to %.3g\t%s\n", name, g.what, g.bound(), v, values[0], values[len(values)-1], verdict)
	}
	for _, r := range b.rows {
		for _, g := range r.goals {
			if g.flink && b.clusters[r.cluster] == nil {
				continue
			}
			var values []float64
			for _, s := range b.samples[r.name] {
				values = append(values, g.of(s))
			}
			put(r.name, g, values)
		}
	}
	for _, l := range b.lines {
		put(l.name, l.goal, l.values)
	}
	t.Flush()
	if b.micro > 0 {
		fmt.Fprintf(w, "Flink's network benchmark: %.1f M/s in its best round\n", b.micro/1e6)
	}
	fmt.Fprintf(w, "clusters: %s; load at the end: %s\n", strings.Join(slices.Sorted(maps.Keys(b.clusters)), ", "), load())
	return missed
}

// middle is the median of sorted values.
func middle(v []float64) float64 {
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}
