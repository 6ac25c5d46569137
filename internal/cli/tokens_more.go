package cli

import (
	"context"
	"slices"
	"time"

	"github.com/heddle-stream/heddle/internal/hadoop/creds"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
)

// isMore reports whether a token is of another source than Hadoop.
func isMore(t token.Named) bool { return t.Token.Kind == token.KindKafka }

// replaces reports whether tokens of a kind are replaced before they end.
func (k *tokenKeeper) replaces(kind string) bool {
	if kind == token.KindKafka {
		return k.more != nil
	}
	return k.canFetch()
}

// catchUp replaces tokens of the other source that have ended, or soon do, before anybody uses them: a second attempt begins with those of the submission. It comes
// before run.
func (k *tokenKeeper) catchUp(ctx context.Context, now time.Time) {
	if k == nil || k.more == nil || !slices.ContainsFunc(k.needed(), func(h creds.Held) bool {
		return h.Kind == k.more.kind() && !h.Until.IsZero() && h.Until.Sub(now) < h.Until.Sub(h.Issued)/4
	}) {
		return
	}
	fresh, notes, err := k.more.fetch(ctx)
	k.own(fresh.Tokens)
	if len(fresh.Tokens) > 0 {
		k.adopt(fresh, slices.Concat(k.notesWithout(fresh), notes))
		k.log.Info("replaced delegation tokens that had ended, or were about to", "kind", k.more.kind(), "tokens", len(fresh.Tokens))
	}
	if err != nil {
		k.log.Error("cannot replace delegation tokens that have ended, or are about to", "kind", k.more.kind(), "err", err)
	}
}

// refreshMore gets fresh tokens of the other source, hands them on, and returns when to do that again. A source that gives none keeps nobody from Hadoop's.
func (k *tokenKeeper) refreshMore(ctx context.Context) time.Duration {
	begun := time.Now()
	fresh, notes, err := k.more.fetch(ctx)
	k.own(fresh.Tokens)
	if len(fresh.Tokens) > 0 {
		k.adopt(fresh, slices.Concat(k.notesWithout(fresh), notes))
		k.hand(ctx, nil)
		k.trim(ctx, true)
	}
	first, ok := creds.First(slices.DeleteFunc(k.needed(), func(h creds.Held) bool { return h.Kind != k.more.kind() }))
	if err == nil {
		k.toldMore = ""
		wait := time.Hour
		if ok {
			wait = max(refreshSoonest, first.Until.Sub(begun)*3/4)
		}
		k.log.Info("got fresh delegation tokens", "kind", k.more.kind(), "until", first.Until, "next", wait)
		return wait
	}
	wait := refreshRetry
	if ok {
		wait = min(wait, max(refreshSoonest, time.Until(first.Until)/10))
	}
	if text := err.Error(); ctx.Err() == nil && text != k.toldMore {
		k.log.Error("cannot get fresh delegation tokens, trying again", "kind", k.more.kind(), "in", wait, "err", err)
		k.toldMore = text
	}
	return wait
}

// trim cancels tokens of one of the sources that came before its last two: these may be in use until every agent has the latest.
func (k *tokenKeeper) trim(ctx context.Context, more bool) {
	left := 0
	for _, ts := range k.mine {
		if isMore(ts[0]) == more {
			left++
		}
	}
	if left <= 2 {
		return
	}
	var old, kept [][]token.Named
	for _, ts := range k.mine {
		if isMore(ts[0]) == more && left > 2 {
			old = append(old, ts)
			left--
		} else {
			kept = append(kept, ts)
		}
	}
	k.cancelAll(ctx, old)
	k.mine = kept
	k.record()
}
