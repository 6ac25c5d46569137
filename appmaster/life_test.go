package appmaster

import (
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/telemetry"
	"github.com/heddle-stream/heddle/internal/telemetry/otlptest"
)

// TestLife: what a master tells of an application's start is one trace, below the client's span, and no part of it is negative, though YARN's and
// the agents' hosts have clocks of their own. What comes to nothing has failed.
func TestLife(t *testing.T) {
	c := otlptest.Start(t)
	p, err := telemetry.New(t.Context(), telemetry.Config{Settings: telemetry.Settings{Endpoint: c.URL, Protocol: telemetry.HTTP, Traces: true}, Service: "job"})
	if err != nil {
		t.Fatal(err)
	}
	client := flow.TraceContext{Trace: [16]byte{7}, Span: [8]byte{8}, Flags: 1}
	at := time.Now().Add(-time.Minute)
	l := newLife(p, client, at.Add(time.Hour), at, "app-1", "job") // submitted by a clock that is ahead
	l.between("start master", at, at.Add(time.Second))
	l.ask(2)
	l.ask(2)
	if env := l.environ(); len(env) != 1 || env[0] != "TRACEPARENT="+telemetry.Traceparent(l.context) {
		t.Errorf("an agent's environment is %q", env)
	}
	l.granted("agent-1", "c-1", "host-1")
	l.granted("agent-2", "c-2", "host-2")
	l.registered("agent-1", at.Add(-time.Hour)) // started by a clock that is behind
	l.registered("agent-1", at)                 // again, after a lost connection
	l.gone("agent-2", "its container was lost")
	tasks := []cluster.ExecutionID{{Vertex: 0}, {Vertex: 1}}
	order := l.deploying("agent-1", tasks)
	if !order.Sampled() || order.Trace != client.Trace {
		t.Errorf("an order's context is %+v", order)
	}
	l.task(tasks[0], cluster.Deploying)
	l.task(tasks[0], cluster.Running)
	l.task(tasks[1], cluster.Failed)
	l.task(tasks[1], cluster.Failed)
	l.deploying("agent-1", tasks[:1]) // never heard of again
	l.over("failed")
	if p.SinceOver() <= 0 {
		t.Error("the provider does not know that the application is over")
	}
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	spans := c.Spans()
	byName, byID := map[string][]otlptest.Span{}, map[string]otlptest.Span{}
	for _, s := range spans {
		byName[s.Name] = append(byName[s.Name], s)
		byID[string(s.SpanId)] = s
	}
	for name, want := range map[string]struct {
		n, failed int
		below     string
	}{"accepted": {1, 0, "client"}, "start application": {1, 1, "client"}, "start master": {1, 0, "start application"}, "allocate": {2, 0, "start application"},
		"start agent": {2, 1, "start application"}, "localize": {1, 0, "start agent"}, "deploy": {2, 1, "start application"}} {
		failed := 0
		for _, s := range byName[name] {
			if s.Status.GetMessage() != "" {
				failed++
			}
			parent := byID[string(s.ParentSpanId)].GetName()
			if string(s.ParentSpanId) == string(client.Span[:]) {
				parent = "client"
			}
			if string(s.TraceId) != string(client.Trace[:]) || parent != want.below || s.EndTimeUnixNano < s.StartTimeUnixNano {
				t.Errorf("%s is below %q, from %d to %d", name, parent, s.StartTimeUnixNano, s.EndTimeUnixNano)
			}
		}
		if len(byName[name]) != want.n || failed != want.failed {
			t.Errorf("%d spans %s, of which %d have failed, want %d and %d", len(byName[name]), name, failed, want.n, want.failed)
		}
	}
	if len(byName) != 7 {
		t.Errorf("the spans are %v", byName)
	}
	for _, none := range []*life{newLife(nil, client, at, at, "app", "job"), newLife(p, flow.TraceContext{Trace: [16]byte{7}, Span: [8]byte{8}}, at, at, "app", "job")} {
		none.ask(1)
		none.granted("agent-1", "c", "h")
		none.registered("agent-1", at)
		if none.deploying("agent-1", tasks).Sampled() || none.environ() != nil {
			t.Error("what is not sampled is handed on")
		}
		none.task(tasks[0], cluster.Running)
		none.over("finished")
	}
}
