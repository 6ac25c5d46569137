package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// board gathers what the rounds give.
type board struct {
	names []string // in the order of the rounds
	runs  map[string][]result
}

// goal is a bound on a figure of Heddle's, or on its ratio to Flink's.
type goal struct {
	what  string
	most  float64
	unit  string
	of    func(result) float64
	ratio bool
}

func ours(r result) float64 {
	return (r.spent[client] + r.spent[master] + r.spent[agents]).Seconds()
}

func memoryOf(kind string) func(result) float64 {
	return func(r result) float64 { return float64(r.memory[kind]) / 1e6 }
}

var goals = []goal{
	{"first record out, warm", 4.4, "s", func(r result) float64 { return r.first.Seconds() }, false},
	{"processor time until then", 3, "s", ours, false},
	{"memory of the ApplicationMaster ÷ Flink's", 1. / 8, "MB", memoryOf(master), true},
	{"memory of an agent ÷ a TaskManager's", 1. / 8, "MB", memoryOf(agents), true},
	{"memory of the client ÷ Flink's", 1. / 5, "MB", memoryOf(client), true},
}

// median of a figure over the runs of one; 0 without any.
func (b *board) median(name string, of func(result) float64) float64 {
	var v []float64
	for _, r := range b.runs[name] {
		v = append(v, of(r))
	}
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

// print writes the tables and returns how many goals were missed.
func (b *board) print(w io.Writer) (missed int) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, name := range b.names {
		fmt.Fprintf(t, "\n%s, s since the command\tmedian\tranges\t\n", name)
		for _, p := range b.phases(name) {
			all := b.all(name, p)
			if len(all) > 0 {
				fmt.Fprintf(t, "%s\t%.2f\t%.2f to %.2f\t\n", p, b.median(name, func(r result) float64 { return r.at(p) }), slices.Min(all), slices.Max(all))
			}
		}
		for _, kind := range []string{client, master, agents, hadoop} {
			if s := b.median(name, func(r result) float64 { return r.spent[kind].Seconds() }); s > 0 {
				fmt.Fprintf(t, "processor time, %s\t%.2f\t\t\n", kind, s)
			}
		}
	}
	fmt.Fprint(t, "\ngoal\tmost\tHeddle\t")
	for _, name := range b.names[1:] {
		fmt.Fprintf(t, "%s\t", name)
	}
	fmt.Fprintln(t)
	for _, g := range goals {
		missed += b.judge(t, g)
	}
	t.Flush()
	fmt.Fprintf(w, "load at the end: %s\n", load())
	return missed
}

// judge writes a goal's line. A ratio is to the least of Flink's variants.
func (b *board) judge(t io.Writer, g goal) (missed int) {
	v := b.median(heddleName, g.of)
	least, line := 0., ""
	for _, name := range b.names[1:] {
		f := b.median(name, g.of)
		if least == 0 || f < least {
			least = f
		}
		line += fmt.Sprintf("%.3g %s\t", f, g.unit)
	}
	figure, verdict, against := v, "holds", ""
	if g.ratio {
		if least == 0 || v == 0 {
			figure, verdict = 0, "not measured"
		} else {
			figure = v / least
			against = fmt.Sprintf(", %.3f of it", figure)
		}
	}
	if figure > g.most {
		verdict, missed = "MISSED", 1
	}
	fmt.Fprintf(t, "%s\t%.3g\t%.3g %s%s\t%s%s\t\n", g.what, g.most, v, g.unit, against, line, verdict)
	return missed
}

// phases are the names of all phases of one's runs, in their order.
func (b *board) phases(name string) (ps []string) {
	for _, r := range b.runs[name] {
		for _, p := range r.phases {
			if !slices.Contains(ps, p.name) {
				ps = append(ps, p.name)
			}
		}
	}
	return ps
}

func (b *board) all(name, phase string) (v []float64) {
	for _, r := range b.runs[name] {
		v = append(v, r.at(phase))
	}
	return v
}

// at is when a phase was over, in seconds.
func (r result) at(name string) float64 {
	for _, p := range r.phases {
		if p.name == name {
			return p.at.Seconds()
		}
	}
	return 0
}
