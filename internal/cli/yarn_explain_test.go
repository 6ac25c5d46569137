package cli

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/hrpctest"
	"github.com/heddle-stream/heddle/yarnclient/report"
	"github.com/heddle-stream/heddle/yarnclient/yarntest"
)

// fakeYARN is a cluster in this process that the command can reach, and the variables that lead there.
func fakeYARN(t *testing.T) (*yarntest.Cluster, []string) {
	t.Helper()
	c := yarntest.New(yarntest.Options{})
	web := httptest.NewServer(c.WebHandler(0))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	rpc := hrpctest.Serve(l, c.ClientConfig())
	t.Cleanup(func() { web.Close(); rpc.Close(); c.Close() })
	dir := t.TempDir()
	for name, props := range map[string]map[string]string{
		"core-site.xml": {"fs.defaultFS": "hdfs://127.0.0.1:1"},
		"yarn-site.xml": {"yarn.resourcemanager.webapp.address": web.Listener.Addr().String(), "yarn.resourcemanager.address": l.Addr().String()},
	} {
		var b strings.Builder
		b.WriteString("<configuration>")
		for k, v := range props {
			fmt.Fprintf(&b, "<property><name>%s</name><value>%s</value></property>", k, v)
		}
		b.WriteString("</configuration>")
		if err := os.WriteFile(filepath.Join(dir, name), []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return c, []string{"HADOOP_CONF_DIR=" + dir, "HADOOP_USER_NAME=alice"}
}

// busy describes a cluster whose queue is full and one of whose nodes is unwell.
func busy(c *yarntest.Cluster) {
	mb := func(m, c int64) report.Resource { return report.Resource{MemoryMB: m, VCores: c} }
	c.Describe(yarntest.World{Labels: []string{"gpu"}, Activities: []report.Diagnostic{{Text: "Queue hits max-capacity limit", Count: 3}},
		Nodes: []report.Node{{ID: "n1:8041", Host: "n1", HTTP: "n1:8042", Rack: "/r1", State: "RUNNING", Containers: 2, Used: mb(2048, 2), Free: mb(2048, 2)},
			{ID: "n2:8041", Host: "n2", Rack: "/r1", State: "UNHEALTHY", Health: "1/1 local-dirs have errors\x1b[31m", Free: mb(4096, 4)},
			{ID: "n3:8041", Host: "n3", Rack: "/r2", State: "LOST"}},
		Scheduler: report.Scheduler{Type: "capacityScheduler", MaxAllocation: mb(4096, 4), Queues: []report.Queue{
			{Path: "root", State: "RUNNING", Capacity: 100, MaxCapacity: 100, MaxOfCluster: 100, UsedOfCluster: 25},
			{Path: "root.small", State: "RUNNING", Leaf: true, Capacity: 25, MaxCapacity: 25, UsedCapacity: 100, MaxOfCluster: 25, UsedOfCluster: 25, Used: mb(2048, 2), Max: mb(2048, 2), Apps: 3, Pending: 1,
				AMUsed: mb(512, 1), AMLimit: mb(1024, 2)}}}})
	for i, state := range []string{report.StateRunning, report.StateAccepted, report.StateFinished} {
		a := report.App{ID: fmt.Sprintf("application_1_000%d", i+1), User: "alice", Name: "clicks", Type: "HEDDLE", Queue: "root.small", State: state, Containers: 2}
		if i == 0 {
			a.Asks = []report.Ask{{Priority: 1, Where: "*", Count: 2, Each: mb(1024, 1)}}
		}
		if i == 2 {
			a.FinalStatus = "SUCCEEDED"
		}
		c.Put(yarntest.Application{App: a})
	}
}

// TestExplain says why, of the application that is named or the newest, in words and for programs.
func TestExplain(t *testing.T) {
	c, environ := fakeYARN(t)
	if got := command(t, nil, environ, "explain"); got.code != exitPrecondition || !strings.Contains(got.stderr, "alice has no application") {
		t.Errorf("without any: %+v", got)
	}
	busy(c)
	got := command(t, nil, environ, "explain", "application_1_0001")
	for _, want := range []string{"application_1_0001  clicks  queue root.small  user alice  RUNNING", "waits for 2 more", "asks for 2 × 1024 MB and 1 core", "waiting: Queue root.small has no room for another container of 1024 MB and 1 core: it uses 2048 MB",
		"fix:", "1 lost, 1 unhealthy"} {
		if got.code != 0 || !strings.Contains(got.stdout, want) {
			t.Errorf("exit code %d, %s%s\nwant %q", got.code, got.stdout, got.stderr, want)
		}
	}
	if strings.ContainsAny(got.stdout, "\x1b") {
		t.Errorf("control characters in %q", got.stdout)
	}
	got = command(t, nil, environ, "explain", "--json", "--quick")
	var x explanation
	if err := json.Unmarshal([]byte(got.stdout), &x); err != nil || x.App != "application_1_0002" || x.Waits != "master" || len(x.Findings) == 0 {
		t.Errorf("newest: %+v, %v", got, err)
	}
	if got := command(t, nil, environ, "explain", "application_1_0003"); got.code != 0 || !strings.Contains(got.stdout, "over: finished, as its master reported: succeeded") {
		t.Errorf("an ended one: %+v", got)
	}
	if got := command(t, nil, environ, "explain", "application_1_0009"); got.code != exitPrecondition || !strings.Contains(got.stderr, "application_1_0009") {
		t.Errorf("an unknown one: %+v", got)
	}
	if got := command(t, nil, environ, "explain", "clicks"); got.code != exitUsage {
		t.Errorf("no id: %+v", got)
	}
	// By RPC, less is known, and nothing is made up.
	if got := command(t, nil, environ, "explain", "application_1_0001", "--yarn.client", "rpc"); got.code != 0 || !strings.Contains(got.stdout, "asks YARN for nothing more") {
		t.Errorf("by RPC: %+v", got)
	}
	c.Web(yarntest.WebElsewhere)
	if got := command(t, nil, environ, "explain", "application_1_0002"); got.code != 0 || !strings.Contains(got.stderr, "by RPC, since its web service doesn't have") {
		t.Errorf("with another web service there: %+v", got)
	}
	c.Web(yarntest.WebOpen)
}

func TestNodesAndQueues(t *testing.T) {
	c, environ := fakeYARN(t)
	busy(c)
	for _, x := range []struct{ args, want, not string }{
		{"nodes", "n1:8041\tRUNNING\t/r1\t-\t2\t2048 of 4096 MB\t2 of 4\t-\n", "n3:8041"},
		{"nodes", "UNHEALTHY\t/r1\t-\t0\t4096 of 4096 MB\t4 of 4\t1/1 local-dirs have errors�[31m", "\x1b"},
		{"nodes --all", "n3:8041\tLOST", ""},
		{"nodes --json", `"free_mb": 2048`, "LOST"},
		{"queues", "root.small\tRUNNING\t25.0%\t25.0%\t100.0%\t2048 MB\t512 of 1024 MB\t2\t1\t-\n", ""},
		{"queues --json", `"queue": "root.small"`, ""},
		{"queues --yarn.client rpc", "root.small\tRUNNING\t25.0%", ""},
	} {
		got := command(t, nil, environ, strings.Fields(x.args)...)
		if got.code != 0 || !strings.Contains(got.stdout, x.want) || x.not != "" && strings.Contains(got.stdout, x.not) {
			t.Errorf("%s: exit code %d\n%s%s\nwant %q, not %q", x.args, got.code, got.stdout, got.stderr, x.want, x.not)
		}
	}
	if got := command(t, nil, []string{"HADOOP_CONF_DIR=/none"}, "nodes"); got.code != exitPrecondition {
		t.Errorf("without a cluster: %+v", got)
	}
}
