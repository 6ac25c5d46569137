package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/internal/lastlines"
)

// How long the client waits for what should take a moment.
const (
	startLimit = 15 * time.Second // for the ApplicationMaster to listen
	stopGrace  = 10 * time.Second // for it to end when the client gives up
	failLines  = 10               // of a log, in an error
)

var errSilent = fmt.Errorf("the ApplicationMaster did not listen within %s", startLimit)

// running is an application whose ApplicationMaster is a child of this process.
type running struct {
	s        *session
	app      appDir
	master   *master
	client   *client
	progress *progress
	attempt  int      // of the ApplicationMaster
	attempts int      // that there may be
	environ  []string // that every attempt gets
	json     bool     // print the result as JSON
	keep     bool     // its directory, also when the job has finished

	silence  time.Duration // for which an ApplicationMaster may leave questions unanswered
	answered time.Time     // when it last answered, or was found to listen; zero: it does not listen yet
	misses   int           // questions since then that it left unanswered

	signals <-chan os.Signal // the first cancels the job, the second kills it

	// each is called with every new snapshot; nil for none.
	each func(*appmaster.Snapshot)
	// ended, if not nil, is closed when the caller wants the job cancelled, as by Ctrl-C but without complaint.
	ended <-chan struct{}
}

// detach waits until the ApplicationMaster listens, prints the application's id and leaves it to itself.
func (r *running) detach(ctx context.Context, asJSON bool) error {
	defer r.client.close()
	deadline := time.Now().Add(startLimit)
	for {
		if _, err := r.client.address(); err == nil {
			r.master.release()
			if asJSON {
				return r.s.out.json(struct {
					App string `json:"app"`
				}{r.app.id})
			}
			_, err := fmt.Fprintln(r.s.env.Stdout, r.app.id)
			return err
		}
		select {
		case <-r.master.done:
			return r.conclude(false)
		case <-r.s.env.Signals:
			r.master.kill()
			os.RemoveAll(r.app.path)
			return &exitError{exitCancelled, errors.New("interrupted before the application was up"), nil}
		case <-ctx.Done():
			r.master.kill()
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			r.master.kill()
			return r.unanswering(errSilent)
		}
	}
}

// attend waits for the end of the application and shows how it goes.
func (r *running) attend(ctx context.Context, limit time.Duration) error {
	defer r.client.close()
	defer r.progress.done()
	var timeout <-chan time.Time
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		timeout = timer.C
	}
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	ended := r.ended
	var interrupted time.Time // zero: it was not
	for {
		select {
		case <-r.master.done:
			if interrupted.IsZero() && r.restart("died ("+r.master.exit()+")") {
				continue
			}
			return r.conclude(!interrupted.IsZero())
		case <-timeout:
			r.master.release()
			return &exitError{exitTimeout, fmt.Errorf("the time limit of %s passed; %s still runs", limit, r.app.id),
				[]string{"to see how it goes: " + r.s.env.Program + " status " + r.app.id, "to end it: " + r.s.env.Program + " cancel " + r.app.id}}
		case <-ctx.Done():
			r.master.close(stopGrace)
			return ctx.Err()
		case <-ended:
			ended = nil
			r.cancel(ctx)
		case <-r.signals:
			if !interrupted.IsZero() {
				r.master.kill()
				return r.conclude(true)
			}
			interrupted = time.Now()
			r.progress.say("cancelling the job and waiting for it; Ctrl-C again kills it")
			r.cancel(ctx)
		case <-poll.C:
			if r.look(ctx) {
				poll.Reset(r.progress.interval())
			}
			if err := r.hangs(interrupted); err != nil {
				r.master.kill()
				if interrupted.IsZero() && r.restart("was silent and is killed") {
					continue
				}
				return r.unanswering(err)
			}
		}
	}
}

// cancel asks the ApplicationMaster to cancel the job; one that does not answer is told by closing its owner pipe.
func (r *running) cancel(ctx context.Context) {
	if err := r.client.cancel(ctx); err != nil && r.master.owner != nil {
		r.master.owner.Close()
		r.master.owner = nil
	}
}

// hangs says what is wrong with an ApplicationMaster that has not answered for too long, less long if its job shall be
// cancelled; nil if nothing is. One question alone proves nothing: this very process may have been stopped while it asked.
func (r *running) hangs(interrupted time.Time) error {
	waited := !interrupted.IsZero() && time.Since(interrupted) > stopGrace
	switch {
	case r.answered.IsZero() && time.Since(r.progress.begun) > startLimit:
		return errSilent
	case r.answered.IsZero() && waited:
		return fmt.Errorf("the ApplicationMaster did not listen within %s", time.Since(r.progress.begun).Round(time.Second))
	case !r.answered.IsZero() && (r.misses >= 2 && time.Since(r.answered) > r.silence || r.misses >= 1 && waited):
		return fmt.Errorf("the ApplicationMaster has not answered for %s", time.Since(r.answered).Round(time.Second))
	}
	return nil
}

// unanswering is the end of an application whose ApplicationMaster was killed because it did not answer.
func (r *running) unanswering(err error) error {
	hints := r.logHints()
	return unreachable(fmt.Errorf("%w; it was killed, and the job with it", err), hints...)
}

