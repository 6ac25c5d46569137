package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// TokenError says that a broker does not let in who shows a delegation token.
type TokenError struct{ Err error }

func (e *TokenError) Error() string { return e.Err.Error() }
func (e *TokenError) Unwrap() error { return e.Err }

// Mechanisms by which a token is shown.
const (
	tokenBy256 = sarama.SASLTypeSCRAMSHA256
	tokenBy512 = sarama.SASLTypeSCRAMSHA512
)

// byToken proves to the broker at the other end of conn that we have a token, before sarama speaks on it. It returns how long the broker will believe
// that; 0: for ever.
func (o *opener) byToken(ctx context.Context, conn net.Conn, addr string, t Token) (time.Duration, error) {
	mechanism := tokenBy256
	auth := scram.Auth{User: t.ID, Pass: string(t.HMAC), IsToken: true}
	how := auth.AsSha256Mechanism()
	if o.wide.Load() {
		mechanism, how = tokenBy512, auth.AsSha512Mechanism()
	}
	if err := conn.SetDeadline(time.Now().Add(o.cfg.RequestTimeout)); err != nil {
		return 0, err
	}
	d := newDialogue(conn, o.cfg.ClientID)
	if err := d.handshake(mechanism); err != nil {
		if errors.Is(err, sarama.ErrUnsupportedSASLMechanism) {
			err = &TokenError{fmt.Errorf("the broker takes no delegation tokens at this listener, whose sasl.enabled.mechanisms lacks %s: %w", tokenBy256, err)}
		}
		return 0, err
	}
	talk, message, err := how.Authenticate(ctx, addr)
	for done := false; err == nil && !done; {
		var answer []byte
		if answer, err = d.authenticate(message); err == nil {
			done, message, err = talk.Challenge(answer)
		}
	}
	if errors.Is(err, sarama.ErrSASLAuthenticationFailed) {
		err = &TokenError{fmt.Errorf("the broker refuses the delegation token, which may have ended: heddle tokens shows until when it was good, and heddle tokens push hands in a fresh one: %w", err)}
	}
	if err == nil && d.life == 0 { // brokers forget tokens some time after their end only, and till then let them in and hang up
		err = &TokenError{fmt.Errorf("the delegation token has ended: heddle tokens shows until when it was good, and heddle tokens push hands in a fresh one: %w", sarama.ErrSASLAuthenticationFailed)}
	}
	if err != nil {
		return 0, err
	}
	return d.life, conn.SetDeadline(time.Time{})
}

// widen reports whether a token is to be shown again by another mechanism, since err is the refusal of the first.
func (o *opener) widen(err error) bool {
	_, ofToken := errors.AsType[*TokenError](err)
	return ofToken && errors.Is(err, sarama.ErrUnsupportedSASLMechanism) && o.wide.CompareAndSwap(false, true)
}
