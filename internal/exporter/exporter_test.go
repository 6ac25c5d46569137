package exporter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/internal/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// metrics are those that an ApplicationMaster serves.
func metrics(app, job string) []byte {
	mark := int64(5000)
	s := &appmaster.Snapshot{App: app, Job: job, State: "running", Time: time.UnixMilli(9000),
		Vertices: []appmaster.Vertex{{Name: "read \"all\"", Subtasks: []appmaster.Subtask{{State: "running", RecordsIn: 7, Watermark: &mark,
			Hops: []appmaster.Hop{{Phase: "wire", Buckets: telemetry.LatencyOf([]uint64{1, 2}, time.Second)}}}}}},
		Agents: []appmaster.Agent{{ID: "agent-1", State: "alive", RSS: 1}}}
	return telemetry.AppendPrometheus(nil, appmaster.Figures(s))
}

func reads(text []byte, err error) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) { return text, err }
}

func scrape(e *Exporter, header ...string) (int, string) {
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// TestOneBadAppSpoilsNothing: of several applications that answer, fail, talk nonsense, give a metric another type, and hang, those that answer are served,
// and each has its figure of whether it could be read.
func TestOneBadAppSpoilsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		targets := []Target{
			{App: "application_1_0001", Job: "clicks", Queue: "root.a", User: "alice", Read: reads(metrics("application_1_0001", "clicks"), nil)},
			{App: "application_1_0002", Job: `b "x"`, Queue: "root.b", User: "bob", Read: reads(metrics("application_1_0002", "b"), nil)},
			{App: "application_1_0003", Read: reads(nil, errors.New("403"))},
			{App: "application_1_0004", Read: reads([]byte("<html>log in</html>"), nil)},
			{App: "application_1_0005", Read: reads([]byte("# TYPE heddle_job_state counter\nheddle_job_state 1\n# TYPE new gauge\nnew 1\n"), nil)},
			{App: "application_1_0006", Read: func(ctx context.Context) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() }},
			{App: "application_1_0007", Job: "mine", Read: reads([]byte("# TYPE own gauge\nown{job=\"theirs\"} 4\n"), nil)},
		}
		e := New(Config{Find: func(context.Context) ([]Target, error) { return targets, nil }})
		begun := time.Now()
		code, text := scrape(e)
		if code != http.StatusOK || time.Since(begun) != 5*time.Second {
			t.Errorf("%d after %v", code, time.Since(begun))
		}
		for _, want := range []string{
			"heddle_exporter_up 1\n", "heddle_exporter_applications 7\n",
			`heddle_app_up{app="application_1_0001",job="clicks",queue="root.a",user="alice"} 1`, `heddle_app_up{app="application_1_0002",job="b \"x\"",queue="root.b",user="bob"} 1`,
			`heddle_app_up{app="application_1_0003"} 0`, `heddle_app_up{app="application_1_0004"} 0`, `heddle_app_up{app="application_1_0005"} 1`, `heddle_job_state{app="application_1_0005"} 1`, "\nnew{",
			`heddle_app_up{app="application_1_0006"} 0`,
			`own{app="application_1_0007",job="mine",exported_job="theirs"} 4`,
			`heddle_job_state{app="application_1_0002",job="b \"x\"",queue="root.b",user="bob",heddle_job_name="b",heddle_app_id="application_1_0002",state="running"} 1`,
			`heddle_vertex_name="read \"all\""`, `phase="wire",le="+Inf"} 3`,
			`heddle_app_scrape_duration_seconds{app="application_1_0006"} 5`,
		} {
			if !strings.Contains(text, want) {
				t.Errorf("no %s", want)
			}
		}
		for _, not := range []string{"<html>"} {
			if strings.Contains(text, not) {
				t.Errorf("it serves %s", not)
			}
		}
		if strings.Contains(text, "# TYPE heddle_job_state ") || strings.Count(text, "# TYPE heddle_job_uptime_seconds ") != 1 {
			t.Error("the types are not those that applications agree on")
		}
		if t.Failed() {
			t.Log(text)
		}
	})
}

