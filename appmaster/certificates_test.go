package appmaster

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl"
	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
	"github.com/heddle-stream/heddle/internal/ctl/pki"
)

// certifier is a master that looks after certificates, with one agent that has a session.
func certifier(t *testing.T, life time.Duration) (*master, *agentRecord) {
	t.Helper()
	keys, err := NewKeys("app-1")
	if err != nil {
		t.Fatal(err)
	}
	keys.authority.SetLife(life)
	m := &master{cfg: Config{App: "app-1", Attempt: 1, Keys: keys}, log: slog.New(slog.DiscardHandler), agents: map[cluster.AgentID]*agentRecord{}, strangers: strangers{}}
	a := &agentRecord{session: newSession("agent-1"), container: "c-1"}
	a.session.accepted = true
	a.session.peer = ctl.Peer{Name: m.nameOf("agent-1", "c-1"), Ends: time.Now().Add(life)}
	m.agents["agent-1"] = a
	m.firstCertificate(a)
	return m, a
}

// taken are the certificates that an agent was sent since.
func taken(a *agentRecord) (out []*ctlpb.Certificate) {
	queue, _, _ := a.session.take()
	for _, m := range queue {
		if c := m.GetCertificate(); c != nil {
			out = append(out, c)
		}
	}
	return out
}

// TestCertificates lets a day pass: an agent gets a certificate of its own name when half of the life of the one before is over, one that
// it does not say to use comes again, and never two in a while.
func TestCertificates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const life = 2 * time.Hour
		m, a := certifier(t, life)
		began, last, heard := time.Now(), time.Now().Add(life), true
		for time.Since(began) < 24*time.Hour {
			time.Sleep(time.Minute)
			deaf := time.Since(began) > 12*time.Hour && time.Since(began) < 14*time.Hour
			m.certify(time.Now())
			for _, c := range taken(a) {
				leaf := pki.Leaf{Cert: []byte(c.GetCert()), Key: []byte(c.GetKey())}
				cert, err := leaf.Parse()
				if err != nil {
					t.Fatal(err)
				}
				if n, err := pki.NameOf(cert); err != nil || n != m.nameOf("agent-1", "c-1") {
					t.Errorf("it is made out to %+v, %v", n, err)
				}
				if _, err := pki.AgentTLS(leaf, []byte(c.GetAuthority())); err != nil {
					t.Error(err)
				}
				if left := time.Until(last); heard && (left > life*9/16+time.Minute || left < life/4) {
					t.Errorf("at %v it comes when the last one is good for %v", time.Since(began), left)
				}
				if last, heard = cert.NotAfter, !deaf; heard {
					m.tookCertificate(a, cert.NotAfter.Unix())
				}
			}
			if left := time.Until(last); left < life/4 {
				t.Fatalf("at %v the last one is good for %v only", time.Since(began), left)
			}
		}
	})
}

// TestFormer gives an agent of an earlier attempt a certificate of this one at once.
func TestFormer(t *testing.T) {
	m, a := certifier(t, time.Hour)
	a.session.peer.Attempt = 0
	m.firstCertificate(a)
	m.certify(time.Now())
	if got := taken(a); len(got) != 1 {
		t.Errorf("it got %d", len(got))
	}
	m.certify(time.Now())
	if got := taken(a); len(got) != 0 {
		t.Errorf("at once it got %d more", len(got))
	}
}

// TestImpostors holds who may register by which certificate.
func TestImpostors(t *testing.T) {
	m, a := certifier(t, time.Hour)
	good := a.session.peer
	for name, c := range map[string]struct {
		edit    func(*ctl.Peer)
		attempt uint32
		joined  bool
		ok      bool
	}{
		"itself":                              {func(*ctl.Peer) {}, 1, false, true},
		"another application's":               {func(p *ctl.Peer) { p.App = "app-2" }, 1, false, false},
		"another container":                   {func(p *ctl.Peer) { p.Container = "c-0" }, 1, false, false},
		"of an earlier attempt":               {func(p *ctl.Peer) { p.Attempt = 0 }, 0, false, true}, // the slot manager judges it
		"an earlier attempt's says this one":  {func(p *ctl.Peer) { p.Attempt = 0 }, 1, false, false},
		"back, before its new certificate":    {func(p *ctl.Peer) { p.Attempt = 0 }, 1, true, true},
		"back, and says a later attempt":      {func(p *ctl.Peer) {}, 2, true, false},
		"says an earlier one than it was for": {func(p *ctl.Peer) {}, 0, true, false},
		"unknown":                             {func(p *ctl.Peer) { p.Agent = "agent-7" }, 1, false, true},
	} {
		s := newSession("agent-1")
		s.peer = good
		c.edit(&s.peer)
		s.agent = s.peer.Agent
		a.joined = time.Time{}
		if c.joined {
			a.joined = time.Now()
		}
		if why := m.impostor(s, c.attempt); (why == "") != c.ok {
			t.Errorf("%s: %q", name, why)
		}
	}
}
