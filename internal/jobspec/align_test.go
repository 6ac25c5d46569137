package jobspec

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/heddle-stream/heddle/agent/task"
	"github.com/heddle-stream/heddle/internal/inproc"
	"github.com/heddle-stream/heddle/internal/jobgraph"
	"github.com/heddle-stream/heddle/internal/kafka"
)

// TestKafkaAligned reads a topic slowly and another as fast as it may: the fast one stays near the slow one, and says how long it has waited.
func TestKafkaAligned(t *testing.T) {
	const records, drift = 3000, 300
	k := newKafkaTest(t, "slow", "fast")
	for _, topic := range []string{"slow", "fast"} {
		var rs []*kgo.Record
		for i := range records {
			rs = append(rs, &kgo.Record{Topic: topic, Value: fmt.Appendf(nil, `{"at": %d, "pad": "%s"}`, i, strings.Repeat("x", 200))})
		}
		if err := k.client.ProduceSync(k.ctx, rs...).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	job, err := Load("job.yaml", fmt.Appendf(nil, `
name: aligned
sources:
  slow: { kafka: { partitions: { slow: [0] }, format: json, stop: latest, rate_limit: 600 }, event_time: at, max_drift: %[1]dms, align: g }
  fast: { kafka: { partitions: { fast: [0] }, format: json, stop: latest }, event_time: at, max_drift: %[1]dms, align: g }
steps: [ { union: [slow, fast] } ]
sink: { discard: {} }
`, drift), Options{})
	if err != nil {
		t.Fatal(err)
	}
	g, err := jobgraph.Compile(job.Graph(), jobgraph.Options{Parallelism: 2, MaxParallelism: 128})
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(g.Lines(), "\n"); strings.Count(text, "at most 300ms ahead of group g") != 2 {
		t.Errorf("the plan does not show the group: %s", text)
	}
	paused, seen := int64(0), 0
	progress := func(reports []task.Report) {
		at := map[string]int64{}
		for _, r := range reports {
			for _, s := range r.Splits {
				at[s.ID] = s.Position
				if s.ID == "fast-0" {
					paused = max(paused, s.PausedFor.Milliseconds())
				}
			}
		}
		// Reports are of different moments: one of the fast source may be a second younger.
		if at["slow-0"] > 0 && at["fast-0"] > 0 {
			seen++
			if most := at["slow-0"] + drift + 600 + 200; at["fast-0"] > most {
				t.Errorf("the fast source is at %d, the slow one at %d", at["fast-0"], at["slow-0"])
			}
		}
	}
	option := func(name string) (string, bool) {
		return strings.Join(k.cluster.ListenAddrs(), ","), name == kafka.OptBrokers
	}
	if err := inproc.Run(k.ctx, inproc.Config{Graph: job.Graph(), Compiled: g, Options: option, Progress: progress}); err != nil {
		t.Fatal(err)
	}
	if paused < 500 || seen == 0 {
		t.Errorf("the fast source has waited %d ms of about 5 s; %d reports", paused, seen)
	}
}
