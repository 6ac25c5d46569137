package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/yarnclient"
	"github.com/heddle-stream/heddle/yarnclient/explain"
	"github.com/heddle-stream/heddle/yarnclient/report"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
	"github.com/heddle-stream/heddle/yarnclient/yarntest"
)

var appOne = yarnid.Application{Cluster: 1, Number: 1}

// fakeRun is an application of a fake cluster that is waited for, and what that prints.
func fakeRun(t *testing.T) (*yarntest.Cluster, *yarnRun, *follower, *syncBuffer) {
	t.Helper()
	c, environ := fakeYARN(t)
	stderr := &syncBuffer{}
	s := &session{env: Env{Program: "heddle", Environ: environ, Stderr: stderr, Stdout: &syncBuffer{}, Stdin: strings.NewReader("")}}
	s.out = newTerminal(s.env, s.env.Stdout)
	h, err := s.openHadoop(config(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.close)
	f := newFollower(h, appOne, "")
	f.patience = 0
	t.Cleanup(f.close)
	r := &yarnRun{s: s, h: h, id: appOne, progress: newProgress(s, "x", appOne.String(), false, nil), heard: time.Now(), reached: time.Now()}
	r.progress.begun = time.Now().Add(-time.Hour)
	return c, r, f, stderr
}

// fakeMaster answers as an ApplicationMaster whose job waits for slots.
func fakeMaster(t *testing.T) string {
	t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(appmaster.Snapshot{App: "application_1_0001", Job: "x", State: "waiting", Waiting: "40 slots: 2 of 4 free"})
	}))
	t.Cleanup(web.Close)
	return web.URL
}

// TestHopeless: a job that asks for more than its cluster has is told so while it waits, once with what helps, and when it gives up it is not the job's failure.
func TestHopeless(t *testing.T) {
	c, r, f, stderr := fakeRun(t)
	r.patience = 90 * time.Second
	each := report.Resource{MemoryMB: 1024, VCores: 1}
	app := report.App{ID: appOne.String(), User: "alice", Type: appType, Queue: "root.default", State: report.StateRunning, Containers: 1, MemoryMB: 1024, VCores: 1, TrackingURL: fakeMaster(t),
		Asks: []report.Ask{{Priority: 1, Where: "*", Count: 40, Each: each}}}
	c.Put(yarntest.Application{App: app})
	f.look(t.Context()) // it runs
	for range 2 {
		s := f.look(t.Context())
		if s.snap == nil || s.why == nil || s.why.Grade != explain.Blocks || s.why.Kind != "beyond-capacity" {
			t.Fatalf("seen %+v", s)
		}
		if over, err := r.see(s); over || err != nil {
			t.Fatalf("over: %v, %v", over, err)
		}
	}
	got := stderr.String()
	for _, want := range []string{"blocked: 40 more containers of 1024 MB and 1 core are wanted beside the 1 that it has, 41984 MB and 41 cores in all", "16384 MB", "what helps: Ask for less", "fails when it has waited for its slots for 1m30s (slot.request-timeout)"} {
		if strings.Count(got, want) != 1 {
			t.Errorf("printed %q, want %q once", got, want)
		}
	}
	r.progress.spoken = time.Time{}
	if _, err := r.see(f.look(t.Context())); err != nil || !strings.Contains(stderr.String(), "waiting for 40 slots: 2 of 4 free; it is blocked, as told above") {
		t.Errorf("later it prints %q, %v", stderr, err)
	}
	app.State, app.FinalStatus, app.Diagnostics = report.StateFinished, "FAILED", "the job x failed: cannot get 40 slots within 1m30s (slot.request-timeout): 4 of them there"
	err := r.conclude(&app)
	e, ok := errors.AsType[*exitError](err)
	if !ok || e.code != exitPrecondition || !strings.Contains(strings.Join(e.hints, "\n"), "blocked: 40 more containers") {
		t.Errorf("at the end: %v %+v", err, e)
	}
	if e, ok := errors.AsType[*exitError](r.stillRuns(exitTimeout, errors.New("late"))); !ok || e.code != exitTimeout || !strings.Contains(e.hints[0], "blocked: 40 more") {
		t.Errorf("at the time limit: %+v", e)
	}
}

// TestSilentStart: where YARN says nothing of a master that was given a container and does not register, the client does, with the time left.
func TestSilentStart(t *testing.T) {
	c, r, f, stderr := fakeRun(t)
	r.placed = true // that was told before
	now := time.Now()
	w := yarntest.World{Started: now.Add(-time.Minute)}
	c.Describe(w)
	c.Put(yarntest.Application{App: report.App{ID: appOne.String(), User: "alice", Type: appType, Queue: "root.default", State: report.StateAccepted, Started: now.Add(-2 * time.Minute), AMContainer: "http://n1/logs"}})
	s := f.look(t.Context())
	if s.why == nil || s.why.Kind != "manager-restarted" {
		t.Fatalf("seen %+v", s)
	}
	if _, err := r.see(s); err != nil {
		t.Fatal(err)
	}
	if got := stderr.String(); !strings.Contains(got, "waiting for YARN to start its ApplicationMaster: The ResourceManager was started anew 1m") || !strings.Contains(got, "10m0s (yarn.am.liveness-monitor.expiry-interval-ms), in about 8m5") && !strings.Contains(got, "in about 9m0s") {
		t.Errorf("printed %q", got)
	}
}

