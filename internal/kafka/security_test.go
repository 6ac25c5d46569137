package kafka

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/twmb/franz-go/pkg/kfake"
)

// authority issues certificates for 127.0.0.1.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.key = newKey(t)
	a.cert = a.sign(tmpl, tmpl, a.key)
	a.write("ca.pem", "CERTIFICATE", a.cert.Raw)
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (a *authority) sign(tmpl, parent *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert
}

func (a *authority) write(name, kind string, der []byte) string {
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// leaf writes name.pem and name.key.
func (a *authority) leaf(name string) (cert, key string) {
	k := newKey(a.t)
	c := a.sign(&x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"broker.test"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}}, a.cert, k)
	der, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		a.t.Fatal(err)
	}
	return a.write(name+".pem", "CERTIFICATE", c.Raw), a.write(name+".key", "EC PRIVATE KEY", der)
}

// tryAll uses each kind of connection: control, producer and fetch.
func tryAll(t *testing.T, cfg Config) error {
	t.Helper()
	p, err := NewProducer(t.Context(), cfg, ProducerConfig{Topic: "a"})
	if err != nil {
		return err
	}
	defer p.Close()
	if err := p.Write(&flow.Messages{Buf: []byte("v"), Values: []flow.Span{{Len: 1}}}); err != nil {
		return err
	}
	if err := p.Flush(t.Context()); err != nil {
		return err
	}
	wake := make(chan struct{}, 1)
	pl, err := NewPuller(t.Context(), cfg, PullerConfig{Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Wake: func() { notify(wake) },
		Waiting: new(flow.Counter), Resets: new(flow.Counter)})
	if err != nil {
		return err
	}
	defer pl.Close()
	pl.Add([]*Target{NewTarget(TP{"a", 0}, 0, math.MaxInt64)})
	for {
		<-wake
		r, err := pl.Next()
		if err != nil {
			return err
		}
		if r != nil {
			if len(r.Parts) != 1 || r.Parts[0].Next < 1 {
				t.Errorf("fetched %+v", r.Parts)
			}
			return nil
		}
	}
}

func TestSecurity(t *testing.T) {
	a := newAuthority(t)
	brokerCert, brokerKey := a.leaf("broker")
	pair, err := tls.LoadX509KeyPair(brokerCert, brokerKey)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	oneWay := &tls.Config{Certificates: []tls.Certificate{pair}}
	mutual := &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
	ca := filepath.Join(a.dir, "ca.pem")
	cert, key := a.leaf("client")
	other := newAuthority(t)

	sasl := func(mechanism string) []kfake.Opt {
		return []kfake.Opt{kfake.EnableSASL(), kfake.Superuser(mechanism, "heddle", "se,cr=et")}
	}
	as := func(mechanism, password string) SASL {
		return SASL{Mechanism: mechanism, User: "heddle", Password: Secret(password)}
	}
	for _, tc := range []struct {
		name string
		opts []kfake.Opt
		tls  TLS
		sasl SASL
		err  string
	}{
		{"plain", nil, TLS{}, SASL{}, ""},
		{"tls", []kfake.Opt{kfake.TLS(oneWay)}, TLS{Enabled: true, CAFile: ca}, SASL{}, ""},
		{"tls by name", []kfake.Opt{kfake.TLS(oneWay)}, TLS{Enabled: true, CAFile: ca, ServerName: "broker.test"}, SASL{}, ""},
		{"mutual tls", []kfake.Opt{kfake.TLS(mutual)}, TLS{Enabled: true, CAFile: ca, CertFile: cert, KeyFile: key}, SASL{}, ""},
		{"sasl plain", sasl("PLAIN"), TLS{}, as("PLAIN", "se,cr=et"), ""},
		{"scram 256", sasl("SCRAM-SHA-256"), TLS{}, as("SCRAM-SHA-256", "se,cr=et"), ""},
		{"scram 512 over tls", append(sasl("SCRAM-SHA-512"), kfake.TLS(oneWay)), TLS{Enabled: true, CAFile: ca}, as("SCRAM-SHA-512", "se,cr=et"), ""},

		{"wrong ca", []kfake.Opt{kfake.TLS(oneWay)}, TLS{Enabled: true, CAFile: filepath.Join(other.dir, "ca.pem")}, SASL{}, "certificate signed by unknown authority"},
		{"wrong name", []kfake.Opt{kfake.TLS(oneWay)}, TLS{Enabled: true, CAFile: ca, ServerName: "elsewhere.test"}, SASL{}, "elsewhere.test"},
		{"no client certificate", []kfake.Opt{kfake.TLS(mutual)}, TLS{Enabled: true, CAFile: ca}, SASL{}, "certificate required"},
		{"plain to tls", []kfake.Opt{kfake.TLS(oneWay)}, TLS{}, SASL{}, "kafka.tls.enabled"},
		{"tls to plain", nil, TLS{Enabled: true, CAFile: ca}, SASL{}, "cannot negotiate TLS"},
		{"wrong password", sasl("PLAIN"), TLS{}, as("PLAIN", "guess-me-not"), "kafka.sasl.password"},
		{"wrong scram password", sasl("SCRAM-SHA-512"), TLS{}, as("SCRAM-SHA-512", "guess-me-not"), "kafka.sasl.password"},
		{"sasl missing", sasl("PLAIN"), TLS{}, SASL{}, "kafka.sasl.mechanism"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := kfake.NewCluster(append(tc.opts, kfake.NumBrokers(1), kfake.SeedTopics(1, "a"))...)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			cfg := Config{Brokers: c.ListenAddrs(), TLS: tc.tls, SASL: tc.sasl, FetchWait: 50 * time.Millisecond, RequestTimeout: 2 * time.Second, DialTimeout: 2 * time.Second}
			err = tryAll(t, cfg)
			switch {
			case tc.err == "" && err != nil:
				t.Error(err)
			case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)):
				t.Errorf("error is %v, want %q in it", err, tc.err)
			case err != nil && strings.Contains(err.Error(), "guess-me-not"):
				t.Errorf("the error shows the password: %v", err)
			}
		})
	}
}

// Opening a connection ends with its context, also when the other side accepts and says nothing.
func TestOpenIsCancelled(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	c, err := NewClient(Config{Brokers: []string{ln.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err = c.Metadata(ctx); err == nil || !strings.Contains(err.Error(), context.DeadlineExceeded.Error()) {
		t.Errorf("Metadata from a silent broker: %v", err)
	}
	if d := time.Since(began); d > 3*time.Second {
		t.Errorf("it took %v", d)
	}
}
