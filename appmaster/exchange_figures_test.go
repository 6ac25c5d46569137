package appmaster

import (
	"testing"

	"github.com/heddle-stream/heddle/appmaster/slotmgr"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
)

// TestExchangeFiguresAreShown takes what an agent tells of its exchange to the snapshot that people and programs read.
func TestExchangeFiguresAreShown(t *testing.T) {
	m := &master{agents: map[cluster.AgentID]*agentRecord{"a": {stats: &ctlpb.AgentStats{
		Connections: 1, Channels: 2, SegmentsTotal: 3, SegmentsUsed: 4, SegmentsFloating: 5, SegmentsReserved: 6,
		PlainBytes: 7, PackedBytes: 8, DebloatDelayNs: 1.5e9, DebloatRoom: 9, RequestsWaiting: 10, StrayFrames: 11,
	}}}}
	got := m.agentView(slotmgr.Agent{ID: "a"}, nil)
	if got.Connections != 1 || got.Channels != 2 || got.Segments != 3 || got.SegmentsUse != 4 || got.SegmentsFloating != 5 || got.SegmentsReserved != 6 ||
		got.PlainBytes != 7 || got.PackedBytes != 8 || got.DebloatDelay != 1.5 || got.DebloatRoom != 9 || got.RequestsWaiting != 10 || got.StrayFrames != 11 {
		t.Errorf("got %+v", got)
	}
}
