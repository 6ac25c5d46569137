package appmaster

import (
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/telemetry"
)

// life traces how an application comes to life, from the start of its ApplicationMaster to the first records. The spans:
//
//	start application    from the master's start to the first records
//	├ start master       until agents may come
//	├ allocate           from asking for an agent to the grant
//	├ start agent        from the grant to the registration; the agent adds what it did in that time
//	├ discover splits    of a source
//	└ deploy             from the order to an agent until all tasks of the order run
//	  ├ open             of a task, by the agent
//	  └ first record     of a task, by the agent
//
// Owned by the loop. Without a provider it does nothing.
type life struct {
	p       *telemetry.Provider
	root    telemetry.Span
	context flow.TraceContext

	asked   int // agents so far
	askedAt time.Time
	agents  map[cluster.AgentID]telemetry.Span // granted, not registered
	deploys map[cluster.ExecutionID]*deployment
	ended   bool
}

// deployment is one order on its way.
type deployment struct {
	span telemetry.Span
	left int
}

func newLife(p *telemetry.Provider, parent flow.TraceContext, at time.Time, app, job string) *life {
	l := &life{p: p, agents: map[cluster.AgentID]telemetry.Span{}, deploys: map[cluster.ExecutionID]*deployment{}}
	l.root = p.Start(telemetry.Start{Parent: parent, Name: "start application", At: at,
		Attrs: []flow.TraceAttr{telemetry.A("heddle.app", app), telemetry.A("heddle.job", job)}})
	l.context = l.root.Context()
	return l
}

func (l *life) span(name string, at time.Time, attrs ...flow.TraceAttr) telemetry.Span {
	if l.context.Trace == [16]byte{} {
		return telemetry.Span{}
	}
	return l.p.Start(telemetry.Start{Parent: l.context, Name: name, At: at, Attrs: attrs})
}

func (l *life) between(name string, from, to time.Time, attrs ...flow.TraceAttr) {
	l.span(name, from, attrs...).End(to)
}

// environ is what hands the trace on to an agent's process.
func (l *life) environ() []string {
	if !l.context.Sampled() {
		return nil
	}
	return []string{"TRACEPARENT=" + telemetry.Traceparent(l.context)}
}

// ask notes that so many agents in all are wanted now.
func (l *life) ask(total int) {
	if total > l.asked {
		l.askedAt = time.Now()
	}
	l.asked = total
}

func (l *life) granted(id cluster.AgentID, container cluster.ContainerID, host string) {
	now := time.Now()
	attrs := []flow.TraceAttr{telemetry.A("heddle.agent", string(id)), telemetry.A("heddle.container", string(container)), telemetry.A("server.address", host)}
	if !l.askedAt.IsZero() {
		l.between("allocate", l.askedAt, now, attrs...)
	}
	l.agents[id] = l.span("start agent", now, attrs...)
}

// registered ends the start of an agent; why says that it came to nothing.
func (l *life) registered(id cluster.AgentID, why string) {
	s, ok := l.agents[id]
	if !ok {
		return
	}
	delete(l.agents, id)
	if why != "" {
		s.Fail(why)
	}
	s.End(time.Time{})
}

// deploying begins the span of an order and returns its context.
func (l *life) deploying(agent cluster.AgentID, tasks []cluster.ExecutionID) flow.TraceContext {
	s := l.span("deploy", time.Time{}, telemetry.A("heddle.agent", string(agent)), telemetry.A("heddle.tasks", len(tasks)))
	if !s.Recording() {
		return flow.TraceContext{}
	}
	d := &deployment{span: s, left: len(tasks)}
	for _, id := range tasks {
		l.deploys[id] = d
	}
	return s.Context()
}

// task notes the new state of a task.
func (l *life) task(id cluster.ExecutionID, state cluster.TaskState) {
	d := l.deploys[id]
	if d == nil || state == cluster.Deploying {
		return
	}
	delete(l.deploys, id)
	if state == cluster.Failed {
		d.span.Fail("a task failed")
	}
	if d.left--; d.left == 0 {
		d.span.End(time.Time{})
	}
}

// flows notes that records flow.
func (l *life) flows() {
	if !l.ended {
		l.ended = true
		l.root.End(time.Time{})
	}
}

// over ends all that is still open.
func (l *life) over(state string) {
	for id := range l.agents {
		l.registered(id, "the application is over")
	}
	for _, d := range l.deploys {
		d.span.End(time.Time{})
	}
	clear(l.deploys)
	if !l.ended && state == "failed" {
		l.root.Fail("the job failed; its cause is in the application's result")
	}
	l.flows()
}
