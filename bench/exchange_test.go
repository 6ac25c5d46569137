package bench

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime/pprof"
	"strings"
	"testing"
	"time"
)

var (
	duration = flag.Duration("exchange-duration", 100*time.Millisecond, "how long each exchange is measured")
	profile  = flag.String("exchange-profile", "", "write CPU profiles of the peer to this file")
)

func TestMain(m *testing.M) {
	if os.Getenv(RoleEnv) != "" {
		if f := os.Getenv("HEDDLE_BENCH_PROFILE"); f != "" && os.Getenv(RoleEnv) == roleConsumer {
			w, err := os.Create(f)
			if err == nil {
				pprof.StartCPUProfile(w)
				defer pprof.StopCPUProfile()
			}
		}
		if how := os.Getenv(dieEnv); strings.HasPrefix(how, os.Getenv(RoleEnv)+" ") {
			go dieBy(strings.TrimPrefix(how, os.Getenv(RoleEnv)+" "))
		}
		if err := ExchangePeer(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	if *profile != "" {
		os.Setenv("HEDDLE_BENCH_PROFILE", *profile)
	}
	os.Exit(m.Run())
}

// TestExchange verifies counts and sums over two processes for every form of the benchmark.
func TestExchange(t *testing.T) {
	for _, o := range []ExchangeOptions{
		{RecordSize: 8},
		{RecordSize: 8, Parallelism: 2},
		{RecordSize: 8, Partitioner: "hash", Parallelism: 2},
		{RecordSize: 100},
		{RecordSize: 1000},
		{RecordSize: 100, Partitioner: "hash", Parallelism: 2},
		{RecordSize: 1000, TLS: true},
	} {
		o.Duration = *duration
		t.Run(fmt.Sprintf("%d-%s-%d-tls=%v", o.RecordSize, o.Partitioner, o.Parallelism, o.TLS), func(t *testing.T) {
			res, err := Exchange(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			b, _ := json.Marshal(res)
			t.Log(string(b))
			if res.RecordsPerSecond <= 0 || res.RawBytesPerSecond <= 0 || res.CPUNsPerRecord <= 0 {
				t.Error("a figure is missing")
			}
		})
	}
}

// TestLatency takes each of the ways for a short while.
func TestLatency(t *testing.T) {
	res, err := MeasureLatency(t.Context(), LatencyOptions{Duration: *duration})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", res)
	for name, l := range map[string]Latency{"exchange": res.Exchange, "bare": res.Bare, "hand-off": res.HandOff} {
		if l.Records == 0 || l.P50 <= 0 || l.P99 < l.P50 || l.Max < l.P99 {
			t.Errorf("%s: %+v", name, l)
		}
	}
}

// TestSlowChannelFigures measures a short while; netstack's tests hold the exchange to what it must do.
func TestSlowChannelFigures(t *testing.T) {
	res, err := SlowChannel(t.Context(), SlowChannelOptions{Channels: 10, Pairs: 2, Window: *duration / 5})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", res)
	if res.Bytes <= 0 || res.PerCPU <= 0 {
		t.Errorf("a figure is missing: %+v", res)
	}
}

// TestTraced takes a few windows: all that was sent arrives, and so do the spans.
func TestTraced(t *testing.T) {
	for _, o := range []ExchangeOptions{{RecordSize: 8}, {RecordSize: 100, Parallelism: 2}} {
		o.Duration = *duration
		res, err := Traced(t.Context(), TracedOptions{Exchange: o, Rate: 500, Window: 50 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%+v", res)
		if res.Rounds < 3 || res.Off <= 0 || res.Traced <= 0 || res.Spans <= 0 || res.PerCPU.Low > res.PerCPU.Median || res.PerCPU.High < res.PerCPU.Median {
			t.Errorf("%d-byte records: a figure is missing: %+v", o.RecordSize, res)
		}
	}
}

func TestRatioOf(t *testing.T) {
	var v []float64
	for i := range 20 {
		v = append(v, float64(20-i))
	}
	if got, want := ratioOf(v), (Ratio{Median: 10.5, Low: 6, High: 15}); got != want { // the table's bounds for 20: the 6th and the 15th
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := ratioOf([]float64{3, 1, 2}), (Ratio{Median: 2, Low: 1, High: 3}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
