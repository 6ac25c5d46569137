package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/heddle-stream/heddle/conf"
	"github.com/heddle-stream/heddle/yarnclient"
	"github.com/heddle-stream/heddle/yarnclient/explain"
	"github.com/heddle-stream/heddle/yarnclient/report"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// activitiesWait is how long the scheduler may take to note what it does for an application, once it was asked to.
// Where there is a reason already, it has less time to add another.
const (
	activitiesWait  = 6 * time.Second
	activitiesExtra = time.Second
)

// askYARN runs a verb that asks a cluster, within --timeout or a minute.
func (s *session) askYARN(ctx context.Context, f func(context.Context, *hadoop) error) error {
	return s.withYARN(func(c *conf.Config, h *hadoop) error {
		limit := c.Duration("timeout")
		if limit == 0 {
			limit = time.Minute
		}
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return yarnError(f(ctx, h))
	})
}

// explanation is what the verb prints as JSON.
type explanation struct {
	App   string `json:"app"`
	Name  string `json:"name"`
	User  string `json:"user"`
	Queue string `json:"queue"`
	State string `json:"state"`
	explain.Report
	Unknown []string `json:"unknown,omitempty"` // what could not be asked, and why
}

func (s *session) explainCommand() *cobra.Command {
	var asJSON, quick bool
	cmd := &cobra.Command{
		Use: "explain [app]", Short: "Say why an application waits, and what helps", Args: maxArgs(1), ValidArgsFunction: s.completeApp(true),
		Long: `Say in words why a job has not got its slots: of an application of this host what its ApplicationMaster says, the newest that
runs here if none is named. Of an application on YARN, why the containers of an application on YARN, or its ApplicationMaster, are not coming, and what helps: the limits of
its queue and user, node labels, the size of its containers, nodes that are full or unwell, and what the scheduler itself says.
Without an id, and with none on this host: your newest application of Heddle that waits or runs. It takes some seconds, for the scheduler to be asked; --quick leaves
that out. It only looks.`,
		Example: "  heddle explain\n  heddle explain application_1767225600000_0042 --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if done, err := s.explainLocal(cmd.Context(), args, asJSON); done {
				return err
			}
			return s.askYARN(cmd.Context(), func(ctx context.Context, h *hadoop) error {
				id, err := h.appToExplain(ctx, args)
				if err != nil {
					return err
				}
				facts, unknown, err := h.factsOf(ctx, id, quick)
				if err != nil {
					return err
				}
				a := facts.App
				x := explanation{a.ID, a.Name, a.User, a.Queue, a.State, explain.Explain(facts), unknown}
				if asJSON {
					return s.out.json(x)
				}
				return s.printExplanation(x)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&quick, "quick", false, "don't ask the scheduler what it does for the application")
	return cmd
}

// appToExplain is the application that is named, or the user's newest.
func (h *hadoop) appToExplain(ctx context.Context, args []string) (yarnid.Application, error) {
	if len(args) == 1 {
		id, err := yarnid.ParseApplication(args[0])
		if err != nil {
			return id, usage(err, "the ids of applications on YARN: yarn application -list")
		}
		return id, nil
	}
	apps, err := h.rm.Apps(ctx, yarnclient.Filter{Types: []string{appType}, User: h.user, States: []string{"NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING"}})
	if err != nil {
		return yarnid.Application{}, err
	}
	var newest yarnid.Application
	for _, a := range apps {
		if id, err := yarnid.ParseApplication(a.ID); err == nil && (id.Cluster > newest.Cluster || id.Cluster == newest.Cluster && id.Number > newest.Number) {
			newest = id
		}
	}
	if newest == (yarnid.Application{}) {
		return newest, precondition(fmt.Errorf("user %s has no application of Heddle on this cluster that waits or runs", h.user), "name one that has ended: heddle explain application_…")
	}
	return newest, nil
}

// factsOf asks for what an explanation needs. What can't be had is named, and left out.
func (h *hadoop) factsOf(ctx context.Context, id yarnid.Application, quick bool) (f explain.Facts, unknown []string, err error) {
	if f.App, err = h.app(ctx, id); err != nil {
		return f, nil, err
	}
	f.Now, f.Expiry = time.Now(), h.masterExpiry()
	if f.App.Ended() {
		return f, nil, nil
	}
	if f.App.State == report.StateAccepted {
		f.Manager = h.managerSince(ctx)
	}
	missing := func(what string, err error) {
		if err != nil {
			unknown = append(unknown, what+": "+err.Error())
		}
	}
	f.Scheduler, err = h.rm.Scheduler(ctx)
	missing("queues", err)
	f.Nodes, err = h.rm.Nodes(ctx, allNodes...)
	missing("nodes", err)
	f.Labels, err = h.rm.Labels(ctx)
	f.NoLabels = err != nil
	missing("node labels", err)
	if !quick {
		wait := activitiesWait
		if slices.ContainsFunc(explain.Explain(f).Findings, func(x explain.Finding) bool { return x.Grade != explain.Notes }) {
			wait = activitiesExtra
		}
		f.Activities, err = h.activities(ctx, id, wait)
		missing("the scheduler's activities", err)
	}
	return f, unknown, nil
}

// masterExpiry is for how long YARN bears the silence of an ApplicationMaster, as far as this host's configuration tells; 0: not known.
func (h *hadoop) masterExpiry() time.Duration {
	d, err := h.conf.Duration("yarn.am.liveness-monitor.expiry-interval-ms", time.Millisecond, 10*time.Minute)
	if err != nil {
		return 0
	}
	return d
}

// managerSince is when the active ResourceManager was started; zero if it can't be told.
func (h *hadoop) managerSince(ctx context.Context) time.Time {
	if h.rm.Web() == nil {
		return time.Time{}
	}
	infos, errs := h.rm.Web().Infos(ctx)
	for i, info := range infos {
		if errs[i] == nil && (info.HAState == "ACTIVE" || len(infos) == 1) {
			return info.Started
		}
	}
	return time.Time{}
}

// activities asks until the scheduler has something to say, for a while.
func (h *hadoop) activities(ctx context.Context, id yarnid.Application, wait time.Duration) ([]report.Diagnostic, error) {
	for end := time.Now().Add(wait); ; {
		list, err := h.rm.Activities(ctx, id)
		if errors.Is(err, yarnclient.ErrNotServed) {
			return nil, nil
		}
		none := !slices.ContainsFunc(list, func(d report.Diagnostic) bool { return !strings.Contains(d.Text, "waiting for") })
		if err != nil || !none || time.Now().After(end) {
			return list, err
		}
		t := time.NewTimer(time.Second)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, ctx.Err()
		}
	}
}

