package agent

import (
	"context"
	"errors"
	"testing"
)

// TestCancelledWhileJoining: an agent that is told to end while it looks for its master ends so, whichever it hears of first.
func TestCancelledWhileJoining(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	a := &agent{}
	if done, _, err := a.handle(ctx, joined{err: errors.New("nobody there")}, nil); !done || err == nil {
		t.Errorf("without a master it ends: %v, by %v", done, err)
	}
	cancel()
	if done, reason, err := a.handle(ctx, joined{err: ctx.Err()}, nil); !done || err != nil || reason != "told to end: context canceled" {
		t.Errorf("cancelled it ends: %v, as %q by %v", done, reason, err)
	}
}
