package appmaster

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
	"github.com/heddle-stream/heddle/internal/flow"
)

func TestFinish(t *testing.T) {
	var mu sync.Mutex
	got := map[int32][]string{} // splits by reader
	d := &fakeDriver{behave: func(a *fakeAgent) {
		note := func(sub int32, splits []*ctlpb.Split) {
			mu.Lock()
			defer mu.Unlock()
			for _, s := range splits {
				got[sub] = append(got[sub], string(s.GetId()))
			}
		}
		ends := map[int32]bool{}
		a.onTask = func(a *fakeAgent, t *ctlpb.Task) {
			if len(t.GetInputs()) == 0 { // a source: ends when it has all splits
				note(t.GetId().GetSubtask(), t.GetSplits())
				if !t.GetNoMoreSplits() {
					ends[t.GetId().GetSubtask()] = true
					return
				}
			}
			finish(a, t)
		}
		a.splits = func(s *ctlpb.Splits) {
			note(s.GetId().GetSubtask(), s.GetSplits())
			if s.GetNoMore() && ends[s.GetId().GetSubtask()] {
				a.update(s.GetId(), cluster.Finished, nil)
			}
		}
	}}
	c := config(t, &fakeSource{discover: once(5)}, d)
	_, out := start(t, t.Context(), c)
	r := <-out
	if r.State != "finished" || r.Cause != nil {
		t.Fatalf("result %+v", r)
	}
	if len(got[0]) != 3 || len(got[1]) != 2 {
		t.Errorf("splits by reader: %v", got)
	}
	if n := r.Vertices[0].RecordsOut; n != 20 {
		t.Errorf("the sources report %d records, want 20: the last figures come with the final state", n)
	}
	var onDisk Result
	data, err := os.ReadFile(filepath.Join(c.AppDir, ResultFile))
	if err == nil {
		err = json.Unmarshal(data, &onDisk)
	}
	if err != nil || onDisk.State != "finished" || onDisk.App != "app-1" {
		t.Errorf("%s: %+v, %v", ResultFile, onDisk, err)
	}
	if entries, _ := os.ReadDir(c.AppDir); len(entries) != 2 {
		t.Errorf("left in the directory: %v", entries)
	}
}

func TestTaskFails(t *testing.T) {
	d := &fakeDriver{behave: func(a *fakeAgent) {
		a.onTask = func(a *fakeAgent, t *ctlpb.Task) {
			switch {
			case len(t.GetInputs()) > 0: // the consumer sees its producer go, and says so first
				a.update(t.GetId(), cluster.Failed, &cluster.Failure{Kind: cluster.Lost, Message: "producer went away"})
			case t.GetId().GetSubtask() == 1:
				a.update(t.GetId(), cluster.Failed, &cluster.Failure{Kind: cluster.Corrupt, Message: "bad record", Operator: "numbers"})
			}
		}
	}}
	_, out := start(t, t.Context(), config(t, &fakeSource{discover: once(1)}, d))
	r := <-out
	if r.State != "failed" || r.Cause == nil || r.Cause.Kind != "corrupt" || r.Cause.Operator != "numbers" || *r.Cause.Subtask != 1 {
		t.Errorf("state %s, cause %+v; want the source's own failure", r.State, r.Cause)
	}
}

// TestAgentKilled loses an agent: the job fails by that cause, with the agent's last words, and not by the broken session.
func TestAgentKilled(t *testing.T) {
	d := &fakeDriver{behave: func(a *fakeAgent) { a.onTask = hang }}
	m, out := start(t, t.Context(), config(t, &fakeSource{discover: once(1)}, d))
	await(t, m, "all tasks running", running)
	d.end("agent-2", errKilled)
	r := <-out
	if r.State != "failed" || r.Cause == nil || r.Cause.Agent != "agent-2" || !strings.Contains(r.Cause.Message, "killed by signal 9") {
		t.Fatalf("state %s, cause %+v", r.State, r.Cause)
	}
	if len(r.Cause.LastLogs) != 1 || r.Cause.LastLogs[0] != "last words of agent-2" {
		t.Errorf("last logs %v", r.Cause.LastLogs)
	}
	if d.n != 2 {
		t.Errorf("%d agents were started, want 2: none is replaced", d.n)
	}
}

// TestAgentSilent freezes an agent: it is lost after the heartbeat timeout, and ended.
func TestAgentSilent(t *testing.T) {
	d := &fakeDriver{behave: func(a *fakeAgent) {
		a.onTask = func(a *fakeAgent, _ *ctlpb.Task) { a.silent = a.id == "agent-1" }
	}}
	c := config(t, &fakeSource{discover: once(1)}, d)
	c.Agents.HeartbeatTimeout = 300 * time.Millisecond
	_, out := start(t, t.Context(), c)
	r := <-out
	if r.State != "failed" || r.Cause == nil || r.Cause.Agent != "agent-1" || !strings.Contains(r.Cause.Message, "no heartbeat for 300ms") {
		t.Errorf("state %s, cause %+v", r.State, r.Cause)
	}
}

