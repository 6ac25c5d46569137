package agent

import (
	"testing"
	"time"

	"github.com/heddle-stream/heddle/agent/task"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/telemetry"
	"github.com/heddle-stream/heddle/internal/telemetry/otlptest"
)

// TestBirth: an agent's start, once, is below what started it, and a task's start below the order to run it, in two parts without a gap.
func TestBirth(t *testing.T) {
	c := otlptest.Start(t)
	p, err := telemetry.New(t.Context(), telemetry.Config{Settings: telemetry.Settings{Endpoint: c.URL, Protocol: telemetry.HTTP, Traces: true}, Service: "job"})
	if err != nil {
		t.Fatal(err)
	}
	start, order := flow.TraceContext{Trace: [16]byte{1}, Span: [8]byte{2}, Flags: 1}, flow.TraceContext{Trace: [16]byte{1}, Span: [8]byte{3}, Flags: 1}
	a := &agent{cfg: Config{TraceParent: start, Started: time.Now().Add(-time.Second), Follow: task.Follow{Provider: p}}}
	a.traceStart()
	a.traceStart() // it has registered again
	b := a.birth(telemetry.Traceparent(order), cluster.ExecutionID{Vertex: 4, Subtask: 5})
	b.opened()
	b.first()()
	if none := a.birth("", cluster.ExecutionID{}); none != nil || none.first() != nil {
		t.Error("a task is traced that nobody traces")
	}
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	spans := c.Spans()
	if len(spans) != 3 {
		t.Fatalf("the spans are %v", spans)
	}
	for i, want := range []struct {
		name   string
		parent flow.TraceContext
	}{{"register agent", start}, {"open", order}, {"first record", order}} {
		if s := spans[i]; s.Name != want.name || string(s.ParentSpanId) != string(want.parent.Span[:]) || string(s.TraceId) != string(start.Trace[:]) {
			t.Errorf("span %d is %v, want %s below %x", i, s.Span, want.name, want.parent.Span)
		}
	}
	if spans[0].EndTimeUnixNano-spans[0].StartTimeUnixNano < 1e9 || spans[1].EndTimeUnixNano != spans[2].StartTimeUnixNano || spans[2].Attrs["heddle.vertex.id"] != "4" {
		t.Errorf("the spans are %v", spans)
	}
}
