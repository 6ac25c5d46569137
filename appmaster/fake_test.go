package appmaster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl"
	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/jobgraph"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeSource finds the splits that its function says, call by call.
type fakeSource struct {
	refuse   error // of Enumerator
	discover func(call int) (flow.Discovery, error)
}

func (s *fakeSource) Enumerator(context.Context, flow.EnumeratorEnv) (flow.Enumerator, error) {
	return &fakeEnumerator{s: s}, s.refuse
}
func (*fakeSource) Bounded() bool { return true }

type fakeEnumerator struct {
	s     *fakeSource
	calls int
}

func (e *fakeEnumerator) Discover(context.Context) (flow.Discovery, error) {
	e.calls++
	return e.s.discover(e.calls - 1)
}
func (*fakeEnumerator) Owner(s flow.Split, readers int) int {
	return int(s.ID[len(s.ID)-1]-'0') % readers
}
func (*fakeEnumerator) Close() error { return nil }

// once finds n splits in the first call, and no more.
func once(n int) func(int) (flow.Discovery, error) {
	return func(int) (flow.Discovery, error) {
		d := flow.Discovery{Final: true}
		for i := range n {
			d.Added = append(d.Added, flow.Split{ID: fmt.Sprint("split-", i), State: []byte{byte(i)}})
		}
		return d, nil
	}
}

// job is a source of two subtasks and a sink of two.
func job(src flow.Source) (*flow.Graph, *jobgraph.Graph) {
	g := &flow.Graph{Name: "tiny"}
	g.Add(&flow.Node{Kind: "source", Name: "numbers", Source: src})
	g.Add(&flow.Node{Kind: "sink", Name: "out", Sink: true})
	return g, &jobgraph.Graph{
		Name: "tiny", Fingerprint: "f1",
		Vertices: []jobgraph.Vertex{
			{ID: 0, Name: "numbers", Nodes: []int{0}, Parallelism: 2, SlotGroup: "default", Source: 0, Out: []int{0}},
			{ID: 1, Name: "out", Nodes: []int{1}, Parallelism: 2, SlotGroup: "default", Source: -1, In: []int{0}},
		},
		Edges: []jobgraph.Edge{{ID: 0, From: 0, To: 1, FromNode: 0, ToNode: 1, Kind: flow.Hash}},
	}
}

// fakeDriver runs agents in this process, each by a goroutine that speaks real gRPC.
type fakeDriver struct {
	behave func(*fakeAgent) // changes an agent before it joins
	most   int              // refuse to start more; 0: no limit
	env    DriverEnv
	wg     sync.WaitGroup

	mu     sync.Mutex
	n      int
	agents map[cluster.AgentID]*fakeAgent
}

func (d *fakeDriver) Start(env DriverEnv) error {
	d.env, d.agents = env, map[cluster.AgentID]*fakeAgent{}
	return nil
}

func (d *fakeDriver) Ask(total int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.n < total {
		if d.most > 0 && d.n == d.most {
			d.wg.Go(func() { d.env.Refused("the cluster is full") })
			return
		}
		d.n++
		id := cluster.AgentID(fmt.Sprint("agent-", d.n))
		ctx, stop := context.WithCancelCause(context.Background())
		a := &fakeAgent{id: id, driver: d, stop: stop, fingerprint: "f1", onTask: finish}
		if d.behave != nil {
			d.behave(a)
		}
		d.agents[id] = a
		d.wg.Go(func() {
			d.env.Granted(id, cluster.ContainerID(id), "localhost")
			reason := a.run(ctx)
			d.mu.Lock()
			delete(d.agents, id)
			d.mu.Unlock()
			d.env.Exited(AgentExit{Agent: id, Reason: reason, Blame: !errors.Is(context.Cause(ctx), errReturned), LastLogs: []string{"last words of " + string(id)}})
		})
	}
}

var (
	errReturned = errors.New("returned")
	errKilled   = errors.New("killed by signal 9 (killed)")
)

func (d *fakeDriver) Return(id cluster.AgentID, _ bool) { d.end(id, errReturned) }

// end makes an agent's goroutine return, as by a signal.
func (d *fakeDriver) end(id cluster.AgentID, why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if a := d.agents[id]; a != nil {
		a.stop(why)
	}
}

func (d *fakeDriver) Stop(context.Context) {
	d.mu.Lock()
	for _, a := range d.agents {
		a.stop(errReturned)
	}
	d.mu.Unlock()
	d.wg.Wait()
}

// fakeAgent is an agent whose tasks do what onTask says.
type fakeAgent struct {
	id          cluster.AgentID
	driver      *fakeDriver
	stop        context.CancelCauseFunc
	fingerprint string
	silent      bool // sends nothing of itself, and does not answer
	certOf      cluster.AgentID
	onTask      func(a *fakeAgent, t *ctlpb.Task)
	sess        *ctl.Session
	splits      func(*ctlpb.Splits)
}

