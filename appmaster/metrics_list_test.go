package appmaster

import (
	"testing"

	"github.com/heddle-stream/heddle/internal/telemetry"
)

// TestFiguresPeopleExpect: what people know from Flink's dashboards is there, under the name that the documentation gives.
func TestFiguresPeopleExpect(t *testing.T) {
	s := figuresSnapshot()
	s.Process = Process{RSS: 1, Goroutines: 1}
	s.Tokens = &Tokens{Held: []Token{{Until: s.Time}}}
	s.Sources[0].Splits[0].Records, s.Sources[0].Splits[0].Fetches, s.Sources[0].Splits[0].Committed = 1, 1, 1
	got := map[string]telemetry.Kind{}
	for _, f := range Figures(s) {
		if len(f.Points) > 0 {
			got[f.Name] = f.Kind
		}
	}
	const gauge, counter = telemetry.Gauge, telemetry.Counter
	for name, kind := range map[string]telemetry.Kind{
		"heddle.subtask.records.in": counter, "heddle.subtask.records.out": counter, "heddle.subtask.io.in": counter, "heddle.subtask.io.out": counter, // numRecordsIn …, numBytesIn …
		"heddle.subtask.time": counter, "heddle.subtask.utilization": gauge, // busyTimeMsPerSecond, idleTimeMsPerSecond, backPressuredTimeMsPerSecond
		"heddle.subtask.queue.in": gauge, "heddle.subtask.queue.out": gauge, // inputQueueLength, outputQueueLength
		"heddle.subtask.credit.in": gauge, "heddle.subtask.credit.out": gauge, "heddle.subtask.channels.starved": gauge,
		"heddle.subtask.pool.in.utilization": gauge, "heddle.subtask.pool.out.utilization": gauge, // inPoolUsage, outPoolUsage
		"heddle.agent.exchange.segments": gauge, "heddle.agent.exchange.segments.used": gauge, // AvailableMemorySegments
		"heddle.agent.exchange.segments.floating": gauge, "heddle.agent.exchange.segments.reserved": gauge, // inputFloatingBuffersUsage, inputExclusiveBuffersUsage: credits
		"heddle.subtask.watermark": gauge, "heddle.subtask.watermark.lag": gauge, // currentInputWatermark
		"heddle.split.position": gauge, "heddle.split.lag": gauge, "heddle.split.records": counter, "heddle.split.io": counter, "heddle.split.committed": gauge, // records-lag …, committedOffsets
		"heddle.slots.needed": gauge, "heddle.slots.registered": gauge, "heddle.slots.free": gauge, // taskSlotsTotal, taskSlotsAvailable
		"heddle.containers.asked": gauge, "heddle.containers.granted": counter, "heddle.containers.released": counter, "heddle.containers.failed": counter,
		"heddle.agent.memory.rss": gauge, "heddle.agent.memory.heap": gauge, "heddle.agent.gc.cycles": counter, "heddle.agent.gc.pause": counter, "heddle.agent.cpu.time": counter, // Status.JVM
		"heddle.appmaster.memory.rss": gauge, "heddle.appmaster.gc.pause": counter, "heddle.appmaster.cpu.time": counter,
		"heddle.tokens.remaining": gauge, "heddle.tokens.version": gauge,
		"heddle.job.uptime": gauge, "heddle.job.attempt": gauge, "heddle.job.state": gauge, // uptime, numRestarts
		"heddle.exchange.latency": telemetry.Histogram, // latency markers, by phase
	} {
		if have, ok := got[name]; !ok || have != kind {
			t.Errorf("%s: there %v, of kind %v, want %v", name, ok, have, kind)
		}
	}
}
