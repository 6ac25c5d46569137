package ssl

import (
	"crypto/rsa"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The stores yarn.keystore and yarn.truststore were made by Hadoop's ProxyCA, which is what a ResourceManager makes them by; their passwords are changeit and changeit2.

func TestOpenMaster(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.keystore")
	if err := os.WriteFile(bad, []byte("\xfe\xed\xfe\xed and no more"), 0o600); err != nil {
		t.Fatal(err)
	}
	none := filepath.Join(dir, "none")
	given := func(edits ...string) func(string) string {
		env := map[string]string{envKeyFile: "testdata/yarn.keystore", envKeyPassword: "changeit", envTrustFile: "testdata/yarn.truststore", envTrustPassword: "changeit2"}
		for i := 0; i < len(edits); i += 2 {
			env[edits[i]] = edits[i+1]
		}
		return func(name string) string { return env[name] }
	}
	m, err := OpenMaster(given())
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(m.Certificate.Certificate[0])
	if err != nil || leaf.Subject.CommonName != "application_1767225600000_0001" || len(m.Certificate.Certificate) != 2 {
		t.Errorf("the certificate is %+v, of %d; %v", leaf.Subject, len(m.Certificate.Certificate), err)
	}
	if key, ok := m.Certificate.PrivateKey.(*rsa.PrivateKey); !ok || !key.PublicKey.Equal(leaf.PublicKey) {
		t.Errorf("the key is a %T, and not the certificate's", m.Certificate.PrivateKey)
	}
	if len(m.Proxy) != 1 || leaf.CheckSignatureFrom(m.Proxy[0]) != nil {
		t.Errorf("the proxy's certificates are %d, or have not signed ours", len(m.Proxy))
	}
	if m, err := OpenMaster(given(envKeyFile, "")); m != nil || err != nil {
		t.Errorf("where YARN gives nothing: %+v, %v", m, err)
	}
	for name, x := range map[string]struct {
		env  []string
		want []string
	}{
		"damaged":               {[]string{envKeyFile, bad}, []string{"cannot read the key store " + bad + ", which YARN gave this container for HTTPS (KEYSTORE_FILE_LOCATION)", "JKS"}},
		"not there":             {[]string{envKeyFile, none}, []string{"cannot read the key store " + none, "no such file"}},
		"wrong password":        {[]string{envKeyPassword, "other-secret"}, []string{"testdata/yarn.keystore", "its password is wrong"}},
		"no password":           {[]string{envKeyPassword, ""}, []string{"testdata/yarn.keystore", "KEYSTORE_PASSWORD is not set"}},
		"no key":                {[]string{envKeyFile, "testdata/yarn.truststore", envKeyPassword, "changeit2"}, []string{"testdata/yarn.truststore", "0 private keys"}},
		"no trust store":        {[]string{envTrustFile, ""}, []string{"TRUSTSTORE_FILE_LOCATION is not set"}},
		"damaged trust store":   {[]string{envTrustFile, bad}, []string{"cannot read the trust store " + bad, "TRUSTSTORE_FILE_LOCATION"}},
		"trust store, password": {[]string{envTrustPassword, "other-secret"}, []string{"testdata/yarn.truststore", "its password is wrong"}},
	} {
		_, err := OpenMaster(given(x.env...))
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, w := range x.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v; want %q in it", name, err, w)
			}
		}
	}
}
