package pki

import (
	"crypto/tls"
	"testing"
	"testing/synctest"
	"time"
)

// agentTLS is a new leaf of an agent, and how it dials.
func agentTLS(t *testing.T, a *Authority) (Leaf, *tls.Config) {
	t.Helper()
	l, err := a.Agent(Name{App: "x", Agent: "agent-1"})
	if err != nil {
		t.Fatal(err)
	}
	return l, must(t)(AgentTLS(l, a.CertPEM()))
}

func good(t *testing.T, server, client *tls.Config) bool {
	t.Helper()
	_, serverErr, clientErr := shake(server, client)
	return serverErr == nil && clientErr == nil
}

// TestLife lets years pass: a leaf is good for its life and no longer, the master's own is replaced by itself, and the authority's certificate
// is too, under the eyes of agents that know only the old one.
func TestLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, err := NewAuthority("x")
		if err != nil {
			t.Fatal(err)
		}
		a.SetLife(time.Hour)
		server := must(t)(a.MasterTLS())
		_, first := agentTLS(t, a)
		if !good(t, server, first) {
			t.Fatal("a new leaf is refused")
		}
		time.Sleep(59 * time.Minute)
		if !good(t, server, first) {
			t.Error("a leaf is refused before its end, or the master's own was not replaced")
		}
		time.Sleep(2 * time.Minute)
		if good(t, server, first) {
			t.Error("a leaf is accepted after its end")
		}
		was := a.CertPEM()
		for range 30 { // years in steps of a month, in which leaves are made
			_, dial := agentTLS(t, a)
			known := a.CertPEM()
			time.Sleep(30 * 24 * time.Hour)
			_, next := agentTLS(t, a)
			if good(t, server, dial) || !good(t, server, next) {
				t.Fatal("a leaf of a month ago is accepted, or a new one refused")
			}
			// Who was told of the authority a month ago knows the leaves of today, and the other way round.
			l, err := a.Agent(Name{App: "x", Agent: "agent-2"})
			if err != nil {
				t.Fatal(err)
			}
			s1, c1, err := ExchangeTLS(l, known)
			if err != nil {
				t.Fatal(err)
			}
			s2, c2, err := ExchangeTLS(l, a.CertPEM())
			if err != nil {
				t.Fatal(err)
			}
			if !good(t, s1, c2) || !good(t, s2, c1) {
				t.Fatal("agents that know the authority's certificate of different months refuse each other")
			}
		}
		if string(was) == string(a.CertPEM()) {
			t.Error("the authority's certificate is as old as the application")
		}
		data, err := a.MarshalPEM()
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * authorityLife) // a later attempt finds it ended
		b, err := ParseAuthority(data)
		if err != nil {
			t.Fatal(err)
		}
		_, dial := agentTLS(t, b)
		if !good(t, must(t)(b.MasterTLS()), dial) {
			t.Error("an authority that ended while nobody used it is not renewed")
		}
	})
}

// TestClocks holds what is said of clocks that differ.
func TestClocks(t *testing.T) {
	a := newApp(t, "x")
	for _, c := range []struct {
		off time.Duration
		ok  bool
	}{{-23 * time.Hour, true}, {-25 * time.Hour, false}, {DefaultLife / 2, true}, {DefaultLife + time.Minute, false}} {
		server := must(t)(serverTLS(a.master, a.authority.CertPEM()))
		server.Time = func() time.Time { return time.Now().Add(c.off) }
		_, dial := agentTLS(t, a.authority)
		if ok := good(t, server, dial); ok != c.ok {
			t.Errorf("a clock that is off by %v: %v, want %v", c.off, ok, c.ok)
		}
	}
}
