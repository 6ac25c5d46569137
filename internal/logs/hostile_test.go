package logs

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
)

// TestHostileNames: what topics, jobs, hosts and records are called, and what errors say of them, makes no lines of its own in a log and moves no terminal's cursor.
func TestHostileNames(t *testing.T) {
	const evil = "a\nlevel=ERROR msg=\"all is lost\"\r\x1b[2J\u009b31m\u202e\x00{\"level\":\"ERROR\"}"
	for name, handler := range map[string]func(*bytes.Buffer) slog.Handler{
		"text": func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
		"json": func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
	} {
		var b bytes.Buffer
		log := slog.New(NewHandler(handler(&b), NewLevels(slog.LevelInfo)))
		log.With(Component, evil).Info(evil, "topic", evil, evil, evil, "err", errorText(evil))
		line, more, _ := strings.Cut(b.String(), "\n")
		if more != "" || strings.ContainsAny(line, "\r\x1b\x00") {
			t.Errorf("%s: %q", name, b.String())
		}
		if name == "json" {
			var r struct{ Level, Topic string }
			if err := json.Unmarshal([]byte(line), &r); err != nil || r.Level != "INFO" || r.Topic != strings.ToValidUTF8(evil, "�") {
				t.Errorf("%s: %+v, %v", name, r, err)
			}
		} else if strings.ContainsAny(line, "\u009b\u202e") {
			t.Errorf("%s: %q", name, line)
		}
	}
}

type errorText string

func (e errorText) Error() string { return string(e) }
