package cli

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/internal/hadoop/creds"
	"github.com/heddle-stream/heddle/internal/hadoop/identity"
)

// withoutKeys splits the failure of a refresh: without tokens of key servers the others are of use.
func withoutKeys(err error) (keyless, other error) {
	if lack, ok := errors.AsType[*identity.KeyTokenError](err); ok {
		return lack, nil
	}
	return nil, err
}

// retryIn is when to try again after a failure.
func (k *tokenKeeper) retryIn() time.Duration {
	left := refreshRetry
	if first, ok := creds.First(k.needed()); ok {
		left = time.Until(first.Until)
	}
	return min(refreshRetry, max(refreshSoonest, left/10))
}

// tellOnce logs a failure, unless the last one had the same reason.
func (k *tokenKeeper) tellOnce(ctx context.Context, level slog.Level, what string, wait time.Duration, err error) {
	if text := err.Error(); ctx.Err() == nil && text != k.told {
		k.log.Log(ctx, level, what, "in", wait, "err", err)
		k.told = text
	}
}

// holds reports whether an application has a token of a kind.
func holds(snap *appmaster.Snapshot, kind string) bool {
	return slices.ContainsFunc(snap.Tokens.Held, func(t appmaster.Token) bool { return t.Kind == kind })
}
