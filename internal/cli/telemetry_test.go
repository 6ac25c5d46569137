package cli

import (
	"net"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/telemetry"
)

// TestHangingCollector: a command goes on while its collector does not take its trace, and loses nothing if that does in the end.
func TestHangingCollector(t *testing.T) {
	old := lastTraces
	lastTraces = time.Hour
	defer func() { lastTraces = old }()
	hole, err := net.Listen("tcp", "127.0.0.1:0") // it takes connections, and never says a word
	if err != nil {
		t.Fatal(err)
	}
	set, err := telemetry.Resolve("http://"+hole.Addr().String(), "http/protobuf", "", func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	provider, err := telemetry.New(t.Context(), telemetry.Config{Settings: set, Service: "job"})
	if err != nil {
		t.Fatal(err)
	}
	trace := &submitTrace{provider: provider, times: newTimings(), span: provider.Start(telemetry.Start{Name: "submit job"})}
	asked := make(chan net.Conn, 1)
	go func() {
		c, err := hole.Accept()
		if err != nil {
			t.Error(err)
		}
		asked <- c
	}()
	wait := trace.end("app", nil) // it would be here for an hour
	c := <-asked
	sent := make(chan struct{})
	go func() { defer close(sent); wait() }()
	select {
	case <-sent:
		t.Error("the trace counts as sent before the collector said so")
	default:
	}
	c.Close()
	hole.Close()
	<-sent
}
