package kafka

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Token is a delegation token (KIP-48): who has it is taken by brokers for its owner, without Kerberos.
type Token struct {
	Service string // for which brokers: see TokenService
	ID      string
	HMAC    Secret // in base64, which is the password that SCRAM proves
}

// TokenLife is what a broker says of a token that it has made.
type TokenLife struct {
	Owner  string
	Issued time.Time
	Until  time.Time // when it ends unless it is renewed
	Max    time.Time // when it ends for good
}

// TokenService names the cluster that is reached by some brokers: they themselves, in order.
func TokenService(brokers []string) string {
	all := slices.Clone(brokers)
	for i := range all {
		all[i] = strings.ToLower(all[i])
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ",")
}

// delegated are the tokens that this process shows to brokers in place of a proof of its own by Kerberos.
var delegated = struct {
	sync.Mutex
	of map[string]Token // by service; guarded by the mutex
}{of: map[string]Token{}}

// UseTokens has later connections by GSSAPI show a token to those brokers that there is one for. Each takes the place of the one for the same brokers.
func UseTokens(ts []Token) {
	delegated.Lock()
	defer delegated.Unlock()
	for _, t := range ts {
		delegated.of[t.Service] = t
	}
}

// heldToken is the token for some brokers.
func heldToken(brokers []string) (Token, bool) {
	delegated.Lock()
	defer delegated.Unlock()
	t, ok := delegated.of[TokenService(brokers)]
	return t, ok
}

// Requests about tokens, as Kafka 2.4 and later know them, and what is made of answers.
const (
	tokenVersion   = 2
	clusterVersion = 9
	tokenKnown     = 15 * time.Second // until all brokers have heard of a new token, at most
	tokenRetry     = 100 * time.Millisecond
)

// tokenErrors are what refusals mean that concern the cluster or the connection, and not one token.
var tokenErrors = map[sarama.KError]string{
	sarama.ErrDelegationTokenAuthDisabled:      "its brokers have no delegation tokens: all of them need the same delegation.token.secret.key",
	sarama.ErrDelegationTokenRequestNotAllowed: "a broker speaks of delegation tokens with nobody who has not proven who he is, or did so by such a token",
}

// tokenError is what a broker's answer says.
func tokenError(code int16) error {
	err := sarama.KError(code)
	if err == sarama.ErrNoError {
		return nil
	}
	if text, ok := tokenErrors[err]; ok {
		return fmt.Errorf("%s: %w", text, err)
	}
	return err
}

// CreateToken gets a delegation token by the proof that cfg names, and returns when brokers let in who shows it.
func CreateToken(ctx context.Context, cfg Config) (Token, TokenLife, error) {
	req, resp := kmsg.NewPtrCreateDelegationTokenRequest(), kmsg.NewPtrCreateDelegationTokenResponse()
	req.Version, resp.Version, req.MaxLifetimeMillis = tokenVersion, tokenVersion, -1
	err := askOfToken(ctx, cfg, req, resp)
	if err == nil {
		err = tokenError(resp.ErrorCode)
	}
	if err == nil && (resp.TokenID == "" || len(resp.HMAC) == 0) {
		err = errors.New("the broker's answer holds none")
	}
	service := TokenService(cfg.Brokers)
	if err != nil {
		return Token{}, TokenLife{}, fmt.Errorf("cannot get a delegation token of the Kafka brokers %s: %w", service, err)
	}
	t := Token{Service: service, ID: resp.TokenID, HMAC: Secret(base64.StdEncoding.EncodeToString(resp.HMAC))}
	life := TokenLife{Owner: resp.PrincipalName, Issued: time.UnixMilli(resp.IssueTimestamp), Until: time.UnixMilli(resp.ExpiryTimestamp), Max: time.UnixMilli(resp.MaxTimestamp)}
	if err := t.await(ctx, cfg); err != nil {
		err = fmt.Errorf("cannot use a delegation token of the Kafka brokers %s: %w", service, err)
		bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), tokenKnown)
		defer cancel()
		if late := ExpireToken(bye, cfg, t); late != nil {
			err = errors.Join(err, late)
		}
		return Token{}, TokenLife{}, err
	}
	return t, life, nil
}

