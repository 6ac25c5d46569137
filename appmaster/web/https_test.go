package web

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
)

// pair makes a certificate as YARN's proxy makes them: without a host, and ended when it begins; its own one, if parent is nil.
func pair(t *testing.T, name string, parent *tls.Certificate) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	c := &x509.Certificate{Subject: pkix.Name{CommonName: name}, SerialNumber: big.NewInt(now.UnixNano()), NotBefore: now, NotAfter: now, BasicConstraintsValid: true}
	out, signer := &tls.Certificate{PrivateKey: key}, any(key)
	by := c
	if parent == nil {
		c.IsCA, c.NotAfter = true, now.Add(time.Hour)
	} else {
		by, signer = parent.Leaf, parent.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, c, by, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	if out.Leaf, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	out.Certificate = [][]byte{der}
	if parent != nil {
		out.Certificate = append(out.Certificate, parent.Certificate[0])
	}
	return out
}

// encrypted is a server that speaks HTTPS.
type encrypted struct {
	addr    string
	proxy   *tls.Certificate // what YARN's proxy has
	cancels chan string
}

func serveHTTPS(t *testing.T) *encrypted {
	t.Helper()
	x := &encrypted{proxy: pair(t, "YARN", nil), cancels: make(chan string, 10)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	is := func(name string) func(string) bool { return func(user string) bool { return user == name } }
	s, err := New(Config{Listener: l, Token: token, Certificate: pair(t, "application_1_1", x.proxy),
		Proxy: &Proxy{Hosts: []string{"127.0.0.1"}, Certificates: []*x509.Certificate{pair(t, "former", nil).Leaf, x.proxy.Leaf}, View: is("bob"), Modify: is("alice")},
		Ticket: func(id []byte) (Ticket, error) {
			return Ticket{User: string(id), Password: []byte("of " + string(id))}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	at, err := s.Start(view{&appmaster.Snapshot{State: "running"}, x.cancels})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(at, "https://127.0.0.1:") {
		t.Errorf("it is at %s", at)
	}
	x.addr = l.Addr().String()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return x
}

// ask sends a request and returns its answer's code, text and what a proof's check says.
func ask(t *testing.T, by *http.Transport, req *http.Request, check func(*http.Response) error) (int, string, error) {
	t.Helper()
	defer by.CloseIdleConnections()
	resp, err := by.RoundTrip(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if check == nil {
		return resp.StatusCode, string(body), nil
	}
	return resp.StatusCode, string(body), check(resp)
}

func request(t *testing.T, method, address string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestProxyByCertificate: what YARN's proxy says counts with its certificate, and wherever it sends from without.
func TestProxyByCertificate(t *testing.T) {
	x := serveHTTPS(t)
	for name, c := range map[string]struct {
		shows *tls.Certificate
		user  string
		code  int
	}{
		"the proxy, for who may look":     {x.proxy, "bob", 200},
		"the proxy, for who may not":      {x.proxy, "carol", 401},
		"the proxy, for nobody":           {x.proxy, "", 401},
		"without a certificate":           {nil, "bob", 401},
		"another authority":               {pair(t, "YARN", nil), "bob", 401},
		"one that the proxy's has signed": {pair(t, "application_1_2", x.proxy), "bob", 401},
	} {
		cfg := &tls.Config{InsecureSkipVerify: true} // nothing but the server's side is looked at
		if c.shows != nil {
			cfg.Certificates = []tls.Certificate{*c.shows}
		}
		r := request(t, "GET", "https://"+x.addr+"/api/job")
		if c.user != "" {
			r.AddCookie(&http.Cookie{Name: proxyCookie, Value: c.user})
		}
		if code, text, err := ask(t, &http.Transport{TLSClientConfig: cfg}, r, nil); err != nil || code != c.code {
			t.Errorf("%s: %d %s, %v; want %d", name, code, text, err, c.code)
		}
	}
	stolen := tls.Certificate{Certificate: x.proxy.Certificate, PrivateKey: pair(t, "thief", nil).PrivateKey}
	r := request(t, "GET", "https://"+x.addr+"/api/job")
	r.AddCookie(&http.Cookie{Name: proxyCookie, Value: "alice"})
	if code, text, err := ask(t, &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{stolen}}}, r, nil); err == nil {
		t.Errorf("the proxy's certificate without its key: %d %s", code, text)
	}
	r = request(t, "GET", "http://"+x.addr+"/api/job")
	r.AddCookie(&http.Cookie{Name: proxyCookie, Value: "alice"})
	if code, text, err := ask(t, &http.Transport{}, r, nil); err != nil || code != 400 || !strings.Contains(text, "HTTP request to an HTTPS server") {
		t.Errorf("in clear: %d %s, %v", code, text, err)
	}
}

// TestChannel: who has the secret asks, whatever the certificate, and knows who answers.
func TestChannel(t *testing.T) {
	x := serveHTTPS(t)
	ch, err := Meet(t.Context(), x.addr)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		by           Secret
		channel      *Channel
		method, path string
		code         int
		answers      bool
	}{
		"the token":                {ByToken(token), ch, "GET", "/api/job", 200, true},
		"the token acts":           {ByToken(token), ch, "PUT", "/api/job/cancel", 202, true},
		"a ticket":                 {ByTicket([]byte("bob"), []byte("of bob")), ch, "GET", "/api/job", 200, true},
		"a ticket acts":            {ByTicket([]byte("bob"), []byte("of bob")), ch, "PUT", "/api/job/cancel", 403, true},
		"another token":            {ByToken("guess"), ch, "GET", "/api/job", 401, false},
		"another's password":       {ByTicket([]byte("alice"), []byte("of bob")), ch, "GET", "/api/job", 401, false},
		"bound to no channel":      {ByToken(token), nil, "GET", "/api/job", 401, true},
		"bound to another channel": {ByToken(token), &Channel{}, "GET", "/api/job", 401, false},
	} {
		r := request(t, c.method, "https://"+x.addr+c.path)
		check := c.by.Prove(r, nil, c.channel)
		code, text, err := ask(t, &http.Transport{TLSClientConfig: ch.TLS()}, r, check)
		if code != c.code || (err == nil) != c.answers {
			t.Errorf("%s: %d %s, want %d; the answer's proof: %v", name, code, text, c.code, err)
		}
	}
	r := request(t, "GET", "https://"+x.addr+"/api/job")
	r.Header.Set("Authorization", "Bearer "+token)
	if code, text, err := ask(t, &http.Transport{TLSClientConfig: ch.TLS()}, r, nil); err != nil || code != 200 {
		t.Errorf("a bearer: %d %s, %v", code, text, err)
	}
}

// TestBetween: who stands between caller and server, with a certificate of its own, gets nothing from the server by what the caller sends, and can't answer in its place.
func TestBetween(t *testing.T) {
	x := serveHTTPS(t)
	server, err := Meet(t.Context(), x.addr)
	if err != nil {
		t.Fatal(err)
	}
	behind := &httputil.ReverseProxy{Transport: &http.Transport{TLSClientConfig: server.TLS()}, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "https", Host: x.addr}) }}
	t.Cleanup(behind.Transport.(*http.Transport).CloseIdleConnections)
	lie := false
	between := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if lie {
			_, _ = w.Write([]byte(`{"state":"finished"}`))
			return
		}
		behind.ServeHTTP(w, r)
	}))
	t.Cleanup(between.Close)
	met, err := Meet(t.Context(), between.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, lies := range []bool{false, true} {
		lie = lies
		r := request(t, "GET", between.URL+"/api/job")
		check := ByToken(token).Prove(r, nil, met)
		code, text, err := ask(t, &http.Transport{TLSClientConfig: met.TLS()}, r, check)
		if err == nil || !strings.Contains(err.Error(), "is not the ApplicationMaster") || !lies && (code != 401 || strings.Contains(text, "running")) {
			t.Errorf("lies: %v; %d %s, %v", lies, code, text, err)
		}
	}
	if _, _, err := ask(t, &http.Transport{TLSClientConfig: server.TLS()}, request(t, "GET", between.URL+"/"), nil); err == nil || !strings.Contains(err.Error(), "another server answers") {
		t.Errorf("another certificate than before: %v", err)
	}
}

// TestMeet tells who does not speak TLS from who does not answer.
func TestMeet(t *testing.T) {
	url, _ := serve(t)
	if _, err := Meet(t.Context(), strings.Trim(strings.TrimPrefix(url, "http://"), "/")); !errors.Is(err, ErrPlain) {
		t.Errorf("a server of HTTP: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if _, err := Meet(t.Context(), l.Addr().String()); err == nil || errors.Is(err, ErrPlain) {
		t.Errorf("nobody: %v", err)
	}
	for _, c := range []*tls.Certificate{{}, {Certificate: [][]byte{{1}}}} {
		if _, err := New(Config{Token: token, Certificate: c}); err == nil || !strings.Contains(err.Error(), "no certificate, or no key") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
