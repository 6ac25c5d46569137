package cli

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/hadoop/collected"
	"github.com/heddle-stream/heddle/yarnclient"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// TestLogRoots: logs are collected where NodeManagers are told to, by each format that has a folder of its own.
func TestLogRoots(t *testing.T) {
	if got := logRoots(hadoopConf(t, nil)); !slices.Equal(got, []string{"/tmp/logs"}) {
		t.Errorf("by default %q", got)
	}
	got := logRoots(hadoopConf(t, map[string]string{"yarn.nodemanager.remote-app-log-dir": "/logs", "yarn.log-aggregation.TFile.remote-app-log-dir": "hdfs://ns/tfile",
		"yarn.log-aggregation.IFile.remote-app-log-dir": "/logs", "yarn.log-aggregation.file-formats": "TFile"}))
	if !slices.Equal(got, []string{"/logs", "hdfs://ns/tfile"}) {
		t.Errorf("%q", got)
	}
}

// TestLogNames: agents say in their logs who they are.
func TestLogNames(t *testing.T) {
	for line, want := range map[string]string{
		`time=2026-12-01T01:03:34.921Z level=INFO msg="agent starts" component=agent agent=agent-12 pid=18567`:              "agent-12",
		`{"time":"2026-12-01T01:03:34Z","level":"INFO","msg":"agent starts","component":"agent","agent":"agent-3","pid":1}`: "agent-3",
		`time=2026-12-01T01:03:34.921Z level=INFO msg="ApplicationMaster starts"`:                                           "",
	} {
		got := ""
		if m := startOfAgent.FindStringSubmatch("before\n" + line + "\nafter agent=x"); m != nil {
			got = m[1]
		}
		if got != want {
			t.Errorf("%s: %q", line, got)
		}
	}
	id := yarnid.Attempt{App: yarnid.Application{Cluster: 1, Number: 2}, Number: 1}
	c := &collectedLogs{names: map[string]string{}}
	if first, other := c.nameOf(yarnid.Container{Attempt: id, Number: 1}), c.nameOf(yarnid.Container{Attempt: id, Number: 2}); first != "appmaster" || other != "container_1_0002_01_000002" {
		t.Errorf("%q, %q", first, other)
	}
}

// TestNoLogs says why there is none.
func TestNoLogs(t *testing.T) {
	unknown, library := &yarnclient.APIError{Status: http.StatusNotFound}, &yarnclient.APIError{Status: http.StatusInternalServerError}
	if err := nodeError("n:1", unknown); err != nil {
		t.Errorf("a NodeManager that has none: %v", err)
	}
	for name, x := range map[string]struct {
		state    string
		failures []error
		collects string
		want     string
	}{
		"over, and collected": {yarnclient.StateFinished, nil, "true", "try again"},
		"never collected":     {yarnclient.StateFinished, nil, "false", "does not collect logs"},
		"not yet":             {yarnclient.StateRunning, nil, "true", "yet"},
		"no library":          {yarnclient.StateRunning, []error{nodeError("n:1", library)}, "true", "native library"},
		"another format":      {yarnclient.StateFinished, []error{fmt.Errorf("cannot read: %w", collected.ErrFormat)}, "true", "yarn logs -applicationId"},
		"of another":          {yarnclient.StateFinished, []error{errors.New("nobody but alice")}, "true", "nobody but alice"},
	} {
		t.Run(name, func(t *testing.T) {
			var said bytes.Buffer
			r := &logReader{session: &session{env: Env{Stderr: &said}}, h: &hadoop{conf: hadoopConf(t, map[string]string{"yarn.log-aggregation-enable": x.collects})},
				app: yarnclient.App{State: x.state}}
			for range 2 {
				for _, f := range x.failures {
					r.failed(f)
				}
			}
			err := r.end()
			e, ok := errors.AsType[*exitError](err)
			if !ok || e.code != exitPrecondition || !strings.Contains(err.Error()+strings.Join(e.hints, " "), x.want) || len(r.failures) != len(x.failures) {
				t.Errorf("%v", err)
			}
			if r.printed = true; r.end() != nil || (said.Len() == 0) != (x.failures == nil) {
				t.Errorf("where something was printed: %s", &said)
			}
		})
	}
}
