package netstack

import (
	"crypto/tls"
	"net"
)

// sessions is how many peers' TLS sessions a stack remembers, to resume them.
const sessions = 1024

// tlsConfigs are a stack's own copies of its TLS configuration: one for all connections, since
// tickets can only be resumed by the configuration that issued them.
func tlsConfigs(t *TLS) (server, client *tls.Config) {
	server, client = t.Server.Clone(), t.Client.Clone()
	server.DynamicRecordSizingDisabled, client.DynamicRecordSizingDisabled = true, true
	if client.ClientSessionCache == nil {
		client.ClientSessionCache = tls.NewLRUClientSessionCache(sessions)
	}
	return server, client
}

// clientTLS is the configuration to dial addr by.
func (s *Stack) clientTLS(addr string) *tls.Config {
	cfg := s.tlsClient.Clone()
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
