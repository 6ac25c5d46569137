package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/heddle-stream/heddle/appmaster"
)

func (s *session) tokensCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "tokens app", Short: "Show an application's delegation tokens, and hand in fresh ones", Args: exactArgs(1, "the id of an application on YARN"),
		ValidArgsFunction: s.completeApp(false),
		Long: `Show the delegation tokens of an application on a cluster that demands Kerberos: for what, whose, who may renew them, how long they are good, and
which version of them each agent uses. Tokens themselves are never shown.

UNTIL is when a token ends as things are. What came with the submission is renewed by the ResourceManager up to its maximum life; what
the ApplicationMaster fetched by its keytab is replaced before it ends; what was handed in by heddle tokens push is renewed by nobody.`,
		Example: "  heddle tokens application_1767225600000_0001\n  heddle tokens application_1767225600000_0001 --json\n  heddle tokens push application_1767225600000_0001",
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.withMaster(cmd.Context(), args, func(ctx context.Context, ask asker) error {
				snap, err := snapshotBy(ctx, ask)
				if err != nil {
					return err
				}
				return s.printTokens(snap, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.AddCommand(s.tokensPushCommand())
	return cmd
}

// snapshotBy asks for the state of an application.
func snapshotBy(ctx context.Context, ask asker) (snap *appmaster.Snapshot, err error) {
	err = ask(ctx, func(ctx context.Context, c *client) (err error) {
		snap, err = c.snapshot(ctx)
		return err
	})
	return snap, err
}

var errNoTokens = errors.New("the application has no delegation tokens: its cluster does not demand Kerberos")

// agentTokens is which tokens an agent uses.
type agentTokens struct {
	Agent   string `json:"agent"`
	State   string `json:"state"`
	Version uint64 `json:"version"`
}

// printTokens shows the tokens of an application, and who uses them.
func (s *session) printTokens(snap *appmaster.Snapshot, asJSON bool) error {
	if snap.Tokens == nil {
		return precondition(errNoTokens)
	}
	agents := []agentTokens{}
	for _, a := range snap.Agents {
		agents = append(agents, agentTokens{a.ID, a.State, a.Tokens})
	}
	if asJSON {
		return s.out.json(struct {
			App string `json:"app"`
			*appmaster.Tokens
			Agents []agentTokens `json:"agents"`
		}{snap.App, snap.Tokens, agents})
	}
	var rows, holders [][]string
	for _, t := range snap.Tokens.Held {
		rows = append(rows, []string{printable(t.Kind), printable(serviceName(t)), dash(printable(t.Owner)), dash(printable(t.Renewer)), dash(t.Source), moment(t.Issued), moment(t.Max), moment(t.Until), t.Left(snap.Time)})
	}
	for _, a := range agents {
		holders = append(holders, []string{a.Agent, a.State, fmt.Sprint(a.Version)})
	}
	err := s.out.table([]string{"KIND", "SERVICE", "OWNER", "RENEWER", "FROM", "ISSUED", "MAXIMUM", "UNTIL", "LEFT"}, rows)
	return errors.Join(err, s.out.table([]string{"HELD BY", "STATE", "VERSION"}, append([][]string{{"appmaster", snap.State, fmt.Sprint(snap.Tokens.Version)}}, holders...)))
}

// moment is a time for people; "-" if it is not known.
func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format(time.DateTime)
}

// tokensLine says how long an application's tokens are good; "" if it needs none, or their end is not known.
func tokensLine(snap *appmaster.Snapshot) string {
	first := snap.Tokens.First()
	if first == nil {
		return ""
	}
	line := fmt.Sprintf("tokens: the one for %s ends in %s", printable(serviceName(*first)), first.Left(snap.Time))
	if !first.Until.After(snap.Time) {
		line = fmt.Sprintf("tokens: the one for %s has ended", printable(serviceName(*first)))
	}
	var late []string
	if late = snap.Awaited(snap.Tokens.Version); len(late) > 0 {
		line += "; not yet used by " + strings.Join(late, ", ")
	}
	if first.Source == "keytab" {
		return line + ", and is replaced before"
	}
	return line
}

// tokensSoon reports whether the end of an application's tokens is to be shown in red: they are replaced by nobody, and a day is left.
func tokensSoon(snap *appmaster.Snapshot) bool {
	first := snap.Tokens.First()
	return first != nil && first.Source != "keytab" && first.Until.Sub(snap.Time) < 24*time.Hour
}
