// Package exporter serves the metrics of many applications on one port: Prometheus finds them in one place, though they come and go, and though they
// stand behind a proxy that it can't pass.
package exporter

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/common/expfmt"
)

// Target is an application that can be asked for its metrics.
type Target struct {
	App, Queue, User string
	// Job is the job's name; "": the one that its metrics tell.
	Job string
	// Read returns its metrics in the text format.
	Read func(context.Context) ([]byte, error)
}

// ErrDenied is the error of a Read of an application that we may not look at. It is left out, and is no fault.
var ErrDenied = errors.New("this user may not look at the application")

// Config is what an Exporter needs to know.
type Config struct {
	// Find returns the applications that run.
	Find     func(context.Context) ([]Target, error)
	Refresh  time.Duration // how long what was found is believed; 0: not at all
	Timeout  time.Duration // that one application may take; 0: 5 s
	Parallel int           // applications that are asked at a time; 0: 8
	Logger   *slog.Logger  // nil: discards
}

// Exporter is an http.Handler that answers Prometheus.
type Exporter struct {
	// Immutable.
	cfg  Config
	gate chan struct{} // holds a token while a scrape is under way: those that come meanwhile wait

	// Owned by whoever holds the gate.
	targets []Target
	found   time.Time       // when; zero: never
	silent  map[string]bool // applications that could not be read the last time
	barred  map[string]bool // applications that we may not look at, which was told
}

// New returns an exporter.
func New(cfg Config) *Exporter {
	if cfg.Timeout == 0 {
		cfg.Timeout = 5 * time.Second
	}
	if cfg.Parallel == 0 {
		cfg.Parallel = 8
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Exporter{cfg: cfg, gate: make(chan struct{}, 1), silent: map[string]bool{}, barred: map[string]bool{}}
}

// Bounds of a scrape.
const (
	longest = 30 * time.Second       // without a word of Prometheus's
	spare   = 500 * time.Millisecond // of the time that Prometheus gives, to write the answer
)

// limit is how long a scrape may take: Prometheus says how long it waits.
func limit(r *http.Request) time.Duration {
	seconds, err := strconv.ParseFloat(r.Header.Get("X-Prometheus-Scrape-Timeout-Seconds"), 64)
	if err != nil || seconds <= 0 || seconds > longest.Seconds() {
		return longest
	}
	d := time.Duration(seconds * float64(time.Second))
	return max(d-spare, d/2)
}

// ServeHTTP implements http.Handler.
func (e *Exporter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.Error(w, "only GET", http.StatusMethodNotAllowed)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), limit(r))
	defer cancel()
	select {
	case e.gate <- struct{}{}:
		defer func() { <-e.gate }()
	case <-ctx.Done():
		http.Error(w, "another scrape is under way", http.StatusServiceUnavailable)
		return
	}
	var b bytes.Buffer
	if err := e.gather(ctx).write(&b); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", string(expfmt.NewFormat(expfmt.TypeTextPlain)))
	_, _ = w.Write(b.Bytes()) // Prometheus is gone if this fails
}

// Figures of the exporter's own of each application.
const (
	appUp   = "heddle_app_up"
	appTook = "heddle_app_scrape_duration_seconds"
)

// gather asks all applications. Those that do not answer are told of, and spoil nothing.
func (e *Exporter) gather(ctx context.Context) *merged {
	m := newMerged()
	m.gauge("heddle_exporter_up", "Whether running applications could be looked for", nil, truth(e.find(ctx)))
	m.gauge("heddle_exporter_applications", "Running applications that were found", nil, float64(len(e.targets)))
	answers := make([]answer, len(e.targets))
	places := make(chan struct{}, e.cfg.Parallel)
	var wg sync.WaitGroup
	for i := range e.targets {
		wg.Go(func() {
			select {
			case places <- struct{}{}:
				defer func() { <-places }()
				answers[i] = e.ask(ctx, &e.targets[i])
			case <-ctx.Done():
				answers[i] = answer{err: errors.New("there was no time left for it")}
			}
		})
	}
	wg.Wait()
	barred := e.bar(answers)
	m.gauge("heddle_exporter_denied_applications", "Running applications that are left out, since the exporter's user may not look at them", nil, float64(barred))
	for i := range answers {
		t, a := &e.targets[i], &answers[i]
		if errors.Is(a.err, ErrDenied) {
			continue
		}
		if a.err == nil {
			a.err = m.add(a.text, t)
		}
		m.gauge(appUp, "Whether the metrics of a running application could be read", t.labels(), truth(a.err))
		m.gauge(appTook, "Time that reading them took", t.labels(), a.took.Seconds())
		if a.err != nil && !e.silent[t.App] {
			e.cfg.Logger.Warn("cannot read the metrics of an application", "app", t.App, "job", t.Job, "user", t.User, "err", a.err)
		}
		e.silent[t.App] = a.err != nil
	}
	return m
}

// bar counts the applications that we may not look at, and tells of those that are new, all at once.
func (e *Exporter) bar(answers []answer) (n int) {
	barred := map[string]bool{}
	var fresh []string
	for i := range answers {
		if app := e.targets[i].App; errors.Is(answers[i].err, ErrDenied) {
			if barred[app] = true; !e.barred[app] {
				fresh = append(fresh, app)
			}
		}
	}
	if len(fresh) > 0 {
		e.cfg.Logger.Warn("left out applications that the exporter's user may not look at: their owners can allow it by yarn.acl-view, or leave them out by --user and --in-queue",
			"applications", len(fresh), "first", fresh[0])
	}
	e.barred = barred
	return len(barred)
}

// find looks for applications, if that is due. Those that were found before stay when it can't be done.
func (e *Exporter) find(ctx context.Context) error {
	if !e.found.IsZero() && time.Since(e.found) < e.cfg.Refresh {
		return nil
	}
	found, err := e.cfg.Find(ctx)
	if err != nil {
		e.cfg.Logger.Warn("cannot look for running applications", "err", err)
		return err
	}
	jobs := map[string]string{}
	for _, t := range e.targets {
		jobs[t.App] = t.Job
	}
	for i := range found {
		found[i].Job = cmp.Or(found[i].Job, jobs[found[i].App])
	}
	e.targets, e.found = found, time.Now()
	silent := map[string]bool{}
	for _, t := range found {
		silent[t.App] = e.silent[t.App]
	}
	e.silent = silent
	return nil
}

// answer is what an application said.
type answer struct {
	text []byte
	took time.Duration
	err  error
}

func (e *Exporter) ask(ctx context.Context, t *Target) answer {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Timeout)
	defer cancel()
	begun := time.Now()
	text, err := t.Read(ctx)
	return answer{text, time.Since(begun), err}
}

func truth(err error) float64 {
	if err != nil {
		return 0
	}
	return 1
}
