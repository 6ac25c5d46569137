package agent_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/agent"
	"github.com/heddle-stream/heddle/agent/task"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl"
	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
	"github.com/heddle-stream/heddle/internal/ctl/pki"
	"github.com/heddle-stream/heddle/internal/jobgraph"
	"github.com/heddle-stream/heddle/internal/testjob"
	"github.com/heddle-stream/heddle/netstack"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// master is a scripted ApplicationMaster: tests send orders through it and look at what agents say.
type master struct {
	ctlpb.UnimplementedControlServer
	authority *pki.Authority
	key       []byte
	addr      string
	server    *grpc.Server
	refuse    string // answer every Register so
	heartbeat time.Duration
	timeout   time.Duration
	mute      bool // no acks

	mu       sync.Mutex
	changed  chan struct{} // closed and renewed at every change
	sessions map[string]*masterSession
	updates  map[cluster.ExecutionID][]*ctlpb.TaskUpdate
	beats    map[string]*ctlpb.Heartbeat
	goodbyes map[string]string
	joins    int
	serial   string // of the certificate by which the last one joined
}

type masterSession struct {
	reg  *ctlpb.Register
	out  chan *ctlpb.FromMaster
	kick chan struct{}
}

func newMaster(t *testing.T) *master {
	t.Helper()
	authority, err := pki.NewAuthority("app")
	if err != nil {
		t.Fatal(err)
	}
	m := &master{
		authority: authority, key: pki.NewExchangeKey(), heartbeat: 20 * time.Millisecond, timeout: 20 * time.Second,
		changed: make(chan struct{}), sessions: map[string]*masterSession{},
		updates: map[cluster.ExecutionID][]*ctlpb.TaskUpdate{}, beats: map[string]*ctlpb.Heartbeat{}, goodbyes: map[string]string{},
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m.addr = l.Addr().String()
	if m.server, err = ctl.NewServer(authority, m, nil); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = m.server.Serve(l) }()
	t.Cleanup(func() { m.server.Stop(); <-done })
	return m
}

func (m *master) change(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
	close(m.changed)
	m.changed = make(chan struct{})
}

