package nettest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/netstack"
)

// keyPair is a self-signed certificate that both agents have and trust.
type keyPair struct{ Cert, Key []byte }

func newKeyPair(t *testing.T) *keyPair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "agent"}, IPAddresses: []net.IP{net.ParseIP(addrA), net.ParseIP(addrB)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return &keyPair{cert, der}
}

func (k *keyPair) config() (*netstack.TLS, error) {
	cert, err := x509.ParseCertificate(k.Cert)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParseECPrivateKey(k.Key)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	pair := []tls.Certificate{{Certificate: [][]byte{k.Cert}, PrivateKey: key}}
	return &netstack.TLS{
		Server: &tls.Config{Certificates: pair, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13},
		Client: &tls.Config{Certificates: pair, RootCAs: pool, MinVersion: tls.VersionTLS13},
	}, nil
}

// checkSecrecy fails if what agents tell each other went over the link in plain text though it must not, or was not seen though it must have been.
func (w *world) checkSecrecy(tls bool) {
	w.t.Helper()
	if seen := w.links[0].plain.Load() + w.links[1].plain.Load(); tls != (seen == 0) {
		w.t.Errorf("with TLS: %v; %d packets name an agent in plain text", tls, seen)
	}
}
