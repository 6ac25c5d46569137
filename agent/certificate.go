package agent

import (
	"fmt"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl"
	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
	"github.com/heddle-stream/heddle/internal/ctl/pki"
	"github.com/heddle-stream/heddle/netstack"
)

// recertify takes a new certificate in the place of the one that comes to its end: connections that begin from now on show it, those that are
// open go on. One that can't be used leaves the old one in place, which the master sees.
func (a *agent) recertify(c *ctlpb.Certificate) {
	ends, err := a.useCertificate(c)
	if err != nil {
		a.cfg.Logger.Error("cannot use the new certificate of the ApplicationMaster", "err", err)
		return
	}
	a.certEnds = ends
	a.cfg.Logger.Info("took a new certificate")
}

func (a *agent) useCertificate(c *ctlpb.Certificate) (ends int64, err error) {
	leaf := pki.Leaf{Cert: []byte(c.GetCert()), Key: []byte(c.GetKey())}
	if ends, err = checkLeaf(leaf, a.cfg.Secrets.AgentID); err != nil {
		return 0, err
	}
	server, client, err := pki.ExchangeTLS(leaf, []byte(c.GetAuthority()))
	if err != nil {
		return 0, err
	}
	if a.cfg.ExchangeTLS {
		a.stack.SetTLS(&netstack.TLS{Server: server, Client: client})
	}
	replaceLeaf(&a.cfg.Secrets, c)
	return ends, nil
}

// checkLeaf returns when a certificate ends that is this agent's.
func checkLeaf(leaf pki.Leaf, id cluster.AgentID) (ends int64, err error) {
	cert, err := leaf.Parse()
	if err != nil {
		return 0, err
	}
	name, err := pki.NameOf(cert)
	if err != nil {
		return 0, err
	}
	if name.Agent != id {
		return 0, fmt.Errorf("it is made out to %s", name.Agent)
	}
	return cert.NotAfter.Unix(), nil
}

func replaceLeaf(s *ctl.AgentSecrets, c *ctlpb.Certificate) {
	s.Cert, s.Key, s.CA = c.GetCert(), c.GetKey(), c.GetAuthority()
}
