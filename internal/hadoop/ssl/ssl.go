// Package ssl is TLS as Hadoop's clients have it: whom they trust, and what key they show, as ssl-client.xml says.
package ssl

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/heddle-stream/heddle/internal/certstore"
	"github.com/heddle-stream/heddle/internal/hadoop/hconf"
)

// Settings are what ssl-client.xml came to. They can be handed on as JSON, and are secret if they hold a key.
type Settings struct {
	Trust string `json:"trust,omitempty"` // certificates as PEM; "": those that the host trusts
	Store string `json:"store"`           // where they are from, for people
	Key   string `json:"key,omitempty"`   // our certificates and key as PEM; "": none
	// NoKey is why there is no key, for people.
	NoKey string `json:"no_key,omitempty"`
	// Names says how servers' names are checked: "", localhost (which may have any) or none.
	Names string `json:"names,omitempty"`
}

// Keys of Hadoop's configuration.
const (
	keyConf      = "hadoop.ssl.client.conf"
	keyVerifier  = "hadoop.ssl.hostname.verifier"
	keyMutual    = "hadoop.ssl.require.client.cert"
	keyTrust     = "ssl.client.truststore."
	keyStore     = "ssl.client.keystore."
	defaultConf  = "ssl-client.xml"
	hostsTrusted = "the store of this host"
)

// Load reads what the configuration says about TLS.
func Load(c *hconf.Conf) (*Settings, error) {
	name, err := c.String(keyConf)
	if err != nil {
		return nil, err
	}
	if name == "" {
		name = defaultConf
	}
	own, ok, err := c.Resource(name)
	if err != nil {
		return nil, err
	}
	if !ok {
		if c.Origin(keyConf) != "nowhere" && c.Dir() != "" {
			return nil, fmt.Errorf("cannot read %s, which %s of %s names: there is no such file in %s", name, keyConf, c.Origin(keyConf), c.Dir())
		}
		own, err = hconf.Read(name, []byte("<configuration/>"), nil)
		if err != nil {
			return nil, err
		}
	}
	l := &loader{main: c, own: own}
	s := &Settings{}
	if s.Names, err = names(c); err != nil {
		return nil, err
	}
	if err := l.trust(s); err != nil {
		return nil, err
	}
	mutual, err := c.Bool(keyMutual, false)
	if err != nil {
		return nil, err
	}
	if err := l.key(s); err != nil {
		if mutual {
			return nil, err
		}
		s.NoKey = err.Error() // servers may not ask for it
	}
	return s, nil
}

// names reads how servers' names are checked.
func names(c *hconf.Conf) (string, error) {
	v, err := c.String(keyVerifier)
	switch strings.ToUpper(v) {
	case "ALLOW_ALL":
		return "none", err
	case "DEFAULT_AND_LOCALHOST":
		return "localhost", err
	}
	return "", err
}

// loader reads the stores.
type loader struct {
	main, own *hconf.Conf // core-site.xml and ssl-client.xml
}

// trust reads the trust store.
func (l *loader) trust(s *Settings) error {
	file, where, err := l.location(keyTrust)
	if err != nil || file == "" {
		s.Store = hostsTrusted
		return err
	}
	s.Store = where
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("cannot read the trust store of %s: %w", where, err)
	}
	pw, pwErr := l.password(keyTrust + "password")
	certs, err := certstore.Trust(data, l.kind(keyTrust), pw)
	if err != nil {
		return errors.Join(fmt.Errorf("cannot read the trust store %s: %w", where, err), pwErr)
	}
	var b bytes.Buffer
	for _, c := range certs {
		_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
	}
	s.Trust = b.String()
	return nil
}

// key reads our key, if there is one.
func (l *loader) key(s *Settings) error {
	file, where, err := l.location(keyStore)
	if err != nil {
		return err
	}
	if file == "" {
		s.NoKey = keyStore + "location is not set in " + defaultConf
		return nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("cannot read the key store of %s: %w", where, err)
	}
	pw, pwErr := l.password(keyStore + "password")
	keyPW, keyErr := l.password(keyStore + "keypassword")
	pair, err := certstore.Key(data, l.kind(keyStore), pw, keyPW)
	if err != nil {
		return errors.Join(fmt.Errorf("cannot read the key store %s: %w", where, err), pwErr, keyErr)
	}
	var b bytes.Buffer
	for _, c := range pair.Certificate {
		_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: c})
	}
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		return fmt.Errorf("cannot read the key store %s: %w", where, err)
	}
	_ = pem.Encode(&b, &pem.Block{Type: "PRIVATE KEY", Bytes: der})
	s.Key = b.String()
	return nil
}

// location is a store's file, and the same with where it is named.
func (l *loader) location(prefix string) (file, where string, err error) {
	key := prefix + "location"
	v, err := l.own.String(key)
	if err != nil || v == "" {
		return "", "", err
	}
	v = strings.TrimPrefix(v, "file://")
	return v, fmt.Sprintf("%s (%s of %s)", v, key, l.own.Origin(key)), nil
}

// kind is what a store is said to be. Java takes JKS and PKCS12 for each other, so that neither is held to it.
func (l *loader) kind(prefix string) string {
	v, err := l.own.String(prefix + "type")
	if err != nil || strings.EqualFold(v, "jks") || strings.EqualFold(v, "pkcs12") || strings.EqualFold(v, "pem") {
		return ""
	}
	return v
}

// Client is how to connect to a server of a name.
func (s *Settings) Client(host string) (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host}
	if s.Trust != "" {
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM([]byte(s.Trust)) {
			return nil, errors.New("cannot use the trusted certificates: they are damaged")
		}
	}
	if s.Key != "" {
		pair, err := certstore.PEMPair([]byte(s.Key), []byte(s.Key))
		if err != nil {
			return nil, fmt.Errorf("cannot use our key: %w", err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	if s.Names == "none" || s.Names == "localhost" && (host == "localhost" || host == "127.0.0.1" || host == "::1") {
		cfg.InsecureSkipVerify = true // the name alone: the chain is verified here
		cfg.VerifyConnection = func(cs tls.ConnectionState) error {
			opts := x509.VerifyOptions{Roots: cfg.RootCAs, Intermediates: x509.NewCertPool()}
			for _, c := range cs.PeerCertificates[1:] {
				opts.Intermediates.AddCert(c)
			}
			if _, err := cs.PeerCertificates[0].Verify(opts); err != nil {
				return &tls.CertificateVerificationError{UnverifiedCertificates: cs.PeerCertificates, Err: err}
			}
			return nil
		}
	}
	return cfg, nil
}
