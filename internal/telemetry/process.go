package telemetry

import (
	"math"
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Process are figures of this process.
type Process struct {
	RSS         int64 // bytes that it occupies; 0: the system does not tell
	Heap        int64 // bytes of live and not yet collected objects
	Memory      int64 // bytes that Go has from the system
	MemoryLimit int64 // bytes; 0: none
	GCs         int64
	GCPause     time.Duration // in all, estimated
	CPU         time.Duration // used
	Goroutines  int
}

// ReadProcess returns the figures of this process. It takes microseconds and stops nobody.
func ReadProcess() Process {
	samples := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/total:bytes"}, {Name: "/gc/gomemlimit:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/sched/pauses/total/gc:seconds"},
	}
	metrics.Read(samples)
	p := Process{RSS: residentBytes(), Heap: sampled(samples[0]), Memory: sampled(samples[1]), MemoryLimit: sampled(samples[2]), GCs: sampled(samples[3]),
		Goroutines: runtime.NumGoroutine()}
	if p.MemoryLimit == math.MaxInt64 {
		p.MemoryLimit = 0
	}
	if samples[4].Value.Kind() == metrics.KindFloat64Histogram {
		p.GCPause = time.Duration(histogramSum(samples[4].Value.Float64Histogram()) * 1e9)
	}
	var use syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &use) == nil {
		p.CPU = time.Duration(use.Utime.Nano() + use.Stime.Nano())
	}
	return p
}

func sampled(s metrics.Sample) int64 {
	if s.Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(s.Value.Uint64())
}

// histogramSum estimates the sum of all values, taking each for the lower bound of its bucket.
func histogramSum(h *metrics.Float64Histogram) float64 {
	sum := 0.0
	for i, n := range h.Counts {
		if low := h.Buckets[i]; low > 0 {
			sum += low * float64(n)
		}
	}
	return sum
}

func residentBytes() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
