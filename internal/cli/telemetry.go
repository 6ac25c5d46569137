package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/heddle-stream/heddle/agent/task"
	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/conf"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/history"
	"github.com/heddle-stream/heddle/internal/logs"
	"github.com/heddle-stream/heddle/internal/telemetry"
)

// telemetrySettings are what the options, and else OpenTelemetry's variables, say of traces and metrics.
func (s *session) telemetrySettings(c *conf.Config) (telemetry.Settings, error) {
	foreign := map[string]string{} // what options have of OpenTelemetry's variables for all signals: those for one signal go before it
	option := func(name string) string {
		v, _ := c.Value(name)
		if v.Layer == conf.FromEnvironment && v.Where == v.Option.Also {
			foreign[v.Where] = v.Text
			return ""
		}
		return v.Text
	}
	set, err := telemetry.Resolve(option("trace.endpoint"), option("trace.protocol"), option("trace.headers"), func(name string) string {
		return cmp.Or(foreign[name], s.env.Getenv(name))
	})
	if err != nil {
		return set, usage(err, "see trace.endpoint, trace.protocol and trace.headers in `heddle config`, and the OTEL_EXPORTER_OTLP_ variables")
	}
	return set, nil
}

// checkTelemetry refuses, before anything is started, settings with which an ApplicationMaster and agents would not start.
func (s *session) checkTelemetry(c *conf.Config) error {
	_, err := s.telemetrySettings(c)
	return err
}

// telemetry starts what sends this process's traces and, with figures, metrics. Nil: nothing is sent.
func (s *session) telemetry(ctx context.Context, app *application, role, instance string, figures func() []telemetry.Family) (*telemetry.Provider, error) {
	set, err := s.telemetrySettings(app.conf)
	if err != nil {
		return nil, err
	}
	return telemetry.New(ctx, telemetry.Config{
		Settings: set, Service: app.job.Name(), Instance: instance, Version: version(), Logger: app.log,
		Attrs:   []flow.TraceAttr{telemetry.A("heddle.app", app.dir.id), telemetry.A("heddle.job", app.job.Name()), telemetry.A("heddle.role", role)},
		Figures: figures, Interval: app.conf.Duration("metrics.interval"),
	})
}

// submitTrace traces what a client does until an application is on its way, and hands its trace on.
type submitTrace struct {
	provider *telemetry.Provider
	span     telemetry.Span
	times    *timings
	warn     io.Writer
}

// traceSubmission begins the trace of an application's life. That it can't be traced does not keep it from starting.
func (s *session) traceSubmission(ctx context.Context, c *conf.Config, job string, times *timings) *submitTrace {
	t := &submitTrace{times: times, warn: s.env.Stderr}
	set, err := s.telemetrySettings(c)
	if err == nil {
		t.provider, err = telemetry.New(ctx, telemetry.Config{Settings: set, Service: job, Instance: "client", Version: version(),
			Attrs: []flow.TraceAttr{telemetry.A("heddle.role", "client")}})
	}
	if err != nil {
		fmt.Fprintln(s.env.Stderr, "heddle: warning: nothing is traced: "+err.Error())
	}
	for _, text := range set.Ignored() {
		fmt.Fprintln(s.env.Stderr, "heddle: warning: "+printable(text))
	}
	parent, _ := telemetry.ParseTraceparent(s.env.Getenv("TRACEPARENT"))
	t.span = t.provider.Start(telemetry.Start{Parent: parent, Name: "submit " + job, Kind: telemetry.Client, At: times.start,
		Attrs: []flow.TraceAttr{telemetry.A("heddle.job", job), telemetry.A("heddle.target", c.Text("target"))}})
	return t
}

// environ is what hands the trace on to a process: "NAME=value", for its environment.
func (t *submitTrace) environ() []string {
	if t == nil || !t.span.Recording() {
		return nil
	}
	return []string{"TRACEPARENT=" + telemetry.Traceparent(t.span.Context())}
}

