package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
	"github.com/heddle-stream/heddle/internal/hadoop/hdfsfiles"
)

// probeTime bounds the questions about what a job reads and writes in HDFS. What is not answered by then is left to the job.
const probeTime = 15 * time.Second

// pathProber says why a job could not read or write paths; *hdfsfiles.FileSystem is one.
type pathProber interface {
	CheckRead(ctx context.Context, pattern string) error
	CheckWrite(ctx context.Context, dir string) error
}

// probePaths refuses a job whose files in HDFS are not there or may not be read, or that may not write where its sinks do, before it is sent: else it would fail
// by it once it runs. Where that can't be learned from here, there is a warning.
func probePaths(ctx context.Context, f pathProber, needs []flow.Need, warn func(string)) error {
	var wg sync.WaitGroup
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	errs := make([]error, len(needs))
	for i, n := range needs {
		if n.Kind != flow.NeedPath || !strings.HasPrefix(n.Name, "hdfs://") {
			continue
		}
		wg.Go(func() {
			if n.Write {
				errs[i] = f.CheckWrite(ctx, n.Name)
			} else {
				errs[i] = f.CheckRead(ctx, n.Name)
			}
		})
	}
	wg.Wait()
	for i, err := range errs {
		switch verb := map[bool]string{true: "write to", false: "read"}[needs[i].Write]; {
		case err == nil:
		case hdfs.TroubleOf(err) == hdfs.Unreachable, errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
			warn(fmt.Sprintf("cannot tell from here whether the job can %s %s: %v", verb, needs[i].Name, err))
		default:
			return precondition(fmt.Errorf("the job cannot %s %s: %w", verb, needs[i].Name, err))
		}
	}
	return nil
}

// probe asks about what the job reads and writes in HDFS.
func (sub *submission) probe(ctx context.Context) error {
	if !needsHDFS(sub.needs) {
		return nil
	}
	how, err := sub.h.hdfs()
	if err != nil {
		return precondition(err)
	}
	f, err := hdfsfiles.New(sub.h.conf, how)
	if err != nil {
		return precondition(err)
	}
	defer f.Close()
	return probePaths(ctx, f, sub.needs, func(text string) { fmt.Fprintln(sub.s.env.Stderr, "heddle: warning: "+printable(text)) })
}
