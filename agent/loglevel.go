package agent

import (
	"log/slog"
	"time"

	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
)

// setLogLevel changes what this process logs, as the master says.
func (a *agent) setLogLevel(m *ctlpb.LogLevel) {
	var level slog.Level
	reset := m.GetLevel() == ""
	if err := level.UnmarshalText([]byte(m.GetLevel())); err != nil && !reset {
		a.cfg.Logger.Warn("ignored a log level", "level", m.GetLevel())
		return
	}
	if a.cfg.LogLevel != nil {
		a.cfg.LogLevel(m.GetComponent(), level, time.Duration(m.GetForMs())*time.Millisecond, reset)
	}
}
