package web

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/internal/logs"
)

// logLevel changes what the application's processes log.
func (s *Server) logLevel(w http.ResponseWriter, r *http.Request) {
	view, ok := s.view.(appmaster.LogLevels)
	if !ok {
		fail(w, http.StatusNotImplemented, "the log level of this application can't be changed")
		return
	}
	q := r.URL.Query()
	if c := q.Get("component"); c != "" && !slices.Contains(logs.Components, c) {
		fail(w, http.StatusBadRequest, "there is no component %q: there are %s", c, strings.Join(logs.Components, ", "))
		return
	}
	var level slog.Level
	reset := q.Get("level") == "default"
	if err := level.UnmarshalText([]byte(q.Get("level"))); err != nil && !reset {
		fail(w, http.StatusBadRequest, "there is no level %q: there are debug, info, warn, error, and default for the configured one", q.Get("level"))
		return
	}
	d := time.Duration(0)
	if text := q.Get("for"); text != "" {
		var err error
		if d, err = time.ParseDuration(text); err != nil || d < 0 {
			fail(w, http.StatusBadRequest, "%q is no duration such as 10m", text)
			return
		}
		if d > 0 {
			d = max(d, time.Millisecond) // agents are told milliseconds, and 0 means for ever
		}
	}
	view.SetLogLevel(q.Get("component"), level, d, reset)
	reply(w, http.StatusAccepted, Status{"set"})
}