// end ends the submitTrace, with a span for each phase that was marked, and sends them while the command goes on: a collector that hangs is not waited for
// until the command ends, which calls what end returns.
func (t *submitTrace) end(app string, err error) (wait func()) {
	if t.provider == nil {
		return func() {}
	}
	from := t.times.start
	for _, m := range t.times.marks {
		t.provider.Start(telemetry.Start{Parent: t.span.Context(), Name: m.phase, At: from}).End(m.at)
		from = m.at
	}
	t.span.Set(telemetry.A("heddle.app", app))
	if err != nil {
		t.span.Fail("the application could not be started")
	}
	t.span.End(time.Time{})
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		closeTelemetry(t.provider)
	}()
	return func() {
		<-sent
		if st := t.provider.Stats(); st.Failed+st.Dropped > 0 {
			fmt.Fprintf(t.warn, "heddle: warning: the OTLP collector %s does not take traces: %d spans of the application's start are lost, and its end may have waited for it, for %v at most\n",
				t.provider.Endpoint(), st.Failed+st.Dropped, lastTraces)
		}
	}
}

func appID(r *running) string {
	if r == nil {
		return ""
	}
	return r.app.id
}

// runTraced runs an ApplicationMaster that sends traces and metrics.
func (s *session) runTraced(ctx context.Context, app *application, cfg appmaster.Config, keeper *history.Keeper) (appmaster.Result, error) {
	front := &figureFront{Front: cfg.Front}
	provider, err := s.telemetry(ctx, app, "appmaster", "appmaster", front.figures)
	if err != nil {
		return appmaster.Result{}, errors.Join(err, cfg.Listener.Close(), cfg.Front.Close(ctx))
	}
	defer closeTelemetry(provider)
	defer s.keepOutput(ctx, app)()
	cfg.Front, cfg.Trace, cfg.Started, cfg.LogLevel = front, provider, processStart, setLogLevel
	cfg.Logger, cfg.Profiles = cfg.Logger.With(logs.Component, "appmaster"), app.conf.Bool("profile.enabled")
	cfg.TraceParent, _ = telemetry.ParseTraceparent(s.env.Getenv("TRACEPARENT"))
	if ms, err := strconv.ParseInt(s.env.Getenv("APP_SUBMIT_TIME_ENV"), 10, 64); err == nil && cfg.Attempt == 0 { // of YARN, in milliseconds; of the first attempt it is the beginning
		cfg.Submitted = time.UnixMilli(ms)
	}
	return runKept(ctx, keeper, cfg, front)
}

// figureFront makes metrics of what a front is given to show, once it is.
type figureFront struct {
	appmaster.Front
	view atomic.Pointer[appmaster.View]
}

// Start implements appmaster.Front.
func (f *figureFront) Start(v appmaster.View) (string, error) {
	f.view.Store(&v)
	return f.Front.Start(v)
}

func (f *figureFront) figures() []telemetry.Family {
	if snap := f.snapshot(); snap != nil {
		return appmaster.Figures(snap)
	}
	return nil
}

// snapshot is what is shown; nil before there is anything.
func (f *figureFront) snapshot() *appmaster.Snapshot {
	if v := f.view.Load(); v != nil {
		return (*v).Snapshot()
	}
	return nil
}

// lastTraces is how long a process that ends waits for the collector to take what is left. Tests change it.
var lastTraces = 2 * time.Second

// leastTraces is for how long it waits at least, however long ago its job was over: a job's end waits for agents first, and then for the
// ApplicationMaster, but not twice for a collector that hangs.
const leastTraces = 250 * time.Millisecond

// lastWait is how long the collector is waited for where the job was over some time ago.
func lastWait(ago time.Duration) time.Duration {
	return max(min(leastTraces, lastTraces), lastTraces-ago)
}

// closeTelemetry sends what is left. That some is lost is no reason to fail, and was logged.
func closeTelemetry(p *telemetry.Provider) {
	ctx, cancel := context.WithTimeout(context.Background(), lastWait(p.SinceOver()))
	defer cancel()
	_ = p.Close(ctx)
}

// follow says which records the tasks of an agent follow.
func follow(app *application, p *telemetry.Provider) task.Follow {
	c := app.conf
	return task.Follow{Provider: p, Rate: c.Float("trace.sample-rate"), Ratio: c.Float("trace.sample-ratio"), MaxRate: c.Float("trace.max-rate")}
}
