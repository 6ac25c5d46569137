package ssl

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// Transport carries requests to Hadoop's web services, over TLS where their address says https. It follows no proxy of the environment's, as Hadoop's
// clients do not. The settings are asked for at the first use of TLS.
type Transport struct {
	load func() (*Settings, error)
	base *http.Transport
	used atomic.Pointer[Settings]
}

// NewTransport returns a transport.
func NewTransport(load func() (*Settings, error)) *Transport {
	t := &Transport{load: load, base: http.DefaultTransport.(*http.Transport).Clone()}
	t.base.Proxy = nil
	t.base.DialTLSContext = t.dial
	return t
}

// handshakeTimeout bounds the beginning of a connection.
const handshakeTimeout = 15 * time.Second

func (t *Transport) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	s, err := t.load()
	if err != nil {
		return nil, err
	}
	t.used.Store(s)
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	cfg, err := s.Client(host)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	d := tls.Dialer{Config: cfg}
	return d.DialContext(ctx, network, addr)
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.base.RoundTrip(req)
	if s := t.used.Load(); err != nil && s != nil && req.URL.Scheme == "https" {
		err = s.explain(req.URL.Host, err)
	}
	return resp, err
}

// CloseIdleConnections closes connections that are not in use.
func (t *Transport) CloseIdleConnections() { t.base.CloseIdleConnections() }

// Error is a connection that TLS does not come about on.
type Error struct {
	Host string // and port
	Err  error
	Fix  string
}

func (e *Error) Error() string {
	return fmt.Sprintf("cannot speak TLS with %s: %v; %s", e.Host, e.Err, e.Fix)
}

func (e *Error) Unwrap() error { return e.Err }

// explain says what would help.
func (s *Settings) explain(host string, err error) error {
	var name x509.HostnameError
	var unknown x509.UnknownAuthorityError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	fix := ""
	switch {
	case errors.As(err, &name):
		fix = "use a name that is in its certificate in Hadoop's configuration, or have the certificate made for this name, too"
	case errors.As(err, &unknown):
		fix = fmt.Sprintf("trusted is what is in %s: have the certificate of the server's authority put in there, or name the right store by %slocation in %s", s.Store, keyTrust, defaultConf)
	case errors.As(err, &record):
		fix = "it does not speak TLS there: compare yarn.http.policy and dfs.http.policy with what the cluster has"
	case errors.As(err, &alert), strings.Contains(err.Error(), "remote error: tls: "):
		fix = "it may want a certificate of ours"
		if s.NoKey != "" {
			fix += ", and there is none: " + s.NoKey
		} else {
			fix += fmt.Sprintf(": the one of %slocation in %s is not one that it trusts", keyStore, defaultConf)
		}
	default:
		var invalid x509.CertificateInvalidError
		if !errors.As(err, &invalid) {
			return err
		}
		fix = "have its certificate renewed, and check this host's clock"
	}
	return &Error{Host: host, Err: err, Fix: fix}
}