// TestUnreadableSource deploys nothing before the sources have answered, so that nothing but a source's failure is told.
func TestUnreadableSource(t *testing.T) {
	answer := make(chan struct{})
	src := &fakeSource{discover: func(int) (flow.Discovery, error) {
		<-answer
		return flow.Discovery{}, cluster.Failure{Kind: cluster.NotFound, Message: "no such topic"}
	}}
	d := &fakeDriver{behave: func(a *fakeAgent) {
		a.onTask = func(a *fakeAgent, t *ctlpb.Task) {
			a.update(t.GetId(), cluster.Failed, &cluster.Failure{Kind: cluster.Invalid, Message: "the sink's own trouble"})
		}
	}}
	m, out := start(t, t.Context(), config(t, src, d))
	await(t, m, "slots taken and the source waited for", func(s *Snapshot) bool {
		return s.Slots.Total == 2 && s.Slots.Free == 0 && strings.Contains(s.Waiting, "source numbers")
	})
	close(answer)
	if r := <-out; r.State != "failed" || !strings.Contains(r.Cause.Message, "no such topic") {
		t.Errorf("state %s, cause %+v", r.State, r.Cause)
	}
}

// TestStuckTask shows what a task does that ignores that it is cancelled.
func TestStuckTask(t *testing.T) {
	d := &fakeDriver{behave: func(a *fakeAgent) {
		a.onTask = func(a *fakeAgent, t *ctlpb.Task) {
			if t.GetId().GetVertex() == 1 && t.GetId().GetSubtask() == 0 {
				a.update(t.GetId(), cluster.Canceling, &cluster.Failure{Kind: cluster.Invalid, Message: "does not stop\ngoroutine 7: main.sleep"})
			}
		}
	}}
	m, out := start(t, t.Context(), config(t, &fakeSource{discover: once(1)}, d))
	await(t, m, "the warning", func(s *Snapshot) bool { return len(s.Warnings) == 1 })
	m.Cancel("enough")
	if r := <-out; len(r.Warnings) != 1 || !strings.HasPrefix(r.Warnings[0].Message, "out 1/2 on agent-") || !strings.Contains(r.Warnings[0].Message, "main.sleep") {
		t.Errorf("warnings %+v", r.Warnings)
	}
}

func TestCancel(t *testing.T) {
	for name, cancel := range map[string]func(*master, context.CancelFunc){
		"by a user":      func(m *master, _ context.CancelFunc) { m.Cancel("enough") },
		"by the context": func(_ *master, c context.CancelFunc) { c() },
	} {
		t.Run(name, func(t *testing.T) {
			d := &fakeDriver{behave: func(a *fakeAgent) { a.onTask = hang }}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			m, out := start(t, ctx, config(t, &fakeSource{discover: once(1)}, d))
			await(t, m, "all tasks running", running)
			cancel(m, stop)
			if r := <-out; r.State != "canceled" || r.Cause != nil {
				t.Errorf("result %+v", r)
			}
		})
	}
}

// TestStubborn cancels a job whose tasks don't stop: their agents are given up.
func TestStubborn(t *testing.T) {
	d := &fakeDriver{behave: func(a *fakeAgent) {
		a.onTask = func(a *fakeAgent, _ *ctlpb.Task) { a.silent = a.id == "agent-1" }
	}}
	c := config(t, &fakeSource{discover: once(1)}, d)
	c.CancelTimeout = 200 * time.Millisecond
	m, out := start(t, t.Context(), c)
	await(t, m, "the tasks that report running", func(s *Snapshot) bool { return s.Vertices[1].Tasks["running"] == 2 })
	m.Cancel("enough")
	if r := <-out; r.State != "canceled" {
		t.Errorf("result %+v", r)
	}
}

