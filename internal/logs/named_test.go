package logs

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
)

// TestNamed: a JSON log names tasks and states as a text log does, and leaves what slog itself knows alone.
func TestNamed(t *testing.T) {
	var out strings.Builder
	slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{ReplaceAttr: Named})).Info("x", "task", cluster.ExecutionID{Vertex: 7, Subtask: 1}, "state", cluster.Running,
		"took", time.Second, "none", nil)
	for _, want := range []string{`"task":"7.1#0"`, `"state":"running"`, `"level":"INFO"`, `"took":1000000000`, `"none":null`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in %s", want, out.String())
		}
	}
}
