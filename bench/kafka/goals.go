package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/heddle-stream/heddle/bench/flink"
)

// errMissed says that a goal was not reached.
var errMissed = errors.New("a goal was missed")

// Names of peers beside those of peerNames.
const (
	own       = "heddle"
	franz     = "franz-go"
	pools     = "franz-go-pools"
	saramas   = "sarama"
	flinks    = "flink"
	kafkaPerf = "kafka-perf"
)

// measure is what is done in turns.
type measure struct {
	name, topic string
	records     int64
	size        int
	write       bool
	goals       []goal
}

// goal is a ratio that must be reached.
type goal struct {
	what  string
	bound float64
	most  bool // instead of least
	told  bool // without being judged
	of    func(map[string]round) float64
}

func (g goal) verdict(v float64) string {
	switch {
	case g.told:
		return ""
	case g.most && v <= g.bound, !g.most && v >= g.bound:
		return "holds"
	}
	return "MISSED"
}

func (g goal) wants() string {
	sign := "≥"
	if g.most {
		sign = "≤"
	}
	if g.told {
		return "–"
	}
	return fmt.Sprintf("%s %.3g", sign, g.bound)
}

func rate(r round) float64 { return float64(r.Records) / r.Seconds }

// faster is how many times the rate of the fastest of the peers ours is.
func faster(least float64, peers ...string) goal {
	return goal{what: "records/s ÷ " + strings.Join(peers, "'s or ") + "'s", bound: least, of: func(of map[string]round) float64 {
		best := 0.0
		for _, p := range peers {
			if r, ok := of[p]; ok {
				best = max(best, rate(r))
			}
		}
		return rate(of[own]) / best
	}}
}

// cheaper is what share of the CPU time of the cheapest of the peers ours is, a record.
func cheaper(most float64, peers ...string) goal {
	return goal{what: "CPU a record ÷ " + strings.Join(peers, "'s or ") + "'s", bound: most, most: true, of: func(of map[string]round) float64 {
		best := 0.0
		for _, p := range peers {
			if r, ok := of[p]; ok && (best == 0 || r.CPU < best) {
				best = r.CPU
			}
		}
		return of[own].CPU / best
	}}
}

func told(g goal) goal {
	g.told = true
	return g
}

var allocations = goal{what: "allocations a record", bound: 0.01, most: true, of: func(of map[string]round) float64 { return of[own].Allocs }}

func measures(records int64) []measure {
	return []measure{
		{name: "read, 100 B", topic: "t100", records: records, size: 100, goals: []goal{
			faster(2.5, flinks, franz), cheaper(0.4, flinks, franz), faster(4, saramas), allocations,
			told(faster(0, pools)), told(cheaper(0, pools)), told(faster(0, kafkaPerf))}},
		{name: "read, 1 KiB", topic: "t1k", records: records / 5, size: 1024, goals: []goal{
			faster(1.2, flinks, franz, pools, saramas), cheaper(0.7, flinks, franz), allocations,
			told(cheaper(0, pools)), told(faster(0, kafkaPerf))}},
		{name: "write, 100 B", topic: "w100", records: records / 2, size: 100, write: true, goals: []goal{
			faster(1.3, franz), faster(4, saramas), told(cheaper(0, franz)), told(faster(0, kafkaPerf))}},
	}
}

const firstRow = "first record, cold start"

// board gathers what the rounds give.
type board struct {
	broker   *realBroker
	home     flink.Home
	cluster  *flink.Cluster // nil: no Flink
	heddle   string         // program
	measures []measure
	samples  map[string][]map[string]round // by measure, each round by peer
	firsts   map[string][]time.Duration    // by peer
}

// goalSettings say how much is to be done.
type goalSettings struct {
	rounds  int
	records int64
	noFlink bool
	dir     string // for jars
}

