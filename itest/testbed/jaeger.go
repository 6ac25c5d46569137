package testbed

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// jaegerPackage is the program; the nested module jaegertool pins its version and all that it needs.
const jaegerPackage = "github.com/jaegertracing/jaeger/cmd/jaeger"

// jaegerConfig keeps spans in memory and listens on loopback alone.
const jaegerConfig = `service:
  extensions: [jaeger_storage, jaeger_query, healthcheckv2]
  pipelines:
    traces: { receivers: [otlp], processors: [], exporters: [jaeger_storage_exporter] }
  telemetry:
    metrics: { level: none }
    logs: { level: warn }
extensions:
  jaeger_query:
    storage: { traces: mem }
    http: { endpoint: "127.0.0.1:%[1]d" }
    grpc: { endpoint: "127.0.0.1:%[2]d" }
  jaeger_storage:
    backends:
      mem: { memory: { max_traces: 100000 } }
  healthcheckv2:
    use_v2: true
    http: { endpoint: "127.0.0.1:%[3]d" }
receivers:
  otlp:
    protocols:
      grpc: { endpoint: "127.0.0.1:%[4]d" }
      http: { endpoint: "127.0.0.1:%[5]d" }
exporters:
  jaeger_storage_exporter: { trace_storage: mem }
`

// Jaeger is a running Jaeger.
type Jaeger struct {
	GRPC, HTTP string // URLs that take OTLP
	Query      string // URL of the query API
	process    *Process
}

// jaegerBuild bounds how long Jaeger may take to build: six minutes of two processors, on a busy machine.
const jaegerBuild = 30 * time.Minute

// BuildJaeger returns the jaeger (version 2) of the host, or else builds it into the cache, once; that takes minutes. Concurrent callers wait for each other.
func BuildJaeger(t testing.TB) string {
	t.Helper()
	if path, err := exec.LookPath("jaeger"); err == nil {
		return path
	}
	cache, err := CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	root, err := ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	tool := filepath.Join(root, "itest", "testbed", "jaegertool")
	sums, err := os.ReadFile(filepath.Join(tool, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(sums)
	path := filepath.Join(cache, "jaeger-"+hex.EncodeToString(sum[:6]))
	unlock, err := lockFile(path + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if _, err := os.Stat(path); err == nil {
		return path
	}
	tmp := path + ".new"
	t.Log("building Jaeger, once: this takes minutes")
	ctx, cancel := context.WithTimeout(t.Context(), jaegerBuild)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "-C", tool, "build", "-o", tmp, "-ldflags", "-s -w", jaegerPackage)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cannot build Jaeger by %s: %v\n%s\nInstall Jaeger 2 as \"jaeger\" in the PATH (https://www.jaegertracing.io/download), put it at %s, or let Go fetch its modules (GOPROXY, 1.5 GB of disk).",
			cmd, err, tail(string(out), 15), path)
	}
	if err := os.Rename(tmp, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// StartJaeger starts Jaeger and waits until it takes traces.
func StartJaeger(t testing.TB, b *Bed) *Jaeger {
	t.Helper()
	program := BuildJaeger(t)
	var ports [5]int
	for i := range ports {
		ports[i] = FreePort(t)
	}
	conf := b.File("jaeger.yaml", fmt.Sprintf(jaegerConfig, ports[0], ports[1], ports[2], ports[3], ports[4]))
	at := func(port int) string { return fmt.Sprintf("http://127.0.0.1:%d", port) }
	j := &Jaeger{Query: at(ports[0]), GRPC: at(ports[3]), HTTP: at(ports[4])}
	// It would trace itself.
	j.process = b.Start(Spec{Name: "jaeger", Path: program, Args: []string{"--config", conf}, Env: []string{"OTEL_TRACES_SAMPLER=always_off"}})
	b.Eventually("Jaeger to be ready", time.Minute, func() error {
		if !j.process.Running() {
			t.Fatalf("Jaeger has ended:\n%s", j.process.Tail(20))
		}
		resp, err := http.Get(at(ports[2]) + "/status")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("it answers %s", resp.Status)
		}
		return nil
	})
	return j
}

// Signal sends Jaeger's process a signal: SIGSTOP has it take connections and never answer.
func (j *Jaeger) Signal(sig syscall.Signal) { j.process.Signal(sig) }

// Trace is a trace as Jaeger's query API tells it.
type Trace struct {
	TraceID   string                 `json:"traceID"`
	Spans     []JaegerSpan           `json:"spans"`
	Processes map[string]JaegerOwner `json:"processes"`
}

// JaegerSpan is a span. Times are in microseconds.
type JaegerSpan struct {
	SpanID        string            `json:"spanID"`
	OperationName string            `json:"operationName"`
	References    []JaegerReference `json:"references"`
	StartTime     int64             `json:"startTime"`
	Duration      int64             `json:"duration"`
	Tags          []JaegerTag       `json:"tags"`
	ProcessID     string            `json:"processID"`
}

// JaegerReference is what a span follows from.
type JaegerReference struct {
	RefType string `json:"refType"`
	SpanID  string `json:"spanID"`
}

// JaegerTag is an attribute.
type JaegerTag struct {
	Key   string `json:"key"`
	Value any    `json:"value"`
}

// JaegerOwner is the process of a span.
type JaegerOwner struct {
	ServiceName string      `json:"serviceName"`
	Tags        []JaegerTag `json:"tags"`
}

// Tag returns an attribute as text.
func (s *JaegerSpan) Tag(key string) string { return tagOf(s.Tags, key) }

// Parent returns the span's parent in its trace, "" for none.
func (s *JaegerSpan) Parent() string {
	for _, r := range s.References {
		if r.RefType == "CHILD_OF" {
			return r.SpanID
		}
	}
	return ""
}

// Instance returns which process of the service made a span.
func (t *Trace) Instance(s *JaegerSpan) string {
	return tagOf(t.Processes[s.ProcessID].Tags, "service.instance.id")
}

// Tag returns an attribute of the process of a span.
func (t *Trace) Tag(s *JaegerSpan, key string) string {
	return tagOf(t.Processes[s.ProcessID].Tags, key)
}

func tagOf(tags []JaegerTag, key string) string {
	for _, t := range tags {
		if t.Key == key {
			return fmt.Sprint(t.Value)
		}
	}
	return ""
}

// Traces returns the latest traces of a service.
func (j *Jaeger) Traces(service string) ([]Trace, error) {
	q := url.Values{"service": {service}, "limit": {"1500"}, "lookback": {"1h"}}
	resp, err := http.Get(j.Query + "/api/traces?" + q.Encode())
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("Jaeger answers %s", resp.Status)
	}
	var answer struct {
		Data []Trace `json:"data"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return nil, fmt.Errorf("cannot read Jaeger's answer: %w", err)
	}
	return answer.Data, nil
}