// ExpireToken ends a token now, by the proof that cfg names. One that has ended is no error.
func ExpireToken(ctx context.Context, cfg Config, t Token) error {
	hmac, err := base64.StdEncoding.DecodeString(string(t.HMAC))
	if err != nil || len(hmac) == 0 {
		return errors.New("cannot end a Kafka delegation token whose secret is not known")
	}
	req, resp := kmsg.NewPtrExpireDelegationTokenRequest(), kmsg.NewPtrExpireDelegationTokenResponse()
	req.Version, resp.Version, req.HMAC, req.ExpiryPeriodMillis = tokenVersion, tokenVersion, hmac, -1
	if err := askOfToken(ctx, cfg, req, resp); err != nil {
		return fmt.Errorf("cannot end a Kafka delegation token: %w", err)
	}
	err = tokenError(resp.ErrorCode)
	if err == nil || errors.Is(err, sarama.ErrDelegationTokenNotFound) || errors.Is(err, sarama.ErrDelegationTokenExpired) {
		return nil
	}
	return fmt.Errorf("cannot end a Kafka delegation token: %w", err)
}

// askOfToken asks by a proof of our own, and never by a token: brokers refuse that.
func askOfToken(ctx context.Context, cfg Config, req kmsg.Request, resp kmsg.Response) error {
	o, err := newOpener(cfg)
	if err != nil {
		return err
	}
	o.token = func() (Token, bool) { return Token{}, false }
	return o.askFirst(ctx, req, resp)
}

// askFirst asks the first broker that can be reached.
func (o *opener) askFirst(ctx context.Context, req kmsg.Request, resp kmsg.Response) error {
	var err error
	for _, addr := range o.cfg.Brokers {
		if err = o.askOnce(ctx, addr, req, resp); err == nil {
			return nil
		}
		if _, ours := errors.AsType[*KerberosError](err); ours || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// askOnce asks one broker.
func (o *opener) askOnce(ctx context.Context, addr string, req kmsg.Request, resp kmsg.Response) error {
	c, err := o.dialConn(ctx, addr)
	if err != nil {
		return err
	}
	defer c.Close()
	corr := c.frame(req)
	if err = c.write(); err == nil {
		_, err = c.answer(corr, c.timeout, resp, nil)
	}
	if err != nil {
		return fmt.Errorf("cannot ask Kafka broker %s: %w", addr, err)
	}
	return nil
}

// await waits until every broker that can be reached lets in who shows the token: they hear of a new one from each other.
func (t Token) await(ctx context.Context, cfg Config) error {
	ctx, cancel := context.WithTimeout(ctx, tokenKnown)
	defer cancel()
	o, err := newOpener(cfg)
	if err != nil {
		return err
	}
	o.token = func() (Token, bool) { return t, true }
	// The first that lets us in names them all.
	for _, addr := range o.cfg.Brokers {
		if err = o.showToken(ctx, addr); err == nil {
			break
		}
	}
	if err != nil {
		return err
	}
	req, resp := kmsg.NewPtrMetadataRequest(), kmsg.NewPtrMetadataResponse()
	req.Version, resp.Version, req.Topics = clusterVersion, clusterVersion, []kmsg.MetadataRequestTopic{} // of none
	if err := o.askFirst(ctx, req, resp); err != nil {
		return err
	}
	for _, b := range resp.Brokers {
		if err := o.showToken(ctx, net.JoinHostPort(b.Host, fmt.Sprint(b.Port))); err != nil {
			if _, refused := errors.AsType[*TokenError](err); refused {
				return err
			}
		}
	}
	return nil
}

// showToken connects to a broker by the token, again and again while the broker does not know it.
func (o *opener) showToken(ctx context.Context, addr string) error {
	tick := time.NewTicker(tokenRetry)
	defer tick.Stop()
	for {
		l, err := o.open(ctx, addr)
		if err == nil {
			l.close()
			return nil
		}
		if refused, ok := errors.AsType[*TokenError](err); !ok || !errors.Is(refused, sarama.ErrSASLAuthenticationFailed) {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}
