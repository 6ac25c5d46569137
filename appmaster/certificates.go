package appmaster

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
	"github.com/heddle-stream/heddle/internal/ctl/pki"
)

// certificate is what the master knows of an agent's.
type certificate struct {
	due  time.Time // when it is to be replaced, or to be sent again
	sent int64     // when the one ends that was sent last, in seconds; 0: none was
}

// nameOf is whom the certificate of an agent is made out to.
func (m *master) nameOf(id cluster.AgentID, container cluster.ContainerID) pki.Name {
	return pki.Name{App: m.cfg.App, Attempt: m.cfg.Attempt, Agent: id, Container: container}
}

// impostor says why who registers is not the agent that the certificate was made for, or "".
func (m *master) impostor(s *session, attempt uint32) string {
	a := m.agents[s.agent]
	switch {
	case s.peer.App != m.cfg.App:
		return fmt.Sprintf("its certificate is of %s, this is %s", s.peer.App, m.cfg.App)
	case a == nil:
		return "" // the slot manager says so
	case s.peer.Container != a.container:
		return fmt.Sprintf("its certificate was made for container %s, and %s runs in %s", s.peer.Container, s.agent, a.container)
	case attempt != s.peer.Attempt && (a.joined.IsZero() || attempt != m.cfg.Attempt || s.peer.Attempt > attempt):
		return fmt.Sprintf("it says that attempt %d started it, and its certificate is of attempt %d", attempt, s.peer.Attempt)
	}
	return ""
}

// firstCertificate notes when the certificate that an agent came with is to be replaced: one of an earlier attempt now, so that it is this one's.
func (m *master) firstCertificate(a *agentRecord) {
	a.cert = certificate{due: m.renewal(a.session.peer.Ends)}
	if a.session.peer.Attempt != m.cfg.Attempt {
		a.cert.due = time.Time{}
	}
}

// renewal is when a certificate is to be replaced that ends then: when half of its life is over, a little earlier for some than for others.
func (m *master) renewal(ends time.Time) time.Time {
	life := m.cfg.Keys.authority.Life()
	if last := time.Now().Add(life); ends.After(last) {
		ends = last // lives were longer once
	}
	return ends.Add(-life/2 - time.Duration(rand.Int64N(int64(life/16)+1)))
}

// certify gives new certificates to agents whose own are due, over their sessions. Sessions and connections that began with the old ones go on.
func (m *master) certify(now time.Time) {
	if now.Sub(m.certified) < refresh && !m.certified.IsZero() {
		return
	}
	m.certified = now
	n := 0
	for id, a := range m.agents {
		if a.session == nil || !a.session.accepted || now.Before(a.cert.due) {
			continue
		}
		if err := m.sendCertificate(id, a, now); err != nil {
			m.log.Error("cannot give an agent a new certificate", "agent", id, "err", err)
			continue
		}
		n++
	}
	if n > 0 {
		m.log.Info("gave agents new certificates", "agents", n, "good-for", m.cfg.Keys.authority.Life())
	}
}

// sendCertificate gives an agent a new certificate. Until it says that it uses that, it will get another one.
func (m *master) sendCertificate(id cluster.AgentID, a *agentRecord, now time.Time) error {
	authority := m.cfg.Keys.authority
	a.cert.due = now.Add(max(refresh, authority.Life()/8))
	leaf, err := authority.Agent(m.nameOf(id, a.container))
	if err != nil {
		return err
	}
	cert, err := leaf.Parse()
	if err != nil {
		return err
	}
	a.cert.sent = cert.NotAfter.Unix()
	a.session.send(&ctlpb.FromMaster{M: &ctlpb.FromMaster_Certificate{Certificate: &ctlpb.Certificate{
		Cert: string(leaf.Cert), Key: string(leaf.Key), Authority: string(authority.CertPEM())}}})
	return nil
}

// tookCertificate notes what an agent says of the certificate that it uses.
func (m *master) tookCertificate(a *agentRecord, ends int64) {
	if a.cert.sent != 0 && ends == a.cert.sent {
		a.cert = certificate{due: m.renewal(time.Unix(ends, 0))}
	}
}
