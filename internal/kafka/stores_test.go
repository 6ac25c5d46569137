package kafka

import (
	"crypto/tls"
	"strings"
	"testing"
)

// The stores belong to package certstore, which tests what can be in them.
const stores = "../certstore/testdata/"

func TestStores(t *testing.T) {
	cfg, err := TLS{Enabled: true, Truststore: stores + "trust.p12", TruststorePassword: "changeit", Keystore: stores + "key.jks", KeystorePassword: "changeit", KeyPassword: "keypass"}.load()
	if err != nil || cfg.RootCAs == nil || len(cfg.Certificates) != 1 || cfg.MinVersion != tls.VersionTLS12 {
		t.Errorf("%+v, %v", cfg, err)
	}
	for _, c := range []TLS{{Truststore: "/does/not/exist"}, {Keystore: "/does/not/exist"}, {Truststore: stores + "trust.jks", TruststorePassword: "wrong-secret"}} {
		c.Enabled = true
		if _, err := c.load(); err == nil || strings.Contains(err.Error(), "wrong-secret") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
