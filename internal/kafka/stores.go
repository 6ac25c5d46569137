package kafka

import (
	"crypto/tls"
	"crypto/x509"
	"os"

	"github.com/heddle-stream/heddle/internal/certstore"
)

// readTrust reads the certificates of a store. said is its kind, "" if the author does not say.
func readTrust(file, said string, password Secret) (*x509.CertPool, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	certs, err := certstore.Trust(b, said, string(password))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	for _, c := range certs {
		pool.AddCert(c)
	}
	return pool, nil
}

// readKey reads the client's key and certificates from a store. keyPassword is that of the key, "" if it is the store's.
func readKey(file, said string, password, keyPassword Secret) (tls.Certificate, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return tls.Certificate{}, err
	}
	return certstore.Key(b, said, string(password), string(keyPassword))
}
