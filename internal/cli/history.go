package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/heddle-stream/heddle/conf"
	"github.com/heddle-stream/heddle/internal/history"
	"github.com/heddle-stream/heddle/yarnclient"
)

func (s *session) historyCommand() *cobra.Command {
	var asJSON, all bool
	var user string
	cmd := &cobra.Command{
		Use: "history [app]", Short: "Show what an application did that has ended", Args: maxArgs(1), ValidArgsFunction: s.completeApp(true),
		Long: `Show the report that an application's ApplicationMaster left: job graph and counters, why it failed, lag, containers and how they ended, and the
configuration with its origins, secrets masked. Without an id: list the reports that there are, of this host or, with the target yarn, yours of the cluster.

A report is written at the end, and while the job runs every history.interval, so that there is one of an ApplicationMaster that was killed: it says then that
it is not complete, and when it was written. Reports of applications on YARN are in the folder history of the staging folder in HDFS, for their owner alone, whatever yarn.acl-view says; for others, he opens it, or writes
them out (--json). The newest
history.max-count stay, for history.max-age.`,
		Example: "  heddle history\n  heddle history --target yarn\n  heddle history application_1767225600000_0001\n  heddle history heddle-1767225600-1a2b3c4d --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if id, ok := onYARN(args); ok {
				return s.askYARN(cmd.Context(), func(ctx context.Context, h *hadoop) error {
					var seen *yarnclient.App
					if a, err := h.rm.App(ctx, id); err == nil {
						seen = &a
						user = cmp.Or(user, a.User)
					}
					shelf := h.shelfOf(user)
					r, err := readReport(ctx, shelf, id.String())
					if err != nil {
						return h.reportError(err, shelf, id.String(), user)
					}
					return s.showReport(r, seen, seen != nil && !seen.Ended(), asJSON, all)
				})
			}
			c, err := s.load()
			if err != nil {
				return err
			}
			if len(args) == 0 && c.Text("target") == "yarn" {
				return s.askYARN(cmd.Context(), func(ctx context.Context, h *hadoop) error { return s.listReports(ctx, h.shelfOf(user), asJSON) })
			}
			dir, err := s.stateDir(c)
			if err != nil {
				return err
			}
			shelf := history.Dir(filepath.Join(dir, historyDir))
			if len(args) == 0 {
				return s.listReports(cmd.Context(), shelf, asJSON)
			}
			id, err := reportNamed(cmd.Context(), shelf, args[0])
			if err != nil {
				return err
			}
			r, err := readReport(cmd.Context(), shelf, id)
			if err != nil {
				return precondition(err, "`heddle history` lists the reports that there are")
			}
			app, err := findApp(dir, id)
			return s.showReport(r, nil, err == nil && app.alive(), asJSON, all)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().StringVar(&user, "user", "", "whose reports, if not your own and YARN has forgotten the application (target yarn)")
	cmd.Flags().BoolVarP(&all, "all", "a", false, "also options that have their defaults")
	return cmd
}

// reportNamed is the application of this host that a name, or the beginning or end of one, means: of one that has ended, the report may be all there is.
func reportNamed(ctx context.Context, shelf history.Shelf, name string) (string, error) {
	entries, err := shelf.List(ctx)
	if err != nil {
		return "", precondition(fmt.Errorf("cannot look for reports: %w", err))
	}
	var found []string
	for _, e := range entries {
		if e.App == name {
			return name, nil
		}
		if strings.HasPrefix(e.App, name) || strings.HasSuffix(e.App, name) {
			found = append(found, e.App)
		}
	}
	switch len(found) {
	case 0:
		return name, nil // reading it tells
	case 1:
		return found[0], nil
	}
	return "", usage(fmt.Errorf("%q could be any of %d applications", name, len(found)), "give more of the id; `heddle history` lists them")
}

// readReport reads the report of an application.
func readReport(ctx context.Context, shelf history.Shelf, app string) (*history.Report, error) {
	data, err := shelf.Get(ctx, app)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no report of %s: %w", app, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	return history.Decode(data)
}

// reportError gives an error about the report of a user's application its exit code, and says what helps.
func (h *hadoop) reportError(err error, shelf history.HDFS, app, user string) error {
	if errors.Is(err, fs.ErrPermission) && user != "" && user != h.user {
		if name, perr := shelf.Path(app); perr == nil {
			return precondition(fmt.Errorf("HDFS does not let %s read %s, the report of an application of %s's: %w", h.user, name, user, err),
				fmt.Sprintf("reports are for their owner alone, whatever yarn.acl-view says: let %s write it out by heddle history %s --json", user, app),
				fmt.Sprintf("or let %s open the file, and the way to it: hdfs dfs -setfacl -m user:%s:r-- %s, and user:%s:--x for each folder above that is closed", user, h.user, name, h.user))
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return precondition(err, "it may still be starting, have run as another user (--user), have ended before it could write one, or have been removed as too old", "its logs, if YARN collected them: yarn logs -applicationId "+app)
	}
	return hdfsError(err)
}

// reportLine is what a list of reports shows of one.
type reportLine struct {
	App    string          `json:"app"`
	Path   string          `json:"path"`
	Error  string          `json:"error,omitempty"` // why it can't be read
	Report *history.Report `json:"report,omitempty"`
}

// readers is how many reports are read at a time: most of it is waiting.
const readers = 8

// listReports lists the reports of a shelf, the newest first.
func (s *session) listReports(ctx context.Context, shelf history.Shelf, asJSON bool) error {
	entries, err := shelf.List(ctx)
	if err != nil {
		return hdfsError(err)
	}
	slices.SortFunc(entries, func(a, b history.Entry) int { return cmp.Or(b.Modified.Compare(a.Modified), cmp.Compare(b.App, a.App)) })
	lines := make([]reportLine, len(entries))
	places := make(chan struct{}, readers)
	var wg sync.WaitGroup
	for i, e := range entries {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			lines[i] = reportLine{App: e.App, Path: e.Path}
			r, err := readReport(ctx, shelf, e.App)
			if err != nil {
				lines[i].Error = err.Error()
				return
			}
			r.Snapshot, r.Options = nil, nil
			lines[i].Report = r
		})
	}
	wg.Wait()
	if asJSON {
		return s.out.json(lines)
	}
	var rows [][]string
	for _, l := range lines {
		row := []string{l.App, "-", "can't be read", "-", "-", "-"}
		if r := l.Report; r != nil {
			row = []string{l.App, dash(printable(r.Job)), reportState(r), r.Started.Local().Format(clock), reportSpan(r), r.Written.Local().Format(clock)}
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 && s.out.tty {
		_, err := fmt.Fprintln(s.env.Stdout, "no reports")
		return err
	}
	return s.out.table([]string{"APPLICATION", "JOB", "STATE", "STARTED", "FOR", "WRITTEN"}, rows)
}

// pruneReports removes what is beyond the limits and says so.
func (s *session) pruneReports(ctx context.Context, shelf history.Shelf, c *conf.Config, dry bool) error {
	entries, err := shelf.List(ctx)
	if err != nil {
		return hdfsError(err)
	}
	gone, did := history.Excess(entries, time.Now(), historyLimits(c)), "would remove"
	if !dry {
		did = "removed"
		err = shelf.Remove(ctx, gone)
	}
	_, perr := fmt.Fprintf(s.env.Stdout, "%s %d reports of applications; %d stay\n", did, len(gone), len(entries)-len(gone))
	return errors.Join(err, perr)
}
