// Package certstore reads certificates and keys from the stores that Java's and other programs keep them in: JKS, PKCS12 and PEM.
package certstore

import (
	"bytes"
	"crypto/sha1" // JKS knows no other
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pavlo-v-chernykh/keystore-go/v4"
	"software.sslmate.com/src/go-pkcs12"
)

// kindOf tells the format of a store by its first bytes.
func kindOf(b []byte) (string, error) {
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

// checkedKind is kindOf, checked against what the author says, unless that is "".
func checkedKind(b []byte, said string) (string, error) {
	kind, err := kindOf(b)
	if err == nil && said != "" && !strings.EqualFold(said, kind) {
		err = fmt.Errorf("it is said to be %s, but is %s", said, kind)
	}
	return kind, err
}

// Trust returns the certificates of a store that are trusted. said is the store's kind, checked unless it is "". A JKS store is read without a password too;
// its content is not checked then.
func Trust(b []byte, said, password string) ([]*x509.Certificate, error) {
	kind, err := checkedKind(b, said)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "PEM":
		return trustPEM(b)
	case "PKCS12":
		certs, err := pkcs12.DecodeTrustStore(b, password)
		if err != nil {
			_, cert, ca, kerr := pkcs12.DecodeChain(b, password) // a key store may serve as trust store
			if kerr != nil {
				return nil, fmt.Errorf("cannot read the PKCS12 store: %w", err)
			}
			certs = append(ca, cert)
		}
		return certs, nil
	}
	return trustJKS(b, password)
}

func trustPEM(b []byte) ([]*x509.Certificate, error) {
	var out []*x509.Certificate
	for {
		var block *pem.Block
		if block, b = pem.Decode(b); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil { // one that Go can't read does no harm to the others
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("it holds no PEM certificate")
	}
	return out, nil
}

func trustJKS(b []byte, password string) ([]*x509.Certificate, error) {
	ks, err := loadJKS(b, password)
	if err != nil {
		return nil, err
	}
	var out []*x509.Certificate
	for _, alias := range ks.Aliases() {
		if !ks.IsTrustedCertificateEntry(alias) {
			continue
		}
		e, err := ks.GetTrustedCertificateEntry(alias)
		if err != nil {
			return nil, fmt.Errorf("cannot read entry %s of the JKS store: %w", alias, err)
		}
		c, err := x509.ParseCertificate(e.Certificate.Content)
		if err != nil {
			return nil, fmt.Errorf("cannot read the certificate %s of the JKS store: %w", alias, err)
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, errors.New("the JKS store holds no trusted certificate")
	}
	return out, nil
}

// jksSalt is what Java puts between the password and a store's content before it takes their sum.
const jksSalt = "Mighty Aphrodite"

func loadJKS(b []byte, password string) (*keystore.KeyStore, error) {
	if password == "" && len(b) > sha1.Size {
		body := b[:len(b)-sha1.Size]
		sum := sha1.Sum(append([]byte(jksSalt), body...))
		b = slices.Concat(body, sum[:]) // whatever the password was
	}
	if err := checkJKS(b); err != nil {
		return nil, fmt.Errorf("cannot read the JKS store: %w", err)
	}
	ks := keystore.New()
	if err := ks.Load(bytes.NewReader(b), []byte(password)); err != nil {
		return nil, fmt.Errorf("cannot read the JKS store, or its password is wrong: %w", err)
	}
	return &ks, nil
}

// Key returns the private key and its certificates that a store holds. keyPassword is that of the key, "" if it is the store's.
func Key(b []byte, said, password, keyPassword string) (tls.Certificate, error) {
	kind, err := checkedKind(b, said)
	if err != nil {
		return tls.Certificate{}, err
	}
	if keyPassword == "" {
		keyPassword = password
	}
	switch kind {
	case "PKCS12":
		key, cert, ca, err := pkcs12.DecodeChain(b, password)
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
	return PEMPair(b, b)
}

// privateKey is the library's, which panics if the key is shorter than what protects it.
func privateKey(ks *keystore.KeyStore, alias, password string) (e keystore.PrivateKeyEntry, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("it is damaged")
		}
	}()
	return ks.GetPrivateKeyEntry(alias, []byte(password))
}

func keyJKS(b []byte, password, keyPassword string) (tls.Certificate, error) {
	ks, err := loadJKS(b, password)
	if err != nil {
		return tls.Certificate{}, err
	}
	keys := slices.DeleteFunc(ks.Aliases(), func(a string) bool { return !ks.IsPrivateKeyEntry(a) })
	if len(keys) != 1 {
		return tls.Certificate{}, fmt.Errorf("the JKS store holds %d private keys, want one", len(keys))
	}
	e, err := privateKey(ks, keys[0], keyPassword)
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

// PEMPair reads a certificate chain and its key. An encrypted key is refused by its kind.
func PEMPair(chain, key []byte) (tls.Certificate, error) {
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
