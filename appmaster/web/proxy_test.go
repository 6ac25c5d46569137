package web

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
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

// TestProxyAlone lets nobody in by who runs a process on this host: that may be another application's, or the proxy itself.
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
	if c, ok := s.who(r); ok {
		t.Errorf("our own browser is let in as %+v", c)
	}
	r.AddCookie(&http.Cookie{Name: proxyCookie, Value: "eve"})
	if c, ok := s.who(r); ok {
		t.Errorf("eve is let in as %+v", c)
	}
	s.cfg.Proxy = nil
	r.Header.Del("Cookie")
	if _, ok := s.who(r); !ok {
		t.Error("our own browser is not let in where there is no proxy")
	}
}

// TestProxyMoves follows the proxy to another address, and keeps that of one whose name can't be resolved for a while.
func TestProxyMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := map[string]string{"rm1": "10.0.0.1", "rm2": "10.0.0.2"}
		p := &Proxy{Hosts: []string{"rm1", "rm2"}, View: func(string) bool { return true }, Modify: func(string) bool { return false },
			Lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
				if at[host] == "" {
					return nil, errors.New("no such host")
				}
				return []netip.Addr{netip.MustParseAddr(at[host])}, nil
			}}
		want := func(from string, want bool) {
			t.Helper()
			r := httptest.NewRequest(http.MethodGet, "/api/job", nil)
			r.RemoteAddr = from + ":1"
			r.AddCookie(&http.Cookie{Name: proxyCookie, Value: "bob"})
			if _, ok := p.caller(r); ok != want {
				t.Errorf("from %s: %v", from, ok)
			}
		}
		want("10.0.0.1", true)
		want("10.0.0.2", true)
		want("::ffff:10.0.0.2", false) // no address of a connection is written so without brackets
		at["rm1"] = "10.0.0.9"
		want("10.0.0.9", false) // it was looked for a moment ago
		time.Sleep(resolveAgain)
		want("10.0.0.9", true)
		want("10.0.0.1", false)
		at["rm2"] = ""
		time.Sleep(resolveEvery)
		want("10.0.0.2", true)
		want("10.0.0.3", false)
	})
}

// TestForeignOrigin refuses what a browser sends through the proxy for a page of another site, whatever it knows.
func TestForeignOrigin(t *testing.T) {
	all := func(string) bool { return true }
	p := &Proxy{Hosts: []string{"rm1.example.com"}, Pages: []string{"rm1.example.com:8088", "rm1.example.com:443"}, Origins: []string{"https://knox.example.com:8443"},
		View: all, Modify: all,
		Lookup: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil
		},
		Reverse: func(_ context.Context, addr string) ([]string, error) {
			return map[string][]string{"192.0.2.1": {"master.example.net."}}[addr], nil
		}}
	s, err := New(Config{Token: "t", Proxy: p})
	if err != nil {
		t.Fatal(err)
	}
	s.view = view{&appmaster.Snapshot{State: "running"}, make(chan string, 100)}
	for _, x := range []struct {
		key, value string
		code       int
	}{
		{"", "", 202},
		{"Origin", "http://rm1.example.com:8088", 202}, {"Origin", "http://RM1:8088", 202}, {"Origin", "https://rm1.example.com", 202},
		{"Origin", "http://192.0.2.1:8088", 202}, {"Origin", "http://master.example.net:8088", 202}, {"Origin", "https://knox.example.com:8443", 202},
		{"Origin", "http://evil.example", 403}, {"Origin", "null", 403}, {"Origin", "http://rm1.example.com:9999", 403}, {"Origin", "http://rm1.example.com.evil.example:8088", 403},
		{"Origin", "http://rm1.example.com:8088@evil.example", 403}, {"Origin", "ftp://rm1.example.com:8088", 403}, {"Origin", "http://192.0.2.2:8088", 403},
		{"Origin", "http://rm1.example.com:8088/", 403}, {"Origin", "%zz", 403}, {"Origin", "http://", 403}, {"Origin", "https://knox.example.com", 403},
		{"Sec-Fetch-Site", "same-origin", 202}, {"Sec-Fetch-Site", "none", 202}, {"Sec-Fetch-Site", "same-site", 403}, {"Sec-Fetch-Site", "cross-site", 403},
	} {
		for method, path := range map[string]string{http.MethodPut: "/api/job/cancel", http.MethodGet: "/api/session"} {
			r := httptest.NewRequest(method, path, strings.NewReader(`{"token":"`+s.actionToken("bob")+`"}`))
			r.RemoteAddr = "192.0.2.1:1"
			r.AddCookie(&http.Cookie{Name: proxyCookie, Value: "bob"})
			if x.key != "" {
				r.Header.Set(x.key, x.value)
			}
			w := httptest.NewRecorder()
			s.handler().ServeHTTP(w, r)
			if ok := w.Code < 300; ok != (x.code < 300) || !ok && w.Code != x.code {
				t.Errorf("%s with %s %s: %d, want %d: %s", method, x.key, x.value, w.Code, x.code, w.Body)
			}
		}
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = "192.0.2.1:1"
	r.AddCookie(&http.Cookie{Name: proxyCookie, Value: "bob"})
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	r.Header.Set("Sec-Fetch-Mode", "navigate")
	w := httptest.NewRecorder()
	if s.handler().ServeHTTP(w, r); w.Code != 200 {
		t.Errorf("a link to the dashboard: %d", w.Code)
	}
}
