package appmaster

import (
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/telemetry"
)

func figuresSnapshot() *Snapshot {
	mark, end := int64(5_000), int64(maxTime)
	return &Snapshot{
		App: "heddle-1", Job: `job "one"`, State: "running", Started: time.UnixMilli(1_000), Time: time.UnixMilli(11_000),
		Slots: SlotCounts{Needed: 2, Total: 4, Free: 2}, Containers: Containers{Asked: 2, Granted: 2},
		Vertices: []Vertex{{ID: 0, Name: "source → map", Operators: []Operator{{ID: 0, Name: "map", Counters: map[string]int64{"records_in": 1, "late records": 3}}},
			Subtasks: []Subtask{
				{Index: 0, State: "running", Agent: "agent-1", RecordsIn: 7, Watermark: &mark, Recent: TaskShares{Busy: 0.5, Idle: 0.25, Blocked: 0.25},
					Time: TaskTime{Busy: 1}, Hops: []Hop{{Edge: 0, Phase: "credit", Buckets: telemetry.LatencyOf([]uint64{0, 0, 1, 2}, time.Millisecond)}}},
				{Index: 1, State: "finished", Watermark: &end},
			}}},
		Agents: []Agent{{ID: "agent-1", Host: "h1", State: "alive", RSS: 100, GCPause: 0.5}, {ID: "agent-2", Host: "h2", State: "lost"}},
		Sources: []Source{{Name: "source", Failed: 2, Splits: []Split{{ID: "t-0", Position: 5, End: 9, Records: 30, Bytes: 400, Fetches: 3, FetchNs: 5e8, Empty: 6, Committed: 4,
			PausedNs: 15e8}, {ID: "t-1", Position: -1, End: -1, Trouble: "x", Paused: true}}}},
		Alignment: []AlignmentGroup{{Group: "g", Mark: &mark, Waiting: 1}},
	}
}

func TestFiguresForPrometheus(t *testing.T) {
	text := string(telemetry.AppendPrometheus(nil, Figures(figuresSnapshot())))
	for _, want := range []string{
		`heddle_subtask_records_in_total{heddle_job_name="job \"one\"",heddle_app_id="heddle-1",heddle_vertex_id="0",heddle_vertex_name="source → map",heddle_subtask="0"} 7`,
		`heddle_job_state{heddle_job_name="job \"one\"",heddle_app_id="heddle-1",state="running"} 1`,
		`heddle_subtask="0"} 6` + "\n", // the lag of the watermark
		`heddle_split_lag{heddle_job_name="job \"one\"",heddle_app_id="heddle-1",heddle_source="source",split="t-0",heddle_subtask="0"} 4`,
		`figure="late records"} 3`,
		`heddle_source_discovery_failures_total{heddle_job_name="job \"one\"",heddle_app_id="heddle-1",heddle_source="source"} 2`,
		`heddle_split_records_total{heddle_job_name="job \"one\"",heddle_app_id="heddle-1",heddle_source="source",split="t-0",heddle_subtask="0"} 30`,
		`split="t-0",heddle_subtask="0"} 400`, `heddle_split_fetches_total{`, `heddle_split_fetch_time_seconds_total{`, `heddle_split_fetches_empty_total{`, `heddle_split_committed{`,
		`heddle_split_position{`, `heddle_split_troubled{`, `split="t-1",heddle_subtask="0"} 1`, `heddle_split_paused_time_seconds_total{`,
		`split="t-0",heddle_subtask="0"} 1.5`, `heddle_alignment_group="g"} 1`, `heddle_alignment_mark_seconds{`,
		`phase="credit",le="+Inf"} 3`,
		`heddle_exchange_latency_seconds_sum{`,
		`heddle_agent_up{heddle_job_name="job \"one\"",heddle_app_id="heddle-1",heddle_agent="agent-2",host_name="h2"} 0`,
		"# TYPE heddle_exchange_latency_seconds histogram\n",
		"# TYPE heddle_agent_gc_pause_seconds_total counter\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the figures lack %s", want)
		}
	}
	if strings.Contains(text, "9223372036854775") {
		t.Error("the end of time is given as a watermark")
	}
	sum := 0.0
	for _, f := range Figures(figuresSnapshot()) {
		if f.Name == "heddle.subtask.utilization" {
			for _, p := range f.Points[:3] {
				sum += p.Value
			}
		}
	}
	if sum != 1 {
		t.Errorf("busy, idle and backpressured add up to %v, want 1", sum)
	}
	if t.Failed() {
		t.Log(text)
	}
}

// Every line is a comment or a sample, each metric is announced once, and no two samples have the same labels.
func TestFiguresAreWellFormed(t *testing.T) {
	text := string(telemetry.AppendPrometheus(nil, Figures(figuresSnapshot())))
	seen, types := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			if types[rest] {
				t.Errorf("%s is announced twice", rest)
			}
			types[rest] = true
			continue
		}
		if strings.HasPrefix(line, "# HELP ") {
			continue
		}
		name := line[:strings.LastIndexByte(line, ' ')]
		if seen[name] {
			t.Errorf("two samples are called %s", name)
		}
		seen[name] = true
	}
}
