package yarn

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hconf"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/itest/testbed"
	"github.com/heddle-stream/heddle/yarnclient"
	"github.com/heddle-stream/heddle/yarnclient/amrm"
	"github.com/heddle-stream/heddle/yarnclient/book"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// scarce is a cluster where little fits: small nodes, a queue with little for masters, a small one, a stopped one, and a label that no node has.
type scarce struct {
	t       *testing.T
	bed     *testbed.Bed
	h       *testbed.Hadoop
	rms     []hconf.RM
	exe     string // the command
	access  map[yarnclient.Mode]*yarnclient.Access
	notices []string // of the access by whichever way works
}

func newScarce(t *testing.T) *scarce {
	t.Helper()
	testbed.Group(t, "yarn")
	x := &scarce{t: t, bed: testbed.New(t), access: map[yarnclient.Mode]*yarnclient.Access{}}
	x.h = testbed.StartHadoop(t, x.bed, testbed.HadoopOptions{
		YARN: map[string]string{
			"yarn.nodemanager.resource.memory-mb": "1024", "yarn.nodemanager.resource.cpu-vcores": "16", "yarn.node-labels.enabled": "true",
			"yarn.node-labels.fs-store.root-dir":                            "file://" + x.bed.Dir("labels"),
			"yarn.resourcemanager.placement-constraints.handler":            "scheduler",
			"yarn.webapp.enable-rest-app-submissions":                       "false",
			"yarn.resourcemanager.webapp.rest-csrf.enabled":                 "false",
			"yarn.scheduler.maximum-allocation-mb":                          "4096",
			"yarn.resourcemanager.application-timeouts.monitor.interval-ms": "1000",
		},
		Scheduler: map[string]string{
			"maximum-am-resource-percent": "1.0", "root.queues": "wide,masters,small,shut", "root.wide.capacity": "60", "root.wide.maximum-capacity": "100", "root.wide.user-limit-factor": "10",
			"root.masters.capacity": "20", "root.masters.maximum-am-resource-percent": "0.2", "root.masters.user-limit-factor": "10",
			"root.small.capacity": "15", "root.small.maximum-capacity": "15", "root.small.user-limit-factor": "10", "root.shut.capacity": "5", "root.shut.state": "STOPPED",
			"root.accessible-node-labels": "*", "root.accessible-node-labels.gpu.capacity": "100", "root.wide.accessible-node-labels": "gpu", "root.wide.accessible-node-labels.gpu.capacity": "100",
		},
	})
	conf, err := hconf.Load(hconf.Options{Dir: x.h.ConfDir, Need: []string{"core-site.xml", "yarn-site.xml"}})
	if err != nil {
		t.Fatal(err)
	}
	if x.rms, err = conf.RMs(); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []yarnclient.Mode{yarnclient.Auto, yarnclient.REST, yarnclient.ByRPC} {
		a, err := yarnclient.Open(yarnclient.Options{Mode: mode, Notice: func(s string) { x.notices = append(x.notices, s) },
			REST: yarnclient.Config{Bases: []string{"http://" + x.rms[0].Web}, Auth: yarnclient.UserName(user)},
			RPC:  yarnclient.RPCConfig{Addrs: []string{x.rms[0].Client}, Auth: []hrpc.Authenticator{hrpc.Simple(user)}}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(a.Close)
		x.access[mode] = a
	}
	if out, err := x.h.Tool("yarn", "org.apache.hadoop.yarn.client.cli.RMAdminCLI", "-addToClusterNodeLabels", "gpu(exclusive=true)"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	x.exe = testbed.BuildProgram(t, x.bed, "./cmd/heddle", "heddle")
	return x
}

// submit submits a master that only waits, with memory, by whichever way works.
func (x *scarce) submit(queue, label string, mb int64) yarnid.Application {
	x.t.Helper()
	a := x.access[yarnclient.Auto]
	app, err := a.NewApplication(x.t.Context())
	if err == nil {
		err = a.Submit(x.t.Context(), &yarnclient.Submission{ID: app.ID, Name: "waits", Type: "HEDDLE", Queue: queue, AMNodeLabel: label, Resource: yarnclient.Resource{MemoryMB: mb, VCores: 1}, MaxAttempts: 1,
			Command: "sleep 600 1><LOG_DIR>/stdout 2>&1", Env: map[string]string{"PATH": "/usr/bin:/bin"}})
	}
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := a.Kill(ctx, app.ID, "the test is over"); err != nil {
			x.t.Logf("cannot kill %s: %v", app.ID, err)
		}
	})
	return app.ID
}

// command runs the command as the user and returns what it printed.
func (x *scarce) command(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(x.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, x.exe, args...)
	cmd.Env = append(os.Environ(), "HADOOP_CONF_DIR="+x.h.ConfDir, "HADOOP_USER_NAME="+user)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("heddle %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out), nil
}

// explains waits until heddle explain finds a reason of a kind.
func (x *scarce) explains(t *testing.T, id yarnid.Application, kind, text string) {
	t.Helper()
	x.bed.Eventually(fmt.Sprintf("heddle explain %s finds %s", id, kind), 2*time.Minute, func() error {
		out, err := x.command("explain", id.String(), "--json")
		if err != nil {
			return err
		}
		var r struct {
			Findings []struct{ Kind, Text, Fix string }
		}
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			return err
		}
		for _, f := range r.Findings {
			if f.Kind == kind && strings.Contains(f.Text, text) {
				t.Logf("%s: %s\n  fix: %s", kind, f.Text, f.Fix)
				return nil
			}
		}
		return fmt.Errorf("it says\n%s", out)
	})
}

// unmanaged is an application whose master is the test.
type unmanaged struct {
	id yarnid.Application
	s  *amrm.Session

	mu      sync.Mutex
	granted []book.Grant
}

func (u *unmanaged) has() []book.Grant {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.granted)
}

