package testbed

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"maps"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pavlo-v-chernykh/keystore-go/v4"
)

// StorePassword is that of the stores that an Authority writes.
const StorePassword = "changeit"

// Authority is a private certificate authority.
type Authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes one.
func NewAuthority(t testing.TB, name string) *Authority {
	t.Helper()
	a := &Authority{t: t}
	a.cert, a.key = a.issue(&x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// issue makes a certificate, the authority's own if it has none yet.
func (a *Authority) issue(c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c.SerialNumber, _ = rand.Int(rand.Reader, big.NewInt(1<<62))
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

// Leaf makes a certificate and key for hosts and addresses, or for a client that is called so.
func (a *Authority) Leaf(names ...string) tls.Certificate {
	a.t.Helper()
	c := &x509.Certificate{Subject: pkix.Name{CommonName: names[0]}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, n)
		}
	}
	cert, key := a.issue(c)
	return tls.Certificate{Certificate: [][]byte{cert.Raw, a.cert.Raw}, PrivateKey: key, Leaf: cert}
}

// PEM is the authority's certificate.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// Pool trusts the authority alone.
func (a *Authority) Pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// TrustJKS writes a trust store with the authority's certificate.
func (a *Authority) TrustJKS(file string) {
	a.t.Helper()
	ks := keystore.New()
	err := ks.SetTrustedCertificateEntry("ca", keystore.TrustedCertificateEntry{CreationTime: time.Now(), Certificate: keystore.Certificate{Type: "X509", Content: a.cert.Raw}})
	a.store(ks, file, err)
}

// KeyJKS writes a key store with a key and its certificates.
func (a *Authority) KeyJKS(file string, pair tls.Certificate) {
	a.t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		a.t.Fatal(err)
	}
	e := keystore.PrivateKeyEntry{CreationTime: time.Now(), PrivateKey: der}
	for _, c := range pair.Certificate {
		e.CertificateChain = append(e.CertificateChain, keystore.Certificate{Type: "X509", Content: c})
	}
	ks := keystore.New()
	a.store(ks, file, ks.SetPrivateKeyEntry("key", e, []byte(StorePassword)))
}

func (a *Authority) store(ks keystore.KeyStore, file string, err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err == nil {
		err = ks.Store(f, []byte(StorePassword))
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		a.t.Fatal(err)
	}
}

// overTLS makes web services speak HTTPS only, by certificates of a private authority, which clients find in a JKS store that ssl-client.xml names. Its
// password is not given, as it often is.
func (h *Hadoop) overTLS(t testing.TB, opt HadoopOptions, hdfs, yarn properties, port func() string) {
	h.CA = NewAuthority(t, "heddle itest")
	names := []string{"localhost"}
	for i := range opt.NodeManagers + 1 {
		names = append(names, net.IPv4(127, 0, 0, byte(1+i)).String())
	}
	dir := h.bed.Dir("hadoop/tls")
	trust, key := filepath.Join(dir, "truststore.jks"), filepath.Join(dir, "keystore.jks")
	h.CA.TrustJKS(trust)
	own := h.CA.Leaf(names...)
	h.CA.KeyJKS(key, own)
	h.bed.File("hadoop/conf/ssl-server.xml", properties{
		"ssl.server.truststore.location": trust, "ssl.server.truststore.password": StorePassword,
		"ssl.server.keystore.location": key, "ssl.server.keystore.password": StorePassword, "ssl.server.keystore.keypassword": StorePassword,
	}.xml())
	client := properties{"ssl.client.truststore.location": trust, "ssl.client.truststore.type": "jks"}
	if opt.MutualTLS {
		hdfs["dfs.client.https.need-auth"] = "true"
		maps.Copy(client, properties{"ssl.client.truststore.password": StorePassword, "ssl.client.keystore.location": key, "ssl.client.keystore.password": StorePassword, "ssl.client.keystore.keypassword": StorePassword})
	}
	h.bed.File("hadoop/conf/ssl-client.xml", client.xml())
	for key, addr := range maps.Clone(hdfs) {
		if suffix, ok := strings.CutPrefix(key, "dfs.namenode.http-address"); ok { // of each NameNode
			hdfs["dfs.namenode.https-address"+suffix] = addr
		}
	}
	maps.Copy(hdfs, properties{"dfs.http.policy": "HTTPS_ONLY", "dfs.datanode.https.address": port()})
	yarn["yarn.http.policy"] = "HTTPS_ONLY"
	for _, suffix := range []string{"", "." + ResourceManager, "." + StandbyManager} {
		if web := yarn["yarn.resourcemanager.webapp.address"+suffix]; web != "" {
			yarn["yarn.resourcemanager.webapp.https.address"+suffix] = web
		}
	}
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.TLSClientConfig = &tls.Config{RootCAs: h.CA.Pool(), Certificates: []tls.Certificate{own}}
	h.web = base
}

// scheme is how web services are spoken to.
func (h *Hadoop) scheme() string {
	if h.CA != nil {
		return "https://"
	}
	return "http://"
}
