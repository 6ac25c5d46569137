package kafka

import (
	"errors"
	"testing"

	"github.com/IBM/sarama"
)

// TestAskOfTokens: a broker is asked whether it has tokens and takes them, and nothing is left there.
func TestAskOfTokens(t *testing.T) {
	for name, x := range map[string]struct {
		takes    []string
		disabled bool
		want     error
	}{
		"well":               {takes: []string{tokenBy256}},
		"by the other SCRAM": {takes: []string{tokenBy512}},
		"none":               {takes: []string{tokenBy256}, disabled: true, want: sarama.ErrDelegationTokenAuthDisabled},
		"not taken":          {want: ErrNoTokenLogin},
	} {
		t.Run(name, func(t *testing.T) {
			b, cfg := newIssuer(t, x.takes...)
			b.disabled = x.disabled
			if err := AskOfTokens(t.Context(), cfg, cfg.Brokers[0]); !errors.Is(err, x.want) {
				t.Errorf("%v, want %v", err, x.want)
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			if len(b.tokens) != 0 || len(b.shown) != 0 {
				t.Errorf("it has %v, and was shown %v", b.tokens, b.shown)
			}
		})
	}
}
