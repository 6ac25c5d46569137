package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/conf"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/jobgraph"
	"github.com/heddle-stream/heddle/internal/ship"
	"github.com/heddle-stream/heddle/yarnclient"
	"github.com/heddle-stream/heddle/yarnclient/explain"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// outside is what a job means to the cluster beside its graph.
type outside struct {
	needs   []flow.Need
	endless bool // it does not end by itself
}

// runYARN runs the job on a Hadoop cluster.
func (s *session) runYARN(ctx context.Context, c *conf.Config, plan *jobgraph.Graph, job outside, text *jobText, f runFlags, times *timings) error {
	extra, err := ship.ParseExtras(f.ship)
	if err != nil {
		return usage(err)
	}
	h, err := s.openHadoop(c)
	if err != nil {
		return err
	}
	defer h.close()
	if err := h.encrypt(c); err != nil {
		return err
	}
	if text := h.inClear(c); text != "" {
		fmt.Fprintln(s.env.Stderr, "heddle: warning: "+text)
	}
	sub := &submission{s: s, conf: c, h: h, plan: plan, needs: job.needs, endless: job.endless, text: text, extra: extra, times: times}
	defer sub.close()
	p := newProgress(s, plan.Name, plan.Name, f.quiet, times)
	sub.trace = s.traceSubmission(ctx, c, plan.Name, times)
	interrupted, err := attended(ctx, s.env.Signals, p, &sub.doing, sub.submit)
	p.clear()
	if err != nil {
		sub.trace.end("", err)()
		return err
	}
	defer sub.trace.end(sub.id.String(), nil)()
	r := &yarnRun{s: s, h: h, id: sub.id, flags: f, removeFolder: sub.remove}
	r.progress = newProgress(s, plan.Name, sub.id.String(), f.quiet, times)
	r.progress.timings = f.timings
	r.patience = max(0, slotsConfig(c).Timeout)
	if f.detach && !interrupted {
		return r.detach()
	}
	if interrupted {
		err = r.tooLate(ctx)
	} else {
		err = r.attend(ctx, newFollower(h, sub.id, sub.sec.Token).attach(), c.Duration("timeout"))
	}
	if e, ok := errors.AsType[*exitError](err); !ok || e.code != exitTimeout && e.code != exitUnreachable { // else it goes on
		sub.endKafkaTokens()
	}
	return err
}

// attended submits, shows what takes a while, and ends with a signal. What can't be undone has a context of its own, firm, which only a second signal ends:
// whether YARN took the application must be known before anything of it is removed. interrupted says that it was submitted all the same.
func attended(ctx context.Context, signals <-chan os.Signal, p *progress, doing *atomic.Pointer[string], submit func(ctx, firm context.Context) error) (interrupted bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	firm, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	done := make(chan error, 1)
	go func() { done <- submit(ctx, firm) }() // it is waited for
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			if _, unanswered := errors.AsType[*unansweredError](err); interrupted && err != nil && !unanswered {
				err = &exitError{exitCancelled, errors.New("interrupted before the application was submitted"), nil}
			}
			return interrupted, err
		case <-tick.C:
			if text := doing.Load(); text != nil && *text != "" && *text != p.last { // once in a pipe, however long it takes
				p.update(*text, p.last == "")
			}
		case <-signals:
			if interrupted {
				abandon()
			}
			interrupted = true
			cancel()
		}
	}
}

// yarnRun is an application on YARN that this process submitted or waits for.
type yarnRun struct {
	// Immutable.
	s            *session
	h            *hadoop
	id           yarnid.Application
	flags        runFlags
	removeFolder func() error // for an application that never got a master; nil: somebody else's affair
	progress     *progress
	patience     time.Duration // of a job that waits for its slots; 0: not known, or for ever

	// Owned by attend.
	last        *appmaster.Snapshot // the latest
	report      *yarnclient.App     // the latest
	placed      bool                // YARN's queue for it was told
	reached     time.Time           // when somebody answered last
	heard       time.Time           // when the ApplicationMaster did
	mute        bool                // that it does not answer was told
	why         *explain.Finding    // why it waits or waited, if that is known
	interrupted bool
	attempt     uint32 // of the ApplicationMaster, from 0
}

