package ssl

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pavlo-v-chernykh/keystore-go/v4"
	"software.sslmate.com/src/go-pkcs12"

	"github.com/heddle-stream/heddle/internal/hadoop/hconf"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func (a *authority) issue(t *testing.T, c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c.SerialNumber, c.NotBefore, c.NotAfter = big.NewInt(time.Now().UnixNano()), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	out, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return out, key
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	a.cert, a.key = a.issue(t, &x509.Certificate{Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

func (a *authority) leaf(t *testing.T, ip string) tls.Certificate {
	t.Helper()
	c, key := a.issue(t, &x509.Certificate{Subject: pkix.Name{CommonName: ip}, IPAddresses: []net.IP{net.ParseIP(ip)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}})
	return tls.Certificate{Certificate: [][]byte{c.Raw}, PrivateKey: key, Leaf: c}
}

func write(t *testing.T, file string, b []byte, err error) string {
	t.Helper()
	if err == nil {
		err = os.WriteFile(file, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// stores writes the authority and a key of it in every kind of store, protected by a password.
func (a *authority) stores(t *testing.T, dir, password string) {
	t.Helper()
	pemCA := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
	write(t, filepath.Join(dir, "trust.pem"), pemCA, nil)
	p12, err := pkcs12.Modern.EncodeTrustStore([]*x509.Certificate{a.cert}, password)
	write(t, filepath.Join(dir, "trust.p12"), p12, err)
	pair := a.leaf(t, "127.0.0.9")
	p12, err = pkcs12.Modern.Encode(pair.PrivateKey, pair.Leaf, nil, password)
	write(t, filepath.Join(dir, "key.p12"), p12, err)
	ks := keystore.New(keystore.WithMinPasswordLen(0))
	if err := ks.SetTrustedCertificateEntry("ca", keystore.TrustedCertificateEntry{Certificate: keystore.Certificate{Type: "X509", Content: a.cert.Raw}}); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "trust.jks"))
	if err == nil {
		err = ks.Store(f, []byte(password))
	}
	if err != nil || f.Close() != nil {
		t.Fatal(err)
	}
}

func site(props map[string]string) []byte {
	var b strings.Builder
	b.WriteString("<configuration>")
	for k, v := range props {
		b.WriteString("<property><name>" + k + "</name><value>" + v + "</value></property>")
	}
	b.WriteString("</configuration>")
	return []byte(b.String())
}

// load reads a configuration of these files.
func load(t *testing.T, dir string, core, client map[string]string) (*Settings, error) {
	t.Helper()
	write(t, filepath.Join(dir, "core-site.xml"), site(core), nil)
	if client != nil {
		write(t, filepath.Join(dir, "ssl-client.xml"), site(client), nil)
	}
	c, err := hconf.Load(hconf.Options{Dir: dir, Env: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	return Load(c)
}

func get(s *Settings, url string) error {
	tr := NewTransport(func() (*Settings, error) { return s, nil })
	defer tr.CloseIdleConnections()
	resp, err := (&http.Client{Transport: tr}).Get(url)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return err
}

// server answers with a certificate, and wants one of the client's authority, if that is not nil.
func server(t *testing.T, pair tls.Certificate, clients *authority) string {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	if clients != nil {
		s.TLS.ClientAuth, s.TLS.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		s.TLS.ClientCAs.AddCert(clients.cert)
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}

// TestStores speaks with a server whose authority is in stores of every kind, with passwords kept in clear, in a credential store, and nowhere.
func TestStores(t *testing.T) {
	a := newAuthority(t)
	url := server(t, a.leaf(t, "127.0.0.1"), nil)
	const secret = "chängeit 1" // that of none.jceks
	all := t.TempDir()
	a.stores(t, all, secret)
	jceks, err := filepath.Abs("../jceks/testdata/none.jceks")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		store string
		core  map[string]string
		own   map[string]string
		bad   string // what the error has in it
	}{
		"PEM":               {store: "trust.pem"},
		"JKS":               {store: "trust.jks", own: map[string]string{"ssl.client.truststore.password": secret, "ssl.client.truststore.type": "jks"}},
		"JKS, no password":  {store: "trust.jks"},
		"PKCS12 called JKS": {store: "trust.p12", own: map[string]string{"ssl.client.truststore.password": secret, "ssl.client.truststore.type": "JKS"}},
		"JCEKS":             {store: "trust.p12", core: map[string]string{"hadoop.security.credential.provider.path": "localjceks://file" + jceks}},
		"JCEKS of its own":  {store: "trust.p12", own: map[string]string{"hadoop.security.credential.provider.path": "jceks://file" + jceks}},
		"JCEKS first, clear later": {store: "trust.p12", core: map[string]string{"hadoop.security.credential.provider.path": "user:///,jceks://file" + jceks},
			own: map[string]string{"ssl.client.truststore.password": "wrong"}},
		"no password":      {store: "trust.p12", bad: "cannot read the PKCS12 store"},
		"password in HDFS": {store: "trust.p12", core: map[string]string{"hadoop.security.credential.provider.path": "jceks://hdfs@nn:8020/a.jceks"}, bad: "localjceks://file/path"},
		"password in HDFS, which JKS needs not": {store: "trust.jks",
			core: map[string]string{"hadoop.security.credential.provider.path": "jceks://hdfs@nn:8020/a.jceks"}},
		"password of a FIPS store": {store: "trust.p12", core: map[string]string{"hadoop.security.credential.provider.path": "bcfks://file/a.bcfks"}, bad: "stores of kind bcfks cannot be read"},
		"other kind":               {store: "trust.pem", own: map[string]string{"ssl.client.truststore.type": "BCFKS"}, bad: "said to be BCFKS, but is PEM"},
		"absent":                   {store: "nowhere.jks", bad: "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			client := map[string]string{"ssl.client.truststore.location": filepath.Join(all, test.store)}
			for k, v := range test.own {
				client[k] = v
			}
			s, err := load(t, dir, test.core, client)
			if test.bad != "" {
				if err == nil || !strings.Contains(err.Error(), test.bad) || strings.Contains(err.Error(), secret) {
					t.Fatalf("%v, want %q", err, test.bad)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			// Handed on to another host.
			b, err := json.Marshal(s)
			shipped := &Settings{}
			if err == nil {
				err = json.Unmarshal(b, shipped)
			}
			if err == nil {
				err = get(shipped, url)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRefusals names the store, the host and what would help.
func TestRefusals(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	dir := t.TempDir()
	other.stores(t, dir, "changeit")
	store := filepath.Join(dir, "trust.jks")
	trusting, err := load(t, dir, nil, map[string]string{"ssl.client.truststore.location": store})
	if err != nil {
		t.Fatal(err)
	}
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	nobody, err := load(t, t.TempDir(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		s    *Settings
		url  string
		want []string
	}{
		"unknown authority": {trusting, server(t, a.leaf(t, "127.0.0.1"), nil), []string{"cannot speak TLS with 127.0.0.1:", store, "ssl.client.truststore.location of", "ssl-client.xml): have the certificate of the server's authority put in there"}},
		"no store":          {nobody, server(t, a.leaf(t, "127.0.0.1"), nil), []string{"trusted is what is in the store of this host"}},
		"other name":        {trusting, server(t, other.leaf(t, "127.0.0.2"), nil), []string{"127.0.0.2", "use a name that is in its certificate"}},
		"no TLS":            {trusting, "https" + strings.TrimPrefix(plain.URL, "http"), []string{"yarn.http.policy"}},
		"certificate wanted": {trusting, server(t, other.leaf(t, "127.0.0.1"), other),
			[]string{"it may want a certificate of ours, and there is none: ssl.client.keystore.location is not set"}},
	} {
		err := get(test.s, test.url)
		for _, w := range test.want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v, want %q", name, err, w)
			}
		}
	}
}

// TestMutual shows a key where one is wanted.
func TestMutual(t *testing.T) {
	a := newAuthority(t)
	dir := t.TempDir()
	a.stores(t, dir, "changeit")
	client := map[string]string{"ssl.client.truststore.location": filepath.Join(dir, "trust.pem"), "ssl.client.keystore.location": filepath.Join(dir, "key.p12"), "ssl.client.keystore.password": "changeit"}
	s, err := load(t, dir, map[string]string{"hadoop.ssl.require.client.cert": "true"}, client)
	if err != nil {
		t.Fatal(err)
	}
	if err := get(s, server(t, a.leaf(t, "127.0.0.1"), a)); err != nil {
		t.Error(err)
	}
	client["ssl.client.keystore.password"] = "wrong"
	if _, err := load(t, dir, map[string]string{"hadoop.ssl.require.client.cert": "true"}, client); err == nil || !strings.Contains(err.Error(), "ssl.client.keystore.location") {
		t.Errorf("with a key that can't be read, which must be there: %v", err)
	}
	if s, err = load(t, dir, nil, client); err != nil {
		t.Fatal(err)
	}
	if err := get(s, server(t, a.leaf(t, "127.0.0.1"), a)); err == nil || !strings.Contains(err.Error(), "cannot read the key store") {
		t.Errorf("with a key that can't be read: %v", err)
	}
}

// TestNames checks servers' names as hadoop.ssl.hostname.verifier says, and their authority always.
func TestNames(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	dir := t.TempDir()
	a.stores(t, dir, "changeit")
	for verifier, ok := range map[string]bool{"DEFAULT": false, "ALLOW_ALL": true, "DEFAULT_AND_LOCALHOST": true, "STRICT": false} {
		s, err := load(t, dir, map[string]string{"hadoop.ssl.hostname.verifier": verifier}, map[string]string{"ssl.client.truststore.location": filepath.Join(dir, "trust.pem")})
		if err != nil {
			t.Fatal(err)
		}
		if err := get(s, server(t, a.leaf(t, "127.0.0.7"), nil)); (err == nil) != ok {
			t.Errorf("%s: %v", verifier, err)
		}
		if err := get(s, server(t, other.leaf(t, "127.0.0.1"), nil)); err == nil {
			t.Errorf("%s: another authority's certificate is taken", verifier)
		}
	}
}