// TestLimits: no more applications than wanted are asked at a time, and the answer comes before Prometheus loses patience.
func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int64
		var targets []Target
		for i := range 40 {
			targets = append(targets, Target{App: fmt.Sprint("app-", i), Read: func(ctx context.Context) ([]byte, error) {
				most.Store(max(most.Load(), now.Add(1)))
				defer now.Add(-1)
				select {
				case <-time.After(2 * time.Second):
				case <-ctx.Done():
				}
				return nil, ctx.Err()
			}})
		}
		e := New(Config{Find: func(context.Context) ([]Target, error) { return targets, nil }, Parallel: 4})
		begun := time.Now()
		_, text := scrape(e, "X-Prometheus-Scrape-Timeout-Seconds", "10")
		if took := time.Since(begun); took > 10*time.Second || most.Load() != 4 {
			t.Errorf("took %v, at most %d at a time", took, most.Load())
		}
		if up := strings.Count(text, "} 1\n"); up < 16 || up > 20 {
			t.Errorf("%d were read in 9.5 s", up)
		}
	})
}

// TestFind: what was found is believed for a while, and longer when nothing can be found.
func TestFind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, fail := 0, error(nil)
		e := New(Config{Refresh: 10 * time.Second, Find: func(context.Context) ([]Target, error) {
			calls++
			return []Target{{App: "app-1", Read: reads([]byte("x 1\n"), nil)}}, fail
		}})
		for _, x := range []struct {
			wait  time.Duration
			fail  error
			calls int
			up    string
		}{{0, nil, 1, "1"}, {5 * time.Second, nil, 1, "1"}, {6 * time.Second, errors.New("the ResourceManager is away"), 2, "0"}, {0, nil, 3, "1"}} {
			time.Sleep(x.wait)
			fail = x.fail
			_, text := scrape(e)
			if calls != x.calls || !strings.Contains(text, "heddle_exporter_up "+x.up) || !strings.Contains(text, `x{app="app-1"} 1`) {
				t.Errorf("%d calls, want %d and up %s:\n%s", calls, x.calls, x.up, text)
			}
		}
		r := httptest.NewRequest(http.MethodPost, "/metrics", nil)
		w := httptest.NewRecorder()
		if e.ServeHTTP(w, r); w.Code != http.StatusMethodNotAllowed {
			t.Errorf("POST: %d", w.Code)
		}
	})
}

// TestDenied: applications that we may not look at are left out and counted, and told of once.
func TestDenied(t *testing.T) {
	var log strings.Builder
	denied := Target{App: "application_1_0002", User: "bob", Read: reads(nil, fmt.Errorf("%w: 401", ErrDenied))}
	targets := []Target{{App: "application_1_0001", Read: reads([]byte("x 1\n"), nil)}, denied}
	e := New(Config{Find: func(context.Context) ([]Target, error) { return targets, nil }, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for range 3 {
		_, text := scrape(e)
		if strings.Contains(text, "0002") || !strings.Contains(text, "heddle_exporter_denied_applications 1\n") || !strings.Contains(text, `heddle_app_up{app="application_1_0001"} 1`) {
			t.Errorf("it serves\n%s", text)
		}
	}
	targets = append(targets, Target{App: "application_1_0003", Read: denied.Read}, Target{App: "application_1_0004", Read: denied.Read})
	if _, text := scrape(e); !strings.Contains(text, "heddle_exporter_denied_applications 3\n") {
		t.Errorf("it serves\n%s", text)
	}
	if n := strings.Count(log.String(), "\n"); n != 2 || !strings.Contains(log.String(), "applications=1 first=application_1_0002") || !strings.Contains(log.String(), "applications=2 first=application_1_0003") {
		t.Errorf("it logs\n%s", &log)
	}
}

// TestJobOfItsMetrics: where nobody else tells the name of an application's job, its metrics do, also for the time when they can't be read.
func TestJobOfItsMetrics(t *testing.T) {
	var broken error
	e := New(Config{Find: func(context.Context) ([]Target, error) {
		return []Target{{App: "app-1", User: "alice", Read: reads(metrics("app-1", "clicks"), broken)}}, nil
	}})
	for _, up := range []string{"1", "0"} {
		if _, text := scrape(e); !strings.Contains(text, `heddle_app_up{app="app-1",job="clicks",user="alice"} `+up) {
			t.Errorf("no job at heddle_app_up, which is to be %s:\n%.600s", up, text)
		}
		broken = errors.New("it hangs")
	}
}
