package appmaster_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/agent"
	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl"
	"github.com/heddle-stream/heddle/internal/jobgraph"
	"github.com/heddle-stream/heddle/internal/testjob"
)

// wire carries connections to a listener, until it is cut.
type wire struct {
	front, back net.Listener
	wg          sync.WaitGroup

	mu    sync.Mutex
	down  bool
	conns []net.Conn
}

func newWire(t *testing.T) *wire {
	t.Helper()
	w := &wire{}
	var err error
	if w.front, err = net.Listen("tcp", "127.0.0.1:0"); err == nil {
		w.back, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		t.Fatal(err)
	}
	w.wg.Go(func() {
		for {
			c, err := w.front.Accept()
			if err != nil {
				return
			}
			w.wg.Go(func() { w.carry(c) })
		}
	})
	t.Cleanup(func() {
		_ = w.front.Close()
		w.set(true)
		w.wg.Wait()
	})
	return w
}

func (w *wire) carry(c net.Conn) {
	defer c.Close()
	b, err := net.Dial("tcp", w.back.Addr().String())
	if err != nil {
		return
	}
	defer b.Close()
	w.mu.Lock()
	if w.down {
		w.mu.Unlock()
		return
	}
	w.conns = append(w.conns, c, b)
	w.mu.Unlock()
	var both sync.WaitGroup
	for _, p := range [][2]net.Conn{{c, b}, {b, c}} {
		both.Go(func() {
			_, _ = io.Copy(p[0], p[1])
			_ = p[0].Close()
		})
	}
	both.Wait()
}

// set cuts every connection and lets none through, or lets them through again.
func (w *wire) set(down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = down
	for _, c := range w.conns {
		_ = c.Close()
	}
	w.conns = nil
}

// agents is a driver whose agents are real ones, in this process.
type agents struct {
	job  *heddle.Job
	plan *jobgraph.Graph
	env  appmaster.DriverEnv
	wg   sync.WaitGroup
	ends chan error

	mu      sync.Mutex
	n       int
	cancels map[cluster.AgentID]context.CancelFunc
	away    map[cluster.AgentID]bool
}

func (d *agents) Start(env appmaster.DriverEnv) error {
	d.env, d.ends = env, make(chan error, 10)
	d.cancels, d.away = map[cluster.AgentID]context.CancelFunc{}, map[cluster.AgentID]bool{}
	return nil
}

func (d *agents) Ask(total int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.n < total {
		d.n++
		id := cluster.AgentID(fmt.Sprint("agent-", d.n))
		ctx, cancel := context.WithCancel(context.Background())
		d.cancels[id] = cancel
		d.wg.Go(func() {
			d.env.Granted(id, cluster.ContainerID(id), "localhost")
			secrets, err := d.env.Secrets(id, cluster.ContainerID(id))
			if err == nil {
				err = agent.Run(ctx, agent.Config{Secrets: secrets, Graph: d.job.Graph(), Plan: d.plan, RefuseTimeout: 30 * time.Second})
			}
			d.ends <- err
			d.env.Exited(appmaster.AgentExit{Agent: id, Reason: fmt.Sprint("it ended: ", err), Blame: true})
		})
	}
}

// Return leaves a lost agent alone, as a host does that can't be reached.
func (d *agents) Return(id cluster.AgentID, lost bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if lost {
		d.away[id] = true
	}
	if !d.away[id] {
		d.cancels[id]()
	}
}

func (d *agents) Stop(context.Context) {
	d.mu.Lock()
	for _, cancel := range d.cancels {
		cancel()
	}
	d.mu.Unlock()
	d.wg.Wait()
}

type count = heddle.Windowed[string, int64]

