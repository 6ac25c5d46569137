package bench

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime/pprof"
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
