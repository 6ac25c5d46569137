package agent_test

import (
	"context"
	"crypto/tls"
	"testing"

	"github.com/heddle-stream/heddle/agent"
	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
	"github.com/heddle-stream/heddle/internal/ctl/pki"
	"github.com/heddle-stream/heddle/internal/testjob"
)

// TestCertificate gives an agent a new certificate: its session goes on, the connections that its exchange accepts from then on see the new one, and so does the
// master when the agent comes back. One of another agent, and one that is none, change nothing.
func TestCertificate(t *testing.T) {
	m := newMaster(t)
	job := wordCount(words(1, 1), &testjob.Sink[count]{})
	ctx, cancel := context.WithCancel(t.Context())
	wait := m.start(ctx, t, "agent-1", job, compile(t, job, 1), func(c *agent.Config) { c.ExchangeTLS = true })
	m.await(t, "registration", func() bool { return m.sessions["agent-1"] != nil })
	addr := m.sessions["agent-1"].reg.GetExchangeAddr()
	first := shown(t, m, addr)
	give := func(leaf pki.Leaf) {
		m.order("agent-1", &ctlpb.FromMaster{M: &ctlpb.FromMaster_Certificate{Certificate: &ctlpb.Certificate{
			Cert: string(leaf.Cert), Key: string(leaf.Key), Authority: string(m.authority.CertPEM())}}})
	}
	leafOf := func(id string, change func(*pki.Leaf)) pki.Leaf {
		s := m.secrets(t, id)
		leaf := s.Leaf()
		change(&leaf)
		return leaf
	}
	keep := func(*pki.Leaf) {}
	give(leafOf("agent-2", keep))
	give(leafOf("agent-1", func(l *pki.Leaf) { l.Key = nil }))
	give(leafOf("agent-1", func(l *pki.Leaf) { l.Cert = []byte("x") }))
	next := leafOf("agent-1", keep)
	cert, err := next.Parse()
	if err != nil {
		t.Fatal(err)
	}
	give(next)
	m.await(t, "word of the new certificate", func() bool { return m.beats["agent-1"].GetCertificateEnds() == cert.NotAfter.Unix() })
	if now := shown(t, m, addr); now == first || now != cert.SerialNumber.String() {
		t.Errorf("its exchange shows %s, was %s, want %s", now, first, cert.SerialNumber)
	}
	if m.joins != 1 {
		t.Errorf("it joined %d times", m.joins)
	}
	close(m.sessions["agent-1"].kick)
	m.await(t, "its return", func() bool { return m.joins == 2 })
	if m.serial != cert.SerialNumber.String() {
		t.Errorf("it came back with %s, want %s", m.serial, cert.SerialNumber)
	}
	cancel()
	_ = wait()
}

// shown is the number of the certificate that an exchange shows.
func shown(t *testing.T, m *master, addr string) string {
	t.Helper()
	s := m.secrets(t, "agent-9")
	_, client, err := pki.ExchangeTLS(s.Leaf(), []byte(s.CA))
	if err != nil {
		t.Fatal(err)
	}
	c, err := tls.Dial("tcp", addr, client)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0].SerialNumber.String()
}
