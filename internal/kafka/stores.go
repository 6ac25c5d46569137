package kafka

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/pavlo-v-chernykh/keystore-go/v4"
	"software.sslmate.com/src/go-pkcs12"
)

// storeKind tells the formats of certificate stores by their first bytes.
func storeKind(b []byte) (string, error) {
	switch {
	case bytes.Contains(b, []byte("-----BEGIN ")):
		return "PEM", nil
	case bytes.HasPrefix(b, []byte{0xfe, 0xed, 0xfe, 0xed}):
		return "JKS", nil
	case bytes.HasPrefix(b, []byte{0xce, 0xce, 0xce, 0xce}):
		return "", errors.New("it is a JCEKS store, which is not supported: convert it by keytool -importkeystore -deststoretype PKCS12")
	case len(b) > 0 && b[0] == 0x30:
		return "PKCS12", nil
	}
	return "", errors.New("it is neither PEM, nor a PKCS12 or JKS store")
}

// kindOf is storeKind, checked against what the author says.
func kindOf(b []byte, said string) (string, error) {
	kind, err := storeKind(b)
	if err == nil && said != "" && !strings.EqualFold(said, kind) {
		err = fmt.Errorf("it is said to be %s, but is %s", said, kind)
	}
	return kind, err
}

// readTrust reads the certificates of a store.
func readTrust(file, said string, password Secret) (*x509.CertPool, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	kind, err := kindOf(b, said)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	switch kind {
	case "PEM":
		if !pool.AppendCertsFromPEM(b) {
			return nil, errors.New("it holds no PEM certificate")
		}
	case "PKCS12":
		certs, err := pkcs12.DecodeTrustStore(b, string(password))
		if err != nil {
			_, cert, ca, kerr := pkcs12.DecodeChain(b, string(password)) // a key store may serve as trust store
			if kerr != nil {
				return nil, fmt.Errorf("cannot read the PKCS12 store: %w", err)
			}
			certs = append(ca, cert)
		}
		for _, c := range certs {
			pool.AddCert(c)
		}
	case "JKS":
		return pool, trustJKS(pool, b, password)
	}
	return pool, nil
}

func trustJKS(pool *x509.CertPool, b []byte, password Secret) error {
	ks, err := loadJKS(b, password)
	if err != nil {
		return err
	}
	n := 0
	for _, alias := range ks.Aliases() {
		if !ks.IsTrustedCertificateEntry(alias) {
			continue
		}
		e, err := ks.GetTrustedCertificateEntry(alias)
		if err != nil {
			return fmt.Errorf("cannot read entry %s of the JKS store: %w", alias, err)
		}
		c, err := x509.ParseCertificate(e.Certificate.Content)
		if err != nil {
			return fmt.Errorf("cannot read the certificate %s of the JKS store: %w", alias, err)
		}
		pool.AddCert(c)
		n++
	}
	if n == 0 {
		return errors.New("the JKS store holds no trusted certificate")
	}
	return nil
}

func loadJKS(b []byte, password Secret) (*keystore.KeyStore, error) {
	ks := keystore.New()
	if err := ks.Load(bytes.NewReader(b), []byte(password)); err != nil {
		return nil, fmt.Errorf("cannot read the JKS store, or its password is wrong: %w", err)
	}
	return &ks, nil
}

// readKey reads the client's key and certificates from a store. keyPassword is that of the key, "" if it is the store's.
func readKey(file, said string, password, keyPassword Secret) (tls.Certificate, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return tls.Certificate{}, err
	}
	kind, err := kindOf(b, said)
	if err != nil {
		return tls.Certificate{}, err
	}
	if keyPassword == "" {
		keyPassword = password
	}
	switch kind {
	case "PKCS12":
		key, cert, ca, err := pkcs12.DecodeChain(b, string(password))
		if err != nil {
			return tls.Certificate{}, fmt.Errorf("cannot read the PKCS12 store: %w", err)
		}
		out := tls.Certificate{PrivateKey: key, Leaf: cert, Certificate: [][]byte{cert.Raw}}
		for _, c := range ca {
			out.Certificate = append(out.Certificate, c.Raw)
		}
		return out, nil
	case "JKS":
		return keyJKS(b, password, keyPassword)
	}
	return pemPair(b, b)
}

func keyJKS(b []byte, password, keyPassword Secret) (tls.Certificate, error) {
	ks, err := loadJKS(b, password)
	if err != nil {
		return tls.Certificate{}, err
	}
	keys := slices.DeleteFunc(ks.Aliases(), func(a string) bool { return !ks.IsPrivateKeyEntry(a) })
	if len(keys) != 1 {
		return tls.Certificate{}, fmt.Errorf("the JKS store holds %d private keys, want one", len(keys))
	}
	e, err := ks.GetPrivateKeyEntry(keys[0], []byte(keyPassword))
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("cannot read the key %s of the JKS store, or its password is wrong: %w", keys[0], err)
	}
	key, err := x509.ParsePKCS8PrivateKey(e.PrivateKey)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("cannot read the key %s of the JKS store: %w", keys[0], err)
	}
	out := tls.Certificate{PrivateKey: key}
	for _, c := range e.CertificateChain {
		out.Certificate = append(out.Certificate, c.Content)
	}
	if len(out.Certificate) == 0 {
		return tls.Certificate{}, fmt.Errorf("the key %s of the JKS store has no certificate", keys[0])
	}
	return out, nil
}

// pemPair reads a certificate chain and its key. An encrypted key is refused by its kind.
func pemPair(chain, key []byte) (tls.Certificate, error) {
	for rest := key; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "" {
			return tls.Certificate{}, errors.New("the PEM key is encrypted, which is not supported: use a PKCS12 store, or a key without a password that only its owner may read")
		}
	}
	return tls.X509KeyPair(chain, key)
}
