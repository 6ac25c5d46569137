package schemaregistry

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestMutualTLS: a registry that wants a client's certificate gets the one that options name.
func TestMutualTLS(t *testing.T) {
	dir := t.TempDir()
	file := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "etl"}, NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if cn := r.TLS.PeerCertificates[0].Subject.CommonName; cn != "etl" {
			t.Errorf("the client is %s", cn)
		}
		_, _ = w.Write([]byte(`["AVRO"]`))
	}))
	srv.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	srv.StartTLS()
	defer srv.Close()
	all := map[string]string{optURLs: srv.URL, optCA: file("ca.pem", "CERTIFICATE", srv.Certificate().Raw)}
	option := func(name string) (string, bool) { v, ok := all[name]; return v, ok }
	if _, a, err := Probe(t.Context(), option); err != nil || a[0].Err == nil {
		t.Errorf("without a certificate: %+v, %v", a, err)
	}
	all[optCert], all[optKey] = file("cert.pem", "CERTIFICATE", der), file("key.pem", "PRIVATE KEY", keyDER)
	if _, a, err := Probe(t.Context(), option); err != nil || a[0].Err != nil {
		t.Errorf("with one: %+v, %v", a, err)
	}
}