// master registers the test as the master of a new application in a queue.
func (x *scarce) master(t *testing.T, queue string) *unmanaged {
	t.Helper()
	rpc := hrpc.New(hrpc.Config{Protocol: yarnclient.ClientProtocol, Addrs: []string{x.rms[0].Client}, Auth: []hrpc.Authenticator{hrpc.Simple(user)}})
	defer rpc.Close()
	app, err := x.access[yarnclient.Auto].NewApplication(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	yes, name, typ, mb := true, "unmanaged", "HEDDLE", int64(64)
	req := &pb.SubmitApplicationRequestProto{ApplicationSubmissionContext: &pb.ApplicationSubmissionContextProto{ApplicationId: app.ID.Proto(), ApplicationName: &name, ApplicationType: &typ, Queue: &queue,
		UnmanagedAm: &yes, AmContainerSpec: &pb.ContainerLaunchContextProto{}, Resource: &pb.ResourceProto{Memory: &mb, VirtualCores: new(int32)}}}
	if err := rpc.Call(t.Context(), "submitApplication", req, &pb.SubmitApplicationResponseProto{}); err != nil {
		t.Fatal(err)
	}
	var report pb.GetApplicationReportResponseProto
	x.bed.Eventually("the master of "+app.ID.String()+" has its token", time.Minute, func() error {
		report.Reset()
		if err := rpc.Call(t.Context(), "getApplicationReport", &pb.GetApplicationReportRequestProto{ApplicationId: app.ID.Proto()}, &report); err != nil {
			return err
		}
		if report.GetApplicationReport().AmRmToken == nil {
			return fmt.Errorf("it is %s: %s", report.GetApplicationReport().GetYarnApplicationState(), report.GetApplicationReport().GetDiagnostics())
		}
		return nil
	})
	u := &unmanaged{id: app.ID}
	u.s, _, err = amrm.Register(t.Context(), amrm.Config{Addrs: x.h.RMSched, Token: token.FromProto(report.GetApplicationReport().AmRmToken), Host: "localhost", Port: -1,
		Heard: func(o book.Outcome) { u.mu.Lock(); u.granted = append(u.granted, o.Granted...); u.mu.Unlock() }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := u.s.Finish(ctx, pb.FinalApplicationStatusProto_APP_SUCCEEDED, "", ""); err != nil {
			t.Logf("cannot unregister: %v", err)
		}
		u.s.Close()
	})
	return u
}

func (u *unmanaged) want(n int, mb int64, change func(*book.Ask)) {
	a := book.Ask{Key: book.Key{Priority: 1, Request: 1}, Count: n, MemoryMB: mb, VCores: 1}
	if change != nil {
		change(&a)
	}
	u.s.Want(a)
}

// TestExplain proves on a real ResourceManager that each reason for waiting is told, that REST and RPC tell the same, and that the
// scheduler keeps agents apart.
func TestExplain(t *testing.T) {
	x := newScarce(t)
	t.Run("submit", x.testSubmit)
	t.Run("same", x.testSame)
	t.Run("masters", func(t *testing.T) {
		x.submit("masters", "", 64)
		x.explains(t, x.submit("masters", "", 512), "masters-limit", "512 MB")
	})
	t.Run("label", func(t *testing.T) { x.explains(t, x.submit("wide", "gpu", 64), "label-without-nodes", "gpu") })
	t.Run("stopped", func(t *testing.T) { x.explains(t, x.submit("shut", "", 64), "queue-stopped", "STOPPED") })
	t.Run("unknown", func(t *testing.T) { x.explains(t, x.submit("nowhere", "", 64), "queue-unknown", "nowhere") })
	t.Run("queue", func(t *testing.T) {
		u := x.master(t, "small")
		u.want(20, 128, nil)
		x.explains(t, u.id, "queue-full", "root.small")
	})
	t.Run("nodes", func(t *testing.T) {
		u := x.master(t, "wide")
		u.want(10, 512, nil)
		x.explains(t, u.id, "nodes-full", "512 MB")
	})
	t.Run("host", func(t *testing.T) {
		u := x.master(t, "wide")
		u.want(1, 64, func(a *book.Ask) {
			a.Nodes, a.Racks, a.Strict = []string{"nowhere.example"}, []string{"/default-rack"}, true
		})
		x.explains(t, u.id, "host-unknown", "nowhere.example")
	})
	t.Run("apart", x.testApart)
}

// testSubmit: the cluster takes no submissions by REST, so that they go by RPC, with a lifetime. At its end, which is changed, YARN ends the application.
func (x *scarce) testSubmit(t *testing.T) {
	a := x.access[yarnclient.Auto]
	app, err := a.NewApplication(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := &yarnclient.Submission{ID: app.ID, Name: "short", Type: "HEDDLE", Queue: "wide", Tags: []string{"Tag"}, Priority: 2, Resource: yarnclient.Resource{MemoryMB: 64, VCores: 1}, Lifetime: time.Hour,
		RollingLogs: "std.*", Logs: ".*", Command: "sleep 600", Env: map[string]string{"PATH": "/usr/bin:/bin"}, MaxAttempts: 1}
	for range 2 { // the second is the same application
		if err := a.Submit(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.ContainsFunc(x.notices, func(n string) bool { return strings.Contains(n, "by RPC") }) {
		t.Errorf("notices %q", x.notices)
	}
	if list, err := a.Apps(t.Context(), yarnclient.Filter{Types: []string{"HEDDLE"}, Tags: []string{"Tag"}, User: user}); err != nil || len(list) != 1 || list[0].ID != app.ID.String() {
		t.Errorf("by tag: %+v, %v", list, err)
	}
	if err := x.access[yarnclient.REST].Submit(t.Context(), &yarnclient.Submission{ID: app.ID, Name: "x", Command: "x"}); err == nil || !yarnclient.IsDenied(err) {
		t.Errorf("submitted by REST: %v", err)
	}
	for what, err := range map[string]error{"priority": a.SetPriority(t.Context(), app.ID, 5), "queue": a.SetQueue(t.Context(), app.ID, "masters")} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := a.SetExpiry(t.Context(), app.ID, time.Now().Add(5*time.Second)); err != nil {
		t.Fatal(err)
	}
	x.bed.Eventually("YARN ends the application at the end of its lifetime", 2*time.Minute, func() error {
		got, err := a.App(t.Context(), app.ID)
		if err == nil && got.State != yarnclient.StateKilled {
			err = fmt.Errorf("it is %s: %s", got.State, got.Diagnostics)
		}
		return err
	})
	x.explains(t, app.ID, "lifetime", "lifetime")
}

// testSame compares what both ways tell.
func (x *scarce) testSame(t *testing.T) {
	id := x.submit("wide", "", 64)
	x.bed.Eventually("a master runs", 2*time.Minute, func() error {
		as, err := x.access[yarnclient.REST].Attempts(t.Context(), id)
		if err == nil && (len(as) != 1 || as[0].Container == "") {
			err = fmt.Errorf("attempts %+v", as)
		}
		return err
	})
	type told struct {
		App                   string
		Nodes, Queues, Labels []string
		Attempts, Containers  []string
		Active                int
	}
	tell := func(a *yarnclient.Access) (out told) {
		ctx := t.Context()
		app, err := a.App(ctx, id)
		out.App = fmt.Sprint(app.Name, app.User, app.Queue, app.State, app.FinalStatus, app.Type, app.AMLabel, app.Containers, app.MemoryMB, app.VCores)
		ns, nerr := a.Nodes(ctx)
		slices.SortFunc(ns, func(a, b yarnclient.Node) int { return strings.Compare(a.ID, b.ID) })
		for _, n := range ns {
			out.Nodes = append(out.Nodes, fmt.Sprint(n.ID, n.HTTP, n.Rack, n.State, n.Total(), n.Used, n.Containers, n.Labels))
		}
		s, serr := a.Scheduler(ctx)
		for _, q := range s.Queues {
			out.Queues = append(out.Queues, fmt.Sprintf("%s %s %.0f %.0f %v", q.Path, q.State, q.Capacity, q.MaxCapacity, q.Leaf))
		}
		slices.Sort(out.Queues)
		var lerr, aerr, cerr, merr error
		out.Labels, lerr = a.Labels(ctx)
		as, aerr := a.Attempts(ctx, id)
		for _, x := range as {
			out.Attempts = append(out.Attempts, x.Container)
		}
		cs, cerr := a.Containers(ctx, yarnid.Attempt{App: id, Number: 1})
		for _, c := range cs {
			out.Containers = append(out.Containers, fmt.Sprint(c.ID, c.State, c.Node, c.NodeHTTP, c.MemoryMB))
		}
		m, merr := a.Metrics(ctx)
		out.Active = m.Active
		for _, err := range []error{err, nerr, serr, lerr, aerr, cerr, merr} {
			if err != nil {
				t.Error(err)
			}
		}
		return out
	}
	var rest, rpc told
	x.bed.Eventually("both ways tell the same", time.Minute, func() error {
		rest, rpc = tell(x.access[yarnclient.REST]), tell(x.access[yarnclient.ByRPC])
		if a, b := fmt.Sprintf("%+v", rest), fmt.Sprintf("%+v", rpc); a != b {
			return fmt.Errorf("REST %s\nRPC  %s", a, b)
		}
		return nil
	})
	if rest.Active != 2 || len(rest.Nodes) != 2 || len(rest.Queues) != 5 || len(rest.Attempts) != 1 || len(rest.Containers) != 1 {
		t.Errorf("told %+v", rest)
	}
	for _, args := range [][]string{{"nodes"}, {"nodes", "--all", "--json"}, {"queues"}, {"queues", "--yarn.client", "rpc"}, {"nodes", "--yarn.client", "rpc"}} {
		out, err := x.command(args...)
		if err != nil || !strings.Contains(out, map[string]string{"nodes": x.h.Nodes[0], "queues": "root.small"}[args[0]]) {
			t.Errorf("heddle %v: %s%v", args, out, err)
		}
	}
	tok, err := x.access[yarnclient.ByRPC].DelegationToken(t.Context(), "yarn")
	if err != nil || tok.Kind != token.KindRM {
		t.Errorf("delegation token %v, %v", tok, err)
	}
}

// testApart: with at most one a node, the scheduler gives two of three, one on each node; explain says why the third does not come.
func (x *scarce) testApart(t *testing.T) {
	u := x.master(t, "wide")
	u.want(3, 64, func(a *book.Ask) { a.PerNode, a.Constrain = 1, true })
	x.bed.Eventually("two containers are given", 2*time.Minute, func() error {
		if g := u.has(); len(g) < 2 {
			return fmt.Errorf("there are %d", len(g))
		}
		return nil
	})
	x.explains(t, u.id, "placement", "as many agents")
	if g := u.has(); len(g) != 2 || g[0].Node == g[1].Node {
		t.Errorf("granted %+v", g)
	}
}
