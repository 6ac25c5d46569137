package conf

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/internal/telemetry"
)

// metricNames are the names that a full snapshot has for Prometheus.
func metricNames() map[string]bool {
	mark := int64(1)
	s := &appmaster.Snapshot{
		Vertices: []appmaster.Vertex{{
			Operators: []appmaster.Operator{{Counters: map[string]int64{"late records": 1}}},
			Subtasks:  []appmaster.Subtask{{Watermark: &mark, Hops: []appmaster.Hop{{Buckets: telemetry.LatencyOf(nil, 0)}}}}}},
		Agents:  []appmaster.Agent{{State: "alive", RSS: 1}},
		Process: appmaster.Process{Goroutines: 1},
		Tokens:  &appmaster.Tokens{Held: []appmaster.Token{{Until: time.Unix(1, 0)}}},
		Sources: []appmaster.Source{{Splits: []appmaster.Split{{Position: 1, End: 2, Records: 1, Fetches: 1, Committed: 1}}}},
	}
	names := map[string]bool{"heddle_app_up": true, "heddle_exporter_up": true, "heddle_app_scrape_duration_seconds": true} // the exporter's own
	for _, f := range appmaster.Figures(s) {
		name := telemetry.PrometheusName(&f)
		names[name] = true
		if f.Kind == telemetry.Histogram {
			names[name+"_bucket"], names[name+"_sum"], names[name+"_count"] = true, true, true
		}
	}
	return names
}

// The dashboard and the alerts speak of metrics that there are.
func TestMonitoringFilesNameMetricsThatExist(t *testing.T) {
	names := metricNames()
	labels := map[string]bool{"heddle_job_name": true, "heddle_app_id": true, "heddle_vertex_name": true, "heddle_agent": true, "heddle_edge": true, "heddle_source": true}
	word := regexp.MustCompile(`\bheddle_[a-z_]+`)
	for _, file := range []string{"monitoring/heddle-dashboard.json", "monitoring/heddle-alerts.yaml"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		used := word.FindAllString(string(data), -1)
		if len(used) < 10 {
			t.Errorf("%s names %d metrics", file, len(used))
		}
		for _, name := range used {
			if !names[name] && !labels[name] {
				t.Errorf("%s speaks of %s, which there is not", file, name)
			}
		}
		if strings.HasSuffix(file, ".json") && !json.Valid(data) {
			t.Errorf("%s is not JSON", file)
		}
	}
}

// Lost spans are lost, whichever process lost them.
func TestTracesLostOfAllProcesses(t *testing.T) {
	data, err := os.ReadFile("monitoring/heddle-alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, alert, _ := strings.Cut(string(data), "alert: HeddleTracesLost")
	alert, _, _ = strings.Cut(alert, "- alert:")
	lost := regexp.MustCompile(`^heddle_.*_spans_(dropped|failed)_total$`)
	found := 0
	for name := range metricNames() {
		if lost.MatchString(name) {
			found++
			if !strings.Contains(alert, name) {
				t.Errorf("HeddleTracesLost does not look at %s", name)
			}
		}
	}
	if found < 2 {
		t.Errorf("only %d metrics tell of lost spans", found)
	}
}