func (m *master) Session(s ctlpb.Control_SessionServer) error {
	first, err := s.Recv()
	if err != nil {
		return err
	}
	reg := first.GetRegister()
	if m.refuse != "" {
		return s.Send(&ctlpb.FromMaster{M: &ctlpb.FromMaster_Refused{Refused: &ctlpb.Refused{Reason: m.refuse}}})
	}
	sess := &masterSession{reg: reg, out: make(chan *ctlpb.FromMaster, 1000), kick: make(chan struct{})}
	sess.out <- &ctlpb.FromMaster{M: &ctlpb.FromMaster_Registered{Registered: &ctlpb.Registered{
		JobId: "job", HeartbeatMs: m.heartbeat.Milliseconds(), TimeoutMs: m.timeout.Milliseconds(),
	}}}
	m.change(func() { m.sessions[reg.GetAgentId()] = sess; m.joins++; m.serial = serialOf(s.Context()) })
	received := make(chan error, 1)
	go func() {
		for {
			msg, err := s.Recv()
			if err != nil {
				received <- err
				return
			}
			m.receive(sess, msg)
		}
	}()
	for {
		select {
		case out := <-sess.out:
			if err := s.Send(out); err != nil {
				return err
			}
		case <-sess.kick:
			return errors.New("kicked")
		case err := <-received:
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// serialOf is the number of the certificate by which a call came.
func serialOf(ctx context.Context) string {
	p, _ := peer.FromContext(ctx)
	return p.AuthInfo.(credentials.TLSInfo).State.PeerCertificates[0].SerialNumber.String()
}

func (m *master) receive(sess *masterSession, msg *ctlpb.FromAgent) {
	id := sess.reg.GetAgentId()
	m.change(func() {
		switch x := msg.M.(type) {
		case *ctlpb.FromAgent_Heartbeat:
			m.beats[id] = x.Heartbeat
			if !m.mute {
				sess.out <- &ctlpb.FromMaster{M: &ctlpb.FromMaster_Ack{Ack: &ctlpb.HeartbeatAck{Seq: x.Heartbeat.GetSeq()}}}
			}
		case *ctlpb.FromAgent_Task:
			e := ctl.Execution(x.Task.GetId())
			m.updates[e] = append(m.updates[e], x.Task)
		case *ctlpb.FromAgent_Goodbye:
			m.goodbyes[id] = x.Goodbye.GetReason()
		}
	})
}

// await waits until cond, which is called under the lock, holds.
func (m *master) await(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		m.mu.Lock()
		ok, changed := cond(), m.changed
		m.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			m.mu.Lock()
			defer m.mu.Unlock()
			t.Fatalf("waited in vain for %s; updates: %v", what, m.updates)
		}
	}
}

// secrets are those of a new agent.
func (m *master) secrets(t *testing.T, id string) ctl.AgentSecrets {
	t.Helper()
	leaf, err := m.authority.Agent(pki.Name{App: "app", Agent: cluster.AgentID(id)})
	if err != nil {
		t.Fatal(err)
	}
	return ctl.AgentSecrets{
		App: "app", AgentID: cluster.AgentID(id), MasterAddr: m.addr, Cert: string(leaf.Cert), Key: string(leaf.Key),
		CA: string(m.authority.CertPEM()), ExchangeKey: m.key,
	}
}

// start runs an agent and returns a function that waits for its end.
func (m *master) start(ctx context.Context, t *testing.T, id string, job *heddle.Job, plan *jobgraph.Graph, change func(*agent.Config)) func() error {
	t.Helper()
	cfg := agent.Config{
		Secrets: m.secrets(t, id), Graph: job.Graph(), Plan: plan, Slots: 2, FlushTimeout: 5 * time.Millisecond,
		JoinTimeout: 10 * time.Second, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Exchange: netstack.Config{MemorySegments: 512},
	}
	if change != nil {
		change(&cfg)
	}
	ended := make(chan error, 1)
	go func() { ended <- agent.Run(ctx, cfg) }()
	wait := sync.OnceValue(func() error { return <-ended })
	t.Cleanup(func() { _ = wait() })
	return wait
}

// deploy puts subtask i of every vertex into slot i/agents of agent i%agents, and gives sources their splits.
func (m *master) deploy(t *testing.T, plan *jobgraph.Graph, splits int, agents ...string) {
	t.Helper()
	m.await(t, "registrations", func() bool {
		for _, a := range agents {
			if m.sessions[a] == nil {
				return false
			}
		}
		return true
	})
	addr := func(_, subtask int) string { return m.sessions[agents[subtask%len(agents)]].reg.GetExchangeAddr() }
	for v := range plan.Vertices {
		for sub := range plan.Vertices[v].Parallelism {
			id := cluster.ExecutionID{Vertex: v, Subtask: sub}
			d := deployment(plan, id, addr)
			d.Slot, d.Allocation = int32(sub/len(agents)), uint64(1+sub)
			if plan.Vertices[v].Source >= 0 {
				for s := sub; s < splits; s += plan.Vertices[v].Parallelism {
					d.Splits = append(d.Splits, &ctlpb.Split{Id: []byte(fmt.Sprint(s))})
				}
			}
			m.order(agents[sub%len(agents)], &ctlpb.FromMaster{M: &ctlpb.FromMaster_Deploy{Deploy: &ctlpb.Deploy{Tasks: []*ctlpb.Task{d}}}})
			if plan.Vertices[v].Source >= 0 {
				m.order(agents[sub%len(agents)], &ctlpb.FromMaster{M: &ctlpb.FromMaster_Splits{Splits: &ctlpb.Splits{Id: d.Id, NoMore: true}}})
			}
		}
	}
}

func (m *master) order(agent string, msg *ctlpb.FromMaster) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sessions[agent].out <- msg
}

func deployment(plan *jobgraph.Graph, id cluster.ExecutionID, addr func(vertex, subtask int) string) *ctlpb.Task {
	inputs, outputs := task.Wire(plan, id, addr)
	d := &ctlpb.Task{Id: ctl.PBExecution(id)}
	for _, in := range inputs {
		p := &ctlpb.Input{Edge: int32(in.Edge)}
		for _, c := range in.Channels {
			p.Channels = append(p.Channels, &ctlpb.Channel{Partition: c.Partition, Subpartition: int32(c.Subpartition), Addr: c.Addr, ConnIndex: c.ConnIndex, Producer: int32(c.Producer)})
		}
		d.Inputs = append(d.Inputs, p)
	}
	for _, out := range outputs {
		d.Outputs = append(d.Outputs, &ctlpb.Output{Edge: int32(out.Edge), Partition: out.Partition, Subpartitions: int32(out.Subpartitions)})
	}
	return d
}

// states are the states that an execution went through. m.mu is held.
func (m *master) states(id cluster.ExecutionID) []cluster.TaskState {
	var s []cluster.TaskState
	for _, u := range m.updates[id] {
		s = append(s, cluster.TaskState(u.GetState()))
	}
	return s
}

