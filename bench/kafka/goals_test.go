package main

import (
	"strings"
	"testing"
	"time"
)

// TestGoals judges made-up figures.
func TestGoals(t *testing.T) {
	b := &board{measures: measures(1000), samples: map[string][]map[string]round{}, firsts: map[string][]time.Duration{
		own: {time.Second / 10}, flinks: {10 * time.Second}}}
	at := func(rate, cpu float64) round {
		return round{Records: 1000, Seconds: 1000 / rate, CPU: cpu, Allocs: 0.001}
	}
	for _, m := range b.measures {
		for _, slow := range []float64{1, 1, 100} { // the median holds, the last round would not
			b.samples[m.name] = append(b.samples[m.name], map[string]round{own: at(20e6/slow, 50*slow), franz: at(5e6, 200), pools: at(6e6, 150), saramas: at(2e6, 400), flinks: at(6e6, 180), kafkaPerf: at(4e6, 600)})
		}
	}
	var out strings.Builder
	if missed := b.print(&out); missed != 0 {
		t.Errorf("%d goals were missed:\n%s", missed, &out)
	}
	if n := strings.Count(out.String(), "holds"); n != 10 {
		t.Errorf("%d goals hold, want 10:\n%s", n, &out)
	}
	b.firsts[own][0] = 3 * time.Second
	if missed := b.print(&out); missed != 1 || !strings.Contains(out.String(), "MISSED") {
		t.Errorf("%d goals were missed, want 1:\n%s", missed, &out)
	}
}

// TestPerf reads what Kafka's tools print.
func TestPerf(t *testing.T) {
	if r, err := perf(" 5000000", " 3906250.0", 2*time.Second); err != nil || r.Records != 5_000_000 || r.Seconds != 1.28 || r.CPU != 400 {
		t.Errorf("%+v, %v", r, err)
	}
	for _, bad := range [][2]string{{"x", "1"}, {"1", "x"}, {"1", "0"}, {"0", "1"}} {
		if _, err := perf(bad[0], bad[1], 0); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
