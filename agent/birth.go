package agent

import (
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/telemetry"
)

// traceStart makes the span of this process's start, from its begin to its registration, when it has registered for the first time.
func (a *agent) traceStart() {
	if a.traced {
		return
	}
	a.traced = true
	if a.cfg.TraceParent.Sampled() {
		a.cfg.Follow.Provider.Start(telemetry.Start{Parent: a.cfg.TraceParent, Name: "register agent", At: a.cfg.Started,
			Attrs: []flow.TraceAttr{telemetry.A("heddle.agent", string(a.cfg.Secrets.AgentID)), telemetry.A("heddle.slots", a.cfg.Slots)}}).End(time.Time{})
	}
}

// birth traces how a task comes to life: until its operators are open, and from then to its first records.
// The goroutine that runs the task owns it. A nil birth does nothing.
type birth struct {
	provider *telemetry.Provider
	parent   flow.TraceContext
	attrs    []flow.TraceAttr
	at       time.Time
}

func (a *agent) birth(traceparent string, id cluster.ExecutionID) *birth {
	parent, ok := telemetry.ParseTraceparent(traceparent)
	if !ok || !a.cfg.Follow.Provider.Traces() {
		return nil
	}
	b := &birth{provider: a.cfg.Follow.Provider, parent: parent, at: time.Now(), attrs: []flow.TraceAttr{
		telemetry.A("heddle.agent", string(a.cfg.Secrets.AgentID)), telemetry.A("heddle.vertex.id", id.Vertex),
		telemetry.A("heddle.subtask", id.Subtask), telemetry.A("heddle.attempt", id.Attempt),
	}}
	if a.cfg.Plan != nil && id.Vertex >= 0 && id.Vertex < len(a.cfg.Plan.Vertices) {
		b.attrs = append(b.attrs, telemetry.A("heddle.vertex", a.cfg.Plan.Vertices[id.Vertex].Name))
	}
	return b
}

// done makes the span of what has just ended, and begins the next.
func (b *birth) done(name string) {
	now := time.Now()
	b.provider.Start(telemetry.Start{Parent: b.parent, Name: name, At: b.at, Attrs: b.attrs}).End(now)
	b.at = now
}

func (b *birth) opened() {
	if b != nil {
		b.done("open")
	}
}

// first is what to call at the first records, nil for nothing.
func (b *birth) first() func() {
	if b == nil {
		return nil
	}
	return func() { b.done("first record") }
}