// awaitFinal waits until every execution of the plan has ended, and returns how.
func (m *master) awaitFinal(t *testing.T, plan *jobgraph.Graph) map[cluster.ExecutionID]*ctlpb.TaskUpdate {
	t.Helper()
	last := map[cluster.ExecutionID]*ctlpb.TaskUpdate{}
	m.await(t, "the end of all tasks", func() bool {
		for v := range plan.Vertices {
			for sub := range plan.Vertices[v].Parallelism {
				id := cluster.ExecutionID{Vertex: v, Subtask: sub}
				us := m.updates[id]
				if len(us) == 0 || !cluster.TaskState(us[len(us)-1].GetState()).Final() {
					return false
				}
				last[id] = us[len(us)-1]
			}
		}
		return true
	})
	return last
}

func compile(t *testing.T, job *heddle.Job, parallelism int) *jobgraph.Graph {
	t.Helper()
	plan, err := jobgraph.Compile(job.Graph(), jobgraph.Options{Parallelism: parallelism})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func words(splits, each int) *testjob.Source[string] {
	return &testjob.Source[string]{Splits: splits, Each: each, At: func(_, i int) string { return fmt.Sprint("word-", i%97) }}
}

type count = heddle.Windowed[string, int64]

func wordCount(src *testjob.Source[string], sink *testjob.Sink[count]) *heddle.Job {
	job := heddle.NewJob("word-count")
	in := heddle.FromSource(job, src)
	heddle.ToSink(heddle.Aggregate(heddle.Global(heddle.KeyBy(in, func(w string) string { return w })), heddle.Count[string]()), sink)
	return job
}

func TestWordCountOverTwoAgents(t *testing.T) {
	for _, tls := range []bool{false, true} {
		t.Run(fmt.Sprint("tls=", tls), func(t *testing.T) {
			m := newMaster(t)
			sink := &testjob.Sink[count]{}
			job := wordCount(words(7, 9700), sink)
			plan := compile(t, job, 4)
			ctx, cancel := context.WithCancel(t.Context())
			secure := func(c *agent.Config) { c.ExchangeTLS = tls }
			end1, end2 := m.start(ctx, t, "agent-1", job, plan, secure), m.start(ctx, t, "agent-2", job, plan, secure)
			m.deploy(t, plan, 7, "agent-1", "agent-2")
			for id, u := range m.awaitFinal(t, plan) {
				if u.GetState() != int32(cluster.Finished) || u.GetReport() == nil {
					t.Errorf("task %v ended as %v", id, u)
				}
			}
			got := sink.Records()
			if len(got) != 97 {
				t.Errorf("%d words, want 97", len(got))
			}
			for _, c := range got {
				if c.Value != 700 {
					t.Errorf("%s was counted %d times, want 700", c.Key, c.Value)
				}
			}
			m.mu.Lock()
			for id := range m.updates {
				want := []cluster.TaskState{cluster.Deploying, cluster.Running, cluster.Finished}
				if s := m.states(id); !slices.Equal(s, want) {
					t.Errorf("task %v went through %v, want %v", id, s, want)
				}
			}
			m.mu.Unlock()
			m.await(t, "a heartbeat", func() bool { return m.beats["agent-1"].GetAgent().GetSegmentsTotal() == 512 })
			m.order("agent-1", &ctlpb.FromMaster{M: &ctlpb.FromMaster_Shutdown{Shutdown: &ctlpb.Shutdown{Reason: "done"}}})
			if err := end1(); err != nil {
				t.Errorf("agent-1 ended with %v", err)
			}
			cancel()
			if err := end2(); err != nil {
				t.Errorf("agent-2 ended with %v", err)
			}
			m.await(t, "two goodbyes", func() bool { return len(m.goodbyes) == 2 })
		})
	}
}

func TestFailureAndItsEcho(t *testing.T) {
	m := newMaster(t)
	job := heddle.NewJob("boom")
	in := heddle.FromSource(job, words(4, -1)).Rebalance()
	seen := heddle.Map(in, func(w string) string {
		if w == "word-50" {
			panic("fifty")
		}
		return w
	}).Name("shaky").Parallelism(1)
	sink := &testjob.Sink[string]{}
	heddle.ToSink(seen.Rebalance(), sink)
	plan := compile(t, job, 4)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m.start(ctx, t, "agent-1", job, plan, nil)
	m.start(ctx, t, "agent-2", job, plan, nil)
	m.deploy(t, plan, 4, "agent-1", "agent-2")
	// Sources outlive the failure of their consumer until they are cancelled.
	m.await(t, "the failure", func() bool { return len(m.states(cluster.ExecutionID{Vertex: 1})) == 3 })
	for _, a := range []string{"agent-1", "agent-2"} {
		var ids []*ctlpb.ExecutionID
		for sub := range 4 {
			ids = append(ids, ctl.PBExecution(cluster.ExecutionID{Subtask: sub}))
		}
		m.order(a, &ctlpb.FromMaster{M: &ctlpb.FromMaster_Cancel{Cancel: &ctlpb.Cancel{Ids: ids, Reason: "the job failed"}}})
	}
	for id, u := range m.awaitFinal(t, plan) {
		f := ctl.Failure(u.GetError())
		switch id.Vertex {
		case 0:
			if u.GetState() != int32(cluster.Canceled) && f.Kind != cluster.Lost {
				t.Errorf("source %v ended as %v", id, u)
			}
		case 1:
			if f.Operator != "shaky" || f.Kind != cluster.Invalid || !strings.Contains(f.Message, "fifty") || f.Logged == "" || strings.Contains(f.Logged, "fifty") {
				t.Errorf("the failing task reported %#v", f)
			}
		case 2:
			if f.Kind != cluster.Lost || f.Peer == "" || !strings.Contains(f.Message, "operator shaky (") || strings.Contains(f.Message, "fifty") { // it may log that
				t.Errorf("consumer %v reported %#v, want the loss of its peer with the cause", id, f)
			}
		}
	}
	if sink.Open() != 0 {
		t.Errorf("%d sink writers were not closed", sink.Open())
	}
}

func TestCancelInTheMiddle(t *testing.T) {
	m := newMaster(t)
	sink := &testjob.Sink[string]{Block: true} // everything backs up behind it
	job := heddle.NewJob("endless")
	heddle.ToSink(heddle.FromSource(job, words(4, -1)).Rebalance(), sink)
	plan := compile(t, job, 4)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m.start(ctx, t, "agent-1", job, plan, nil)
	m.start(ctx, t, "agent-2", job, plan, nil)
	m.deploy(t, plan, 4, "agent-1", "agent-2")
	m.await(t, "back-pressure", func() bool {
		for _, b := range m.beats {
			for _, r := range b.GetTasks() {
				if r.GetId().GetVertex() == 0 && r.GetBlockedNs() > r.GetBusyNs() && r.GetBlockedNs() > 1e7 && len(r.GetSplits()) > 0 {
					return true
				}
			}
		}
		return false
	})
	var ids []*ctlpb.ExecutionID
	for v := range plan.Vertices {
		for sub := range 4 {
			ids = append(ids, ctl.PBExecution(cluster.ExecutionID{Vertex: v, Subtask: sub}))
		}
	}
	for _, a := range []string{"agent-1", "agent-2"} {
		m.order(a, &ctlpb.FromMaster{M: &ctlpb.FromMaster_Cancel{Cancel: &ctlpb.Cancel{Ids: ids, Reason: "test"}}})
	}
	for id, u := range m.awaitFinal(t, plan) {
		if s := cluster.TaskState(u.GetState()); s != cluster.Canceled {
			t.Errorf("task %v ended as %v: %v", id, s, u.GetError())
		}
	}
	if sink.Open() != 0 {
		t.Errorf("%d sink writers were not closed", sink.Open())
	}
}

func TestStuckTaskIsReportedWithItsStack(t *testing.T) {
	m := newMaster(t)
	release, inside := make(chan struct{}), make(chan struct{}, 1)
	job := heddle.NewJob("stubborn")
	in := heddle.FromSource(job, words(1, -1))
	heddle.ToSink(heddle.Map(in, func(w string) string {
		select {
		case inside <- struct{}{}:
		default:
		}
		<-release
		return w
	}), &testjob.Sink[string]{})
	plan := compile(t, job, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m.start(ctx, t, "agent-1", job, plan, func(c *agent.Config) { c.CancelTimeout = 50 * time.Millisecond })
	m.deploy(t, plan, 1, "agent-1")
	id := cluster.ExecutionID{}
	m.await(t, "running", func() bool { return len(m.states(id)) == 2 })
	<-inside // else it is cancelled before it is stuck
	m.order("agent-1", &ctlpb.FromMaster{M: &ctlpb.FromMaster_Cancel{Cancel: &ctlpb.Cancel{Ids: []*ctlpb.ExecutionID{ctl.PBExecution(id)}}}})
	m.await(t, "the stack", func() bool {
		for _, u := range m.updates[id] {
			if u.GetState() == int32(cluster.Canceling) && strings.Contains(u.GetError().GetMessage(), "TestStuckTaskIsReportedWithItsStack") {
				return true
			}
		}
		return false
	})
	close(release)
	if u := m.awaitFinal(t, plan)[id]; u.GetState() != int32(cluster.Canceled) {
		t.Errorf("task ended as %v", u)
	}
}

func TestRefusedAgentEndsAtOnce(t *testing.T) {
	m := newMaster(t)
	m.refuse = "unknown container"
	job := wordCount(words(1, 1), &testjob.Sink[count]{})
	err := m.start(t.Context(), t, "agent-1", job, compile(t, job, 1), func(c *agent.Config) { c.JoinTimeout = time.Hour })()
	if r, ok := errors.AsType[*ctl.RefusedError](err); !ok || r.Reason != "unknown container" {
		t.Errorf("refused agent ended with %v", err)
	}
}

func TestAgentEndsWithoutMaster(t *testing.T) {
	m := newMaster(t)
	sink := &testjob.Sink[string]{}
	job := heddle.NewJob("endless")
	heddle.ToSink(heddle.FromSource(job, words(1, -1)), sink)
	plan := compile(t, job, 1)
	end := m.start(t.Context(), t, "agent-1", job, plan, func(c *agent.Config) { c.RejoinTimeout = 100 * time.Millisecond })
	m.deploy(t, plan, 1, "agent-1")
	m.await(t, "running", func() bool { return len(m.states(cluster.ExecutionID{})) == 2 })
	m.server.Stop()
	if err := end(); err == nil || !strings.Contains(err.Error(), "lost the ApplicationMaster") {
		t.Errorf("agent without master ended with %v", err)
	}
	if sink.Open() != 0 {
		t.Errorf("%d sink writers were not closed", sink.Open())
	}
}

func TestAgentComesBackWithItsTasks(t *testing.T) {
	for name, breakIt := range map[string]func(m *master){
		"broken": func(m *master) { close(m.sessions["agent-1"].kick) },
		"silent": func(m *master) { m.mute = true },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMaster(t)
			m.timeout = 3 * time.Second
			job := heddle.NewJob("endless")
			heddle.ToSink(heddle.FromSource(job, words(1, -1)), &testjob.Sink[string]{})
			plan := compile(t, job, 1)
			ctx, cancel := context.WithCancel(t.Context())
			end := m.start(ctx, t, "agent-1", job, plan, nil)
			m.deploy(t, plan, 1, "agent-1")
			m.await(t, "running", func() bool { return len(m.states(cluster.ExecutionID{})) == 2 })
			m.change(func() { breakIt(m) })
			m.await(t, "coming back", func() bool { return m.joins == 2 })
			m.change(func() { m.mute = false })
			m.mu.Lock()
			tasks := m.sessions["agent-1"].reg.GetTasks()
			m.mu.Unlock()
			if len(tasks) != 1 || tasks[0].GetState() != int32(cluster.Running) || tasks[0].GetAllocation() != 1 {
				t.Errorf("came back with %v, want its running task", tasks)
			}
			cancel()
			if err := end(); err != nil {
				t.Errorf("agent ended with %v", err)
			}
		})
	}
}

