package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/agent/task"
	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/conf"
	"github.com/heddle-stream/heddle/internal/inproc"
	"github.com/heddle-stream/heddle/internal/jobgraph"
)

// errInterrupted is the cause of a job or a measurement cancelled by Ctrl-C.
var errInterrupted = errors.New("interrupted")

// runInProcess runs the job in this very process. Its log goes to stderr, from warnings on unless log.level says otherwise.
func (s *session) runInProcess(ctx context.Context, c *conf.Config, job *heddle.Job, plan *jobgraph.Graph, f runFlags) error {
	if v, _ := c.Value("log.level"); v.Layer == conf.FromDefault {
		if err := c.Set("log.level", "warn", conf.FromFlag, "target inproc"); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if limit := c.Duration("timeout"); limit > 0 {
		timer := time.AfterFunc(limit, func() { cancel(context.DeadlineExceeded) })
		defer timer.Stop()
	}
	p := newProgress(s, plan.Name, plan.Name, f.quiet, nil)
	defer p.done()
	start := time.Now()
	done := make(chan error, 1)
	go func() { // ends with the job; a second interrupt leaves it to the end of the process
		done <- inproc.Run(ctx, inproc.Config{
			Graph: job.Graph(), Compiled: plan, Options: c.Option, Logger: s.logger(c),
			StopGrace: inProcessGrace, FlushTimeout: c.Duration("flush-timeout"), SegmentBytes: int(c.Bytes("exchange.segment-bytes")),
			Progress: func(reports []task.Report) { p.reports(job, reports, start) },
		})
	}()
	interrupted := false
	for {
		select {
		case err := <-done:
			err = s.inProcessOutcome(ctx, err, plan.Name, time.Since(start), p)
			if f.json {
				return errors.Join(s.out.json(inProcessResult(err, plan.Name, start, p)), err)
			}
			return err
		case <-s.env.Signals:
			if interrupted {
				return &exitError{exitCancelled, errors.New("the job was killed"), nil}
			}
			interrupted = true
			p.say("cancelling the job and waiting for it; Ctrl-C again kills it")
			cancel(errInterrupted)
		}
	}
}

func (s *session) inProcessOutcome(ctx context.Context, err error, name string, took time.Duration, p *progress) error {
	switch {
	case err == nil:
		p.say(p.out.paint(green, "finished") + fmt.Sprintf(": %s in %s, %s records in, %s out", name,
			took.Round(time.Millisecond), number(p.figures.in), number(p.figures.out)))
		return nil
	case errors.Is(context.Cause(ctx), errInterrupted):
		return &exitError{exitCancelled, fmt.Errorf("the job was cancelled after %s", took.Round(time.Millisecond)), stuckHints(err)}
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return &exitError{exitTimeout, fmt.Errorf("the time limit passed after %s, and a job in this process ends with it", took.Round(time.Millisecond)), stuckHints(err)}
	}
	return failed(fmt.Errorf("the job %s failed: %w", name, err), stuckHints(err)...)
}

// inProcessGrace is how long tasks in this process may take to stop.
const inProcessGrace = 5 * time.Second

// stuckHints shows what tasks that did not stop are doing.
func stuckHints(err error) (hints []string) {
	stuck, ok := errors.AsType[*inproc.StuckError](err)
	if !ok {
		return nil
	}
	const tasks, lines = 3, 30
	for _, t := range stuck.Tasks[:min(tasks, len(stuck.Tasks))] {
		hints = append(hints, fmt.Sprintf("task %s did not stop within %s: a function ignores its context; it is here:", t.Name, stuck.Grace))
		stack := strings.Split(t.Stack, "\n")
		for _, line := range stack[:min(lines, len(stack))] {
			hints = append(hints, "  | "+printable(line))
		}
	}
	return hints
}

// reports shows what the tasks of a job in this process report.
func (p *progress) reports(job *heddle.Job, reports []task.Report, start time.Time) {
	f := figures{at: time.Now()}
	for _, r := range reports {
		for _, op := range r.Operators {
			switch job.Graph().Nodes[op.Node].Kind {
			case "source":
				f.in += op.Counters["records_out"]
			case "sink":
				f.out += op.Counters["records_in"]
			}
		}
	}
	if d := f.at.Sub(p.figures.at); !p.figures.at.IsZero() && d > 0 {
		f.rate = float64(f.in-p.figures.in) / d.Seconds()
	}
	p.figures = f
	p.update(fmt.Sprintf("%s: running for %s, %s records in (%s/s), %s out", p.app, f.at.Sub(start).Round(time.Second),
		number(f.in), number(int64(f.rate)), number(f.out)), false)
}

// inProcessResult is the runResult of a job that ran in this process.
func inProcessResult(err error, job string, start time.Time, p *progress) runResult {
	now := time.Now()
	o := runResult{appmaster.Result{Job: job, State: "finished", Started: start, Ended: now, Vertices: []appmaster.Vertex{}}, p.figures.in, p.figures.out}
	if err == nil {
		return o
	}
	o.State, o.Cause = "failed", &appmaster.Cause{Kind: "failed", Message: err.Error(), Time: now}
	if e, ok := errors.AsType[*exitError](err); ok && e.code != exitFailed {
		o.State = "canceled"
	}
	return o
}
