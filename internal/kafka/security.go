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
)

func init() {
	// Nobody reads sarama's meters, and the goroutine that ticks them would outlive every owner.
	metrics.UseNilMetrics = true
}

// SaramaConfig is the base of every use of sarama. TLS is not in it: our dialer does that.
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
	if c.SASL.Mechanism != "" {
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
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", OptTLSCA, err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("cannot use %s %s: it holds no PEM certificate", OptTLSCA, t.CAFile)
		}
	}
	if t.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("cannot use %s and %s: %w", OptTLSCert, OptTLSKey, err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
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
