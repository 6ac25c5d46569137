package explain

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/yarnclient/report"
)

func mb(m, c int64) report.Resource { return report.Resource{MemoryMB: m, VCores: c} }

// cluster is one of two nodes with room, a queue with room, and an application that runs and waits for two containers.
func cluster() Facts {
	node := func(host string) report.Node {
		return report.Node{ID: host + ":8041", Host: host, State: "RUNNING", Used: mb(512, 1), Free: mb(3584, 3), Rack: "/default-rack"}
	}
	return Facts{
		App: report.App{ID: "application_1_0001", User: "alice", Queue: "root.default", State: report.StateRunning, Containers: 1, MemoryMB: 512, VCores: 1,
			Asks: []report.Ask{{Priority: 1, Where: "*", Count: 2, Each: mb(1024, 1)}}},
		Scheduler: report.Scheduler{Type: "capacityScheduler", MaxAllocation: mb(8192, 4), Queues: []report.Queue{
			{Path: "root", State: "RUNNING", MaxOfCluster: 100, UsedOfCluster: 12, Used: mb(1024, 2), Max: mb(8192, 8)},
			{Path: "root.default", State: "RUNNING", Leaf: true, OfCluster: 60, MaxOfCluster: 60, UsedOfCluster: 12, Used: mb(1024, 2), Max: mb(4915, 5), Labels: []string{"gpu"},
				Partitions: []report.Partition{{Label: "", OfLabel: 60, MaxOf: 60}, {Label: "gpu", OfLabel: 100, MaxOf: 100}},
				Users:      []report.QueueUser{{Name: "alice", Used: mb(512, 1), Limit: mb(4915, 5)}}},
		}},
		Nodes: []report.Node{node("n1"), node("n2")}, Labels: []string{"gpu"},
	}
}

const notActivated = "[Mon] Application is added to the scheduler and is not yet activated. Queue's AM resource limit exceeded.  Details : AM Partition = <DEFAULT_PARTITION>; AM Resource Request = <memory:256, vCores:1>; Queue Resource Limit for AM = <memory:QQ, vCores:9>; User AM Resource Limit of the queue = <memory:UU, vCores:9>; Queue AM Resource Usage = <memory:512, vCores:2>; "

// at is a moment, in seconds.
func at(s int) time.Time { return time.Unix(1_767_225_600+int64(s), 0) }

func accepted(f *Facts, diagnostics string) {
	f.App.State, f.App.Asks, f.App.Diagnostics = report.StateAccepted, nil, diagnostics
}

