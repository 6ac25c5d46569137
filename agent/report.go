package agent

import (
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"

	"github.com/heddle-stream/heddle/agent/task"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl"
	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
	"github.com/heddle-stream/heddle/netstack"
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
		})
	}
	return p
}

// maxTrouble is how much of a split's trouble is told: a source may have thousands of splits, and each is told every heartbeat.
const maxTrouble = 512

// statsOf is the process's report for the master.
func statsOf(s *netstack.Stack) *ctlpb.AgentStats {
	x := s.Stats()
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(heap)
	return &ctlpb.AgentStats{
		Rss: residentBytes(), Heap: int64(heap[0].Value.Uint64()), Goroutines: int32(runtime.NumGoroutine()),
		Connections: int32(x.Connections), SegmentsTotal: int64(x.SegmentsTotal), SegmentsUsed: int64(x.SegmentsUsed),
		ExchangeIn: int64(x.BytesRead), ExchangeOut: int64(x.BytesSent),
	}
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