func TestSlotIsUsedOnce(t *testing.T) {
	m := newMaster(t)
	job := heddle.NewJob("endless")
	heddle.ToSink(heddle.FromSource(job, words(4, -1)), &testjob.Sink[string]{})
	plan := compile(t, job, 4)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m.start(ctx, t, "agent-1", job, plan, nil)
	m.await(t, "registration", func() bool { return m.sessions["agent-1"] != nil })
	for i, d := range []struct {
		slot  int32
		alloc uint64
		want  string
	}{{0, 1, ""}, {0, 1, "another subtask of vertex 0"}, {0, 2, "held by allocation 1"}, {1, 1, "allocation 1 is in slot 0 already"}, {10_000, 9, "can't be"}, {5, 9, ""}, {1, 3, ""}} {
		id := cluster.ExecutionID{Subtask: i % 4, Attempt: i / 4}
		order := deployment(plan, id, nil)
		order.Slot, order.Allocation = d.slot, d.alloc
		m.order("agent-1", &ctlpb.FromMaster{M: &ctlpb.FromMaster_Deploy{Deploy: &ctlpb.Deploy{Tasks: []*ctlpb.Task{order}}}})
		m.await(t, "an answer", func() bool {
			for _, u := range m.updates[id] {
				if d.want == "" && u.GetState() == int32(cluster.Running) || d.want != "" && strings.Contains(u.GetError().GetMessage(), d.want) {
					return true
				}
			}
			return false
		})
	}
}
