package cli

import (
	"context"
	"log/slog"
	"time"

	"github.com/heddle-stream/heddle/internal/hadoop/hconf"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/internal/hadoop/identity"
)

// refresher gets new delegation tokens for the agents before the old ones end. It needs a keytab; without one, tokens are good as long as the ResourceManager
// renews them, which it does up to their maximum life.
type refresher struct {
	// Immutable.
	id      *identity.Identity
	systems []hconf.FileSystem
	old     token.Credentials // what the application was submitted with
	out     chan []byte       // to the ApplicationMaster's loop
	log     *slog.Logger
}

// newRefresher returns nil if there is nothing to refresh, or nothing to do it by.
func (m *yarnMaster) newRefresher() (*refresher, error) {
	if m.h.id.Login() == nil || !m.h.id.Login().CanRelogin() {
		return nil, nil
	}
	systems, err := m.h.fileSystems(m.app.conf)
	if err != nil {
		return nil, err
	}
	return &refresher{id: m.h.id, systems: systems, old: withoutApp(m.k.creds), out: make(chan []byte), log: m.app.log}, nil
}

// current are the tokens that a new agent gets.
func (r *refresher) current() token.Credentials {
	return identity.Merge(r.old, r.id.Credentials())
}

// Times of refreshing.
const (
	refreshSoonest = 5 * time.Second
	refreshRetry   = time.Minute // after a failure, at most
)

// run refreshes until ctx ends. The first time is at once: tokens of the submission may have waited long, and a second attempt's be old.
func (r *refresher) run(ctx context.Context) {
	left := refreshRetry // of the life of the present tokens, as far as we know
	for {
		fresh, until, err := r.id.Refresh(ctx, r.systems)
		if ctx.Err() != nil {
			return
		}
		wait := min(refreshRetry, max(refreshSoonest, left/10))
		if err != nil {
			r.log.Error("cannot get fresh delegation tokens, trying again", "in", wait, "err", err)
		} else {
			left = time.Until(until)
			wait = max(refreshSoonest, left*3/4)
			r.id.Replace(fresh)
			r.log.Info("got fresh delegation tokens", "until", until, "next", wait)
			select {
			case r.out <- r.current().Without(token.KindAMRM).Append(nil):
			case <-ctx.Done():
				return
			}
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return
		}
	}
}
