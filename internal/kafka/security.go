package kafka

import (
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"hash"
	"os"

	"github.com/IBM/sarama"
	"github.com/rcrowley/go-metrics"
	"github.com/xdg-go/scram"

	"github.com/heddle-stream/heddle/internal/certstore"
)

func init() {
	// Nobody reads sarama's meters, and the goroutine that ticks them would outlive every owner.
	metrics.UseNilMetrics = true
}

// SaramaConfig is the base of every use of sarama. TLS and Kerberos are not in it: our dialer does those.
func (c Config) SaramaConfig() (*sarama.Config, error) {
	c = c.withDefaults()
	s := sarama.NewConfig()
	s.ClientID = c.ClientID
	s.Version = sarama.V2_8_0_0 // the most that is asked for; each broker may answer with less
	s.Metadata.AllowAutoTopicCreation = false
	s.Metadata.Full = false
	s.Metadata.RefreshFrequency = 0
	s.Net.DialTimeout = c.DialTimeout
	s.Net.ReadTimeout = c.RequestTimeout
	s.Net.WriteTimeout = c.RequestTimeout
	if c.SASL.Mechanism != "" && c.SASL.Mechanism != sarama.SASLTypeGSSAPI {
		s.Net.SASL.Enable = true
		s.Net.SASL.Version = sarama.SASLHandshakeV1
		s.Net.SASL.Mechanism = sarama.SASLMechanism(c.SASL.Mechanism)
		s.Net.SASL.User = c.SASL.User
		s.Net.SASL.Password = string(c.SASL.Password)
		switch c.SASL.Mechanism {
		case sarama.SASLTypeSCRAMSHA256:
			s.Net.SASL.SCRAMClientGeneratorFunc = scramClient(sha256.New)
		case sarama.SASLTypeSCRAMSHA512:
			s.Net.SASL.SCRAMClientGeneratorFunc = scramClient(sha512.New)
		case sarama.SASLTypeOAuth:
			t, err := newTokens(c.SASL.OAuth)
			if err != nil {
				return nil, err
			}
			s.Net.SASL.TokenProvider = t
		}
	}
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("cannot use Kafka settings: %w", err)
	}
	return s, nil
}

// load reads the files and returns the client's side of TLS, nil if TLS is off.
func (t TLS) load() (*tls.Config, error) {
	if !t.Enabled {
		return nil, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if err := t.loadTrust(cfg); err != nil {
		return nil, err
	}
	if err := t.loadKey(cfg); err != nil {
		return nil, err
	}
	if t.anyName {
		cfg.InsecureSkipVerify = true // the name alone: the chain is verified below
		cfg.VerifyConnection = func(s tls.ConnectionState) error {
			opts := x509.VerifyOptions{Roots: cfg.RootCAs, Intermediates: x509.NewCertPool()}
			for _, c := range s.PeerCertificates[1:] {
				opts.Intermediates.AddCert(c)
			}
			_, err := s.PeerCertificates[0].Verify(opts)
			return err
		}
	}
	return cfg, nil
}

// loadTrust reads whom to trust.
func (t TLS) loadTrust(cfg *tls.Config) (err error) {
	switch {
	case t.caPEM != "":
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM([]byte(t.caPEM)) {
			return fmt.Errorf("cannot use %s: it holds no PEM certificate", propCertificates)
		}
	case t.CAFile != "":
		b, err := os.ReadFile(t.CAFile)
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", OptTLSCA, err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(b) {
			return fmt.Errorf("cannot use %s %s: it holds no PEM certificate", OptTLSCA, t.CAFile)
		}
	case t.Truststore != "":
		if cfg.RootCAs, err = readTrust(t.Truststore, t.trustType, t.TruststorePassword); err != nil {
			return fmt.Errorf("cannot use %s %s: %w", OptTLSTruststore, t.Truststore, err)
		}
	}
	return nil
}

// loadKey reads the client's key and certificate.
func (t TLS) loadKey(cfg *tls.Config) error {
	var pair tls.Certificate
	var err error
	switch {
	case t.certPEM != "":
		if pair, err = certstore.PEMPair([]byte(t.certPEM), []byte(t.keyPEM)); err != nil {
			return fmt.Errorf("cannot use %s and %s: %w", propChain, propKey, err)
		}
	case t.CertFile != "":
		chain, err := os.ReadFile(t.CertFile)
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", OptTLSCert, err)
		}
		key, err := os.ReadFile(t.KeyFile)
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", OptTLSKey, err)
		}
		if pair, err = certstore.PEMPair(chain, key); err != nil {
			return fmt.Errorf("cannot use %s and %s: %w", OptTLSCert, OptTLSKey, err)
		}
	case t.Keystore != "":
		if pair, err = readKey(t.Keystore, t.keyType, t.KeystorePassword, t.KeyPassword); err != nil {
			return fmt.Errorf("cannot use %s %s: %w", OptTLSKeystore, t.Keystore, err)
		}
	default:
		return nil
	}
	cfg.Certificates = []tls.Certificate{pair}
	return nil
}

// scramClient makes what sarama asks for a conversation.
func scramClient(h func() hash.Hash) func() sarama.SCRAMClient {
	return func() sarama.SCRAMClient { return &scramConversation{hash: h} }
}

type scramConversation struct {
	hash func() hash.Hash
	conv *scram.ClientConversation
}

// Begin implements sarama.SCRAMClient.
func (s *scramConversation) Begin(user, password, authzID string) error {
	client, err := scram.HashGeneratorFcn(s.hash).NewClient(user, password, authzID)
	if err != nil {
		return err
	}
	s.conv = client.NewConversation()
	return nil
}

// Step implements sarama.SCRAMClient.
func (s *scramConversation) Step(challenge string) (string, error) { return s.conv.Step(challenge) }

// Done implements sarama.SCRAMClient.
func (s *scramConversation) Done() bool { return s.conv.Done() }
