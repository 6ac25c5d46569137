package telemetry

import (
	"context"
	"testing"
)

// TestCloseTooLate: the exporting goroutine ends too where no time is left to send anything.
func TestCloseTooLate(t *testing.T) {
	p, err := New(t.Context(), Config{Service: "test", Settings: Settings{Endpoint: "http://127.0.0.1:1", Protocol: HTTP, Traces: true}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = p.Close(ctx)
	select {
	case <-p.queue.stop:
	default:
		t.Error("the queue goes on")
		_ = p.queue.Shutdown(t.Context())
	}
}