// blip runs a word count whose source waits at a gate, and returns the result.
func blip(t *testing.T, timeout time.Duration, during func(w *wire, view appmaster.View, d *agents)) (appmaster.Result, []count) {
	t.Helper()
	w, sink := newWire(t), &testjob.Sink[count]{}
	job := heddle.NewJob("word-count")
	src := &testjob.Source[string]{Splits: 5, Each: 970, Batch: 10, Pause: time.Millisecond, At: func(_, i int) string { return fmt.Sprint("word-", i%97) }}
	in := heddle.FromSource(job, src)
	heddle.ToSink(heddle.Aggregate(heddle.Global(heddle.KeyBy(in, func(w string) string { return w })), heddle.Count[string]()), sink)
	plan, err := jobgraph.Compile(job.Graph(), jobgraph.Options{Parallelism: 2})
	if err != nil {
		t.Fatal(err)
	}
	d := &agents{job: job, plan: plan}
	c := appmaster.Config{
		App: "app-1", Job: job.Graph(), Graph: plan, Driver: d, Listener: w.back, Advertise: w.front.Addr().String(),
		HeartbeatInterval: 20 * time.Millisecond, StopGrace: time.Second,
	}
	c.Agents.MinAgents, c.Agents.HeartbeatTimeout = 2, timeout
	c.Front = front(func(view appmaster.View) { during(w, view, d) })
	r, err := appmaster.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r, sink.Records()
}

// front runs a function beside the application.
type front func(appmaster.View)

var frontDone sync.WaitGroup

func (f front) Start(v appmaster.View) (string, error) {
	frontDone.Go(func() { f(v) })
	return "", nil
}

func (f front) Close(context.Context) error {
	frontDone.Wait()
	return nil
}

func until(is func() bool) {
	for deadline := time.Now().Add(time.Minute); !is() && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond) // a poll of another goroutine's state, with a deadline
	}
}

func allRun(s *appmaster.Snapshot) bool {
	n := 0
	for _, v := range s.Vertices {
		n += v.Tasks["running"]
	}
	return n == 4
}

// TestBlip cuts every session several times while a job runs: it ends as if nothing had happened, every record counted once.
func TestBlip(t *testing.T) {
	r, got := blip(t, 10*time.Second, func(w *wire, view appmaster.View, _ *agents) {
		until(func() bool { return allRun(view.Snapshot()) })
		for range 3 {
			w.set(true)
			time.Sleep(20 * time.Millisecond) // the outage
			w.set(false)
			until(func() bool {
				s := view.Snapshot()
				return len(s.Agents) == 2 && s.Agents[0].State == "alive" && s.Agents[1].State == "alive"
			})
		}
	})
	if r.State != "finished" {
		t.Fatalf("the job is %s: %+v", r.State, r.Cause)
	}
	for _, c := range got {
		if c.Value != 50 {
			t.Errorf("%s was counted %d times, want 50", c.Key, c.Value)
		}
	}
	if len(got) != 97 || len(r.Warnings) < 2 {
		t.Errorf("%d words, want 97; warnings %v, want agents that are back", len(got), r.Warnings)
	}
}

// TestGoneTooLong cuts the sessions for longer than the heartbeat timeout: the agents are lost, and refused when they come back.
func TestGoneTooLong(t *testing.T) {
	var ended []error
	r, _ := blip(t, 200*time.Millisecond, func(w *wire, view appmaster.View, d *agents) {
		until(func() bool { return allRun(view.Snapshot()) })
		w.set(true)
		until(func() bool { return view.Snapshot().State == "failed" })
		w.set(false)
		for range 2 {
			ended = append(ended, <-d.ends)
		}
	})
	if r.State != "failed" || !strings.Contains(r.Cause.Message, "agent-") {
		t.Errorf("the job is %s: %+v", r.State, r.Cause)
	}
	for _, err := range ended {
		_, lost := errors.AsType[*agent.LostError](err)
		_, refused := errors.AsType[*ctl.RefusedError](err)
		if !lost && !refused {
			t.Errorf("an agent ended with %v, want it to be lost or refused", err)
		}
	}
}
