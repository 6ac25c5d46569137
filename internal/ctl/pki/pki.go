// Package pki is the certificate authority of one application: who may speak on its control plane and its exchange.
//
// The ApplicationMaster makes an Authority when it starts and keeps its key in memory only, unless there may be another attempt
// of it after it, which must be able to take its agents over: then both are handed on as a secret (see docs/adr/012). It gives itself a server
// certificate and each agent a leaf. A leaf names its agent, the container, the application and its attempt in a URI (see Name); nothing signed by
// another application's authority is accepted, whatever it says.
//
// Certificates are short-lived, and connections are judged by them when they begin, not while they last. Leaves live for Authority.Life and are made anew,
// with new keys, when half of that is over; so is the master's own, by itself. The authority's certificate is made anew by its old key, half a
// year before its end: what was signed before is good under both, and who knows only the old one accepts what is signed after, so that nobody has to
// be told at a certain moment.
//
// Clocks of hosts may differ: a certificate is good from a day before it was made, and, since it is replaced at half of its life, to a clock that is
// ahead by less than the other half.
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
	"strings"
	"sync"
	"time"
)

// Names that certificates are made out to, and that the dialing side asks for: addresses change, roles don't.
const (
	masterName   = "appmaster.heddle.internal"
	exchangeName = "exchange.heddle.internal"
)

const (
	authorityLife = 365 * 24 * time.Hour
	skew          = 24 * time.Hour // how much a node's clock may be behind ours
)

// DefaultLife is how long a leaf is good unless Authority.SetLife says otherwise; it is at most MaxLife.
const (
	DefaultLife = 24 * time.Hour
	MaxLife     = 30 * 24 * time.Hour
)

// ExchangeKeySize is the length of the key that exchange connections prove to know.
const ExchangeKeySize = 32

// Authority signs the certificates of one application. Its methods may be called by any goroutine.
type Authority struct {
	// Immutable after NewAuthority.
	key *ecdsa.PrivateKey

	mu     sync.Mutex // guards what follows
	life   time.Duration
	cert   *x509.Certificate // of the key, the newest
	pem    []byte
	server *tls.Config // of the master's newest leaf; nil: none yet
	until  time.Time   // when that is due to be replaced
}

// Leaf is a certificate with its key, in PEM.
type Leaf struct{ Cert, Key []byte }

// NewAuthority makes the authority of application app.
func NewAuthority(app string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot make the application's key: %w", err)
	}
	a := &Authority{key: key, life: DefaultLife}
	return a, a.certify(pkix.Name{CommonName: strings.ToValidUTF8("heddle application "+app, "?"), Organization: organization})
}

var organization = []string{"heddle"}

// certify makes the authority's certificate, by its own key. a.mu is held, or nobody else knows a.
func (a *Authority) certify(name pkix.Name) error {
	t := template(name, authorityLife)
	t.IsCA, t.BasicConstraintsValid, t.MaxPathLenZero = true, true, true
	t.KeyUsage = x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, t, t, a.key.Public(), a.key)
	if err != nil {
		return fmt.Errorf("cannot make the application's certificate: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return fmt.Errorf("cannot read the application's certificate: %w", err)
	}
	a.cert, a.pem = cert, encode("CERTIFICATE", der)
	return nil
}

// current is the authority's certificate, which is made anew in time. a.mu is held.
func (a *Authority) current() (*x509.Certificate, error) {
	if time.Until(a.cert.NotAfter) < authorityLife/2 {
		if err := a.certify(a.cert.Subject); err != nil {
			return nil, err
		}
	}
	return a.cert, nil
}

// SetLife sets how long leaves are good that are made from now on.
func (a *Authority) SetLife(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if d > 0 {
		a.life = min(d, MaxLife)
	}
}

// Life is how long a leaf is good.
func (a *Authority) Life() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.life
}

// MarshalPEM is the authority with its key, for a later attempt of the same application's master. Whoever has it can let agents in.
func (a *Authority) MarshalPEM() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(a.key)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the application's key: %w", err)
	}
	return append(encode("PRIVATE KEY", der), a.CertPEM()...), nil
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
	return &Authority{cert: cert, key: key, pem: encode("CERTIFICATE", pair.Certificate[0]), life: DefaultLife}, nil
}

// CertPEM is the authority's own certificate: what an agent needs to recognise the others.
func (a *Authority) CertPEM() []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.pem
}

// Master makes a certificate of the ApplicationMaster.
func (a *Authority) Master() (Leaf, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.master()
}

func (a *Authority) master() (Leaf, error) {
	t := template(pkix.Name{CommonName: "heddle appmaster", Organization: organization}, a.life)
	t.DNSNames = []string{masterName}
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	return a.sign(t)
}

// Agent makes a certificate of an agent.
func (a *Authority) Agent(n Name) (Leaf, error) {
	if n.Agent == "" || n.App == "" {
		return Leaf{}, errors.New("cannot make a certificate for an agent without id, or of no application")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	t := template(pkix.Name{CommonName: strings.ToValidUTF8(string(n.Agent), "?"), Organization: organization}, a.life)
	t.DNSNames = []string{exchangeName}
	t.URIs = append(t.URIs, n.uri())
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	return a.sign(t)
}

// sign makes a leaf with a key of its own. a.mu is held.
func (a *Authority) sign(t *x509.Certificate) (Leaf, error) {
	parent, err := a.current()
	if err != nil {
		return Leaf{}, err
	}
	t.KeyUsage = x509.KeyUsageDigitalSignature
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Leaf{}, fmt.Errorf("cannot make a key for %s: %w", t.Subject.CommonName, err)
	}
	der, err := x509.CreateCertificate(rand.Reader, t, parent, key.Public(), a.key)
	if err != nil {
		return Leaf{}, fmt.Errorf("cannot sign the certificate of %s: %w", t.Subject.CommonName, err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Leaf{}, fmt.Errorf("cannot encode the key of %s: %w", t.Subject.CommonName, err)
	}
	return Leaf{Cert: encode("CERTIFICATE", der), Key: encode("PRIVATE KEY", keyDER)}, nil
}

// Parse returns the leaf's certificate.
func (l Leaf) Parse() (*x509.Certificate, error) {
	block, _ := pem.Decode(l.Cert)
	if block == nil {
		return nil, errors.New("cannot read the certificate: it is not PEM")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificate: %w", err)
	}
	return cert, nil
}

// NewExchangeKey makes the key of an application's exchange.
func NewExchangeKey() []byte {
	key := make([]byte, ExchangeKeySize)
	_, _ = rand.Read(key) // never fails: the runtime ends the process where there is no randomness
	return key
}

func template(name pkix.Name, life time.Duration) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{SerialNumber: serial(), Subject: name, NotBefore: now.Add(-skew), NotAfter: now.Add(life)}
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