// runGoals does everything in one go, and prints each goal.
func runGoals(ctx context.Context, g goalSettings, out io.Writer) (err error) {
	b := &board{samples: map[string][]map[string]round{}, firsts: map[string][]time.Duration{}, measures: measures(g.records)}
	if b.broker, err = startKafka(ctx, g.dir); err != nil {
		return err
	}
	defer b.broker.stop()
	b.heddle = filepath.Join(b.broker.dir, "heddle")
	build := exec.CommandContext(ctx, "go", "build", "-o", b.heddle, "github.com/heddle-stream/heddle/cmd/heddle")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if msg, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build heddle: %w\n%s", err, msg)
	}
	if err := b.fill(ctx, out); err != nil {
		return err
	}
	if !g.noFlink {
		if b.home, err = flink.SetUp(ctx, g.dir); err != nil {
			return err
		}
		if b.cluster, err = b.warm(ctx, out); err != nil {
			return err
		}
		defer b.cluster.Stop()
	}
	for i := range g.rounds {
		fmt.Fprintf(out, "round %d of %d, load %s\n", i+1, g.rounds, load())
		if err := b.round(ctx, i, out); err != nil {
			return err
		}
	}
	if b.print(out) > 0 {
		return errMissed
	}
	return nil
}

// fill makes the topics that are read.
func (b *board) fill(ctx context.Context, out io.Writer) error {
	for _, m := range b.measures {
		if m.write {
			continue
		}
		fmt.Fprintf(out, "filling %s with %d records of %d bytes\n", m.topic, m.records, m.size)
		if err := b.broker.fill(ctx, m.topic, m.records, m.size); err != nil {
			return err
		}
	}
	return b.broker.fill(ctx, "first", 1000, 100)
}

// warm starts a TaskManager and lets it read until Java has compiled what runs often: four times, and for as long as that makes it cheaper.
func (b *board) warm(ctx context.Context, out io.Writer) (*flink.Cluster, error) {
	c, err := flink.Start(ctx, b.home, "kafka", 1, false)
	if err != nil {
		return nil, err
	}
	best := map[string]float64{}
	for i, better := 0, true; i < 4 || better && i < 12; i++ {
		better = false
		for _, m := range b.measures[:2] {
			r, err := c.ReadKafka(ctx, b.broker.addr, m.topic)
			if err != nil {
				c.Stop()
				return nil, err
			}
			if was, ok := best[m.topic]; !ok || r.CPUNs < was {
				better = better || !ok || r.CPUNs < 0.9*was
				best[m.topic] = r.CPUNs
			}
			fmt.Fprintf(out, "  Flink warms up, %d: %s %.2f M/s, %.0f ns\n", i+1, m.name, float64(r.Records)/r.Seconds/1e6, r.CPUNs)
		}
	}
	return c, nil
}

// round measures everything once; who begins changes.
func (b *board) round(ctx context.Context, turn int, out io.Writer) error {
	for _, m := range b.measures {
		names := peerNames(m.write)
		if b.cluster != nil && !m.write {
			names = append(names, flinks)
		}
		names = append(names, kafkaPerf)
		of := map[string]round{}
		for i := range names {
			name := names[(i+turn)%len(names)]
			r, err := b.turn(ctx, m, name)
			if err != nil {
				return fmt.Errorf("%s by %s: %w", m.name, name, err)
			}
			of[name] = r
			fmt.Fprintf(out, "  %-12s %-14s %6.2f M/s %6.0f ns\n", m.name, name, rate(r)/1e6, r.CPU)
		}
		b.samples[m.name] = append(b.samples[m.name], of)
	}
	return b.first(ctx, out)
}

// turn is one peer's turn.
func (b *board) turn(ctx context.Context, m measure, name string) (round, error) {
	s := settings{brokers: b.broker.addr, topic: m.topic, records: m.records, size: m.size, write: m.write, repeat: 2}
	if m.write {
		if err := b.broker.topic(ctx, m.topic); err != nil {
			return round{}, err
		}
		defer b.broker.drop(ctx, m.topic)
		if name == saramas || name == kafkaPerf { // they would take minutes
			s.records /= 5
		}
	}
	switch {
	case name == flinks:
		r, err := b.cluster.ReadKafka(ctx, s.brokers, s.topic)
		return round{Records: r.Records, Seconds: r.Seconds, CPU: r.CPUNs}, err
	case name == kafkaPerf && m.write:
		return b.broker.producePerf(ctx, s.topic, s.records, s.size)
	case name == kafkaPerf:
		return b.broker.consumePerf(ctx, s.topic, s.records)
	}
	all, err := oneTurn(ctx, s, name, "")
	if err != nil {
		return round{}, err
	}
	return all[len(all)-1], nil // what comes before warms up
}

