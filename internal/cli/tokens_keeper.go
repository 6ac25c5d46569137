package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/internal/hadoop/creds"
	"github.com/heddle-stream/heddle/internal/hadoop/hconf"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/internal/hadoop/identity"
)

// tokenKeeper looks after an application's delegation tokens, in its ApplicationMaster. With a keytab it fetches new ones before the old ones end; without, those of
// the submission are good as long as the ResourceManager renews them, which it does up to their maximum life, and it takes over what is handed in. It warns
// of their end, and cancels at the end those that YARN knows nothing of.
type tokenKeeper struct {
	// Immutable.
	id      *identity.Identity
	systems []hconf.FileSystem
	mail    tokenMail
	more    tokenSource                // of tokens other than Hadoop's; nil: none, or there is no login to get them by
	came    []token.Named              // with the submission
	out     chan appmaster.TokenUpdate // to the ApplicationMaster's loop
	look    chan struct{}              // a hint that something was handed in
	log     *slog.Logger

	mu   sync.Mutex // guards have and lent
	have token.Credentials
	lent map[string]bool // identifiers of tokens that NodeManagers collect logs by: see forNode

	// Owned by run, and by whoever comes after it.
	notes  []creds.Note
	mine   [][]token.Named // to be cancelled, in the order of getting them; all tokens of a group are more's, or none
	warner creds.Warner
	told   string // why fresh ones could not be had, as it was told last

	toldMore string // the same of more's
}

// tokenSource gets tokens of a kind of its own.
type tokenSource interface {
	// fetch gets fresh ones with a note each.
	fetch(ctx context.Context) (token.Credentials, []creds.Note, error)
	// cancel ends one.
	cancel(ctx context.Context, t token.Token) error
	// kind is that of its tokens.
	kind() string
}

// Times of looking after tokens.
const (
	refreshSoonest = 5 * time.Second
	refreshRetry   = time.Minute      // after a failure, at most
	mailEvery      = 20 * time.Second // between looks at what may have been handed in
	cancelLimit    = 10 * time.Second // for all cancellations together
)

// newTokenKeeper returns nil where no tokens are needed.
func (m *yarnMaster) newTokenKeeper() (*tokenKeeper, error) {
	if !m.h.id.Secure() && len(m.k.creds.Of(token.KindKafka)) == 0 {
		return nil, nil
	}
	systems, err := m.h.fileSystems(m.app.conf)
	if err != nil {
		return nil, err
	}
	k := &tokenKeeper{id: m.h.id, systems: systems, have: withoutApp(m.k.creds).Without(token.KindAMRM), out: make(chan appmaster.TokenUpdate), look: make(chan struct{}, 1), log: m.app.log,
		mail: storeMail{m.h, m.app.dir.id}, came: m.k.creds.Tokens}
	if k.notes, err = creds.Notes(k.have); err != nil {
		return nil, fmt.Errorf("cannot read what is known of the application's tokens: %w", err)
	}
	if k.more, err = m.kafkaSource(); err != nil {
		return nil, err
	}
	return k, nil
}

// current are the tokens that a new agent gets.
func (k *tokenKeeper) current() token.Credentials { return k.forNode(time.Now()) }

// present are the latest tokens.
func (k *tokenKeeper) present() token.Credentials {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.have
}

// hint has what was handed in looked at soon.
func (k *tokenKeeper) hint() {
	select {
	case k.look <- struct{}{}:
	default: // it is about to look
	}
}