// tooLate ends an application that was submitted when an interrupt came, as one that waits for it would.
func (r *yarnRun) tooLate(ctx context.Context) error {
	if r.s.onSignal == "detach" {
		return r.stillRuns(exitTimeout, fmt.Errorf("interrupted; %s goes on", r.id))
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if err := r.h.rm.Kill(ctx, r.id, "killed by "+r.h.user); err != nil {
		return r.stillRuns(exitUnreachable, fmt.Errorf("interrupted when YARN had taken %s already, which could not be killed: %w", r.id, err))
	}
	if r.removeFolder != nil {
		if err := r.removeFolder(); err != nil {
			r.progress.say(fmt.Sprintf("cannot remove the application's files from HDFS: %v", err))
		}
	}
	return &exitError{exitCancelled, fmt.Errorf("interrupted when YARN had taken %s already; it was killed", r.id), nil}
}

// detach prints the application's id.
func (r *yarnRun) detach() error {
	r.progress.done()
	if r.flags.json {
		return r.s.out.json(struct {
			App string `json:"app"`
		}{r.id.String()})
	}
	_, err := fmt.Fprintln(r.s.env.Stdout, r.id)
	return err
}

// How long the client waits.
const (
	yarnSilence  = 5 * time.Minute  // for anybody to answer
	yarnEndLimit = 30 * time.Second // for YARN to tell of the end of an application whose job is over
)

// attend waits for the end of the application and shows how it goes.
func (r *yarnRun) attend(ctx context.Context, f *follower, limit time.Duration) error {
	defer r.progress.done()
	var timeout <-chan time.Time
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		timeout = timer.C
	}
	looking, stop := context.WithCancel(ctx)
	sights, cancels, pauses := make(chan sight), make(chan struct{}, 1), make(chan time.Duration, 1)
	var wg sync.WaitGroup
	wg.Go(func() { watch(looking, f, sights, pauses, cancels) })
	defer wg.Wait()
	defer stop()
	r.reached = time.Now()
	r.heard = r.reached
	for {
		select {
		case s := <-sights:
			if over, err := r.see(s); over {
				return err
			}
			pauses <- r.pause(s) // has room: it is sent for each sight
		case <-timeout:
			return r.stillRuns(exitTimeout, fmt.Errorf("the time limit of %s passed; %s still %s", limit, r.id, r.does()))
		case <-ctx.Done():
			return r.stillRuns(exitTimeout, ctx.Err())
		case <-r.s.env.Signals:
			if err := r.signalled(ctx, cancels); err != nil {
				return err
			}
		}
	}
}

