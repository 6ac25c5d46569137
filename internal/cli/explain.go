package cli

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/appmaster/driver/standalone"
	"github.com/heddle-stream/heddle/appmaster/plane"
)

// localExplanation is what explain prints as JSON of an application of this host.
type localExplanation struct {
	App     string            `json:"app"`
	Job     string            `json:"job"`
	State   string            `json:"state"`
	Waiting string            `json:"waiting,omitempty"`
	Pending []plane.Pending   `json:"pending"`
	Supply  *appmaster.Supply `json:"supply,omitempty"`
	Cause   *appmaster.Cause  `json:"cause,omitempty"`
	Join    []string          `json:"join,omitempty"` // files that people must start agents with, one each
}

// explainLocal explains an application of this host, if the arguments name one, or name none and one runs here.
func (s *session) explainLocal(ctx context.Context, args []string, asJSON bool) (done bool, err error) {
	if _, ok := onYARN(args); ok {
		return false, nil
	}
	app, err := s.appArg(args)
	if err != nil {
		if len(args) == 0 || !strings.HasPrefix(args[0], "heddle-") {
			return false, nil // none here: one on YARN is meant
		}
		return true, err
	}
	st := stateOf(ctx, app, true)
	if len(args) == 0 && st.Snapshot == nil {
		return false, nil
	}
	x := localExplanation{App: st.ID, Job: st.Job, State: st.State, Waiting: st.Waiting, Pending: []plane.Pending{}, Cause: st.Cause}
	if st.Snapshot != nil {
		x.Supply = &st.Snapshot.Supply
		x.Pending = append(x.Pending, st.Snapshot.Pending...)
		x.Join = toJoin(app)
	}
	if asJSON {
		return true, s.out.json(x)
	}
	return true, s.printLocalExplanation(x, time.Now())
}

func (s *session) printLocalExplanation(x localExplanation, now time.Time) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  %s\n", x.App, dash(x.Job), s.out.paint(stateColour(x.State), x.State))
	for _, p := range x.Pending {
		fmt.Fprintf(&b, "waits for %s, for %v:\n", p.Asked, now.Sub(p.Since).Round(time.Second))
		for _, r := range p.Reasons {
			fmt.Fprintf(&b, "  %s\n", printable(r.Text))
			if r.Fix != "" {
				fmt.Fprintf(&b, "    what helps: %s\n", r.Fix)
			}
		}
	}
	if len(x.Join) > 0 {
		fmt.Fprintf(&b, "agents of the target standalone are started by you; copy the files to start them on other hosts:\n")
		for _, file := range x.Join {
			fmt.Fprintf(&b, "  %s agent --secrets %s\n", s.env.Program, file)
		}
	}
	switch {
	case len(x.Pending) > 0:
	case x.Waiting != "":
		fmt.Fprintf(&b, "waits for %s\n", printable(x.Waiting))
	case x.Cause != nil:
		fmt.Fprintf(&b, "cause: %s\n", printable(x.Cause.Message))
	default:
		b.WriteString("waits for nothing\n")
	}
	_, err := s.env.Stdout.Write([]byte(b.String()))
	return err
}

// toJoin are the files of an application whose agents people start that no agent has joined with yet.
func toJoin(app appDir) []string {
	files, err := filepath.Glob(filepath.Join(app.file(standalone.Dir), "agent-*"))
	if err != nil { // the state directory's name is no pattern
		return nil
	}
	slices.SortFunc(files, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) })
	return files
}
