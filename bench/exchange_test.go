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
