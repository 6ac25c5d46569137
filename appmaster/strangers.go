package appmaster

import (
	"net"
	"time"
)

// strangers are the hosts of peers that could not prove to be agents, and agents that were refused, and when the log last said so: once a host and strangerPause,
// of maxStrangers hosts at most.
type strangers map[string]time.Time

const (
	strangerPause = 10 * time.Minute
	maxStrangers  = 20
)

// seen reports whether the log should tell of a host.
func (s strangers) seen(host string, now time.Time) bool {
	for h, at := range s {
		if now.Sub(at) >= strangerPause {
			delete(s, h)
		}
	}
	if _, told := s[host]; told || len(s) >= maxStrangers {
		return false
	}
	s[host] = now
	return true
}

func hostOf(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	return host
}

// stranger hears of a peer whose handshake failed: an agent with the secrets of another application, or something else altogether.
// Goroutines of the server call it.
func (m *master) stranger(peer net.Addr, err error) { m.strange(peer.String(), err) }

func (m *master) strange(peer string, err error) {
	m.post(func() {
		if m.strangers.seen(hostOf(peer), time.Now()) {
			m.log.Warn("somebody connected who could not prove to be an agent of this application: with the secrets of another one, perhaps",
				"peer", peer, "err", err)
		}
	})
}