// TestNoStart shows what becomes of jobs that can't start.
func TestNoStart(t *testing.T) {
	for _, c := range []struct {
		name   string
		source *fakeSource
		driver *fakeDriver
		config func(*Config)
		kind   string
		says   []string
		logs   bool
	}{
		{name: "agents end at once", driver: &fakeDriver{behave: func(a *fakeAgent) { a.stop(errors.New("exit status 3")) }},
			kind: "unavailable", says: []string{"cannot get 2 slots", "exit status 3", "agent-"}, logs: true},
		{name: "another job", driver: &fakeDriver{behave: func(a *fakeAgent) { a.fingerprint = "f2" }},
			kind: "invalid", says: []string{"main() must build the same job"}},
		{name: "no job", driver: &fakeDriver{behave: func(a *fakeAgent) { a.fingerprint = "" }},
			kind: "invalid", says: []string{"could not build the job"}},
		{name: "stolen name", driver: &fakeDriver{behave: func(a *fakeAgent) { a.certOf = "agent-9" }},
			kind: "unavailable", says: []string{"cannot get 2 slots", `has the certificate of "agent-9"`}, logs: true},
		{name: "not enough", driver: &fakeDriver{most: 1, behave: func(a *fakeAgent) { a.onTask = hang }},
			kind: "unavailable", says: []string{"cannot get 2 slots", "the cluster is full"}},
		{name: "too slow", driver: &fakeDriver{most: 1},
			config: func(c *Config) { c.Agents.MaxAgents = 1; c.Slots.Timeout = 100 * time.Millisecond },
			kind:   "unavailable", says: []string{"cannot get 2 slots within 100ms", "the limit of 1 agent (agents.max)"}},
		{name: "enumerator refuses", source: &fakeSource{refuse: cluster.Failure{Kind: cluster.NotFound, Message: "no such topic"}},
			kind: "not found", says: []string{"source numbers", "no such topic"}},
		{name: "first discovery fails", source: &fakeSource{discover: func(int) (flow.Discovery, error) { return flow.Discovery{}, fs.ErrPermission }},
			kind: "denied", says: []string{"source numbers"}},
		{name: "bad owner", source: &fakeSource{discover: func(int) (flow.Discovery, error) { panic("oops") }},
			kind: "internal", says: []string{"oops"}},
		{name: "enumerator ends its goroutine", source: &fakeSource{discover: func(int) (flow.Discovery, error) { runtime.Goexit(); return flow.Discovery{}, nil }},
			kind: "invalid", says: []string{"source numbers", "runtime.Goexit"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.source == nil {
				c.source = &fakeSource{discover: once(1)}
			}
			if c.driver == nil {
				c.driver = &fakeDriver{}
			}
			conf := config(t, c.source, c.driver)
			if c.config != nil {
				c.config(&conf)
			}
			if c.driver.behave == nil {
				c.driver.behave = func(a *fakeAgent) { a.onTask = hang }
			}
			_, out := start(t, t.Context(), conf)
			r := <-out
			if r.State != "failed" || r.Cause == nil || r.Cause.Kind != c.kind {
				t.Fatalf("state %s, cause %+v; want kind %s", r.State, r.Cause, c.kind)
			}
			for _, s := range c.says {
				if !strings.Contains(r.Cause.Message, s) {
					t.Errorf("the cause %q does not say %q", r.Cause.Message, s)
				}
			}
			if (len(r.Cause.LastLogs) > 0) != c.logs {
				t.Errorf("last logs %v, want some: %v", r.Cause.LastLogs, c.logs)
			}
		})
	}
}

// TestLateSplits finds splits in later calls, one of which fails: the job goes on, and the reader gets them.
func TestLateSplits(t *testing.T) {
	src := &fakeSource{discover: func(call int) (flow.Discovery, error) {
		switch call {
		case 0:
			return flow.Discovery{Next: time.Millisecond}, nil
		case 1:
			return flow.Discovery{}, errors.New("broker is away")
		}
		return flow.Discovery{Final: true, Added: []flow.Split{{ID: "split-1"}}}, nil
	}}
	d := &fakeDriver{behave: func(a *fakeAgent) {
		var sinks []*ctlpb.ExecutionID
		a.onTask = func(a *fakeAgent, t *ctlpb.Task) {
			switch {
			case len(t.GetInputs()) > 0:
				sinks = append(sinks, t.GetId())
			case t.GetNoMoreSplits():
				finish(a, t)
			}
		}
		a.splits = func(s *ctlpb.Splits) {
			if s.GetNoMore() {
				a.update(s.GetId(), cluster.Finished, nil)
				for _, id := range sinks {
					a.update(id, cluster.Finished, nil)
				}
			}
		}
	}}
	m, out := start(t, t.Context(), config(t, src, d))
	await(t, m, "the warning", func(s *Snapshot) bool { return len(s.Warnings) == 1 })
	r := <-out
	if r.State != "finished" || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0].Message, "broker is away") {
		t.Errorf("result %+v", r)
	}
	if s := m.Snapshot().Sources[0]; len(s.Splits) != 1 || s.Splits[0].Subtask != 1 || !s.Final {
		t.Errorf("source %+v", s)
	}
}