// gradeWords introduce findings, with their colours.
var gradeWords = map[explain.Grade]struct{ word, colour string }{
	explain.Blocks: {"blocked", red}, explain.Delays: {"waiting", yellow}, explain.Notes: {"note", dim},
}

func (s *session) printExplanation(x explanation) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  queue %s  user %s  %s\n", s.out.paint(bold, printable(x.App)), dash(printable(x.Name)), dash(printable(x.Queue)), dash(printable(x.User)), x.State)
	fmt.Fprintf(&b, "%s\n", printable(x.Headline))
	for _, a := range x.Asks {
		fmt.Fprintf(&b, "  asks for %d × %s", a.Count, a.Each)
		if a.Label != "" {
			fmt.Fprintf(&b, ", label %s", printable(a.Label))
		}
		if a.Strict {
			b.WriteString(", on named hosts only")
		}
		b.WriteByte('\n')
	}
	for _, f := range x.Findings {
		g := gradeWords[f.Grade]
		fmt.Fprintf(&b, "%s %s\n", s.out.paint(g.colour, fmt.Sprintf("%-8s", g.word+":")), printable(f.Text))
		if f.Fix != "" {
			fmt.Fprintf(&b, "%-8s %s\n", "  fix:", printable(f.Fix))
		}
	}
	for _, u := range x.Unknown {
		fmt.Fprintf(&b, "%s could not ask for %s\n", s.out.paint(dim, "note:   "), printable(u))
	}
	_, err := fmt.Fprint(s.env.Stdout, b.String())
	return err
}
