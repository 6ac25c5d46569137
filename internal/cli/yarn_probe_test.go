package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/flow"
)

// paths is a pathProber with answers by path.
type paths map[string]error

func (p paths) CheckRead(_ context.Context, pattern string) error {
	return p["read "+pattern]
}

func (p paths) CheckWrite(_ context.Context, dir string) error {
	return p["write "+dir]
}

// TestProbePaths: what a job can't read or write is refused by name before it is sent; what can't be learned from here is a warning.
func TestProbePaths(t *testing.T) {
	read := func(name string) flow.Need { return flow.Need{Kind: flow.NeedPath, Name: name, Read: true} }
	write := func(name string) flow.Need {
		return flow.Need{Kind: flow.NeedPath, Name: name, Read: true, Write: true}
	}
	for name, x := range map[string]struct {
		needs []flow.Need
		fs    paths
		err   string
		warns string
	}{
		"all well":     {[]flow.Need{read("hdfs:///in/*"), write("hdfs:///out")}, nil, "", ""},
		"missing":      {[]flow.Need{read("hdfs:///in")}, paths{"read hdfs:///in": fmt.Errorf("no file matches hdfs:///in: %w", fs.ErrNotExist)}, "the job cannot read hdfs:///in: no file matches", ""},
		"not allowed":  {[]flow.Need{write("hdfs:///out")}, paths{"write hdfs:///out": fs.ErrPermission, "read hdfs:///out": errors.New("not asked")}, "the job cannot write to hdfs:///out: permission denied", ""},
		"out of reach": {[]flow.Need{read("hdfs://far/in")}, paths{"read hdfs://far/in": os.ErrDeadlineExceeded}, "", "cannot tell from here whether the job can read hdfs://far/in"},
		"local":        {[]flow.Need{read("/in"), {Kind: flow.NeedTopic, Name: "hdfs://x"}}, paths{"read /in": fs.ErrNotExist, "read hdfs://x": fs.ErrNotExist}, "", ""},
	} {
		warned := ""
		err := probePaths(t.Context(), x.fs, x.needs, func(text string) { warned += text })
		if x.err == "" && err != nil || x.err != "" && (err == nil || !strings.Contains(err.Error(), x.err)) {
			t.Errorf("%s: %v, want %q", name, err, x.err)
		}
		if e, ok := errors.AsType[*exitError](err); err != nil && (!ok || e.code != exitPrecondition) {
			t.Errorf("%s: %v is not exit code %d", name, err, exitPrecondition)
		}
		if !strings.Contains(warned, x.warns) || x.warns == "" && warned != "" {
			t.Errorf("%s: warned %q, want %q", name, warned, x.warns)
		}
	}
}
