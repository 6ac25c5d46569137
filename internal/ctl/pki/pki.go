// Package pki is the certificate authority of one application: who may speak on its control plane and its exchange.
//
// The ApplicationMaster makes an Authority when it starts and keeps its key in memory only, unless there may be another attempt
// of it after it, which must be able to take its agents over: then both are handed on as a secret (see docs/adr/012). It gives itself a server
// certificate and each agent a leaf. A leaf names its agent in a URI (see AgentOf); nothing signed by another application's
// authority is accepted, whatever it says.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
)

// Names that certificates are made out to, and that the dialing side asks for: addresses change, roles don't.
const (
	masterName   = "appmaster.heddle.internal"
	exchangeName = "exchange.heddle.internal"
	agentScheme  = "heddle-agent"
)

const (
	lifetime = 10 * 365 * 24 * time.Hour // a job may run for years, and its certificates die with it
	skew     = 24 * time.Hour            // how much a node's clock may be behind ours
)

// ExchangeKeySize is the length of the key that exchange connections prove to know.
const ExchangeKeySize = 32

// Authority signs the certificates of one application. Its methods may be called by any goroutine.
type Authority struct {
	// Immutable after NewAuthority.
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// Leaf is a certificate with its key, in PEM.
type Leaf struct{ Cert, Key []byte }

// NewAuthority makes the authority of application app.
func NewAuthority(app string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot make the application's key: %w", err)
	}
	t := template("heddle application " + app)
	t.IsCA, t.BasicConstraintsValid, t.MaxPathLenZero = true, true, true
	t.KeyUsage = x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("cannot make the application's certificate: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("cannot read the application's certificate: %w", err)
	}
	return &Authority{cert: cert, key: key, pem: encode("CERTIFICATE", der)}, nil
}

// MarshalPEM is the authority with its key, for a later attempt of the same application's master. Whoever has it can let agents in.
func (a *Authority) MarshalPEM() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(a.key)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the application's key: %w", err)
	}
	return append(encode("PRIVATE KEY", der), a.pem...), nil
}

// ParseAuthority is the authority that MarshalPEM wrote. Its errors never show the key.
func ParseAuthority(data []byte) (*Authority, error) {
	pair, err := tls.X509KeyPair(data, data)
	if err != nil {
		return nil, errors.New("cannot read the application's certificate and key: they are not what an earlier attempt wrote")
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	cert, err := x509.ParseCertificate(pair.Certificate[0])
	if !ok || err != nil || !cert.IsCA {
		return nil, errors.New("cannot use the application's certificate: it is not that of an authority of Heddle")
	}
	return &Authority{cert: cert, key: key, pem: encode("CERTIFICATE", pair.Certificate[0])}, nil
}

// CertPEM is the authority's own certificate: what an agent needs to recognise the others.
func (a *Authority) CertPEM() []byte { return a.pem }

// Master makes the certificate of the ApplicationMaster.
func (a *Authority) Master() (Leaf, error) {
	t := template("heddle appmaster")
	t.DNSNames = []string{masterName}
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	return a.sign(t)
}

// Agent makes the certificate of an agent.
func (a *Authority) Agent(id cluster.AgentID) (Leaf, error) {
	if id == "" {
		return Leaf{}, errors.New("cannot make a certificate for an agent without id")
	}
	t := template(string(id))
	t.DNSNames = []string{exchangeName}
	t.URIs = []*url.URL{{Scheme: agentScheme, Opaque: url.PathEscape(string(id))}}
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	return a.sign(t)
}

func (a *Authority) sign(t *x509.Certificate) (Leaf, error) {
	t.KeyUsage = x509.KeyUsageDigitalSignature
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Leaf{}, fmt.Errorf("cannot make a key for %s: %w", t.Subject.CommonName, err)
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, key.Public(), a.key)
	if err != nil {
		return Leaf{}, fmt.Errorf("cannot sign the certificate of %s: %w", t.Subject.CommonName, err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Leaf{}, fmt.Errorf("cannot encode the key of %s: %w", t.Subject.CommonName, err)
	}
	return Leaf{Cert: encode("CERTIFICATE", der), Key: encode("PRIVATE KEY", keyDER)}, nil
}

// NewExchangeKey makes the key of an application's exchange.
func NewExchangeKey() []byte {
	key := make([]byte, ExchangeKeySize)
	_, _ = rand.Read(key) // never fails: the runtime ends the process where there is no randomness
	return key
}

// AgentOf returns the agent that cert was made out to by Authority.Agent. It does not verify: TLS did.
func AgentOf(cert *x509.Certificate) (cluster.AgentID, error) {
	for _, u := range cert.URIs {
		if u.Scheme != agentScheme {
			continue
		}
		id, err := url.PathUnescape(u.Opaque)
		if err != nil || id == "" {
			return "", fmt.Errorf("cannot read the agent's name in its certificate: %q", u)
		}
		return cluster.AgentID(id), nil
	}
	return "", fmt.Errorf("the certificate of %q names no agent", cert.Subject.CommonName)
}

func template(name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial(),
		Subject:      pkix.Name{CommonName: strings.ToValidUTF8(name, "?"), Organization: []string{"heddle"}},
		NotBefore:    now.Add(-skew),
		NotAfter:     now.Add(lifetime),
	}
}

func serial() *big.Int {
	b := make([]byte, 16)
	_, _ = rand.Read(b)
	b[0] &= 0x7f
	b[15] |= 1
	return new(big.Int).SetBytes(b)
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// MasterTLS is the configuration of the ApplicationMaster's gRPC server: agents of this application only.
func MasterTLS(leaf Leaf, ca []byte) (*tls.Config, error) {
	c, err := base(leaf, ca)
	if err != nil {
		return nil, err
	}
	c.ClientAuth = tls.RequireAndVerifyClientCert
	return c, nil
}

// AgentTLS is the configuration by which an agent dials the ApplicationMaster.
func AgentTLS(leaf Leaf, ca []byte) (*tls.Config, error) {
	c, err := base(leaf, ca)
	if err != nil {
		return nil, err
	}
	c.ServerName = masterName
	return c, nil
}

// ExchangeTLS is the pair of configurations of an agent's exchange: server accepts agents of this application only,
// client dials any of them, whatever its address.
func ExchangeTLS(leaf Leaf, ca []byte) (server, client *tls.Config, err error) {
	if server, err = MasterTLS(leaf, ca); err != nil {
		return nil, nil, err
	}
	if client, err = base(leaf, ca); err != nil {
		return nil, nil, err
	}
	client.ServerName = exchangeName
	return server, client, nil
}

func base(leaf Leaf, ca []byte) (*tls.Config, error) {
	cert, err := tls.X509KeyPair(leaf.Cert, leaf.Key)
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificate: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, errors.New("cannot read the application's certificate: no certificate in it")
	}
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		Certificates:           []tls.Certificate{cert},
		RootCAs:                pool,
		ClientCAs:              pool,
		SessionTicketsDisabled: true, // connections are few and long; each one proves itself
	}, nil
}
