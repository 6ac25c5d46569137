package pki

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"
)

// MasterTLS is the configuration of the ApplicationMaster's gRPC server: agents of this application only. The certificate that it shows is
// replaced in time.
func (a *Authority) MasterTLS() (*tls.Config, error) {
	first, err := a.masterTLS()
	if err != nil {
		return nil, err
	}
	c := first.Clone()
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return a.masterTLS() }
	return c, nil
}

func (a *Authority) masterTLS() (*tls.Config, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := time.Now(); a.server == nil || !now.Before(a.until) {
		leaf, err := a.master()
		if err != nil {
			return nil, err
		}
		c, err := serverTLS(leaf, a.pem)
		if err != nil {
			return nil, err
		}
		c.NextProtos = []string{"h2"}
		a.server, a.until = c, now.Add(a.life/2)
	}
	return a.server, nil
}

// serverTLS accepts agents of this application only.
func serverTLS(leaf Leaf, ca []byte) (*tls.Config, error) {
	c, err := base(leaf, ca)
	if err != nil {
		return nil, err
	}
	c.ClientAuth = tls.RequireAndVerifyClientCert
	return c, nil
}

// AgentTLS is the configuration by which an agent dials the ApplicationMaster.
func AgentTLS(leaf Leaf, ca []byte) (*tls.Config, error) {
	c, err := base(leaf, ca)
	if err != nil {
		return nil, err
	}
	c.ServerName = masterName
	return c, nil
}

// ExchangeTLS is the pair of configurations of an agent's exchange: server accepts agents of this application only,
// client dials any of them, whatever its address.
func ExchangeTLS(leaf Leaf, ca []byte) (server, client *tls.Config, err error) {
	if server, err = serverTLS(leaf, ca); err != nil {
		return nil, nil, err
	}
	if client, err = base(leaf, ca); err != nil {
		return nil, nil, err
	}
	client.ServerName = exchangeName
	return server, client, nil
}

func base(leaf Leaf, ca []byte) (*tls.Config, error) {
	cert, err := tls.X509KeyPair(leaf.Cert, leaf.Key)
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificate: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, errors.New("cannot read the application's certificate: no certificate in it")
	}
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		Certificates:           []tls.Certificate{cert},
		RootCAs:                pool,
		ClientCAs:              pool,
		SessionTicketsDisabled: true, // connections are few and long; each one proves itself
	}, nil
}
