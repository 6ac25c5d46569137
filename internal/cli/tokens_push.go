package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/conf"
	"github.com/heddle-stream/heddle/internal/hadoop/creds"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/internal/hadoop/identity"
	"github.com/heddle-stream/heddle/yarnclient"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

func (s *session) tokensPushCommand() *cobra.Command {
	var force, quiet bool
	cmd := &cobra.Command{
		Use: "push app", Short: "Hand fresh delegation tokens to a running application", Args: exactArgs(1, "the id of an application on YARN"),
		ValidArgsFunction: s.completeApp(false),
		Long: `Get fresh delegation tokens for what an application uses and hand them to it, so that it outlives those that it was submitted with. You have to
be its user, with a ticket (kinit) or --kerberos.keytab.

They go by a file in the application's folder in HDFS that only its user can open, and never through the ResourceManager's proxy, which carries no more than
word that they are there. The ApplicationMaster looks there every 20 s besides, checks whose they are, hands them to its agents and
removes the file. The command waits until every agent uses them, for as long as --timeout says (2 minutes if it is not set).

Nobody renews tokens that were handed in: they are good for the renewal interval of each service (a day by Hadoop's default), so push again before, as
by cron. A token that the application has and that is good for longer stays, unless --force is given. Push while the present token for HDFS is
good: without it the ApplicationMaster can't read what is handed in.`,
		Example: "  heddle tokens push application_1767225600000_0001\n  0 */8 * * * heddle tokens push application_1767225600000_0001 --quiet --kerberos.keytab /etc/keytabs/etl.keytab   # in a crontab",
		RunE: func(cmd *cobra.Command, args []string) error {
			id, ok := onYARN(args)
			if !ok {
				return usage(fmt.Errorf("%s is no application on YARN: only those have delegation tokens", args[0]))
			}
			return s.withYARN(func(c *conf.Config, h *hadoop) error {
				return s.pushTokens(cmd.Context(), c, h, id, force, quiet)
			})
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "replace also tokens that are good for longer")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print nothing but errors")
	return cmd
}

// pushLimit is how long it may take until agents use what was handed in.
const pushLimit = 2 * time.Minute

// tokenPush is the handing in of tokens to an application.
type tokenPush struct {
	// Immutable.
	h      *hadoop
	ask    asker
	mail   tokenMail
	say    *progress
	letter letter
	every  time.Duration // between looks
}

// pushTokens hands fresh tokens to an application.
func (s *session) pushTokens(ctx context.Context, c *conf.Config, h *hadoop, id yarnid.Application, force, quiet bool) error {
	ctx, stop := context.WithTimeout(ctx, cmp.Or(c.Duration("timeout"), pushLimit))
	defer stop()
	a, err := h.rm.App(ctx, id)
	if err != nil {
		return yarnError(err)
	}
	switch {
	case a.State != yarnclient.StateRunning:
		return precondition(fmt.Errorf("%s does not run: its state is %s", id, a.State))
	case a.User != h.user:
		return precondition(fmt.Errorf("%s is %s's, and you are %s: only its user can hand in tokens for it", id, printable(a.User), h.user))
	}
	f := newFollower(h, id, "")
	defer f.close()
	f.address(ctx, a)
	p := &tokenPush{h: h, mail: storeMail{h, id.String()}, say: newProgress(s, a.Name, id.String(), quiet, nil), letter: letter{ID: rand.Text(), Force: force}, every: 500 * time.Millisecond,
		ask: func(ctx context.Context, q func(context.Context, *client) error) error { return refusal(f.ask(ctx, q)) }}
	defer p.say.done()
	snap, err := snapshotBy(ctx, p.ask)
	if err != nil {
		return err
	}
	if err := pushable(snap); err != nil {
		return err
	}
	fresh, err := p.fetch(ctx, c, snap)
	if err != nil {
		return err
	}
	if err := p.deliver(ctx, fresh); err != nil {
		return err
	}
	return p.await(ctx)
}

// pushable refuses what can't come to anything.
func pushable(snap *appmaster.Snapshot) error {
	if snap.Tokens == nil {
		return precondition(errNoTokens)
	}
	for _, t := range snap.Tokens.Held {
		if t.Kind == token.KindHDFS && !t.Until.IsZero() && !t.Until.After(snap.Time) && t.Source != creds.Fetched {
			return precondition(fmt.Errorf("the application's token for %s ended at %s: its ApplicationMaster can't read HDFS any more, and so not what is handed in there", printable(t.Service), moment(t.Until)),
				"cancel the application and submit it again; submitted with --kerberos.keytab, it needs no tokens handed in",
				"push while the present ones are good: heddle tokens "+snap.App+" shows until when, and the metric heddle.tokens.remaining warns")
		}
	}
	return nil
}

// fetch gets fresh tokens for all that the application uses.
func (p *tokenPush) fetch(ctx context.Context, c *conf.Config, snap *appmaster.Snapshot) (token.Credentials, error) {
	systems, err := p.h.fileSystems(c)
	if err != nil {
		return token.Credentials{}, precondition(err)
	}
	p.say.update("fetching tokens", false)
	if !p.h.id.Secure() {
		var fresh token.Credentials
		err := p.fetchKafka(ctx, c, snap, &fresh)
		return fresh, err
	}
	if p.h.id.Login() == nil { // what others fetched for us
		fresh := token.Credentials{Tokens: creds.Delegations(p.h.id.Credentials())}
		return fresh, nil
	}
	fresh, until, err := p.h.id.Refresh(ctx, systems)
	if lack, ok := errors.AsType[*identity.KeyTokenError](err); ok && !holds(snap, token.KindKMS) { // it has done without
		p.say.say("warning: " + printable(lack.Error()))
	} else if err != nil {
		return fresh, hdfsError(err)
	}
	for _, t := range fresh.Tokens {
		p.letter.Notes = append(p.letter.Notes, creds.NoteOf(t, creds.Pushed, until[t.Alias]))
	}
	err = p.fetchKafka(ctx, c, snap, &fresh)
	return fresh, err
}

// deliver puts the tokens where the ApplicationMaster looks, and tells it so.
func (p *tokenPush) deliver(ctx context.Context, fresh token.Credentials) error {
	data, err := p.letter.seal(fresh)
	if err != nil {
		return err
	}
	if err := p.mail.write(ctx, mailFile, data); err != nil {
		return hdfsError(err)
	}
	p.say.update("handed in; waiting for the ApplicationMaster to take them", true)
	hint := p.ask(ctx, func(ctx context.Context, c *client) error { return c.act(ctx, "/api/tokens") })
	if hint != nil && ctx.Err() == nil {
		p.say.update(fmt.Sprintf("it could not be told (%v), and looks every %s by itself", firstLine(hint.Error(), "no reason"), mailEvery), true)
	}
	return nil
}

// await waits until every agent uses what was handed in.
func (p *tokenPush) await(ctx context.Context) error {
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	var last error
	var taken *appmaster.PushResult
	for {
		snap, err := snapshotBy(ctx, p.ask)
		if err == nil {
			var done bool
			if taken, done, last = p.look(snap); done {
				return last
			}
		} else if ctx.Err() == nil {
			last = err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return p.late(taken, last)
		}
	}
}

// look judges what the ApplicationMaster says. err is the outcome if done is set, else what is still awaited.
func (p *tokenPush) look(snap *appmaster.Snapshot) (taken *appmaster.PushResult, done bool, err error) {
	if snap.Tokens == nil || snap.Tokens.Push == nil || snap.Tokens.Push.ID != p.letter.ID {
		return nil, false, errors.New("the ApplicationMaster has not taken them")
	}
	r := snap.Tokens.Push
	switch {
	case r.Refused != "":
		return r, true, precondition(fmt.Errorf("the ApplicationMaster refused the tokens: %s", printable(r.Refused)))
	case len(r.Taken) == 0:
		p.say.say(fmt.Sprintf("the application keeps its tokens for %s, which are good for at least as long as fresh ones; --force replaces them", printable(strings.Join(r.Left, ", "))))
		return r, true, nil
	}
	if late := snap.Awaited(r.Version); len(late) > 0 {
		p.say.update(fmt.Sprintf("taken; waiting for %s to use version %d", strings.Join(late, ", "), r.Version), true)
		return r, false, fmt.Errorf("%s have not confirmed version %d", strings.Join(late, ", "), r.Version)
	}
	text := fmt.Sprintf("version %d of the tokens is in use for %s", r.Version, printable(strings.Join(r.Taken, ", ")))
	if len(r.Left) > 0 {
		text += fmt.Sprintf("; those for %s are good for longer, and stay", printable(strings.Join(r.Left, ", ")))
	}
	if first := snap.Tokens.First(); first != nil {
		text += fmt.Sprintf("; the first ends in %s", first.Left(snap.Time))
	}
	p.say.say(text)
	return r, true, nil
}

// late is the outcome when the time is over. What nobody has taken is removed.
func (p *tokenPush) late(taken *appmaster.PushResult, last error) error {
	hint := "heddle tokens shows which agents use which version"
	if taken == nil {
		if err := p.mail.remove(mailFile); err != nil {
			last = errors.Join(last, fmt.Errorf("their file could not be removed: %w", err))
		}
		hint = "they were taken back; the ApplicationMaster's log says more: heddle logs " + p.say.app + " appmaster"
	}
	return &exitError{exitTimeout, fmt.Errorf("the tokens are not in use everywhere within the time limit: %w", last), []string{hint}}
}
