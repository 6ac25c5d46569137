package pki

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"strings"
	"testing"
)

type app struct {
	authority *Authority
	master    Leaf
	agent     Leaf
}

func newApp(t *testing.T, name string) app {
	t.Helper()
	a, err := NewAuthority(name)
	if err != nil {
		t.Fatal(err)
	}
	m, err := a.Master()
	if err != nil {
		t.Fatal(err)
	}
	l, err := a.Agent(Name{App: name, Agent: "agent-1", Container: "c-1"})
	if err != nil {
		t.Fatal(err)
	}
	return app{a, m, l}
}

func must(t *testing.T) func(*tls.Config, error) *tls.Config {
	return func(c *tls.Config, err error) *tls.Config {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
}

// shake runs a handshake over a pipe and returns both sides' errors.
func shake(server, client *tls.Config) (state tls.ConnectionState, serverErr, clientErr error) {
	a, b := net.Pipe()
	s, c := tls.Server(a, server), tls.Client(b, client)
	done := make(chan error, 1)
	go func() {
		err := s.Handshake()
		if err == nil {
			_, err = s.Write([]byte{1})
		}
		a.Close()
		done <- err
	}()
	clientErr = c.Handshake()
	if clientErr == nil { // in TLS 1.3 a refused client certificate shows at the first read
		_, clientErr = io.ReadFull(c, make([]byte, 1))
	}
	b.Close()
	serverErr = <-done
	return s.ConnectionState(), serverErr, clientErr
}

func TestHandshakes(t *testing.T) {
	ours, theirs := newApp(t, "ours"), newApp(t, "theirs")
	ca, otherCA := ours.authority.CertPEM(), theirs.authority.CertPEM()
	server := must(t)(ours.authority.MasterTLS())
	exServer, exClient, err := ExchangeTLS(ours.agent, ca)
	if err != nil {
		t.Fatal(err)
	}
	noCert := must(t)(AgentTLS(ours.agent, ca)).Clone()
	noCert.Certificates = nil
	tls12 := must(t)(AgentTLS(ours.agent, ca)).Clone()
	tls12.MinVersion, tls12.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	for _, c := range []struct {
		name           string
		server, client *tls.Config
		ok             bool
	}{
		{"agent to master", server, must(t)(AgentTLS(ours.agent, ca)), true},
		{"agent to agent", exServer, exClient, true},
		{"no certificate", server, noCert, false},
		{"TLS 1.2", server, tls12, false},
		{"agent of another application", server, must(t)(AgentTLS(theirs.agent, ca)), false},
		{"master of another application", server, must(t)(AgentTLS(ours.agent, otherCA)), false},
		{"an agent posing as master", exServer, must(t)(AgentTLS(ours.agent, ca)), false},
		{"the master's certificate posing as client", server, must(t)(AgentTLS(ours.master, ca)), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			state, serverErr, clientErr := shake(c.server, c.client)
			if ok := serverErr == nil && clientErr == nil; ok != c.ok {
				t.Fatalf("handshake: server %v, client %v; want success %v", serverErr, clientErr, c.ok)
			}
			if c.ok {
				if n, err := NameOf(state.PeerCertificates[0]); err != nil || n != (Name{App: "ours", Agent: "agent-1", Container: "c-1"}) {
					t.Errorf("NameOf = %+v, %v; want agent-1", n, err)
				}
			}
		})
	}
}

func TestNames(t *testing.T) {
	a := newApp(t, "x")
	parse := func(l Leaf) *x509.Certificate {
		c, err := l.Parse()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, n := range []Name{
		{"application_1410901177871_0001", 1, "agent-5", "container_e17_1410901177871_0001_01_000005"},
		{"heddle-17/é", 1<<32 - 1, "a b/c:d%20?é#", "x//y"}, {"x", 0, "a", ""},
	} {
		l, err := a.authority.Agent(n)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := NameOf(parse(l)); err != nil || got != n {
			t.Errorf("NameOf = %+v, %v; want %+v", got, err, n)
		}
	}
	if _, err := NameOf(parse(a.master)); err == nil || !strings.Contains(err.Error(), "names no agent") {
		t.Errorf("NameOf(master) = %v; want an error", err)
	}
	if _, err := a.authority.Agent(Name{}); err == nil {
		t.Error("an agent without id got a certificate")
	}
	for _, text := range []string{"", "agent-1", "app/0/c/", "app/x/c/a", "app/0/c/a/b", "app/0/%zz/a", "app/-1/c/a", "app/4294967296/c/a"} {
		if n, err := parseName(text); err == nil {
			t.Errorf("%q is taken for %+v", text, n)
		}
	}
}

// FuzzName must not panic, and what it reads has one form.
func FuzzName(f *testing.F) {
	f.Add("app/0/c/agent-1")
	f.Add("a%2Fb/4294967295//%20")
	f.Fuzz(func(t *testing.T, text string) {
		n, err := parseName(text)
		if err != nil {
			return
		}
		if again, err := parseName(n.uri().Opaque); err != nil || again != n {
			t.Errorf("%q: %+v, then %+v, %v", text, n, again, err)
		}
	})
}

func TestExchangeKey(t *testing.T) {
	a, b := NewExchangeKey(), NewExchangeKey()
	if len(a) != ExchangeKeySize || string(a) == string(b) {
		t.Errorf("keys %x and %x: want %d different bytes", a, b, ExchangeKeySize)
	}
}
