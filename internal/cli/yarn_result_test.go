package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/yarnclient"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// snapshotOf is a snapshot of a job that has read and written so many records.
func snapshotOf(state string, in, out int64) *appmaster.Snapshot {
	s := &appmaster.Snapshot{Job: "fin", State: state, Started: time.UnixMilli(1000), Time: time.UnixMilli(3000)}
	s.Vertices = []appmaster.Vertex{{Operators: []appmaster.Operator{
		{Kind: "source", Counters: map[string]int64{"records_out": in}}, {Kind: "sink", Counters: map[string]int64{"records_in": out}},
	}}}
	return s
}

// TestFinishedFigures: what is printed at the end are the last figures or none, whatever was seen before.
func TestFinishedFigures(t *testing.T) {
	told := "the job fin finished: 16,000 records in, 15,998 out in 2.5s"
	for name, x := range map[string]struct {
		last        *appmaster.Snapshot
		diagnostics string
		text, json  string
	}{
		"seen":          {snapshotOf("finished", 16000, 15998), told, "fin in 2s, 16,000 records in, 15,998 out", `"records_out": 15998`},
		"stale, told":   {snapshotOf("running", 15999, 0), told, "fin in 2.5s, 16,000 records in, 15,998 out", `"records_out": 15998`},
		"stale, silent": {snapshotOf("running", 15999, 0), "", "fin; its last figures are not known", `"state": "finished"`},
		"never seen":    {nil, told, "fin in 2.5s, 16,000 records in, 15,998 out", `"records_in": 16000`},
	} {
		stdout, stderr := &syncBuffer{}, &syncBuffer{}
		s := &session{env: Env{Program: "heddle", Stderr: stderr, Stdout: stdout}}
		s.out = newTerminal(s.env, s.env.Stdout)
		r := &yarnRun{s: s, last: x.last, progress: newProgress(s, "fin", "application_1_0001", false, nil), flags: runFlags{json: true}}
		if x.last != nil {
			r.progress.take(x.last)
		}
		if err := r.conclude(&yarnclient.App{Name: "fin", State: "FINISHED", FinalStatus: "SUCCEEDED", Diagnostics: x.diagnostics}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := stderr.String(); !strings.Contains(got, x.text) || strings.Contains(got, "15,999") {
			t.Errorf("%s: printed %q, want %q", name, got, x.text)
		}
		if got := stdout.String(); !strings.Contains(got, x.json) || strings.Contains(got, "15999") {
			t.Errorf("%s: printed %s, want %s", name, got, x.json)
		}
	}
}

// TestQueueTold: the queue is told once YARN has taken the application into it, not when it was only asked for.
func TestQueueTold(t *testing.T) {
	const told = "submitted to queue"
	for name, x := range map[string]struct {
		states []string
		want   string // what is printed of the queue
	}{
		"placed":  {[]string{"SUBMITTED", "ACCEPTED", "RUNNING"}, told + " root.a\n"},
		"refused": {[]string{"NEW_SAVING", "FAILED"}, ""},
	} {
		stderr := &syncBuffer{}
		s := &session{env: Env{Program: "heddle", Stderr: stderr, Stdout: &syncBuffer{}}}
		r := &yarnRun{s: s, progress: newProgress(s, "fin", "application_1_0001", false, nil)}
		for i, state := range x.states {
			a := &yarnclient.App{Name: "fin", State: state, Queue: "asked"}
			if i > 0 {
				a.Queue = "root.a"
			}
			r.showReport(a, "")
		}
		if got := stderr.String(); !strings.Contains(got, x.want) || x.want == "" && strings.Contains(got, told) || strings.Count(got, told) > 1 {
			t.Errorf("%s: printed %q, want %q", name, got, x.want)
		}
	}
}

// TestSubmitError: an application whose submission was not answered may run, and its files are kept; one that was refused does not.
func TestSubmitError(t *testing.T) {
	id := yarnid.Application{Cluster: 1, Number: 7}
	lost := &yarnclient.UnreachableError{What: "submit " + id.String(), Err: errors.New("connection reset")}
	for name, x := range map[string]struct {
		err  error
		code int
		kept bool
	}{
		"no answer":   {lost, exitUnreachable, true},
		"refused":     {&yarnclient.APIError{Status: 400, Message: "no"}, exitPrecondition, false},
		"interrupted": {fmt.Errorf("cannot submit: %w", context.Canceled), exitUnreachable, true},
	} {
		err := submitError(id, "heddle", x.err)
		e, ok := errors.AsType[*exitError](err)
		if !ok || e.code != x.code {
			t.Errorf("%s: %v, want exit code %d", name, err, x.code)
			continue
		}
		_, kept := errors.AsType[*unansweredError](err)
		if kept != x.kept || strings.Contains(e.Error(), "application_1_0007 may have been accepted") != x.kept || strings.Contains(strings.Join(e.hints, "\n"), "heddle status application_1_0007") != x.kept {
			t.Errorf("%s: %v %q, kept: %v, want %v", name, err, e.hints, kept, x.kept)
		}
	}
}

// TestMasterNotExecutable: why an ApplicationMaster never began is told with what helps, not in YARN's words alone.
func TestMasterNotExecutable(t *testing.T) {
	err := (&yarnRun{s: &session{env: Env{Program: "heddle"}}}).yarnFailed(&yarnclient.App{Diagnostics: "Application x failed 1 times due to AM Container for appattempt_1 exited with  exitCode: 126\nFailing this attempt."})
	e, ok := errors.AsType[*exitError](err)
	if !ok || e.code != exitFailed || len(e.hints) == 0 || !strings.Contains(e.hints[0], "yarn.binary") {
		t.Errorf("%v", err)
	}
}
