package web

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"testing"
	"time"
)

// TestProxy believes a user's name from the proxy's own host alone.
func TestProxy(t *testing.T) {
	p := &Proxy{Hosts: []string{"127.0.0.1"}, View: func(u string) bool { return u == "bob" }, Modify: func(u string) bool { return u == "alice" }}
	for _, x := range []struct {
		from, user string
		ok, modify bool
	}{
		{"127.0.0.1:1234", "alice", true, true}, {"127.0.0.1:1234", "bob", true, false}, {"127.0.0.1:1234", "eve", false, false},
		{"10.0.0.9:1234", "alice", false, false}, {"127.0.0.1:1234", "", false, false}, {"nonsense", "alice", false, false},
	} {
		r := httptest.NewRequest(http.MethodGet, "/api/job", nil)
		r.RemoteAddr = x.from
		if x.user != "" {
			r.AddCookie(&http.Cookie{Name: proxyCookie, Value: x.user})
		}
		c, ok := p.caller(r)
		if ok != x.ok || c.modify != x.modify {
			t.Errorf("%s from %s: %+v, %v", x.user, x.from, c, ok)
		}
	}
	var none *Proxy
	if _, ok := none.caller(httptest.NewRequest(http.MethodGet, "/", nil)); ok {
		t.Error("no proxy vouches for somebody")
	}
}

// TestLinger stays until who waits has seen the end, and not for anybody else.
func TestLinger(t *testing.T) {
	a := &attachment{saw: make(chan struct{})}
	ask := func(target, state string) { a.note(httptest.NewRequest(http.MethodGet, target, nil), state) }
	within := func(what string, limit time.Duration) {
		t.Helper()
		start := time.Now()
		a.linger(context.Background())
		if d := time.Since(start); d > limit {
			t.Errorf("%s: stayed for %v", what, d)
		}
	}
	ask("/api/job", "running")
	within("nobody waits", lingerFor/2)
	ask("/api/job?attached", "running")
	done := make(chan struct{})
	go func() { a.linger(context.Background()); close(done) }()
	ask("/api/job?attached", "finished")
	ask("/api/job?attached", "finished")
	<-done
	within("the end was seen", lingerFor/2)
}

// TestProxyAlone lets nobody in by who runs the proxy when that says who asks.
func TestProxyAlone(t *testing.T) {
	nobody := func(string) bool { return false }
	s, err := New(Config{Token: "t", Proxy: &Proxy{Hosts: []string{"127.0.0.1"}, View: nobody, Modify: nobody},
		Owner: func(_, _ netip.AddrPort) (int, bool) { return os.Getuid(), true }})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:80/api/job", nil)
	r.RemoteAddr = "127.0.0.1:1234"
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:80"))))
	if _, ok := s.who(r); !ok {
		t.Error("our own browser is not let in")
	}
	r.AddCookie(&http.Cookie{Name: proxyCookie, Value: "eve"})
	if c, ok := s.who(r); ok {
		t.Errorf("eve is let in as %+v", c)
	}
}