// run looks after tokens until ctx ends. Fresh ones are fetched at once: those of the submission may have waited long, and a second attempt's be old.
func (k *tokenKeeper) run(ctx context.Context) {
	k.tell(ctx, appmaster.TokenUpdate{})
	former := k.leftBehind()
	refresh := time.NewTimer(0)
	if !k.canFetch() {
		refresh.Stop()
	}
	defer refresh.Stop()
	others := time.NewTimer(0)
	if k.more == nil {
		others.Stop()
	}
	defer others.Stop()
	mail := time.NewTicker(mailEvery)
	defer mail.Stop()
	warn := time.NewTimer(0)
	defer warn.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-refresh.C:
			pause, ok := k.refresh(ctx)
			refresh.Reset(pause)
			if ok && len(former) > 0 {
				k.cancelAll(ctx, former)
				former = nil
			}
		case <-others.C:
			others.Reset(k.refreshMore(ctx))
		case <-mail.C:
			k.receive(ctx)
		case <-k.look:
			k.receive(ctx)
		case <-warn.C:
		}
		warn.Reset(k.warn(ctx, time.Now()))
	}
}

// canFetch reports whether there is a keytab to get new tokens by.
func (k *tokenKeeper) canFetch() bool { return k.id.Login() != nil && k.id.Login().CanRelogin() }

// refresh gets fresh tokens, hands them on, and returns when to do that again, and whether it worked.
func (k *tokenKeeper) refresh(ctx context.Context) (time.Duration, bool) {
	begun := time.Now()
	fresh, until, err := k.id.Refresh(ctx, k.systems)
	keyless, err := withoutKeys(err)
	var notes []creds.Note
	for _, t := range fresh.Tokens {
		notes = append(notes, creds.NoteOf(t, creds.Fetched, until[t.Alias]))
	}
	k.own(fresh.Tokens)
	if err != nil {
		wait := k.retryIn()
		k.tellOnce(ctx, slog.LevelError, "cannot get fresh delegation tokens, trying again", wait, err)
		return wait, false
	}
	if keyless == nil {
		k.told = ""
	}
	k.adopt(fresh, slices.Concat(k.notesWithout(fresh), notes))
	first, ok := creds.First(creds.Describe(fresh, notes))
	wait := refreshRetry
	if ok {
		wait = max(refreshSoonest, first.Until.Sub(begun)*3/4)
	}
	if keyless != nil {
		if len(k.present().Of(token.KindKMS)) > 0 { // the present one ends, too
			wait = min(wait, k.retryIn())
		}
		k.tellOnce(ctx, slog.LevelWarn, "there is no fresh token for the keys of encryption zones, trying again", wait, keyless)
	}
	k.log.Info("got fresh delegation tokens", "until", first.Until, "next", wait)
	k.hand(ctx, nil)
	k.trim(ctx, false)
	return wait, true
}

// notesWithout are the notes of tokens other than those.
func (k *tokenKeeper) notesWithout(c token.Credentials) []creds.Note {
	return slices.DeleteFunc(slices.Clone(k.notes), func(n creds.Note) bool {
		return slices.ContainsFunc(c.Tokens, func(t token.Named) bool { return t.Alias == n.Alias })
	})
}

// adopt puts fresh tokens in the place of those of the same name.
func (k *tokenKeeper) adopt(fresh token.Credentials, notes []creds.Note) {
	k.id.Replace(fresh)
	k.notes = notes
	useKafkaTokens(fresh)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.have = identity.Merge(k.have, fresh)
}

// own notes tokens that are to be cancelled by us.
func (k *tokenKeeper) own(ts []token.Named) {
	if len(ts) == 0 {
		return
	}
	for _, more := range []bool{false, true} {
		if group := slices.DeleteFunc(slices.Clone(ts), func(t token.Named) bool { return isMore(t) != more }); len(group) > 0 {
			k.mine = append(k.mine, group)
		}
	}
	k.record()
}

// hand gives the present tokens to all agents.
func (k *tokenKeeper) hand(ctx context.Context, push *appmaster.PushResult) {
	k.tell(ctx, appmaster.TokenUpdate{Credentials: k.present().Append(nil), Push: push})
}

// tell tells the ApplicationMaster of the tokens there are.
func (k *tokenKeeper) tell(ctx context.Context, news appmaster.TokenUpdate) {
	for _, h := range creds.Describe(k.present(), k.notes) {
		news.Held = append(news.Held, appmaster.Token{Kind: h.Kind, Service: h.Service, Owner: h.Owner, Renewer: h.Renewer, Source: h.Source,
			Issued: h.Issued, Max: h.Max, Until: h.Until, Minor: minorToken(h.Kind)})
	}
	select {
	case k.out <- news:
	case <-ctx.Done():
	}
}