// signalled cancels the job at the first signal and kills the application at the second.
func (r *yarnRun) signalled(ctx context.Context, cancels chan<- struct{}) error {
	if r.s.onSignal == "detach" {
		return r.stillRuns(exitTimeout, fmt.Errorf("interrupted; %s goes on", r.id))
	}
	if !r.interrupted {
		r.interrupted = true
		r.progress.say("cancelling the job and waiting for it; Ctrl-C again kills it")
		cancels <- struct{}{} // has room for the one
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if err := r.h.rm.Kill(ctx, r.id, "killed by "+r.h.user); err != nil {
		return yarnError(err)
	}
	return &exitError{exitCancelled, errors.New("the application was killed"), r.whereLogs()}
}

// stillRuns ends the wait, not the application.
func (r *yarnRun) stillRuns(code int, err error) error {
	hints := []string{"to see how it goes: " + r.s.env.Program + " status " + r.id.String(), "to end it: " + r.s.env.Program + " cancel " + r.id.String()}
	if r.why != nil {
		return &exitError{code, err, append(r.whyHints(), hints...)}
	}
	if r.last == nil {
		hints = append([]string{"to see why it waits: " + r.s.env.Program + " explain " + r.id.String()}, hints...)
	}
	return &exitError{code, err, hints}
}

// does is what the application does, as far as is known: wait for YARN, with its reason, or run.
func (r *yarnRun) does() string {
	switch a := r.report; {
	case r.last != nil || a == nil:
		return "runs"
	case a.State == yarnclient.StateAccepted:
		return "waits for YARN to start its ApplicationMaster: " + waitReason(a.Diagnostics)
	case a.State == yarnclient.StateRunning:
		return "runs"
	}
	return "waits for YARN to accept it"
}

// pause is how long to wait until the next look.
func (r *yarnRun) pause(s sight) time.Duration {
	if s.snap != nil && s.snap.State == "running" {
		return r.progress.interval()
	}
	return 100 * time.Millisecond
}

// watch looks at the application again and again, with the pauses that it is told to make, and cancels it when it is told to.
func watch(ctx context.Context, f *follower, sights chan<- sight, pauses <-chan time.Duration, cancels <-chan struct{}) {
	defer f.close()
	var failure error
	for {
		s := f.look(ctx)
		s.cancelErr, failure = failure, nil
		select {
		case sights <- s:
		case <-ctx.Done():
			return
		}
		var pause time.Duration
		select {
		case pause = <-pauses:
		case <-ctx.Done():
			return
		}
		select {
		case <-cancels:
			failure = f.cancel(ctx)
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// see takes what was seen. over says that this is the end.
func (r *yarnRun) see(s sight) (over bool, err error) {
	now := time.Now()
	if s.cancelErr != nil {
		r.interrupted = false // the next signal tries again
		r.progress.say(fmt.Sprintf("cannot cancel: %v", s.cancelErr))
	}
	if s.report != nil || s.snap != nil {
		r.reached = now
	}
	reason := r.tellWhy(s.why)
	if s.report != nil {
		r.showReport(s.report, reason)
		r.report = s.report
	}
	switch {
	case s.snap != nil:
		r.answered(now)
		s.snap.Waiting = printable(s.snap.Waiting)
		if reason != "" {
			s.snap.Waiting = cmp.Or(s.snap.Waiting, "the job to start") + "; " + reason
		}
		if n := s.snap.MasterAttempt; n > r.attempt {
			r.attempt = n
			r.progress.say(fmt.Sprintf("%s: attempt %d of its ApplicationMaster, since the one before failed: the job starts afresh", r.id, n+1))
		}
		r.last = s.snap
		r.progress.show(s.snap, s.page)
	case s.reportEr != nil:
		r.progress.unanswered(s.reportEr)
	case s.snapErr != nil && r.report != nil && !r.report.Ended():
		r.silent(now)
	}
	if s.report != nil && s.report.Ended() {
		return true, r.conclude(s.report)
	}
	if d := now.Sub(r.reached); d > yarnSilence {
		return true, unreachable(fmt.Errorf("nobody has told of %s for %s: %w", r.id, d.Round(time.Second), errors.Join(s.reportEr, s.snapErr)), r.stillHints()...)
	}
	return false, nil
}

// silenceTold is how long an ApplicationMaster may be silent until that is told.
const silenceTold = 3 * time.Second

// silent tells that the ApplicationMaster does not answer, and what YARN makes of that.
func (r *yarnRun) silent(now time.Time) {
	d := now.Sub(r.heard)
	if d < silenceTold {
		return
	}
	text := fmt.Sprintf("%s: its ApplicationMaster has not answered for %s; YARN says %s", r.id, d.Round(time.Second), r.report.State)
	if limit := r.h.masterExpiry(); limit > 0 {
		text += fmt.Sprintf(", and gives it up if it hears nothing of it for %s (yarn.am.liveness-monitor.expiry-interval-ms)", limit)
	}
	if !r.mute {
		r.mute = true
		r.progress.say(text)
		return
	}
	r.progress.update(text, false)
}

// answered notes that the ApplicationMaster lives.
func (r *yarnRun) answered(now time.Time) {
	if r.mute {
		r.mute = false
		r.progress.say(fmt.Sprintf("%s: its ApplicationMaster answers again, after %s", r.id, now.Sub(r.heard).Round(time.Second)))
	}
	r.heard = now
}

func (r *yarnRun) stillHints() []string {
	return []string{"it may still run; to see later: " + r.s.env.Program + " status " + r.id.String()}
}

// showReport tells what an application that does not run yet waits for.
func (r *yarnRun) showReport(a *yarnclient.App, reason string) {
	switch a.State {
	case yarnclient.StateAccepted, yarnclient.StateRunning, yarnclient.StateFinished: // before, the queue is only what was asked for
		if !r.placed && a.Queue != "" {
			r.placed = true
			r.progress.say(fmt.Sprintf("%s: submitted to queue %s", r.id, printable(a.Queue)))
		}
	}
	t := r.progress.times
	switch a.State {
	case "NEW", "NEW_SAVING", "SUBMITTED":
		r.progress.waiting("for YARN to accept it")
	case yarnclient.StateAccepted:
		t.mark("accepted")
		r.progress.waiting("for YARN to start its ApplicationMaster: " + cmp.Or(reason, waitReason(a.Diagnostics)))
	case yarnclient.StateRunning:
		t.mark("accepted")
	}
}

// waitReason is the gist of what YARN says of an application that waits: its own words, without the time and the figures that change.
func waitReason(diagnostics string) string {
	text := strings.TrimSpace(diagnostics)
	if strings.HasPrefix(text, "[") { // "[Mon Nov 30 14:41:19 +0000 2026] …"
		if _, after, ok := strings.Cut(text, "] "); ok {
			text = after
		}
	}
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		return "no reason given"
	}
	const most = 300
	if len(text) > most {
		text = text[:most] + "…"
	}
	return printable(text)
}

// conclude says how the application ended.
func (r *yarnRun) conclude(a *yarnclient.App) error {
	if a.State != yarnclient.StateFinished && r.removeFolder != nil {
		// Its master may never have been there to remove it.
		if err := r.removeFolder(); err != nil {
			r.progress.say(fmt.Sprintf("cannot remove the application's files from HDFS: %v", err))
		}
	}
	result := r.result(a)
	if t := r.progress.times; t != nil {
		t.markAt("job ended", result.Ended)
	}
	if r.flags.json {
		if err := r.printJSON(result, a); err != nil {
			return err
		}
	}
	switch {
	case result.State == "finished":
		r.finished(&result, a)
		return nil
	case result.State == "canceled":
		r.progress.final(&result)
		return &exitError{exitCancelled, errors.New(firstLine(a.Diagnostics, "the job was cancelled")), nil}
	case a.State == yarnclient.StateKilled:
		return &exitError{exitCancelled, fmt.Errorf("the application was killed: %s", firstLine(a.Diagnostics, "YARN does not say why")), r.whereLogs()}
	case a.State == yarnclient.StateFailed:
		return r.yarnFailed(a)
	}
	return r.jobFailed(&result, a)
}

// result is how the job ended: what the ApplicationMaster said last, as far as YARN's word does not contradict it.
func (r *yarnRun) result(a *yarnclient.App) appmaster.Result {
	res := appmaster.Result{App: r.id.String(), Job: printable(a.Name), Started: a.Started, Ended: a.Finished}
	if s := r.last; s != nil {
		res.Job, res.Started, res.Cause, res.Vertices, res.Warnings = printable(s.Job), s.Started, s.Cause, s.Vertices, s.Warnings
		if isFinal(s.State) {
			res.Ended = s.Time
		}
	}
	switch {
	case a.State == yarnclient.StateFinished && a.FinalStatus == "SUCCEEDED":
		res.State = "finished"
	case a.State == yarnclient.StateFinished && a.FinalStatus == "KILLED":
		res.State = "canceled"
	default:
		res.State = "failed"
	}
	return res
}

func firstLine(text, otherwise string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if line == "" {
		return otherwise
	}
	return printable(line)
}

// jobFailed is the error of a job that failed.
func (r *yarnRun) jobFailed(result *appmaster.Result, a *yarnclient.App) error {
	first, rest, _ := strings.Cut(strings.TrimSpace(a.Diagnostics), "\n")
	err := errors.New(printable(first))
	if first == "" {
		err = fmt.Errorf("the job %s failed, and its ApplicationMaster did not say why", result.Job)
	}
	var hints []string
	if strings.HasPrefix(rest, logBar) { // an agent's, as far as the ApplicationMaster could have them
		hints = append(hints, "last lines of its log:")
	}
	for line := range strings.SplitSeq(rest, "\n") {
		if line != "" {
			hints = append(hints, printable(line))
		}
	}
	if strings.Contains(first, "(slot.request-timeout)") {
		hints = append(hints, r.whyHints()...)
		if r.blocked() {
			return precondition(err, append(hints, r.whereLogs()...)...)
		}
	}
	hints = append(hints, r.whereLogs()...)
	if neverBegan(result) {
		return precondition(err, hints...)
	}
	return failed(err, hints...)
}

// yarnFailed is the error of an application that YARN gave up: it never ran, or its ApplicationMaster failed too often.
func (r *yarnRun) yarnFailed(a *yarnclient.App) error {
	text := strings.TrimSpace(a.Diagnostics)
	err := fmt.Errorf("YARN gave the application up: %s", printable(firstLine(text, "it does not say why")))
	if strings.Contains(strings.ToLower(text), "queue") && !strings.Contains(text, "AM Container") && r.last == nil {
		return precondition(err, "see the queues: "+r.s.env.Program+" queues; choose one with --yarn.queue")
	}
	hints := []string{}
	if fix := explain.Fix(text); fix != "" {
		hints = append(hints, fix)
	}
	if lines := strings.Split(text, "\n"); len(lines) > 1 {
		hints = append(hints, "YARN says:")
		for _, line := range lines[max(0, len(lines)-15):] {
			if strings.TrimSpace(line) != "" {
				hints = append(hints, "  | "+printable(line))
			}
		}
	}
	return failed(err, append(hints, r.whereLogs()...)...)
}

func (r *yarnRun) whereLogs() []string {
	return []string{"all logs: " + r.s.env.Program + " logs " + r.id.String() + " -n 0"}
}
