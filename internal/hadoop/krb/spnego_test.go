package krb_test

import (
	"context"
	"encoding/asn1"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/heddle-stream/heddle/internal/hadoop/krb"
)

// site is a web server that demands SPNEGO as Hadoop does.
type site struct {
	w *world

	mu        sync.Mutex
	cookie    string // the one that is good
	proofs    int
	noProof   bool   // it does not prove itself
	impostor  bool   // it proves another request
	last      string // an answer to an earlier request
	forbidden bool   // an old cookie is answered by 403
	bodies    []string
}

func (s *site) ServeHTTP(rw http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(req.Body)
	if c := req.Header.Get("Cookie"); c != "" && s.cookie != "" && c == `hadoop.auth="`+s.cookie+`"` {
		s.bodies = append(s.bodies, string(body))
		_, _ = io.WriteString(rw, "by cookie")
		return
	} else if c != "" && s.forbidden {
		http.SetCookie(rw, &http.Cookie{Name: "hadoop.auth", Value: ""})
		rw.WriteHeader(http.StatusForbidden)
		return
	}
	token, ok := strings.CutPrefix(req.Header.Get("Authorization"), "Negotiate ")
	if !ok {
		rw.Header().Add("WWW-Authenticate", "Basic realm=x, Negotiate")
		rw.WriteHeader(http.StatusUnauthorized)
		return
	}
	raw, err := base64.StdEncoding.DecodeString(token)
	if err != nil {
		s.w.t.Error(err)
	}
	// The token of Kerberos's is the last part of SPNEGO's.
	at := strings.LastIndex(string(raw), "\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02\x01\x00")
	inner := raw[at:]
	_, answer, err := s.w.realm.Accept("HTTP/127.0.0.1", wrapToken(inner), 18)
	if err != nil {
		rw.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(rw, err.Error())
		return
	}
	s.proofs++
	resp, err := asn1.MarshalWithParams(struct {
		State asn1.Enumerated `asn1:"explicit,tag:0"`
		Token []byte          `asn1:"explicit,tag:2"`
	}{0, answer}, "explicit,tag:1")
	if err != nil {
		s.w.t.Error(err)
	}
	proof := base64.StdEncoding.EncodeToString(resp)
	if s.impostor {
		proof, s.last = s.last, proof
	}
	if !s.noProof {
		rw.Header().Set("WWW-Authenticate", "Negotiate "+proof)
	}
	s.cookie = "u=alice&s=sig/na+ture="
	rw.Header().Set("Set-Cookie", `hadoop.auth="`+s.cookie+`"; Path=/; HttpOnly`)
	s.bodies = append(s.bodies, string(body))
	_, _ = io.WriteString(rw, "by ticket")
}

// wrapToken frames what is left of a token.
func wrapToken(b []byte) []byte {
	n := len(b)
	return append([]byte{0x60, 0x82, byte(n >> 8), byte(n)}, b...)
}

func newSite(t *testing.T) (*site, *http.Client, string) {
	w := newWorld(t)
	w.realm.Add("HTTP/127.0.0.1", 18)
	s := &site{w: w}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	l := w.open(krb.Config{Keytab: w.keytab(0, "alice")})
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	return s, &http.Client{Transport: &krb.Transport{Base: base, Login: l}}, srv.URL
}

func get(t *testing.T, c *http.Client, url string) (string, error) {
	t.Helper()
	resp, err := c.Post(url, "text/plain", strings.NewReader("a body"))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return http.StatusText(resp.StatusCode) + " " + string(b), nil
}

func TestTransport(t *testing.T) {
	s, c, url := newSite(t)
	for i, want := range []string{"OK by ticket", "OK by cookie", "OK by cookie"} {
		if got, err := get(t, c, url); err != nil || got != want {
			t.Errorf("request %d: %q, %v", i, got, err)
		}
	}
	for _, forbidden := range []bool{false, true} {
		s.mu.Lock()
		s.cookie, s.forbidden = "", forbidden
		s.mu.Unlock()
		if got, err := get(t, c, url); err != nil || got != "OK by ticket" {
			t.Errorf("after the cookie's end: %q, %v", got, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proofs != 3 {
		t.Errorf("%d tickets were shown, want 3", s.proofs)
	}
	for _, b := range s.bodies {
		if b != "a body" {
			t.Errorf("a request arrived with the body %q", b)
		}
	}
}

func TestTransportRefusals(t *testing.T) {
	t.Run("no proof", func(t *testing.T) {
		s, c, url := newSite(t)
		s.noProof = true
		if got, err := get(t, c, url); err == nil || !strings.Contains(err.Error(), "does not prove") {
			t.Errorf("%q, %v", got, err)
		}
	})
	t.Run("impostor", func(t *testing.T) {
		s, c, url := newSite(t)
		s.impostor, s.last = true, base64.StdEncoding.EncodeToString([]byte("\xa1\x07\x30\x05\xa0\x03\x0a\x01\x00"))
		for range 2 {
			if got, err := get(t, c, url); err == nil {
				t.Errorf("%q", got)
			}
			s.mu.Lock()
			s.cookie = ""
			s.mu.Unlock()
		}
	})
	t.Run("no ticket", func(t *testing.T) {
		s, c, url := newSite(t)
		s.w.realm.Add("HTTP/127.0.0.1")
		if got, err := get(t, c, url); err == nil || !strings.Contains(err.Error(), "no service HTTP/127.0.0.1") {
			t.Errorf("%q, %v", got, err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		_, c, url := newSite(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := c.Do(req); err == nil {
			resp.Body.Close()
			t.Error("a cancelled request was answered")
		}
	})
}
