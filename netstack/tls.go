package netstack

import (
	"crypto/tls"
	"net"
)

// sessions is how many peers' TLS sessions a stack remembers, to resume them.
const sessions = 1024

// tlsConfigs are a stack's own copies of its TLS configuration: one for all connections, since
// tickets can only be resumed by the configuration that issued them.
func tlsConfigs(t *TLS) *TLS {
	server, client := t.Server.Clone(), t.Client.Clone()
	server.DynamicRecordSizingDisabled, client.DynamicRecordSizingDisabled = true, true
	server.GetConfigForClient = keepSecrets(server, server.GetConfigForClient)
	if client.ClientSessionCache == nil {
		client.ClientSessionCache = tls.NewLRUClientSessionCache(sessions)
	}
	return &TLS{server, client}
}

// SetTLS replaces the configuration, as where a certificate comes to its end: connections that begin from now on use it, without
// resuming what began under the one before. Those that are open go on. Without TLS it does nothing.
func (s *Stack) SetTLS(t *TLS) {
	if s.cfg.TLS != nil {
		s.tls.Store(tlsConfigs(t))
	}
}

// keepSecrets gives each connection that is accepted a copy of base, or of what choose returns, that leaves the secrets of its handshake in its cork.
func keepSecrets(base *tls.Config, choose func(*tls.ClientHelloInfo) (*tls.Config, error)) func(*tls.ClientHelloInfo) (*tls.Config, error) {
	return func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		cfg := base
		if choose != nil {
			if chosen, err := choose(hello); err != nil {
				return nil, err
			} else if chosen != nil {
				cfg = chosen
			}
		}
		under, ok := hello.Conn.(*cork)
		if !ok {
			return cfg, nil
		}
		cfg = cfg.Clone()
		cfg.KeyLogWriter = under.secrets.beside(cfg.KeyLogWriter)
		return cfg, nil
	}
}

// clientTLS is the configuration to dial addr by, whose handshake leaves its secrets in under.
func (s *Stack) clientTLS(addr string, under *cork) *tls.Config {
	cfg := s.tls.Load().Client.Clone()
	cfg.KeyLogWriter = under.secrets.beside(cfg.KeyLogWriter)
	if cfg.ServerName == "" {
		cfg.ServerName, _, _ = net.SplitHostPort(addr)
	}
	cfg.ClientSessionCache = peerSessions{cfg.ClientSessionCache, addr}
	return cfg
}

// peerSessions keeps apart the sessions of agents on one host, which crypto/tls would take for one server.
type peerSessions struct {
	tls.ClientSessionCache
	addr string
}

func (p peerSessions) Get(key string) (*tls.ClientSessionState, bool) {
	return p.ClientSessionCache.Get(p.addr + " " + key)
}

func (p peerSessions) Put(key string, cs *tls.ClientSessionState) {
	p.ClientSessionCache.Put(p.addr+" "+key, cs)
}
