package appmaster

import (
	"log/slog"
	"time"

	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
)

// LogLevels is implemented by a View that can change what an application's processes log.
type LogLevels interface {
	// SetLogLevel has a component ("": all that have no level of their own) of this process and of all agents that are there log from
	// a level on, for so long (0: until they end). With reset, as they are configured to.
	SetLogLevel(component string, level slog.Level, d time.Duration, reset bool)
}

// SetLogLevel implements LogLevels.
func (m *master) SetLogLevel(component string, level slog.Level, d time.Duration, reset bool) {
	text := level.String()
	if reset {
		text = ""
	}
	m.post(func() {
		m.log.Info("log level", "of", component, "level", text, "for", d)
		if m.cfg.LogLevel != nil {
			m.cfg.LogLevel(component, level, d, reset)
		}
		for id := range m.agents {
			m.toAgent(id, &ctlpb.FromMaster{M: &ctlpb.FromMaster_LogLevel{LogLevel: &ctlpb.LogLevel{Component: component, Level: text, ForMs: d.Milliseconds()}}})
		}
	})
}
