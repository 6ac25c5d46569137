package flow

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// deafFormat is a format whose registry does not answer.
type deafFormat struct{ Format[string] }

func (deafFormat) Name() string { return "deaf" }

func (deafFormat) Open(ctx context.Context, _ func(string) (string, bool)) (Format[string], error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestReadyIsBounded: a format that gets no answer is told in seconds before a job begins, at either end.
func TestReadyIsBounded(t *testing.T) {
	for name, part := range map[string]Readying{"source": decoded[string]{format: deafFormat{}}, "sink": encoded[string]{format: deafFormat{}}} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			err := part.Ready(t.Context(), func(string) (string, bool) { return "", false })
			if took := time.Since(begun); !errors.Is(err, context.DeadlineExceeded) || took > 20*time.Second {
				t.Errorf("%s: %v after %v", name, err, took)
			}
		})
	}
}
