package appmaster

import (
	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
)

// tokens are the latest that agents were given for services outside the application.
type tokens struct {
	version     uint64 // 0: those they started with
	credentials []byte
}

// renew hands fresh tokens to all agents.
func (m *master) renew(fresh []byte, open bool) {
	if !open {
		m.cfg.Tokens = nil // nobody sends any more
		return
	}
	m.tokens = tokens{m.tokens.version + 1, fresh}
	n := 0
	for _, a := range m.agents {
		if a.session != nil && a.session.accepted {
			m.handTokens(a)
			n++
		}
	}
	m.log.Info("handed fresh tokens to the agents", "version", m.tokens.version, "agents", n)
}

// handTokens gives the latest tokens to an agent that may have older ones.
func (m *master) handTokens(a *agentRecord) {
	if m.tokens.version == 0 {
		return
	}
	a.session.send(&ctlpb.FromMaster{M: &ctlpb.FromMaster_Tokens{Tokens: &ctlpb.Tokens{Version: m.tokens.version, Credentials: m.tokens.credentials}}})
}

// tookTokens notes which tokens an agent says it has.
func (m *master) tookTokens(a *agentRecord, agent string, version uint64) {
	if version > a.tokens {
		m.log.Debug("an agent uses fresh tokens", "agent", agent, "version", version)
	}
	a.tokens = version
}
