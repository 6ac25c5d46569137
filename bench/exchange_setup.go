package bench

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"time"

	"github.com/heddle-stream/heddle/netstack"
)

func newStack(cfg peerConfig, identity string) (*netstack.Stack, error) {
	o := cfg.Options
	n := o.Parallelism
	c := netstack.Config{
		Identity: identity, Auth: netstack.Auth{Key: cfg.Key}, MemorySegments: max(2048, 4*n*n+64*n),
		SegmentBytes: o.SegmentBytes, ExclusivePerChannel: o.ExclusivePerChannel, FloatingPerGate: o.FloatingPerGate,
		MaxPerChannel: o.MaxPerChannel, MaxPerSubpartition: o.MaxPerSubpartition,
		Compression: o.Compression, Checksum: o.Checksum,
	}
	if cfg.Cert != nil {
		pair, err := cfg.Cert.config()
		if err != nil {
			return nil, err
		}
		c.TLS = pair
	}
	return netstack.New(c)
}

// keyPair is a self-signed certificate that both ends have and trust.
type keyPair struct{ Cert, Key []byte }

func newKeyPair() (*keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "heddle bench"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	return &keyPair{cert, der}, err
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

// rawChunk is the length of each write of the raw loop, rawLongest how long it runs at most.
const (
	rawChunk   = 32 << 10
	rawLongest = 3 * time.Second
)

// runRaw writes to another process over one connection, 32 KiB at a time; by crypto/tls with the TLS option.
func runRaw(ctx context.Context, o ExchangeOptions, res *ExchangeResult) error {
	ctx, end := bounded(ctx, min(o.Duration, rawLongest))
	defer end(nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	cfg := peerConfig{Addr: l.Addr().String()}
	var pair *netstack.TLS
	if o.TLS {
		if cfg.Cert, err = newKeyPair(); err != nil {
			return err
		}
		if pair, err = cfg.Cert.config(); err != nil {
			return err
		}
	}
	p, err := startPeer(ctx, end, o.Executable, roleRaw, cfg)
	if err != nil {
		return err
	}
	defer p.close()
	raw, err := acceptWithin(ctx, l)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { raw.Close() })()
	nc := raw
	if pair != nil {
		nc = tls.Server(nc, pair.Server)
	}
	defer nc.Close()
	buf := make([]byte, rawChunk)
	began, before := time.Now(), sample()
	bytes := 0
	for time.Since(began) < min(o.Duration, rawLongest) {
		for range 16 {
			n, err := nc.Write(buf)
			bytes += n
			if err != nil {
				p.orDeath(end)(err)
				return reason(ctx, err)
			}
		}
	}
	nc.Close()
	m, err := p.end(ctx)
	if err != nil {
		return err
	}
	if m.Records != uint64(bytes) {
		return fmt.Errorf("wrote %d bytes, %d were read", bytes, m.Records)
	}
	res.RawBytesPerSecond = float64(bytes) / time.Since(began).Seconds()
	res.RawCPUNsPerKB = float64(sample().CPU-before.CPU+m.CPU) / (float64(bytes) / 1000)
	return nil
}

// acceptWithin accepts a connection, until ctx ends.
func acceptWithin(ctx context.Context, l net.Listener) (net.Conn, error) {
	defer context.AfterFunc(ctx, func() { l.Close() })()
	nc, err := l.Accept()
	return nc, reason(ctx, err)
}

// rawPeer reads all that comes and counts it. (The mark's Records are bytes here.)
func rawPeer(cfg peerConfig) error {
	nc, err := net.Dial("tcp", cfg.Addr)
	if err != nil {
		return err
	}
	if cfg.Cert != nil {
		pair, err := cfg.Cert.config()
		if err != nil {
			return err
		}
		pair.Client.ServerName = "127.0.0.1"
		nc = tls.Client(nc, pair.Client)
	}
	defer nc.Close()
	buf := make([]byte, rawChunk)
	before := sample()
	var m mark
	for {
		n, err := nc.Read(buf)
		m.Records += uint64(n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	m.CPU = sample().CPU - before.CPU
	m.Ended = true
	return json.NewEncoder(os.Stdout).Encode(m)
}
