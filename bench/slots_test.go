package bench

import (
	"context"
	"errors"
	"testing"
)

// TestSlots runs the benchmark in small: its figures are not judged on a machine that has other work, its evenness is.
func TestSlots(t *testing.T) {
	for _, evenly := range []bool{true, false} {
		r, err := Slots(t.Context(), SlotsOptions{Agents: 50, Slots: 4, EvenlySpread: evenly})
		if err != nil {
			t.Fatal(err)
		}
		if r.Slots != 200 || r.WorstNs <= 0 || r.SmallNs <= 0 || r.Events == 0 || r.EventP99Ns <= 0 {
			t.Errorf("result %+v", r)
		}
		if evenly && r.Unevenness > 1 || !evenly && r.Unevenness != 4 {
			t.Errorf("evenly %v: unevenness %d", evenly, r.Unevenness)
		}
	}
	if _, err := Slots(t.Context(), SlotsOptions{Agents: 1, Slots: 1}); err == nil {
		t.Error("one agent is measured")
	}
	interrupted := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(interrupted)
	if _, err := Slots(ctx, SlotsOptions{Agents: 50, Slots: 4}); !errors.Is(err, interrupted) {
		t.Errorf("interrupted: %v", err)
	}
}
