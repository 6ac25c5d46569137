package appmaster

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/heddle-stream/heddle/appmaster/plane"
	"github.com/heddle-stream/heddle/appmaster/sched"
	"github.com/heddle-stream/heddle/appmaster/slotmgr"
	"github.com/heddle-stream/heddle/appmaster/slotpool"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl"
	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
	"github.com/heddle-stream/heddle/internal/flow"
)

// master is a running ApplicationMaster: what its loop owns.
type master struct {
	// Immutable.
	cfg       Config
	log       *slog.Logger
	job       cluster.JobID
	inbox     chan func()
	stopped   chan struct{}  // closed when the loop has ended: nobody reads inbox any more
	wg        sync.WaitGroup // readers of sessions
	sourcesWG sync.WaitGroup // discoveries

	// Shared.
	snapshot atomic.Pointer[Snapshot]
	profiles profiles

	// Owned by the loop.
	plane    *plane.Plane
	agents   map[cluster.AgentID]*agentRecord
	life     *life
	counts   Containers
	asks     []time.Time // when each agent was wanted, in the order in which they are granted
	states   []StateChange
	failures []Cause
	sources  []*source
	readying *flow.Node  // that is, or was, asked last whether it is ready; nil: none
	prepared bool        // connectors and formats were asked whether they are ready
	reports  [][]report  // by vertex and subtask
	rates    []rateMeter // by vertex
	started  time.Time
	marked   bool  // sources commit
	mark     int64 // the last mark that agents know to be delivered
	aligned  *alignment
	warnings []Warning
	lastLogs []string // of the agent whose loss ended the supply of agents
	dirty    bool
	shown    time.Time // when the last snapshot was made
	leaving  bool      // the job is over, agents are told to go
	tokens   tokens    // for services outside

	strangers strangers
	certified time.Time // when agents' certificates were looked after last
}

// job0 is the scheduler of the job: an application has one.
func (m *master) job0() *sched.Machine { return m.plane.Jobs[0].Sched }

// agentRecord is what the master knows of an agent beside its slots.
type agentRecord struct {
	container cluster.ContainerID
	host      string
	session   *session // nil: none
	lost      string   // why it was lost; "": it was not
	pid       int
	addr      string // of its exchange
	listens   bool   // a connection to it was possible from here
	stats     *ctlpb.AgentStats
	tokens    uint64 // version of those it has
	cert      certificate
	exit      *AgentExit // once it has ended
	asked     time.Time  // when it was wanted
	granted   time.Time  // when it was; zero: an earlier attempt's
	started   time.Time  // when its process was, by its own clock; zero: not told
	joined    time.Time  // when it registered first
	ended     time.Time  // when that was heard of
}

// Run runs the application to its end. The job's failure is part of the Result; an error means that it could not be run at all.
// When ctx ends, the job is cancelled.
func Run(ctx context.Context, cfg Config) (Result, error) {
	m, err := newMaster(cfg)
	if err != nil {
		if cfg.Listener != nil {
			_ = cfg.Listener.Close()
		}
		return Result{}, err
	}
	return m.run(ctx)
}

func newMaster(cfg Config) (*master, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	s, err := sched.New(sched.Config{
		FirstAttempt: int(cfg.Attempt) << attemptBits, Restart: cfg.Restart, CancelTimeout: cfg.CancelTimeout,
	}, cfg.Graph)
	if err != nil {
		return nil, err
	}
	m := &master{
		cfg: cfg, log: cfg.Logger, job: cluster.JobID(cfg.App),
		inbox: make(chan func(), 1024), stopped: make(chan struct{}),
		plane:  plane.New(slotmgr.New(cfg.Agents), plane.Job{ID: cluster.JobID(cfg.App), Pool: slotpool.New(cfg.Slots), Sched: s}),
		agents: map[cluster.AgentID]*agentRecord{}, started: time.Now(),
		life:  newLife(cfg.Trace, cfg.TraceParent, cfg.Submitted, cfg.Started, cfg.App, cfg.Job.Name),
		rates: make([]rateMeter, len(cfg.Graph.Vertices)), strangers: strangers{},
	}
	m.states = []StateChange{{"created", m.started}}
	m.profiles.allowed = cfg.Profiles
	m.marked = cfg.Job.Marked()
	m.aligned = newAlignment(cfg.Job, cfg.Graph)
	m.reports = make([][]report, len(cfg.Graph.Vertices))
	for i := range cfg.Graph.Vertices {
		v := &cfg.Graph.Vertices[i]
		m.reports[i] = make([]report, v.Parallelism)
		if v.Source >= 0 {
			m.sources = append(m.sources, &source{vertex: i, node: cfg.Job.Nodes[v.Source], readers: v.Parallelism, splits: make([][]flow.Split, v.Parallelism)})
		}
	}
	m.publish(m.started)
	return m, nil
}

