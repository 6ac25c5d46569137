package agent

import (
	"math"
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"syscall"

	"github.com/heddle-stream/heddle/agent/task"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl"
	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
)

// reportOf is a task's report for the master.
func reportOf(t *task.Task) *ctlpb.TaskReport {
	r := t.Report()
	p := &ctlpb.TaskReport{
		Id: ctl.PBExecution(r.ID), Watermark: r.Watermark,
		BusyNs: int64(r.Busy), IdleNs: int64(r.Idle), BlockedNs: int64(r.Blocked),
		InQueued: int32(r.InQueued), OutQueued: int32(r.OutQueued),
	}
	for _, o := range r.Operators {
		p.Operators = append(p.Operators, &ctlpb.OperatorReport{Node: int32(o.Node), Counters: o.Counters})
	}
	for _, s := range r.Splits {
		p.Splits = append(p.Splits, &ctlpb.SplitReport{
			Id: []byte(s.ID), Position: s.Position, End: s.End, Trouble: cluster.Clip(s.Trouble, maxTrouble),
			Paused: s.Paused, Records: s.Records, Bytes: s.Bytes, Fetches: s.Fetches, FetchNs: int64(s.FetchTime), Empty: s.EmptyPolls, Committed: s.Committed,
		})
	}
	for _, h := range r.Hops {
		p.Hops = append(p.Hops, &ctlpb.HopReport{Edge: int32(h.Edge), Phase: int32(h.Phase), Counts: h.Counts, SumNs: int64(h.Sum)})
	}
	return p
}

// maxTrouble is how much of a split's trouble is told: a source may have thousands of splits, and each is told every heartbeat.
const maxTrouble = 512

// stats is the process's report for the master.
func (a *agent) stats() *ctlpb.AgentStats {
	x, spans := a.stack.Stats(), a.cfg.Follow.Provider.Stats()
	p := runtimeStats()
	p.Rss, p.Goroutines = residentBytes(), int32(runtime.NumGoroutine())
	p.Connections, p.Channels, p.SegmentsTotal, p.SegmentsUsed = int32(x.Connections), int64(x.Channels), int64(x.SegmentsTotal), int64(x.SegmentsUsed)
	p.SegmentsFloating, p.ExchangeIn, p.ExchangeOut = int64(x.SegmentsFloating), int64(x.BytesRead), int64(x.BytesSent)
	p.PlainBytes, p.PackedBytes, p.StrayFrames = int64(x.PlainBytes), int64(x.PackedBytes), x.StrayFrames
	p.DebloatDelayNs, p.DebloatRoom = int64(x.Delay), int64(x.SmallestRoom)
	p.SegmentsReserved, p.RequestsWaiting = int64(x.SegmentsReserved), int64(x.Waiting)
	p.SpansExported, p.SpansDropped = spans.Exported, spans.Dropped+spans.Failed
	return p
}

// runtimeStats are the figures of Go's run time.
func runtimeStats() *ctlpb.AgentStats {
	samples := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/total:bytes"}, {Name: "/gc/gomemlimit:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/sched/pauses/total/gc:seconds"},
	}
	metrics.Read(samples)
	p := &ctlpb.AgentStats{Heap: number(samples[0]), Memory: number(samples[1]), MemoryLimit: number(samples[2]), GcCycles: number(samples[3])}
	if p.MemoryLimit == math.MaxInt64 {
		p.MemoryLimit = 0
	}
	if samples[4].Value.Kind() == metrics.KindFloat64Histogram {
		p.GcPauseNs = int64(histogramSum(samples[4].Value.Float64Histogram()) * 1e9)
	}
	var use syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &use) == nil {
		p.CpuNs = use.Utime.Nano() + use.Stime.Nano()
	}
	return p
}

func number(s metrics.Sample) int64 {
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

// residentBytes is the memory that this process occupies, 0 where the system does not tell.
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
