package kafka

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The stores in testdata were made by Java's keytool; the password is changeit, that of the key in key.jks is keypass.

func TestStores(t *testing.T) {
	for _, file := range []string{"trust.jks", "trust.p12", "ca.pem"} {
		for _, said := range []string{"", map[string]string{".jks": "jks", ".p12": "PKCS12", ".pem": "PEM"}[filepath.Ext(file)]} {
			pool, err := readTrust("testdata/"+file, said, "changeit")
			if err != nil || pool.Equal(x509.NewCertPool()) {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
	for file, keyPassword := range map[string]Secret{"key.jks": "keypass", "key.p12": ""} {
		pair, err := readKey("testdata/"+file, "", "changeit", keyPassword)
		if err != nil || pair.PrivateKey == nil || len(pair.Certificate) != 1 {
			t.Errorf("%s: %+v, %v", file, pair, err)
		}
	}
	cfg, err := TLS{Enabled: true, Truststore: "testdata/trust.p12", TruststorePassword: "changeit", Keystore: "testdata/key.jks", KeystorePassword: "changeit", KeyPassword: "keypass"}.load()
	if err != nil || cfg.RootCAs == nil || len(cfg.Certificates) != 1 || cfg.MinVersion != tls.VersionTLS12 {
		t.Errorf("%+v, %v", cfg, err)
	}
}

func TestStoreErrors(t *testing.T) {
	encrypted := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(encrypted, []byte("-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ file, said, password, keyPassword, want string }{
		{"testdata/key.jceks", "", "changeit", "", "JCEKS store, which is not supported"},
		{"config_test.go", "", "x", "", "neither PEM, nor a PKCS12 or JKS store"},
		{"testdata/key.p12", "JKS", "changeit", "", "said to be JKS, but is PKCS12"},
		{"testdata/key.p12", "", "wrong-secret", "", "cannot read the PKCS12 store"},
		{"testdata/key.jks", "", "wrong-secret", "", "its password is wrong"},
		{"testdata/key.jks", "", "changeit", "wrong-secret", "cannot read the key client of the JKS store"},
		{"testdata/trust.jks", "", "changeit", "", "holds 0 private keys"},
		{encrypted, "", "", "", "the PEM key is encrypted"},
		{"/does/not/exist", "", "", "", "no such file"},
	} {
		_, err := readKey(test.file, test.said, Secret(test.password), Secret(test.keyPassword))
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "wrong-secret") {
			t.Errorf("%s as %q: %v, want %q", test.file, test.said, err, test.want)
		}
	}
	if _, err := readTrust("testdata/key.jks", "", "changeit"); err == nil || !strings.Contains(err.Error(), "holds no trusted certificate") {
		t.Errorf("a store without certificates: %v", err)
	}
}