// first measures how long it takes from the command to the first record of a job on processes that were not there before.
func (b *board) first(ctx context.Context, out io.Writer) error {
	d, err := b.firstByHeddle(ctx)
	if err != nil {
		return fmt.Errorf("first record by heddle: %w", err)
	}
	b.firsts[own] = append(b.firsts[own], d)
	fmt.Fprintf(out, "  %-12s %-14s %6.2f s\n", "first record", own, d.Seconds())
	if b.cluster == nil {
		return nil
	}
	began := time.Now()
	c, err := flink.Start(ctx, b.home, "first", 1, false)
	if err != nil {
		return err
	}
	defer c.Stop()
	if err := c.FirstRecord(ctx, b.broker.addr, "first"); err != nil {
		return err
	}
	d = time.Since(began)
	b.firsts[flinks] = append(b.firsts[flinks], d)
	fmt.Fprintf(out, "  %-12s %-14s %6.2f s\n", "first record", flinks, d.Seconds())
	return nil
}

func (b *board) firstByHeddle(ctx context.Context) (time.Duration, error) {
	job := filepath.Join(b.broker.dir, "first.yaml")
	if err := os.WriteFile(job, []byte("name: first\nsource: { kafka: { topics: [first], format: text, stop: latest } }\nsink: { stdout: { format: { text: \"{line}\" } } }\n"), 0o600); err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, b.heddle, "run", job, "--quiet", "-D", "kafka.brokers="+b.broker.addr, "-D", "agents=1", "-D", "state-dir="+filepath.Join(b.broker.dir, "state"))
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	r := bufio.NewReader(pipe)
	line, first := "", time.Duration(0)
	for err == nil && len(line) < 100 {
		line, err = r.ReadString('\n')
		first = time.Since(began)
	}
	_, _ = io.Copy(io.Discard, r)
	if werr := cmd.Wait(); werr != nil {
		return 0, werr
	}
	return first, err
}

// print writes the figures and the goals, and returns how many goals were missed.
func (b *board) print(out io.Writer) (missed int) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nmedians\tpeer\tM records/s\tCPU ns/record\tallocations/record")
	for _, m := range b.measures {
		for _, name := range append(peerNames(m.write), flinks, kafkaPerf) {
			var of []round
			for _, s := range b.samples[m.name] {
				if r, ok := s[name]; ok {
					of = append(of, r)
				}
			}
			if len(of) > 0 {
				fmt.Fprintf(w, "%s\t%s\t%.2f\t%.0f\t%.4f\n", m.name, name, median(of, rate)/1e6, median(of, func(r round) float64 { return r.CPU }), median(of, func(r round) float64 { return r.Allocs }))
			}
		}
	}
	fmt.Fprintln(w, "\nmeasure\t\tgoal\tmedian\trange\t")
	put := func(name string, g goal, values []float64) {
		slices.Sort(values)
		v := middle(values)
		if g.verdict(v) == "MISSED" {
			missed++
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%.3g\t%.3g to %.3g\t%s\n", name, g.what, g.wants(), v, values[0], values[len(values)-1], g.verdict(v))
	}
	for _, m := range b.measures {
		for _, g := range m.goals {
			var values []float64
			for _, s := range b.samples[m.name] {
				values = append(values, g.of(s))
			}
			put(m.name, g, values)
		}
	}
	if own, other := b.firsts[own], b.firsts[flinks]; len(other) > 0 {
		var values []float64
		for i := range other {
			values = append(values, float64(own[i])/float64(other[i]))
		}
		put(firstRow, goal{what: "seconds ÷ Flink's", bound: 0.2, most: true}, values)
	}
	w.Flush()
	fmt.Fprintf(out, "Each row's ratios are of one round; %d rounds. kafka-perf's CPU is that of a cold JVM. Load at the end: %s\n", len(b.samples[b.measures[0].name]), load())
	return missed
}

// middle is the median of sorted values.
func middle(v []float64) float64 {
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

// load is the machine's load average.
func load() string {
	b, _ := os.ReadFile("/proc/loadavg")
	one, _, _ := strings.Cut(string(b), " ")
	return one
}
