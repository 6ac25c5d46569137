package agent

import (
	"github.com/heddle-stream/heddle/agent/task"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl"
	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
	"github.com/heddle-stream/heddle/internal/telemetry"
)

// reportOf is a task's report for the master.
func reportOf(t *task.Task) *ctlpb.TaskReport {
	r := t.Report()
	p := &ctlpb.TaskReport{
		Id: ctl.PBExecution(r.ID), Watermark: r.Watermark,
		BusyNs: int64(r.Busy), IdleNs: int64(r.Idle), BlockedNs: int64(r.Blocked),
		InQueued: int32(r.InQueued), OutQueued: int32(r.OutQueued), InPool: r.InPool, OutPool: r.OutPool, AlignMark: r.AlignMark,
		CreditIn: int32(r.CreditIn), CreditOut: int32(r.CreditOut), Starved: int32(r.Starved),
	}
	for _, o := range r.Operators {
		p.Operators = append(p.Operators, &ctlpb.OperatorReport{Node: int32(o.Node), Counters: o.Counters})
	}
	for _, s := range r.Splits {
		p.Splits = append(p.Splits, &ctlpb.SplitReport{
			Id: []byte(s.ID), Position: s.Position, End: s.End, Trouble: cluster.Clip(s.Trouble, maxTrouble),
			Paused: s.Paused, Records: s.Records, Bytes: s.Bytes, Fetches: s.Fetches, FetchNs: int64(s.FetchTime), Empty: s.EmptyPolls, Committed: s.Committed, PausedNs: int64(s.PausedFor),
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
	x, spans, own := a.stack.Stats(), a.cfg.Follow.Provider.Stats(), telemetry.ReadProcess()
	p := &ctlpb.AgentStats{Rss: own.RSS, Heap: own.Heap, Goroutines: int32(own.Goroutines), Memory: own.Memory, MemoryLimit: own.MemoryLimit,
		GcCycles: own.GCs, GcPauseNs: int64(own.GCPause), CpuNs: int64(own.CPU)}
	p.Connections, p.Channels, p.SegmentsTotal, p.SegmentsUsed = int32(x.Connections), int64(x.Channels), int64(x.SegmentsTotal), int64(x.SegmentsUsed)
	p.SegmentsFloating, p.ExchangeIn, p.ExchangeOut = int64(x.SegmentsFloating), int64(x.BytesRead), int64(x.BytesSent)
	p.PlainBytes, p.PackedBytes, p.StrayFrames = int64(x.PlainBytes), int64(x.PackedBytes), x.StrayFrames
	p.DebloatDelayNs, p.DebloatRoom = int64(x.Delay), int64(x.SmallestRoom)
	p.SegmentsReserved, p.RequestsWaiting = int64(x.SegmentsReserved), int64(x.Waiting)
	p.SpansExported, p.SpansDropped = spans.Exported, spans.Dropped+spans.Failed
	return p
}