// TestDiscovery looks for splits over hours: failures are survived as long as they don't last, with growing pauses.
func TestDiscovery(t *testing.T) {
	for _, c := range []struct {
		name   string
		budget time.Duration
		fails  func(call int) bool
		ends   time.Duration // when it gives up; 0: it does not
		calls  int           // at most
	}{
		{"every second call fails", time.Minute, func(call int) bool { return call%2 == 1 }, 0, 200},
		{"all but the first fail", 2 * time.Minute, func(call int) bool { return call > 0 }, 5*time.Minute + 2*time.Minute, 12},
		{"all but the first fail, budget without end", -1, func(call int) bool { return call > 0 }, 0, 500},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				src := &fakeSource{discover: func(call int) (flow.Discovery, error) {
					calls++
					if c.fails(call) {
						return flow.Discovery{}, context.DeadlineExceeded
					}
					return flow.Discovery{Next: 5 * time.Minute}, nil
				}}
				g, plan := job(src)
				m := &master{cfg: Config{Job: g, Graph: plan}, inbox: make(chan func(), 10_000), stopped: make(chan struct{})}
				d := &discovery{m: m, src: &source{node: g.Nodes[0], readers: 2}, budget: c.budget}
				ctx, cancel := context.WithTimeout(t.Context(), 4*time.Hour)
				defer cancel()
				began := time.Now()
				err := d.enumerate(ctx)
				if took := time.Since(began); (err != nil) != (c.ends > 0) || err != nil && (took < c.ends || took > c.ends+longestPause) {
					t.Errorf("after %v: %v; want an end at about %v", took, err, c.ends)
				}
				if calls > c.calls {
					t.Errorf("%d calls, want at most %d", calls, c.calls)
				}
				if f := classify(errors.Join(err, context.DeadlineExceeded)); f.Kind != cluster.Unavailable {
					t.Errorf("kind %v", f.Kind)
				}
			})
		})
	}
}

// TestDeafEnumerator does not let a connector that ignores its context keep the application from ending.
func TestDeafEnumerator(t *testing.T) {
	let := make(chan struct{})
	src := &fakeSource{discover: func(int) (flow.Discovery, error) {
		<-let
		return flow.Discovery{Final: true}, nil
	}}
	c := config(t, src, &fakeDriver{behave: func(a *fakeAgent) { a.onTask = hang }})
	c.StopGrace = 50 * time.Millisecond
	m, out := start(t, t.Context(), c)
	await(t, m, "what the job waits for", func(s *Snapshot) bool { return strings.Contains(s.Waiting, "source numbers to find its splits") })
	m.Cancel("enough")
	if r := <-out; r.State != "canceled" {
		t.Errorf("result %+v", r)
	}
	close(let)
}

func TestSnapshot(t *testing.T) {
	d := &fakeDriver{behave: func(a *fakeAgent) { a.onTask = hang }}
	c := config(t, &fakeSource{discover: once(3)}, d)
	m, out := start(t, t.Context(), c)
	await(t, m, "all tasks running, both agents' memory, and the splits", func(s *Snapshot) bool {
		return running(s) && len(s.Agents) == 2 && s.Agents[0].RSS > 0 && s.Agents[1].RSS > 0 && len(s.Sources[0].Splits) == 3
	})
	s := m.Snapshot()
	if s.State != "running" || s.Waiting != "" || s.Slots != (SlotCounts{Needed: 2, Total: 2}) {
		t.Errorf("state %s, waiting %q, slots %+v", s.State, s.Waiting, s.Slots)
	}
	if a := s.Agents[0]; a.ID != "agent-1" || a.State != "alive" || len(a.Slots) != 1 || len(a.Slots[0].Tasks) != 2 {
		t.Errorf("agent %+v, want its slot shared by two tasks", a)
	}
	var addr Addr
	data, err := os.ReadFile(filepath.Join(c.AppDir, AddrFile))
	if err == nil {
		err = json.Unmarshal(data, &addr)
	}
	if err != nil || addr.Control != c.Listener.Addr().String() || addr.PID != os.Getpid() {
		t.Errorf("%s: %+v, %v", AddrFile, addr, err)
	}
	m.Cancel("seen enough")
	<-out
	m.Cancel("again") // does not hang
}

func TestRates(t *testing.T) {
	var r rateMeter
	now := time.Unix(0, 0)
	for i := range 20 {
		in, out := r.add(now, int64(i)*100, int64(i)*10)
		if i > 0 && (in != 100 || out != 10) {
			t.Fatalf("second %d: %v in, %v out; want 100 and 10", i, in, out)
		}
		now = now.Add(time.Second)
	}
	if in, _ := r.add(now, 5, 5); in != 0 {
		t.Errorf("after a restart: %v", in)
	}
	if len(r.samples) > 8 {
		t.Errorf("%d samples are kept", len(r.samples))
	}
}