// TestPatience: a start that takes no longer than it should is not asked about.
func TestPatience(t *testing.T) {
	c, _, f, _ := fakeRun(t)
	f.patience = time.Hour
	c.Put(yarntest.Application{App: report.App{ID: appOne.String(), User: "alice", Type: appType, State: report.StateAccepted, AMContainer: "http://n1/logs", Launched: time.Now().Add(-time.Minute)}})
	if s := f.look(t.Context()); s.why != nil || c.Asked("REST GET /ws/v1/cluster/scheduler") != 0 {
		t.Errorf("seen %+v", s)
	}
}

// stuckMaster accepts connections and never answers, as one that is stopped does.
func stuckMaster(t *testing.T) string {
	t.Helper()
	release := make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { close(release); web.Close() })
	return web.URL
}

// TestSilentMaster: it is told that the master does not answer, for how long, and what YARN makes of it, and not some other cause.
func TestSilentMaster(t *testing.T) {
	c, r, f, stderr := fakeRun(t)
	app := report.App{ID: appOne.String(), User: "alice", Type: appType, Queue: "root.default", State: report.StateRunning, TrackingURL: stuckMaster(t)}
	c.Put(yarntest.Application{App: app})
	f.report(t.Context(), &sight{})
	f.proxied.http.Timeout = 20 * time.Millisecond
	s := f.look(t.Context())
	if s.snap != nil || s.snapErr == nil || errors.Is(s.snapErr, errNoWay) {
		t.Fatalf("seen %+v", s)
	}
	r.report = &app
	r.heard = time.Now().Add(-5 * time.Second)
	if _, err := r.see(s); err != nil {
		t.Fatal(err)
	}
	want := "its ApplicationMaster has not answered for 5s; YARN says RUNNING, and gives it up if it hears nothing of it for 10m0s"
	if got := stderr.String(); !strings.Contains(got, want) {
		t.Errorf("printed %q, want %q", got, want)
	}
	r.see(sight{snap: &appmaster.Snapshot{State: "running", Time: time.Now(), Started: time.Now()}})
	if got := stderr.String(); !strings.Contains(got, "answers again") {
		t.Errorf("printed %q", got)
	}
	if _, err := f.seen(t.Context()); err == nil || strings.Contains(err.Error(), "knows no address") {
		t.Errorf("top is told %v", err)
	}
	err := r.h.silentMaster(appOne, s.snapErr)
	if e, ok := errors.AsType[*exitError](err); !ok || e.code != exitUnreachable || !strings.Contains(e.Error(), "does not answer") || strings.Contains(e.Error(), "knows no address") || !strings.Contains(e.hints[0], "10m0s") {
		t.Errorf("status says %v", err)
	}
}

// TestTopStarting: top waits for an application that starts, and says that one has ended.
func TestTopStarting(t *testing.T) {
	c, _, f, _ := fakeRun(t)
	put := func(state string) {
		c.Put(yarntest.Application{App: report.App{ID: appOne.String(), User: "alice", Type: appType, State: state, FinalStatus: "SUCCEEDED"}})
	}
	put(report.StateAccepted)
	if _, err := f.seen(t.Context()); !errors.Is(err, errNotYet) {
		t.Errorf("of one that starts: %v", err)
	}
	put(report.StateFinished)
	if _, err := f.seen(t.Context()); !isExit(err) || !strings.Contains(err.Error(), "has ended: finished") {
		t.Errorf("of one that has ended: %v", err)
	}
}

