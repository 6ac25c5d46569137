package web

import (
	"net/http"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/internal/telemetry"
)

// metrics answers Prometheus: the figures of the whole application, its agents' too.
func (s *Server) metrics(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", telemetry.PrometheusType)
	_, _ = w.Write(telemetry.AppendPrometheus(nil, appmaster.Figures(s.view.Snapshot()))) // the client is gone if this fails
}
