package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ErrNoTokenLogin says that a listener lets nobody in by a delegation token.
var ErrNoTokenLogin = errors.New("the listener takes no delegation tokens: its sasl.enabled.mechanisms has neither SCRAM-SHA-256 nor SCRAM-SHA-512")

// AskOfTokens asks a broker whether it would give us a delegation token, and whether it would let in who shows it. None is made, and nobody is logged in by
// one. Errors to be told apart: ErrNoTokenLogin, and sarama's ErrDelegationTokenAuthDisabled and ErrDelegationTokenRequestNotAllowed.
func AskOfTokens(ctx context.Context, cfg Config, addr string) error {
	o, err := newOpener(cfg)
	if err != nil {
		return err
	}
	o.token = func() (Token, bool) { return Token{}, false } // who came by one is not told
	req, resp := kmsg.NewPtrDescribeDelegationTokenRequest(), kmsg.NewPtrDescribeDelegationTokenResponse()
	req.Version, resp.Version = tokenVersion, tokenVersion
	req.Owners = []kmsg.DescribeDelegationTokenRequestOwner{} // of nobody's
	if err := o.askOnce(ctx, addr, req, resp); err != nil {
		return err
	}
	if err := tokenError(resp.ErrorCode); err != nil {
		return fmt.Errorf("cannot use delegation tokens of Kafka broker %s: %w", addr, err)
	}
	for _, mechanism := range []string{tokenBy256, tokenBy512} {
		if err = o.offers(ctx, addr, mechanism); !errors.Is(err, sarama.ErrUnsupportedSASLMechanism) {
			return err
		}
	}
	return fmt.Errorf("cannot use delegation tokens of Kafka broker %s: %w", addr, ErrNoTokenLogin)
}

// offers begins to log in by a mechanism, and hangs up when the broker agrees to it.
func (o *opener) offers(ctx context.Context, addr, mechanism string) error {
	bare := opener{cfg: o.cfg, tls: o.tls}
	bare.cfg.SASL.Mechanism = ""
	conn, err := bare.dial(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("cannot connect to Kafka broker %s: %w", addr, err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(o.cfg.RequestTimeout)); err != nil {
		return err
	}
	return newDialogue(conn, o.cfg.ClientID).handshake(mechanism)
}