// look polls the state of the application once and reports whether the job runs.
func (r *running) look(ctx context.Context) bool {
	if _, err := r.client.address(); err != nil {
		r.progress.waiting("for the ApplicationMaster")
		return false
	}
	if r.answered.IsZero() {
		r.answered = time.Now()
	}
	snap, err := r.client.snapshot(ctx)
	if err != nil { // it ends, or it hangs: its end is told by the process, a hang is seen
		r.misses++
		r.progress.unanswered(err)
		return true
	}
	r.answered, r.misses = time.Now(), 0
	snap.Waiting = printable(snap.Waiting)
	r.progress.show(snap, r.client.dashboard())
	if r.each != nil {
		r.each(snap)
	}
	return snap.State != "created" && snap.State != "waiting"
}

// conclude says how the application ended, after its ApplicationMaster has.
func (r *running) conclude(interrupted bool) error {
	r.master.close(0)
	r.app.dropSecrets()
	var result appmaster.Result
	if err := r.app.readJSON(resultFile, &result); err != nil {
		if _, err := os.Stat(r.app.path); errors.Is(err, fs.ErrNotExist) {
			return failed(fmt.Errorf("the application's directory %s was removed while its job ran, which was cancelled for that", r.app.path))
		}
		if interrupted {
			return r.cancelled(fmt.Errorf("the job was killed"))
		}
		return r.failure(fmt.Errorf("the ApplicationMaster died: %s", r.master.exit()))
	}
	if r.progress.times != nil {
		r.progress.times.markAt("job ended", result.Ended)
	}
	if r.json {
		if err := r.s.out.json(runResultOf(result)); err != nil {
			return err
		}
	}
	switch result.State {
	case "finished":
		r.progress.finished(&result)
		r.remove()
		return nil
	case "canceled":
		r.progress.final(&result)
		return r.cancelled(fmt.Errorf("the job was cancelled after %s", result.Ended.Sub(result.Started).Round(time.Millisecond)))
	}
	return r.jobFailure(&result)
}

// runResult is what run --json prints.
type runResult struct {
	appmaster.Result
	RecordsIn  int64 `json:"records_in"`  // from sources
	RecordsOut int64 `json:"records_out"` // into sinks
}

func runResultOf(result appmaster.Result) runResult {
	f := figuresOf(&appmaster.Snapshot{Vertices: result.Vertices})
	return runResult{result, f.in, f.out}
}

func (r *running) remove() {
	if r.keep {
		r.progress.say("kept " + r.app.path)
		return
	}
	os.RemoveAll(r.app.path)
}

// cancelled is the end of a job that somebody wanted to end.
func (r *running) cancelled(err error) error {
	r.remove()
	return &exitError{exitCancelled, err, nil}
}

// jobFailure is the error of a job that failed, with its cause.
func (r *running) jobFailure(result *appmaster.Result) error {
	cause := result.Cause
	if cause == nil {
		return r.failure(fmt.Errorf("the job %s %s", result.Job, result.State))
	}
	text := cause.Message
	if where := place(cause); where != "" {
		text = where + ": " + text
	}
	hints := logHints(cause.LastLogs, "last lines of its log:")
	if strings.Contains(text, "write /dev/stdout: broken pipe") {
		hints = append(hints, "standard output was closed: what read it has ended, as head does when it has its lines")
	}
	err := fmt.Errorf("the job %s failed: %s", result.Job, text)
	if neverBegan(result) {
		return precondition(err, append(hints, r.whereLogs())...)
	}
	return failed(err, append(hints, r.whereLogs())...)
}

// neverBegan reports whether a job failed by what it needs before it can read at all, such as the address of
// brokers or a file, or by who does not answer: a source or a sink could not be set up.
func neverBegan(result *appmaster.Result) bool {
	c := result.Cause
	return c != nil && slices.Contains([]string{"invalid", "not found", "denied", "unavailable"}, c.Kind) && c.Operator != "" && c.Subtask == nil && figuresOf(&appmaster.Snapshot{Vertices: result.Vertices}).in == 0
}

// place says where a failure happened, as far as its message does not.
func place(c *appmaster.Cause) string {
	var parts []string
	switch {
	case c.Operator != "" && (strings.Contains(c.Message, " "+c.Operator+" (") || strings.Contains(c.Message, "source "+c.Operator+":")):
	case c.Operator != "":
		parts = append(parts, "operator "+c.Operator)
	case c.Vertex != "":
		parts = append(parts, c.Vertex)
	}
	if c.Subtask != nil {
		parts = append(parts, fmt.Sprintf("subtask %d", *c.Subtask))
	}
	if c.Agent != "" && len(parts) > 0 {
		parts = append(parts, "on "+c.Agent)
	}
	return strings.Join(parts, ", ")
}

// failure is an error with the last lines of the ApplicationMaster's log.
func (r *running) failure(err error) error { return failed(err, r.logHints()...) }

// logHints shows the end of the ApplicationMaster's log, when it has ended.
func (r *running) logHints() []string {
	r.app.dropSecrets()
	hints := logHints(lastlines.Of(r.app.file(logFile), failLines), "last lines of "+r.app.file(logFile)+":")
	return append(hints, r.whereLogs())
}

func (r *running) whereLogs() string {
	return fmt.Sprintf("all logs: %s logs %s -n 0", r.s.env.Program, r.app.id)
}

func logHints(lines []string, title string) []string {
	if len(lines) == 0 {
		return nil
	}
	hints := []string{title}
	for _, line := range lastlines.Cut(lines, failLines) {
		hints = append(hints, "  | "+printable(line))
	}
	return hints
}
