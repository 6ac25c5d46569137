package web

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
)

// A certificate that YARN gives an ApplicationMaster can't be verified by anybody but the web proxy that made it. Other callers take whatever certificate there is, and put it into
// their proofs: these are good on connections to its holder alone, and the answer proves that the holder has the secret too. Who listens between the two thus
// reads nothing, and can't answer in the ApplicationMaster's place.

// Channel is the server's end of TLS connections, as its certificate identifies it. Nil stands for connections that are not encrypted.
type Channel struct {
	sum [sha256.Size]byte // of the certificate
}

// ErrPlain says that a server does not speak TLS.
var ErrPlain = errors.New("it does not speak TLS")

// Meet learns by which certificate the server at an address, host:port, speaks TLS. Whose that is, only proofs show.
func Meet(ctx context.Context, addr string) (*Channel, error) {
	met := &Channel{}
	d := tls.Dialer{Config: channelConfig(func(cert []byte) error {
		met.sum = sha256.Sum256(cert)
		return nil
	})}
	conn, err := d.DialContext(ctx, "tcp", addr)
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return nil, ErrPlain
	}
	if err != nil {
		return nil, err
	}
	_ = conn.Close() // nothing was sent
	return met, nil
}

// TLS is how to connect to the channel's server, and to no other.
func (c *Channel) TLS() *tls.Config {
	return channelConfig(func(cert []byte) error {
		if sha256.Sum256(cert) != c.sum {
			return errors.New("another server answers at this address than did before: its certificate is a different one")
		}
		return nil
	})
}

// channelConfig takes the certificates that check does not refuse.
func channelConfig(check func(cert []byte) error) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, // VerifyConnection, and proofs, stand in its place
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 {
				return errors.New("the server shows no certificate")
			}
			return check(s.PeerCertificates[0].Raw)
		},
	}
}

// serverChannel is the channel that a server is the end of, and how it listens there.
func serverChannel(cert *tls.Certificate, proxy *Proxy) (*Channel, *tls.Config, error) {
	if len(cert.Certificate) == 0 || cert.PrivateKey == nil {
		return nil, nil, errors.New("cannot serve the dashboard by HTTPS: there is no certificate, or no key to it")
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*cert}, NextProtos: []string{"http/1.1"}}
	if proxy != nil && len(proxy.Certificates) > 0 {
		cfg.ClientAuth = tls.RequestClientCert // others have none
	}
	return &Channel{sha256.Sum256(cert.Certificate[0])}, cfg, nil
}

// channelOf is the channel by which a request came.
func (s *Server) channelOf(r *http.Request) *Channel {
	if r.TLS == nil {
		return nil
	}
	return s.channel
}

// listener is where the server takes connections.
func (s *Server) listener() net.Listener {
	l := boundedListener(s.cfg.Listener, places())
	if s.tls == nil {
		return l
	}
	return tls.NewListener(l, s.tls)
}

// scheme is how the server is spoken to.
func (s *Server) scheme() string {
	if s.tls == nil {
		return "http"
	}
	return "https"
}

// shown reports whether a request came by a connection on which one of the certificates was proven to be the caller's.
func shown(r *http.Request, certs []*x509.Certificate) bool {
	return r.TLS != nil && len(r.TLS.PeerCertificates) > 0 && slices.ContainsFunc(certs, r.TLS.PeerCertificates[0].Equal)
}

// answerHeader carries, on an encrypted connection, the proof that an answer to a proof is of who has its secret.
const answerHeader = "Heddle-Proof"

// answerProof is bound to the request's proof by its word that is used once.
func answerProof(key []byte, once string, channel *Channel) []byte {
	m := hmac.New(sha256.New, key)
	fmt.Fprintf(m, "answer\x00%s\x00%x", once, channel.sum)
	return m.Sum(nil)
}
