package appmaster

import (
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/telemetry"
)

// life traces how an application comes to life, from the start of its ApplicationMaster to the first records. The spans:
//
//	accepted             from when YARN took the application to the master's start: beside the next, below the client's
//	start application    from the master's start to the first records
//	├ start master       until agents may come
//	├ allocate           from asking for an agent to the grant
//	├ start agent        from the grant to the registration; the agent adds what it did in that time
//	│ └ localize         until its process starts: YARN fetches its files
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
	agents  map[cluster.AgentID]starting // granted, not registered
	deploys map[cluster.ExecutionID]*deployment
	ended   bool
}

// starting is an agent that has been granted.
type starting struct {
	span    telemetry.Span
	granted time.Time
}

// deployment is one order on its way.
type deployment struct {
	span telemetry.Span
	left int
}

// newLife begins with a master's start at a time. submitted is when YARN took the application, zero if that is not known.
func newLife(p *telemetry.Provider, parent flow.TraceContext, submitted, at time.Time, app, job string) *life {
	l := &life{p: p, agents: map[cluster.AgentID]starting{}, deploys: map[cluster.ExecutionID]*deployment{}}
	if parent.Sampled() && !submitted.IsZero() {
		p.Start(telemetry.Start{Parent: parent, Name: "accepted", At: submitted, Attrs: []flow.TraceAttr{telemetry.A("heddle.app", app)}}).End(later(submitted, at))
	}
	l.root = p.Start(telemetry.Start{Parent: parent, Name: "start application", At: at,
		Attrs: []flow.TraceAttr{telemetry.A("heddle.app", app), telemetry.A("heddle.job", job)}})
	l.context = l.root.Context()
	return l
}

// later is the second of two times, but no earlier than the first: they may be by the clocks of two hosts.
func later(from, to time.Time) time.Time {
	if to.Before(from) {
		return from
	}
	return to
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
	l.agents[id] = starting{l.span("start agent", now, attrs...), now}
}

// registered ends the start of an agent, whose process started at a time by its host's clock.
func (l *life) registered(id cluster.AgentID, started time.Time) {
	a, ok := l.agents[id]
	if !ok {
		return
	}
	delete(l.agents, id)
	now := time.Now()
	if a.span.Recording() && !started.IsZero() {
		if started.After(now) {
			started = now
		}
		l.p.Start(telemetry.Start{Parent: a.span.Context(), Name: "localize", At: a.granted}).End(later(a.granted, started))
	}
	a.span.End(now)
}

// gone ends the start of an agent that came to nothing.
func (l *life) gone(id cluster.AgentID, why string) {
	if a, ok := l.agents[id]; ok {
		delete(l.agents, id)
		a.span.Fail(why)
		a.span.End(time.Time{})
	}
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
		l.gone(id, "the application is over")
	}
	for _, d := range l.deploys {
		d.span.End(time.Time{})
	}
	clear(l.deploys)
	if !l.ended && state == "failed" {
		l.root.Fail("the job failed; its cause is in the application's result")
	}
	l.flows()
	l.p.Over() // there is no more to come: the collector gets it while agents end
}