// run starts everything, loops, and stops everything in reverse order.
func (m *master) run(ctx context.Context) (Result, error) {
	srv, err := ctl.NewServer(m.cfg.Keys.authority, server{m: m}, m.stranger)
	if err != nil {
		_ = m.cfg.Listener.Close()
		return Result{}, err
	}
	web, err := m.startFront()
	if err != nil {
		_ = m.cfg.Listener.Close()
		m.close(srv, nil)
		return Result{}, err
	}
	if err := m.cfg.Driver.Start(m.driverEnv()); err != nil {
		_ = m.cfg.Listener.Close()
		m.close(srv, nil)
		return Result{}, fmt.Errorf("cannot start the driver: %w", err)
	}
	// Not before: agents of an earlier attempt, who may call at any time, are to be expected by then.
	var serving sync.WaitGroup
	serving.Go(func() { _ = srv.Serve(m.cfg.Listener) }) // ends with Stop
	defer serving.Wait()
	if err := m.announce(web); err != nil {
		m.close(srv, m.cfg.Driver)
		return Result{}, err
	}
	discovering, stop := context.WithCancel(context.Background())
	m.sourcesWG.Go(func() { m.prepare(discovering) })
	for _, src := range m.sources {
		d := &discovery{m: m, src: src, budget: m.cfg.DiscoveryBudget}
		m.sourcesWG.Go(func() { d.run(discovering) })
	}
	m.life.between("start master", m.cfg.Started, time.Now())
	m.loop(ctx)
	m.finalize()
	stop()
	m.life.over(m.Snapshot().State)
	m.close(srv, m.cfg.Driver)
	result := m.result()
	return result, m.record(result)
}

func (m *master) startFront() (string, error) {
	if m.cfg.Front == nil {
		return "", nil
	}
	addr, err := m.cfg.Front.Start(m)
	if err != nil {
		return "", fmt.Errorf("cannot serve the dashboard: %w", err)
	}
	return addr, nil
}

// close ends what run started. The loop has ended, or never began.
func (m *master) close(srv *grpc.Server, driver Driver) {
	close(m.stopped)
	if driver != nil {
		ctx, cancel := context.WithTimeout(context.Background(), m.cfg.StopGrace)
		driver.Stop(ctx)
		cancel()
	}
	for _, a := range m.agents {
		if a.session != nil {
			a.session.finish()
		}
	}
	srv.Stop() // also closes the listener
	m.wg.Wait()
	m.awaitSources()
	if m.cfg.Front != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_ = m.cfg.Front.Close(ctx)
		cancel()
	}
}

// awaitSources waits for discoveries, which have been told to end. They run code of connectors, perhaps a user's own:
// one that does not listen must not keep the application from ending, and so is left behind.
func (m *master) awaitSources() {
	done := make(chan struct{})
	go func() {
		m.sourcesWG.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(m.cfg.StopGrace):
		m.log.Error("a source's enumerator does not end though its context has")
	}
}

// post gives the loop something to do. It waits while the loop is far behind, and reports false when it has ended.
func (m *master) post(f func()) bool {
	select {
	case m.inbox <- f:
		return true
	case <-m.stopped:
		return false
	}
}

// Snapshot implements View.
func (m *master) Snapshot() *Snapshot { return m.snapshot.Load() }

