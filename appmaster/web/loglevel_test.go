package web

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// leveled are the levels that tests have set.
var leveled struct {
	sync.Mutex
	calls []string
}

func (v view) SetLogLevel(component string, level slog.Level, d time.Duration, reset bool) {
	leveled.Lock()
	defer leveled.Unlock()
	leveled.calls = append(leveled.calls, fmt.Sprint(component, " ", level, " ", d, " ", reset))
}

func TestLogLevel(t *testing.T) {
	url, _ := serve(t)
	for _, c := range []struct {
		query, bearer string
		code          int
		want          string
	}{
		{"component=kafkasource&level=debug&for=10m", token, http.StatusAccepted, "kafkasource DEBUG 10m0s false"},
		{"level=default", token, http.StatusAccepted, " INFO 0s true"},
		{"level=loud", token, http.StatusBadRequest, ""},
		{"level=debug&for=soon", token, http.StatusBadRequest, ""},
		{"level=debug&for=-1s", token, http.StatusBadRequest, ""},
		{"component=exchange", token, http.StatusBadRequest, ""},
		{"component=kafkasorce&level=debug", token, http.StatusBadRequest, ""},
		{"level=debug&for=1us", token, http.StatusAccepted, " DEBUG 1ms false"},
		{"level=debug&for=0s", token, http.StatusAccepted, " DEBUG 0s false"},
		{"level=debug", "wrong", http.StatusUnauthorized, ""},
	} {
		leveled.Lock()
		leveled.calls = nil
		leveled.Unlock()
		code, body := do(t, client(t), http.MethodPut, url+"api/log-level?"+c.query, c.bearer)
		leveled.Lock()
		got := strings.Join(leveled.calls, ";")
		leveled.Unlock()
		if code != c.code || got != c.want {
			t.Errorf("%s: answer %d %s, set %q; want %d, %q", c.query, code, body, got, c.code, c.want)
		}
	}
}

func TestMetricsNeedTheToken(t *testing.T) {
	url, _ := serve(t)
	if code, body := do(t, client(t), http.MethodGet, url+"metrics", token); code != http.StatusOK || !strings.Contains(body, "\nheddle_job_state{") {
		t.Errorf("with the token: %d %.200s", code, body)
	}
	if code, _ := do(t, client(t), http.MethodGet, url+"metrics", "wrong"); code != http.StatusUnauthorized {
		t.Errorf("with another: %d", code)
	}
}