// TestExplain goes through what a user may meet. want are kinds of findings with their grades, in order; text must occur.
func TestExplain(t *testing.T) {
	for _, x := range []struct {
		name   string
		change func(*Facts)
		want   string
		text   []string
	}{
		{"nothing wanted", func(f *Facts) { f.App.Asks = nil }, "", []string{"asks YARN for nothing more"}},
		{"too young", func(f *Facts) {}, "delays unknown", []string{"waits for 2 more"}},
		{"larger than allowed", func(f *Facts) { f.App.Asks[0].Each = mb(9000, 1) }, "blocks larger-than-allowed", []string{"9000 MB", "8192 MB", "agent.memory"}},
		{"larger than nodes", func(f *Facts) { f.App.Asks[0].Each = mb(5000, 1) }, "blocks larger-than-nodes", []string{"n1:8041", "4096 MB"}},
		{"too many cores", func(f *Facts) { f.App.Asks[0].Each = mb(100, 4); f.Nodes[0].Free.VCores, f.Nodes[1].Free.VCores = 1, 1 }, "blocks larger-than-nodes", nil},
		{"nodes full", func(f *Facts) {
			for i := range f.Nodes {
				f.Nodes[i].Used, f.Nodes[i].Free = mb(3500, 1), mb(596, 3)
			}
		}, "delays nodes-full", []string{"All 2 nodes", "596 MB", "can't span nodes"}},
		{"queue full", func(f *Facts) { f.Scheduler.Queues[1].UsedOfCluster, f.Scheduler.Queues[1].Used = 55, mb(4505, 4) }, "delays queue-full", []string{"root.default", "4505 MB", "maximum-capacity"}},
		{"parent full", func(f *Facts) {
			f.Scheduler.Queues[1].Path, f.App.Queue = "root.p.default", "default"
			f.Scheduler.Queues = append(f.Scheduler.Queues, report.Queue{Path: "root.p", MaxOfCluster: 40, UsedOfCluster: 40})
		}, "delays queue-full", []string{"Queue root.p, above root.p.default"}},
		{"user limit", func(f *Facts) { f.Scheduler.Queues[1].Users[0].Limit = mb(1024, 5) }, "delays user-limit", []string{"alice", "1024 MB", "user-limit-factor"}},
		{"unknown label", func(f *Facts) { f.App.Asks[0].Label = "ssd" }, "blocks label-unknown", []string{"ssd", "gpu"}},
		{"labels not known", func(f *Facts) { f.App.Asks[0].Label = "gpu"; f.Labels, f.NoLabels = nil, true }, "blocks label-without-nodes", nil},
		{"label without nodes", func(f *Facts) { f.App.Asks[0].Label = "gpu" }, "blocks label-without-nodes", []string{"replaceLabelsOnNode"}},
		{"label denied", func(f *Facts) { f.App.Asks[0].Label, f.Scheduler.Queues[1].Labels = "gpu", []string{"ssd"} }, "blocks label-denied", []string{"root.default"}},
		{"label without share", func(f *Facts) {
			f.App.Asks[0].Label = "gpu"
			f.Scheduler.Queues[1].Partitions[1] = report.Partition{Label: "gpu"}
		}, "blocks label-no-share", []string{"accessible-node-labels.gpu.capacity"}},
		{"label share full", func(f *Facts) {
			f.App.Asks[0].Label, f.Nodes[0].Labels = "gpu", []string{"gpu"}
			f.Scheduler.Queues[1].Partitions[1].UsedOf = 100
		}, "delays queue-full", nil},
		{"queue's default label", func(f *Facts) { f.Scheduler.Queues[1].DefaultLabel = "gpu" }, "blocks label-without-nodes", nil},
		{"all unhealthy", func(f *Facts) {
			f.Nodes[0].State, f.Nodes[0].Health, f.Nodes[1].State = "UNHEALTHY", "1/1 local-dirs have errors", "LOST"
		}, "blocks nodes-down, note nodes-ailing", []string{"1 lost, 1 unhealthy", "local-dirs have errors"}},
		{"all labelled", func(f *Facts) { f.Nodes[0].Labels, f.Nodes[1].Labels = []string{"gpu"}, []string{"gpu"} }, "blocks no-nodes", nil},
		{"strict host gone", func(f *Facts) {
			f.App.Asks[0].Strict = true
			f.App.Asks = append(f.App.Asks, report.Ask{Priority: 1, Where: "n9", Count: 2}, report.Ask{Priority: 1, Where: "/rack", Count: 2})
		}, "blocks host-unknown", []string{"n9"}},
		{"strict host down", func(f *Facts) {
			f.App.Asks[0].Strict, f.Nodes[0].State = true, "LOST"
			f.App.Asks = append(f.App.Asks, report.Ask{Priority: 1, Where: "n1", Count: 2})
		}, "blocks host-down, note nodes-ailing", nil},
		{"stopped queue, running", func(f *Facts) { f.Scheduler.Queues[1].State = "STOPPED" }, "note queue-stopped", []string{"those in it go on"}},
		{"activities", func(f *Facts) {
			f.Activities = []report.Diagnostic{{Text: "Queue does not have enough headroom for inner highest-priority request", Count: 9},
				{Text: "Node is blacklisted", Nodes: []string{"a", "b"}, Count: 2}, {Text: "something new"}, {Text: "Node has been reserved"}}
		}, "delays headroom, delays nodes-excluded, note reserved-elsewhere", []string{"of 2 nodes"}},
		{"activities say less than limits", func(f *Facts) {
			f.Scheduler.Queues[1].Users[0].Limit = mb(1024, 5)
			f.Activities = []report.Diagnostic{{Text: "Queue does not have enough headroom for inner highest-priority request"}, {Text: "Queue hits user max-capacity limit"}}
		}, "delays user-limit", nil},
		{"beyond the nodes", func(f *Facts) { f.App.Asks[0].Count = 8; f.Scheduler.Queues = nil }, "blocks beyond-capacity",
			[]string{"8 more containers of 1024 MB and 1 core are wanted beside the 1 that it has, 8704 MB and 9 cores in all", "8192 MB and 8 cores at most", "1 of them will never come", "nodes added"}},
		{"just what the nodes have", func(f *Facts) { f.App.Asks[0].Count = 7; f.Scheduler.Queues = nil }, "delays unknown", nil},
		{"beyond what fits on nodes", func(f *Facts) {
			f.App.Asks[0] = report.Ask{Where: "*", Count: 4, Each: mb(1800, 1)}
			f.App.MemoryMB = 0
		}, "blocks beyond-capacity", []string{"4915 MB"}},
		{"nodes can't be cut into so many", func(f *Facts) {
			f.App.Asks[0] = report.Ask{Where: "*", Count: 3, Each: mb(2500, 1)}
			f.Scheduler.Queues = nil
			f.App.MemoryMB = 100
		}, "blocks beyond-capacity",
			[]string{"have room for 2 containers of that size"}},
		{"beyond the queue", func(f *Facts) { f.App.Asks[0].Count = 5 }, "blocks beyond-capacity", []string{"In queue root.default it can have 4915 MB and 5 cores at most", "maximum-capacity of root.default"}},
		{"beyond a user's share", func(f *Facts) {
			q := &f.Scheduler.Queues[1]
			q.Max, q.MaxOfCluster, q.OfCluster, q.UserLimitFactor, f.App.Asks[0].Count = mb(0, 0), 100, 25, 1, 5
		}, "blocks beyond-capacity", []string{"one user of queue root.default", "user-limit-factor", "3072 MB"}},
		{"cores that may not count", func(f *Facts) {
			f.App.Asks[0] = report.Ask{Where: "*", Count: 20, Each: mb(100, 1)}
			f.Scheduler.Queues = nil
		}, "delays unknown", nil},
		{"cores that count", func(f *Facts) {
			f.App.Asks[0] = report.Ask{Where: "*", Count: 20, Each: mb(100, 1)}
			f.Scheduler.Queues, f.Nodes[0].Used, f.Nodes[0].Free = nil, mb(512, 4), mb(3584, 0)
		}, "blocks beyond-capacity", []string{"8 cores at most"}},
		{"beyond what a label has", func(f *Facts) {
			f.App.Asks[0].Label, f.App.Asks[0].Count, f.Nodes[0].Labels = "gpu", 4, []string{"gpu"}
		}, "blocks beyond-capacity", []string{"with label gpu"}},
		{"reserved", func(f *Facts) { f.App.Reserved = mb(1024, 1) }, "note reserved", nil},

		{"master: starts", func(f *Facts) {
			accepted(f, "AM container is launched, waiting for AM container to Register with RM")
		}, "delays starting", []string{"heddle logs application_1_0001"}},
		{"master: its container was given, and YARN says nothing", func(f *Facts) { accepted(f, ""); f.App.AMContainer = "http://n1:8042/logs" }, "delays starting", nil},
		{"master: does not register", func(f *Facts) {
			accepted(f, "AM container is launched, waiting for AM container to Register with RM")
			f.App.Started, f.App.Launched, f.Manager, f.Now, f.Expiry = at(0), at(2), at(-3600), at(62), 10*time.Minute
		}, "delays silent-start", []string{"started 1m0s ago", "after 10m0s (yarn.am.liveness-monitor.expiry-interval-ms), in about 9m0s", "heddle kill application_1_0001"}},
		{"master: ResourceManager restarted before it was started", func(f *Facts) {
			accepted(f, "")
			f.App.AMContainer, f.App.Started, f.Manager, f.Now, f.Expiry = "http://n1:8042/logs", at(0), at(10), at(100), time.Minute
		}, "delays manager-restarted", []string{"started anew 1m30s ago", "about to give it up"}},
		{"master: queue's share", func(f *Facts) { accepted(f, strings.NewReplacer("QQ", "600", "UU", "600").Replace(notActivated)) }, "delays masters-limit", []string{"600 MB", "256 MB", "maximum-am-resource-percent"}},
		{"master: user's share", func(f *Facts) { accepted(f, strings.NewReplacer("QQ", "6000", "UU", "600").Replace(notActivated)) }, "delays masters-limit-user", []string{"user-limit-factor"}},
		{"master: label without nodes", func(f *Facts) {
			accepted(f, "Application is Activated, waiting for resources to be assigned for AM.  Details : AM Partition = gpu ; Partition Resource = <memory:0, vCores:0> ;")
			f.App.AMLabel = "gpu"
		}, "blocks label-without-nodes", nil},
		{"master: size not known", func(f *Facts) { accepted(f, "") }, "delays unknown", nil},
		{"master: YARN says something else", func(f *Facts) { accepted(f, "Application is Activated, whatever") }, "delays unknown", []string{"whatever"}},
		{"master: avoided node", func(f *Facts) { accepted(f, "Skipped scheduling for this Node as its black listed. ") }, "note master-blacklist", nil},
		{"master: empty cluster", func(f *Facts) {
			accepted(f, "Skipping AM assignment as cluster resource is empty. ")
			f.Nodes[0].State, f.Nodes[1].State = "LOST", "LOST"
		}, "blocks nodes-down, note nodes-ailing", nil},
		{"master: waits by its own ask", func(f *Facts) {
			f.App.State, f.App.Asks = report.StateAccepted, []report.Ask{{Where: "*", Count: 1, Each: mb(5000, 1)}}
		}, "blocks larger-than-nodes", nil},
		{"not accepted", func(f *Facts) { f.App.State = "NEW_SAVING" }, "delays not-accepted", []string{"delegation tokens"}},

		{"over: unknown queue", func(f *Facts) {
			f.App.State, f.App.Diagnostics = report.StateFailed, "Application x submitted by user alice to unknown queue: nope"
		}, "blocks queue-unknown", []string{"--queue"}},
		{"over: stopped queue", func(f *Facts) {
			f.App.State, f.App.Diagnostics = report.StateFailed, "org.apache.hadoop.security.AccessControlException: Queue root.stopped is STOPPED. Cannot accept submission"
		}, "blocks queue-stopped", nil},
		{"over: lifetime", func(f *Facts) {
			f.App.State, f.App.Diagnostics = report.StateKilled, "Application is killed by ResourceManager as it has exceeded the lifetime period."
		}, "blocks lifetime", []string{"yarn.lifetime"}},
		{"over: not executable", func(f *Facts) {
			f.App.State, f.App.Diagnostics = report.StateFailed, "Application x failed 1 times (global limit =2; local limit is =1) due to AM Container for appattempt_1 exited with  exitCode: 126\nFailing this attempt."
		}, "blocks not-executable", []string{"noexec", "yarn.binary"}},
		{"over: master's memory", func(f *Facts) {
			f.App.State, f.App.Diagnostics = report.StateFailed, "Application x failed 1 times due to AM Container for appattempt_1 exited with  exitCode: -104"
		}, "blocks master-memory", []string{"appmaster.memory"}},
		{"over: finished", func(f *Facts) { f.App.State, f.App.FinalStatus = report.StateFinished, "SUCCEEDED" }, "", []string{"succeeded"}},
		{"over: something", func(f *Facts) {
			f.App.State, f.App.Diagnostics = report.StateKilled, "killed by\n user "+strings.Repeat("x", 900)
		}, "note diagnostics", []string{"killed by user"}},
		{"nothing known", func(f *Facts) { *f = Facts{App: f.App} }, "delays unknown", nil},
	} {
		t.Run(x.name, func(t *testing.T) {
			f := cluster()
			x.change(&f)
			r := Explain(f)
			var got []string
			for _, f := range r.Findings {
				got = append(got, string(f.Grade)+" "+f.Kind)
			}
			if s := strings.Join(got, ", "); s != x.want {
				t.Errorf("found %q, want %q", s, x.want)
			}
			data, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			all := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(data))
			for _, w := range x.text {
				if !strings.Contains(all, w) {
					t.Errorf("%s\ndoes not say %q", all, w)
				}
			}
			if strings.Contains(all, "%!") {
				t.Errorf("badly formatted: %s", all)
			}
		})
	}
}

// TestTexts: every sign leads to a text, blocking findings to a fix, and no kind of the table is written in two ways by mistake.
func TestTexts(t *testing.T) {
	for _, a := range activitiesKnown {
		if i := known("… " + a.sign + " …"); i < 0 || activitiesKnown[i].kind != a.kind || a.text == "" || a.grade != Notes && a.fix == "" {
			t.Errorf("%q is found as %d: %+v", a.sign, i, a)
		}
		if slices.Contains(a.over, a.kind) {
			t.Errorf("%s gives way to itself", a.kind)
		}
	}
	for _, e := range endings {
		if e.fix == "" {
			t.Errorf("%s has no fix", e.kind)
		}
	}
}

func FuzzDiagnostics(f *testing.F) {
	f.Add(notActivated)
	f.Add("AM Resource Request = <memory:99999999999999999999, vCores:1>")
	f.Add("x\n\n y")
	f.Fuzz(func(t *testing.T, s string) {
		for _, state := range []string{report.StateAccepted, report.StateFailed} {
			c := cluster()
			accepted(&c, s)
			c.App.State = state
			c.Activities = []report.Diagnostic{{Text: s}}
			Explain(c)
		}
	})
}