// TestWithoutID: with the target yarn, verbs without an id take the only application, or say which there are.
func TestWithoutID(t *testing.T) {
	c, environ := fakeYARN(t)
	environ = append(environ, "HEDDLE_TARGET=yarn")
	if got := command(t, nil, environ, "status"); got.code != exitPrecondition || !strings.Contains(got.stderr, "alice has no application") {
		t.Errorf("none: %+v", got)
	}
	put := func(n int32, user, state string) {
		id := yarnid.Application{Cluster: 1, Number: n}
		c.Put(yarntest.Application{App: report.App{ID: id.String(), User: user, Name: "clicks", Type: appType, Queue: "root.default", State: state}})
	}
	put(1, "alice", report.StateAccepted)
	put(2, "bob", report.StateRunning)
	put(3, "alice", report.StateFinished)
	if got := command(t, nil, environ, "status"); got.code != 0 || !strings.Contains(got.stdout, "application_1_0001  clicks  accepted") {
		t.Errorf("one: %+v", got)
	}
	if got := command(t, nil, environ, "top", "--once"); got.code != exitUnreachable || !strings.Contains(got.stderr, "application_1_0001 does not answer: does not run yet: its state at YARN is ACCEPTED") {
		t.Errorf("top of one: %+v", got)
	}
	put(4, "alice", report.StateAccepted)
	if got := command(t, nil, environ, "status"); got.code != 0 || !strings.Contains(got.stdout, "application_1_0001\tclicks") || !strings.Contains(got.stdout, "application_1_0004\tclicks") {
		t.Errorf("several: %+v", got)
	}
	for _, verb := range []string{"top", "wait", "cancel", "logs"} {
		if got := command(t, nil, environ, verb); got.code != exitUsage || !strings.Contains(got.stderr, "has 2 applications of Heddle on this cluster: say which") || !strings.Contains(got.stderr, "application_1_0004  clicks  accepted") {
			t.Errorf("%s of several: %+v", verb, got)
		}
	}
	if got := command(t, nil, environ, "status", "application_nonsense"); got.code != exitUsage {
		t.Errorf("no id: %+v", got)
	}
}

// TestInterruptedSubmission: an interrupt before the submission ends it; one during it waits for its outcome, and a second one gives that up without forgetting
// that the application may have been accepted.
func TestInterruptedSubmission(t *testing.T) {
	var doing atomic.Pointer[string]
	p := newProgress(&session{env: Env{Stderr: &bytes.Buffer{}}}, "x", "x", true, nil)
	signals := make(chan os.Signal, 2)
	for name, x := range map[string]struct {
		signals     int
		submit      func(ctx, firm context.Context) error
		interrupted bool
		code        int
	}{
		"before": {1, func(ctx, _ context.Context) error { <-ctx.Done(); return ctx.Err() }, true, exitCancelled},
		"during": {1, func(ctx, firm context.Context) error { <-ctx.Done(); return firm.Err() }, true, 0},
		"during, refused": {1, func(ctx, _ context.Context) error {
			<-ctx.Done()
			return yarnError(&yarnclient.APIError{Status: 400})
		}, true, exitCancelled},
		"twice": {2, func(_, firm context.Context) error {
			<-firm.Done()
			return submitError(appOne, "heddle", firm.Err())
		}, true, exitUnreachable},
		"not": {0, func(context.Context, context.Context) error { return nil }, false, 0},
	} {
		for range x.signals {
			signals <- os.Interrupt
		}
		interrupted, err := attended(t.Context(), signals, p, &doing, x.submit)
		code := 0
		if e, ok := errors.AsType[*exitError](err); ok {
			code = e.code
		}
		if interrupted != x.interrupted || code != x.code {
			t.Errorf("%s: interrupted %v, %v; want %v and exit code %d", name, interrupted, err, x.interrupted, x.code)
		}
	}
}

// TestTooLate: an application that YARN had taken when the interrupt came is killed, and only then its files are removed.
func TestTooLate(t *testing.T) {
	c, r, _, _ := fakeRun(t)
	c.Put(yarntest.Application{App: report.App{ID: appOne.String(), User: "alice", Type: appType, State: report.StateAccepted}})
	r.removeFolder = func() error {
		if a, _ := c.Application(appOne); a.State != report.StateKilled {
			t.Errorf("files are removed while it is %s", a.State)
		}
		return nil
	}
	err := r.tooLate(t.Context())
	if e, ok := errors.AsType[*exitError](err); !ok || e.code != exitCancelled {
		t.Errorf("%v", err)
	}
	r.s.onSignal = "detach"
	if e, ok := errors.AsType[*exitError](r.tooLate(t.Context())); !ok || e.code != exitTimeout {
		t.Errorf("detached: %v", e)
	}
}

// TestMasterRefuses: an ApplicationMaster that answers is not called silent, whatever it answers.
func TestMasterRefuses(t *testing.T) {
	_, r, _, stderr := fakeRun(t)
	direct, proxied := &answerError{401, "through the proxy"}, &answerError{403, "not alice"}
	closed := errors.New("connection refused")
	if err := r.s.masterSaidNothing(r.h, appOne, errors.Join(closed, direct)); err != nil || !strings.Contains(stderr.String(), "web proxy alone, which can't be reached") {
		t.Errorf("without the proxy: %v, printed %q", err, stderr.String())
	}
	if e, ok := errors.AsType[*exitError](r.s.masterSaidNothing(r.h, appOne, errors.Join(proxied, direct))); !ok || e.code != exitPrecondition || !strings.Contains(e.Error(), "does not let alice see") {
		t.Errorf("refused by the proxy: %v", e)
	}
	if e, ok := errors.AsType[*exitError](r.s.masterSaidNothing(r.h, appOne, closed)); !ok || e.code != exitUnreachable {
		t.Errorf("silent: %v", e)
	}
}
