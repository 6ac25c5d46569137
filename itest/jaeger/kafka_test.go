package jaeger

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/itest/testbed"
)

// TestTraceThroughKafka has a record that comes from Kafka with a sampled traceparent go through a job to Kafka again: its trace goes on, and on.
func TestTraceThroughKafka(t *testing.T) {
	testbed.Group(t, "jaeger")
	b := testbed.New(t)
	heddle := testbed.BuildHeddle(t, b)
	j := testbed.StartJaeger(t, b)
	k := testbed.StartKafka(t, b)
	defer k.Kill()
	k.CreateTopic("in", 1)
	k.CreateTopic("out", 1)
	const id, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	// The second is not sampled: nothing is made of it.
	lines := "traceparent:00-" + id + "-" + parent + "-01\tfollowed\ntraceparent:00-1af7651916cd43dd8448eb211c80319c-" + parent + "-00\tnot\n"
	if _, err := k.Tool(lines, "org.apache.kafka.tools.ConsoleProducer", "--bootstrap-server", k.Bootstrap, "--topic", "in",
		"--reader-property", "parse.headers=true"); err != nil {
		t.Fatal(err)
	}
	job := b.File("pass.yaml", `name: pass
source: { kafka: { topics: [in], format: text, stop: latest } }
sink: { kafka: { topic: out, format: text } }
`)
	p := b.Start(testbed.Spec{Name: "pass", Path: heddle, Args: []string{"run", job, "--kafka.brokers", k.Bootstrap, "-D", "state-dir=" + b.Dir("state"),
		"-D", "trace.endpoint=" + j.GRPC, "-D", "trace.sample-rate=0"}})
	if code := p.Wait(3 * time.Minute); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, p.Output())
	}
	var tr testbed.Trace
	b.Eventually("the trace", time.Minute, func() error {
		all, err := j.Traces("pass")
		if err != nil {
			return err
		}
		for _, one := range all {
			if one.TraceID == id && len(one.Spans) >= 3 {
				tr = one
				return nil
			}
		}
		return fmt.Errorf("there are %d traces", len(all))
	})
	byName := map[string]*testbed.JaegerSpan{}
	for i := range tr.Spans {
		byName[tr.Spans[i].OperationName] = &tr.Spans[i]
	}
	poll, send := byName["poll in"], byName["send out"]
	if poll == nil || send == nil || poll.Parent() != parent {
		t.Fatalf("the trace has the spans %v, want poll in below %s, and send out", byName, parent)
	}
	for _, x := range []struct {
		s                *testbed.JaegerSpan
		name, want, kind string
	}{{poll, "in", "poll", "client"}, {send, "out", "send", "producer"}} {
		if x.s.Tag("messaging.system") != "kafka" || x.s.Tag("messaging.destination.name") != x.name || x.s.Tag("messaging.operation.name") != x.want ||
			x.s.Tag("messaging.destination.partition.id") != "0" || x.s.Tag("span.kind") != x.kind {
			t.Errorf("%s has the attributes %v", x.s.OperationName, x.s.Tags)
		}
	}
	out, err := k.Tool("", "org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", k.Bootstrap, "--topic", "out", "--from-beginning",
		"--max-messages", "2", "--timeout-ms", "60000", "--formatter-property", "print.headers=true")
	if err != nil {
		t.Fatal(err)
	}
	if want := "traceparent:00-" + id + "-" + send.SpanID + "-01\tfollowed"; !strings.Contains(out, want) || !strings.Contains(out, "\tnot") {
		t.Errorf("Kafka has %q, want %q", out, want)
	}
}
