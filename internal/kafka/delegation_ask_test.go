package kafka

import (
	"errors"
	"strings"
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

// TestTokenOver: a broker that has not forgotten a token that has ended lets us in by it, and hangs up at the next request. That is told as what it is.
func TestTokenOver(t *testing.T) {
	b, cfg := newIssuer(t, tokenBy256)
	made, _, err := CreateToken(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	b.over = true
	b.mu.Unlock()
	o, err := newOpener(cfg)
	if err != nil {
		t.Fatal(err)
	}
	o.token = func() (Token, bool) { return made, true }
	_, err = o.open(t.Context(), cfg.Brokers[0])
	if _, ok := errors.AsType[*TokenError](err); !ok || !strings.Contains(err.Error(), "the delegation token has ended") {
		t.Errorf("%v", err)
	}
}