// minorToken reports whether the job goes on when tokens of a kind have ended: the ApplicationMaster speaks to YARN by others.
func minorToken(kind string) bool { return kind == token.KindRM }

// needed are the tokens that the job can't do without.
func (k *tokenKeeper) needed() []creds.Held {
	return slices.DeleteFunc(creds.Describe(k.present(), k.notes), func(h creds.Held) bool { return minorToken(h.Kind) })
}

// warn warns of the end of tokens when it is time to, and returns when to look again.
func (k *tokenKeeper) warn(ctx context.Context, now time.Time) time.Duration {
	first, ok := creds.First(k.needed())
	if !ok {
		return time.Hour
	}
	issued := first.Issued
	replaced := k.replaces(first.Kind)
	if replaced { // that happens when three quarters of their life have passed
		issued = first.Until.Add(-first.Until.Sub(issued) / 3)
	}
	if k.warner.Look(now, issued, first.Until) {
		k.tell(ctx, appmaster.TokenUpdate{Warning: tokenWarning(first, now, replaced)})
	}
	return min(time.Hour, max(time.Second, k.warner.Next().Sub(now)))
}

// tokenWarning says what ends when, what comes of it, and what helps.
func tokenWarning(h creds.Held, now time.Time, keytab bool) string {
	what := fmt.Sprintf("the token for %s (%s)", h.Service, h.Kind)
	if left := h.Until.Sub(now); left > 0 {
		what += fmt.Sprintf(" ends in %s, at %s: ", left.Round(time.Second), h.Until.Format(time.RFC3339))
	} else {
		what += fmt.Sprintf(" has ended, at %s: ", h.Until.Format(time.RFC3339))
	}
	if keytab {
		return what + "a fresh one could not be had by the keytab, which the log says more of"
	}
	if h.Until.After(now) {
		return what + "hand in a fresh one before by heddle tokens push, or the job fails when it next uses that service"
	}
	return what + "the job fails when it next uses that service"
}

// cancelAll ends tokens that were ours, as far as that is possible in a short time: they end by themselves.
func (k *tokenKeeper) cancelAll(ctx context.Context, all [][]token.Named) {
	ctx, cancel := context.WithTimeout(ctx, cancelLimit)
	defer cancel()
	n := 0
	for _, ts := range all {
		for _, t := range ts {
			var err error
			switch {
			case k.isLent(t.Token):
				continue
			case t.Token.Kind == token.KindHDFS:
				err = k.id.CancelHDFS(ctx, k.systems, t.Token)
			case t.Token.Kind == token.KindKMS:
				err = k.id.CancelKeys(ctx, t.Token)
			case identity.OfGateway(t.Token):
				err = k.id.CancelGateway(ctx, t.Token)
			case k.more != nil && t.Token.Kind == k.more.kind():
				err = k.more.cancel(ctx, t.Token)
			default:
				err = errors.New("nobody here knows how to cancel such a token")
			}
			if err != nil {
				k.log.Info("a token is left to its end", "token", t.Token.String(), "err", err)
				continue
			}
			n++
		}
	}
	if n > 0 {
		k.log.Info("cancelled tokens that the application had got for itself", "tokens", n)
	}
}

// end cancels what YARN does not know of, when nobody needs it any more. It comes after run. last: no other attempt follows, which would begin by the
// tokens of the submission.
func (k *tokenKeeper) end(ctx context.Context, last bool) {
	if last && k.more != nil {
		if ts := slices.DeleteFunc(slices.Clone(k.came), func(t token.Named) bool { return !isMore(t) }); len(ts) > 0 {
			k.mine = append(k.mine, ts)
		}
	}
	k.cancelAll(ctx, k.mine)
	k.mine = nil
}
