package yarnclient

import (
	"net/http"
	"os"
	"reflect"
	"testing"

	"github.com/heddle-stream/heddle/yarnclient/report"
)

// TestSchedulerReal reads what a ResourceManager of Hadoop 3.4.3 says of its queues, less what is not read.
func TestSchedulerReal(t *testing.T) {
	data, err := os.ReadFile("testdata/scheduler-3.4.3.json")
	if err != nil {
		t.Fatal(err)
	}
	s := rm(t, func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, string(data)) })
	got, err := client(t, Config{}, s).Scheduler(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got.Type != "capacityScheduler" || got.MaxAllocation != (Resource{MemoryMB: 4096, VCores: 4}) || len(got.Queues) != 4 {
		t.Fatalf("scheduler %+v", got)
	}
	alt, ok := report.Find(got.Queues, "alt")
	if !ok || alt.Path != "root.alt" || !alt.Leaf || alt.State != "RUNNING" || alt.MaxOfCluster < 29.9 || alt.MaxOfCluster > 30.1 || alt.UsedOfCluster != 25 {
		t.Errorf("queue %+v", alt)
	}
	if alt.Used.MemoryMB != 512 || alt.Max.MemoryMB != 614 || alt.AMLimit.MemoryMB != 640 || alt.AMUsed.MemoryMB != 512 || alt.UserAMLimit.MemoryMB != 640 || alt.Pending != 1 {
		t.Errorf("limits %+v", alt)
	}
	if want := []report.QueueUser{{Name: "alice", Active: 1, Pending: 1, Used: Resource{MemoryMB: 512, VCores: 1}, Limit: Resource{MemoryMB: 640, VCores: 2}, AMUsed: Resource{MemoryMB: 512, VCores: 1}}}; !reflect.DeepEqual(alt.Users, want) {
		t.Errorf("users %+v", alt.Users)
	}
	def, _ := report.Find(got.Queues, "default")
	if p, ok := def.Partition("gpu"); !ok || p.MaxOf != 100 || p.AMUsed.MemoryMB != 128 || !def.Accesses("gpu") || def.Accesses("ssd") {
		t.Errorf("queue %+v", def)
	}
	if stopped, _ := report.Find(got.Queues, "stopped"); stopped.State != "STOPPED" {
		t.Errorf("queue %+v", stopped)
	}
	if root := got.Queues[0]; root.State != "RUNNING" || root.Leaf || root.Used != def.Used.Plus(alt.Used) || root.AMUsed != def.AMUsed.Plus(alt.AMUsed) || root.Pending != alt.Pending+def.Pending ||
		root.Apps < alt.Apps+def.Apps || root.MaxOfCluster != 100 {
		t.Errorf("root %+v, want the sums of %+v and %+v", root, def, alt)
	}
	if p := report.Parents(got.Queues, "root.alt"); len(p) != 2 || p[1].Path != "root" {
		t.Errorf("parents %+v", p)
	}
}

// TestFairScheduler reads the other scheduler's form.
func TestFairScheduler(t *testing.T) {
	const body = `{"scheduler":{"schedulerInfo":{"type":"fairScheduler","rootQueue":{"queueName":"root","maxResources":{"memory":8192,"vCores":8},"usedResources":{"memory":2048,"vCores":2},
"childQueues":{"queue":[{"queueName":"root.a","numPendingApps":1,"numActiveApps":2,"maxApps":2147483647,"maxResources":{"memory":4096,"vCores":4},"usedResources":{"memory":4096,"vCores":4},
"amUsedResources":{"memory":1024,"vCores":1},"amMaxResources":{"memory":2048,"vCores":2}}]}}}}}`
	s := rm(t, func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, body) })
	got, err := client(t, Config{}, s).Scheduler(t.Context())
	if err != nil || len(got.Queues) != 2 {
		t.Fatalf("scheduler %+v, %v", got, err)
	}
	if a := got.Queues[1]; a.Path != "root.a" || a.State != "RUNNING" || a.Used != a.Max || a.Apps != 3 || a.Pending != 1 || a.UsedCapacity != 100 || a.AMLimit.MemoryMB != 2048 || !a.Leaf {
		t.Errorf("queue %+v", a)
	}
}

// TestActivities reads what schedulers said: one answer for all nodes, or one a node, with counts as numbers or text.
func TestActivities(t *testing.T) {
	for _, x := range []struct {
		body string
		want []report.Diagnostic
	}{
		{`{"appActivities":{"allocations":[{"queueName":"alt","allocationState":"SKIPPED","children":[{"requestPriority":1,"allocationState":"REJECTED","diagnostic":"Queue hits max-capacity limit"}]}]}}`,
			[]report.Diagnostic{{Text: "Queue hits max-capacity limit", Count: 1}}},
		{`{"appActivities":{"allocations":{"children":[{"diagnostic":"Node is blacklisted","count":"2","nodeIds":["a:1","b:1"]},{"diagnostic":"Node has been reserved","count":1,"nodeIds":["c:1"]}]}}}`,
			[]report.Diagnostic{{Text: "Node is blacklisted", Nodes: []string{"a:1", "b:1"}, Count: 2}, {Text: "Node has been reserved", Nodes: []string{"c:1"}, Count: 1}}},
		{`{"appActivities":{"allocations":[{"nodeId":"a:1","children":[{"diagnostic":"x"}]},{"nodeId":"b:1","children":[{"diagnostic":" x "}]}]}}`,
			[]report.Diagnostic{{Text: "x", Nodes: []string{"a:1", "b:1"}, Count: 2}}},
		{`null`, nil}, {`[]`, nil}, {`{"diagnostic":""}`, nil},
	} {
		if got := diagnostics([]byte(x.body)); !reflect.DeepEqual(got, x.want) {
			t.Errorf("%s: %+v, want %+v", x.body, got, x.want)
		}
	}
}

func FuzzActivities(f *testing.F) {
	f.Add([]byte(`{"appActivities":{"allocations":{"children":[{"diagnostic":"x","count":"2","nodeIds":["a"]}]}}}`))
	f.Add([]byte(`[[[[{"diagnostic":"x","count":-1}]]]]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, d := range diagnostics(b) {
			if d.Text == "" || d.Count < 1 {
				t.Errorf("%q gives %+v", b, d)
			}
		}
	})
}

// TestSum: queues above others have what these have together, level by level, where the scheduler does not say it.
func TestSum(t *testing.T) {
	qs := []report.Queue{
		{Path: "root", UsedCapacity: 30},
		{Path: "root.a"},
		{Path: "root.a.x", Leaf: true, Used: Resource{MemoryMB: 100, VCores: 1}, AMUsed: Resource{MemoryMB: 10, VCores: 1}, Apps: 2, Pending: 1},
		{Path: "root.a.y", Leaf: true, Used: Resource{MemoryMB: 50, VCores: 2}, Apps: 1},
		{Path: "root.ab", Leaf: true, Used: Resource{MemoryMB: 7, VCores: 1}, Apps: 1, Pending: 1},
	}
	report.Sum(qs)
	if a := qs[1]; a.Used != (Resource{MemoryMB: 150, VCores: 3}) || a.AMUsed.MemoryMB != 10 || a.Apps != 3 || a.Pending != 1 {
		t.Errorf("root.a %+v", a)
	}
	if r := qs[0]; r.Used != (Resource{MemoryMB: 157, VCores: 4}) || r.Apps != 4 || r.Pending != 2 || r.OfCluster != 100 || r.UsedOfCluster != 30 {
		t.Errorf("root %+v", r)
	}
}
