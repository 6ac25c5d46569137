package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/IBM/sarama"
)

// opener opens connections to brokers, each authenticated by sarama.
type opener struct {
	cfg    Config
	sarama *sarama.Config
	tls    *tls.Config          // nil: plain
	token  func() (Token, bool) // what is shown in place of Kerberos' proof, if there is one

	wide atomic.Bool // tokens are shown by SCRAM-SHA-512, since SCRAM-SHA-256 was refused
	met  sync.Map    // addresses of brokers that were connected to
}

func newOpener(cfg Config) (*opener, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	sc, err := cfg.SaramaConfig()
	if err != nil {
		return nil, err
	}
	tc, err := cfg.TLS.load()
	if err != nil {
		return nil, err
	}
	return &opener{cfg: cfg, sarama: sc, tls: tc, token: func() (Token, bool) { return heldToken(cfg.Brokers) }}, nil
}

// link is an open connection with the sarama broker on top of it.
type link struct {
	broker *sarama.Broker
	conn   net.Conn  // below sarama, above TLS
	renew  time.Time // when the broker is to be told anew who we are; zero: never
}

func (l *link) close() {
	_ = l.broker.Close() // it was open: all that can go wrong is the connection's own end
}

// open connects to addr and authenticates. ctx bounds the opening, not the connection's life.
func (o *opener) open(ctx context.Context, addr string) (*link, error) {
	var (
		conn    *openingConn
		dialErr error
	)
	sc := *o.sarama
	sc.Net.Proxy.Enable = true
	sc.Net.Proxy.Dialer = dialFunc(func(network, addr string) (net.Conn, error) {
		if conn, dialErr = o.dial(ctx, network, addr); dialErr != nil {
			return nil, dialErr
		}
		return conn, nil
	})
	if t, ok := sc.Net.SASL.TokenProvider.(*tokens); ok {
		sc.Net.SASL.TokenProvider = tokensWithin{t, ctx}
	}
	b := sarama.NewBroker(addr)
	if err := b.Open(&sc); err != nil {
		return nil, fmt.Errorf("cannot connect to Kafka broker %s: %w", addr, err)
	}
	ok, err := b.Connected() // waits for Open's goroutine, which wrote conn and dialErr
	switch {
	case dialErr != nil:
		err = dialErr
	case ok:
		o.met.Store(addr, true)
		// From here on deadlines are ours or those of sarama's next request.
		return &link{broker: b, conn: conn.Conn, renew: renewAt(time.Now(), conn.opened(), rand.Float64())}, nil
	case err == nil:
		err = errors.New("the broker closed the connection")
	}
	var offered []string
	if conn != nil {
		conn.Close()
		offered = conn.handshake.mechanisms()
	}
	if dialErr == nil && ctx.Err() != nil {
		err = outOfTime(ctx)
	}
	return nil, fmt.Errorf("cannot connect to Kafka broker %s: %w%s", addr, err, o.doubt(addr, err, offered))
}

// outOfTime is the error of a request that the end of ctx cut off.
func outOfTime(ctx context.Context) error {
	err := context.Cause(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("it does not answer: %w", err)
	}
	return err
}

// hint says what may be wrong in the settings when a fresh connection comes to err.
func (o *opener) hint(err error) string {
	if errors.Is(err, sarama.ErrSASLAuthenticationFailed) {
		switch o.cfg.SASL.Mechanism {
		case "OAUTHBEARER":
			return " (the broker refuses the token: check its audience, scope and age)"
		case "GSSAPI":
			return " (the broker refuses our ticket: its keytab may have other keys than the KDC, or its clock may be wrong; its log says more)"
		}
		return fmt.Sprintf(" (user %q by %s: check %s and %s)", o.cfg.SASL.User, o.cfg.SASL.Mechanism, OptSASLUser, OptSASLPassword)
	}
	if _, ours := errors.AsType[*KerberosError](err); ours || !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, syscall.ECONNRESET) {
		return ""
	}
	// A broker hangs up on what it does not understand or does not accept.
	var doubts []string
	if o.tls == nil {
		doubts = append(doubts, "if this listener wants TLS, set "+OptTLSEnabled)
	}
	if o.cfg.SASL.Mechanism == "" {
		doubts = append(doubts, "if it wants SASL, set "+OptSASLMechanism)
	} else {
		doubts = append(doubts, fmt.Sprintf("check %s, %s and %s", OptSASLMechanism, OptSASLUser, OptSASLPassword))
	}
	return " (the broker hung up: " + strings.Join(doubts, "; ") + ")"
}

// dial opens a connection, does TLS, and proves by Kerberos who we are, where that is wanted. Until opened is called on it, the end of ctx closes it.
func (o *opener) dial(ctx context.Context, network, addr string) (*openingConn, error) {
	dctx, cancel := context.WithTimeout(ctx, o.cfg.DialTimeout)
	defer cancel()
	dial := o.cfg.Dial
	if dial == nil {
		dial = (&net.Dialer{KeepAlive: 15 * time.Second}).DialContext
	}
	conn, err := dial(dctx, network, addr)
	if err != nil {
		return nil, &dialError{err}
	}
	if o.tls != nil {
		tc := o.tls.Clone()
		if tc.ServerName == "" {
			tc.ServerName, _, _ = net.SplitHostPort(addr)
		}
		t := tls.Client(conn, tc)
		if err := t.HandshakeContext(dctx); err != nil {
			conn.Close()
			return nil, &tlsError{err}
		}
		conn = t
	}
	c := &openingConn{Conn: conn, stop: context.AfterFunc(ctx, func() { conn.Close() })}
	if o.cfg.SASL.Mechanism == sarama.SASLTypeGSSAPI {
		if c.life, err = o.prove(ctx, conn, addr); err != nil {
			c.Close()
			if o.widen(err) {
				return o.dial(ctx, network, addr)
			}
			return nil, err
		}
	}
	return c, nil
}

// prove shows a delegation token, if there is one, or else proves by Kerberos who we are.
func (o *opener) prove(ctx context.Context, conn net.Conn, addr string) (time.Duration, error) {
	if t, ok := o.token(); ok {
		return o.byToken(ctx, conn, addr, t)
	}
	return o.gssapi(ctx, conn, addr)
}

// openingConn is a connection that the end of a context closes, until opened or closed. Until then it listens to what is said.
type openingConn struct {
	net.Conn
	stop      func() bool
	handshake handshake
	life      time.Duration // of a session that began before sarama spoke; 0: none did, or it does not end
	open      atomic.Bool
}

// opened ends the opening, and returns how long the broker will believe who we are; 0: for ever.
func (c *openingConn) opened() time.Duration {
	c.stop()
	c.open.Store(true)
	if c.life > 0 {
		return c.life
	}
	return c.handshake.lifetime()
}

func (c *openingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.open.Load() {
		c.handshake.read(b[:n])
	}
	return n, err
}

func (c *openingConn) Write(b []byte) (int, error) {
	if !c.open.Load() {
		c.handshake.wrote(b)
	}
	return c.Conn.Write(b)
}

func (c *openingConn) Close() error {
	c.stop()
	return c.Conn.Close()
}

// dialFunc implements the interface that sarama has for proxies.
type dialFunc func(network, addr string) (net.Conn, error)

// Dial implements proxy.Dialer.
func (f dialFunc) Dial(network, addr string) (net.Conn, error) { return f(network, addr) }