// Cancel implements View.
func (m *master) Cancel(reason string) {
	m.post(func() { m.schedEvent(time.Now(), sched.Cancel{Reason: reason}) })
}

// attemptBits is the room for restarts of the job by one attempt of the master: executions of the next one are numbered after them.
const attemptBits = 16

// Pace of the loop.
const (
	batch   = 256                    // events before the machines are asked what is due
	refresh = time.Second            // between snapshots when only figures change
	soonest = 100 * time.Millisecond // between snapshots when the state changes
)

// loop runs until the job is over and its agents are gone, or have had their time.
func (m *master) loop(ctx context.Context) {
	m.schedEvent(time.Now(), sched.Start{Held: len(m.sources) > 0})
	m.turn()
	timer := time.NewTimer(0)
	defer timer.Stop()
	done := ctx.Done()
	var until time.Time // when agents have had their time to go by themselves; zero: the job runs
	for {
		now := time.Now()
		if state, _ := m.job0().State(); state.Final() && !m.leaving {
			until = now.Add(m.cfg.StopGrace)
			m.dismiss()
			m.life.over(state.String())
		}
		if m.leaving && (!now.Before(until) || m.running() == 0) {
			m.publish(now)
			return
		}
		timer.Reset(m.pause(now, until))
		select {
		case f := <-m.inbox:
			f()
			m.drain()
		case <-timer.C:
		case fresh, ok := <-m.cfg.Tokens:
			m.renew(fresh, ok)
		case <-done:
			done = nil
			m.schedEvent(time.Now(), sched.Cancel{Reason: "the ApplicationMaster was told to stop: " + context.Cause(ctx).Error()})
		}
		if !m.leaving {
			m.turn()
			m.align(time.Now())
			m.certify(time.Now())
		} else {
			m.plane.Discard() // the machines' work is over
		}
		m.show(time.Now())
	}
}

// drain handles what else has come, up to a batch.
func (m *master) drain() {
	for range batch {
		select {
		case f := <-m.inbox:
			f()
		default:
			return
		}
	}
}

// pause is how long the loop may sleep if nothing happens.
func (m *master) pause(now, until time.Time) time.Duration {
	if m.plane.More() && !m.leaving {
		return 0
	}
	next := now.Add(refresh)
	for _, t := range []time.Time{m.plane.Next(), until, m.aligned.when()} {
		if !t.IsZero() && t.Before(next) {
			next = t
		}
	}
	if m.dirty && m.shown.Add(soonest).Before(next) {
		next = m.shown.Add(soonest)
	}
	return max(0, next.Sub(now))
}

// young reports whether the job began to run a moment ago, so that its first figures are awaited.
func (m *master) young() bool {
	state, since := m.job0().State()
	return !state.Final() && time.Since(since) < 2*refresh
}

// show publishes a snapshot if it is time for one.
func (m *master) show(now time.Time) {
	if age := now.Sub(m.shown); age >= refresh || m.dirty && age >= soonest {
		m.publish(now)
	}
}

// running counts agents that were granted and have not exited.
func (m *master) running() int {
	n := 0
	for _, a := range m.agents {
		if a.exit == nil {
			n++
		}
	}
	return n
}

// over is what agents are told when the job has ended.
const over = "the application is over"

// dismiss tells every agent to go, when the job is over.
func (m *master) dismiss() {
	m.leaving = true
	m.cfg.Driver.Ask(0)
	for id, a := range m.agents {
		if a.exit != nil {
			continue
		}
		if a.session != nil && a.session.accepted {
			a.session.send(&ctlpb.FromMaster{M: &ctlpb.FromMaster_Shutdown{Shutdown: &ctlpb.Shutdown{Reason: over}}})
		} else {
			m.cfg.Driver.Return(id, false)
		}
	}
}

// warn notes a fault that was survived.
func (m *master) warn(msg string) {
	const most = 20
	msg = cluster.Clip(msg, cluster.MaxText)
	m.log.Warn(msg)
	m.warnings = append(m.warnings, Warning{time.Now(), msg})
	if len(m.warnings) > most {
		m.warnings = m.warnings[len(m.warnings)-most:]
	}
	m.dirty = true
}