func (a *fakeAgent) run(ctx context.Context) string {
	owner := a.id
	if a.certOf != "" {
		owner = a.certOf
	}
	secrets, err := a.driver.env.Secrets(owner, cluster.ContainerID(a.id))
	if err != nil {
		return err.Error()
	}
	sess, _, err := ctl.Join(ctx, secrets, &ctlpb.Register{
		AgentId: string(a.id), Slots: 1, Fingerprint: a.fingerprint, ExchangeAddr: string(a.id) + ":1", Attempt: secrets.Attempt,
	}, ctl.JoinOptions{Wait: time.Minute})
	if ctx.Err() != nil {
		if err == nil {
			_ = sess.Close()
		}
		return context.Cause(ctx).Error()
	}
	if err != nil {
		return err.Error()
	}
	a.sess = sess
	messages := make(chan *ctlpb.FromMaster)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(messages)
		for {
			m, err := sess.Recv()
			if err != nil {
				return
			}
			select {
			case messages <- m:
			case <-ctx.Done():
			}
		}
	})
	defer wg.Wait()
	defer sess.Close()
	return a.serve(ctx, messages)
}

func (a *fakeAgent) serve(ctx context.Context, messages <-chan *ctlpb.FromMaster) string {
	beat := time.NewTicker(20 * time.Millisecond)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx).Error()
		case <-beat.C:
			if !a.silent {
				a.send(&ctlpb.FromAgent{M: &ctlpb.FromAgent_Heartbeat{Heartbeat: &ctlpb.Heartbeat{Agent: &ctlpb.AgentStats{Rss: 1 << 20}}}})
			}
		case m, ok := <-messages:
			if !ok {
				return "the session broke"
			}
			if a.silent {
				continue
			}
			if m.GetShutdown() != nil {
				return "it ended (exit status 0)"
			}
			a.handle(m)
		}
	}
}

func (a *fakeAgent) handle(m *ctlpb.FromMaster) {
	for _, t := range m.GetDeploy().GetTasks() {
		a.update(t.GetId(), cluster.Running, nil)
		a.onTask(a, t)
	}
	for _, id := range m.GetCancel().GetIds() {
		a.update(id, cluster.Canceled, nil)
	}
	if s := m.GetSplits(); s != nil && a.splits != nil {
		a.splits(s)
	}
}

func (a *fakeAgent) send(m *ctlpb.FromAgent) { _ = a.sess.Send(m) }

func (a *fakeAgent) update(id *ctlpb.ExecutionID, state cluster.TaskState, f *cluster.Failure) {
	up := &ctlpb.TaskUpdate{Id: id, State: int32(state)}
	if f != nil {
		up.Error = ctl.PBFailure(*f)
	}
	if state.Final() {
		up.Report = &ctlpb.TaskReport{Id: id, BusyNs: 1, IdleNs: 1, Operators: []*ctlpb.OperatorReport{
			{Node: id.GetVertex(), Counters: map[string]int64{recordsIn: 10 * int64(id.GetVertex()), recordsOut: 10}},
		}}
	}
	a.send(&ctlpb.FromAgent{M: &ctlpb.FromAgent_Task{Task: up}})
}

// What tasks do.

func finish(a *fakeAgent, t *ctlpb.Task) { a.update(t.GetId(), cluster.Finished, nil) }

func hang(*fakeAgent, *ctlpb.Task) {}

// config is a Config for a job of two agents of one slot each.
func config(t *testing.T, src flow.Source, d *fakeDriver) Config {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g, plan := job(src)
	c := Config{App: "app-1", AppDir: t.TempDir(), Job: g, Graph: plan, Driver: d, Listener: l, StopGrace: 2 * time.Second}
	c.Agents.MinAgents = 2
	return c
}

// start runs an application in the background. The channel gives its result.
func start(t *testing.T, ctx context.Context, c Config) (*master, <-chan Result) {
	t.Helper()
	m, err := newMaster(c)
	if err != nil {
		t.Fatal(err)
	}
	out := make(chan Result, 1)
	go func() {
		defer close(out)
		r, err := m.run(ctx)
		if err != nil {
			t.Error(err)
		}
		out <- r
	}()
	return m, out
}

// await waits until the snapshot is as wanted.
func await(t *testing.T, m *master, what string, is func(*Snapshot) bool) {
	t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !is(m.Snapshot()) {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("the snapshot never showed %s: %+v", what, m.Snapshot())
		}
	}
}

func running(s *Snapshot) bool {
	n := 0
	for _, v := range s.Vertices {
		n += v.Tasks["running"]
	}
	return n == 4
}
