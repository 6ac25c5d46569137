package main

import (
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/bench"
	"github.com/heddle-stream/heddle/bench/flink"
)

// TestTable judges made-up figures.
func TestTable(t *testing.T) {
	b := &board{samples: map[string][]sample{}, clusters: map[string]*flink.Cluster{onTwo: {}, onFour: {}, onTLS: {}}}
	fast := bench.ExchangeResult{RecordsPerSecond: 100e6, BytesPerSecond: 800e6, CPUNsPerRecord: 5, RawBytesPerSecond: 900e6, ResidentBytes: 20 << 20}
	for _, r := range rows() {
		if len(r.goals) == 0 {
			t.Errorf("%s has no goal", r.name)
		}
		b.rows = append(b.rows, r)
		for _, rate := range []float64{9e6, 10e6, 30e6} { // the median holds, the last one would not
			b.samples[r.name] = append(b.samples[r.name], sample{
				own: fast, flink: flink.Result{RecordsPerSecond: rate, CPUNs: 80, Resident: 800 << 20}, micro: 40e6, one: 120e6,
			})
		}
	}
	slow := goal{what: "of something", least: 0.95}
	b.enter("a line", slow, 0.9, "")
	b.enter("a line", slow, 0.96, "")
	b.enter("a line", slow, 0.97, "")
	var out strings.Builder
	if missed := b.print(&out); missed != 0 {
		t.Errorf("%d goals were missed:\n%s", missed, &out)
	}
	b.enter("a line", slow, 0.1, "")
	if missed := b.print(&out); missed != 1 {
		t.Errorf("%d goals were missed, want 1:\n%s", missed, &out)
	}
}

func TestWants(t *testing.T) {
	p := plan{only: []string{"TLS", "slow"}}
	if !p.wants("100 B, TLS") || !p.wants(slowRow) || p.wants("8 B, 1→1") || !(plan{}).wants("anything") {
		t.Error("rows are chosen by other words than those given")
	}
}
