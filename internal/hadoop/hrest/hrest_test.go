package hrest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a server.
func serve(t *testing.T, h http.HandlerFunc) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func client(t *testing.T, cfg Config) *Client {
	t.Helper()
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// closed is an address at which nobody listens.
func closed(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

const standby = `{"RemoteException":{"exception":"StandbyException","javaClassName":"org.apache.hadoop.ipc.StandbyException","message":"Operation category READ is not supported in state standby"}}`

// TestServers goes on to the next server where one is closed or standby, and stays with the one that answered.
func TestServers(t *testing.T) {
	var asked atomic.Int32
	bad := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, standby)
	})
	good := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/webhdfs/v1/a b" || r.Header.Get("X-Who") != "me" || r.URL.Query().Get("op") != "X" {
			t.Errorf("asked for %s by %s", r.URL, r.Header.Get("X-Who"))
		}
		fmt.Fprint(w, `{"n":7}`)
	})
	c := client(t, Config{Bases: []string{closed(t) + "/webhdfs/v1", bad + "/webhdfs/v1", good + "/webhdfs/v1/"}, Authorize: func(r *http.Request) error {
		r.Header.Set("X-Who", "me")
		return nil
	}})
	for _, method := range []string{http.MethodGet, http.MethodPut} {
		var j struct{ N int }
		if err := c.JSON(t.Context(), Request{Method: method, Path: "/a%20b", Query: url.Values{"op": {"X"}}}, &j); err != nil || j.N != 7 {
			t.Errorf("%s: %+v, %v", method, j, err)
		}
	}
	if asked.Load() != 1 {
		t.Errorf("the standby was asked %d times", asked.Load())
	}
}

// TestErrors never has the address with its token in it.
func TestErrors(t *testing.T) {
	silent := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	const secret = "SECRET"
	for name, x := range map[string]struct {
		base string
		want string
		is   error
	}{
		"closed": {closed(t), "connection refused", nil},
		"silent": {silent, "nothing came in time", context.DeadlineExceeded},
		"page":   {serve(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>", http.StatusNotFound) }), "HTTP status 404 (Not Found): compare the path", nil},
		"who":    {serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }), "does not take what proves who we are", nil},
		"text":   {serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }), "cannot read the answer of 127.0.0.1:", nil},
		"redirect": {serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://other/?delegation="+secret)
			w.WriteHeader(http.StatusTemporaryRedirect)
		}), "HTTP status 307", nil},
	} {
		timeout := 20 * time.Second
		if name == "silent" {
			timeout = 50 * time.Millisecond
		}
		c := client(t, Config{Bases: []string{x.base}, Timeout: timeout, Attempts: 1})
		var j struct{}
		err := c.JSON(t.Context(), Request{Method: http.MethodGet, Query: url.Values{"op": {"LOOK"}, "delegation": {secret}}}, &j)
		if err == nil || !strings.Contains(err.Error(), x.want) || strings.Contains(err.Error(), secret) || x.is != nil && !errors.Is(err, x.is) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := client(t, Config{Bases: []string{closed(t)}, Attempts: 1})
	for _, to := range []string{closed(t) + "/?delegation=" + secret, "/relative?delegation=" + secret, "http://a b/?delegation=" + secret} {
		if _, err := c.Follow(t.Context(), http.MethodGet, to, nil); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", to, err)
		}
	}
}

// TestLost sends nothing twice that may have been done.
func TestLost(t *testing.T) {
	var asked atomic.Int32
	base := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		nc, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			nc.Close()
		}
	})
	for _, x := range []struct {
		r    Request
		want int32
	}{{Request{Method: http.MethodPost}, 1}, {Request{Method: http.MethodPost, Body: []byte("{}"), Safe: true}, 2}} {
		asked.Store(0)
		c := client(t, Config{Bases: []string{base}, Attempts: 2})
		_, err := c.Do(t.Context(), x.r)
		if _, ok := errors.AsType[*hrpc.ConnError](err); !ok || asked.Load() != x.want {
			t.Errorf("asked %d times, want %d: %v", asked.Load(), x.want, err)
		}
	}
}

// TestFollow sends a body where a server says, and our proof to our own servers only.
func TestFollow(t *testing.T) {
	var got, who string
	take := func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Content-Type") != "application/octet-stream" {
			t.Errorf("%v, of type %q", err, r.Header.Get("Content-Type"))
		}
		got, who = string(b), r.Header.Get("X-Who")
		w.WriteHeader(http.StatusCreated)
	}
	own, other := serve(t, take), serve(t, take)
	c := client(t, Config{Bases: []string{own + "/webhdfs/v1"}, Authorize: func(r *http.Request) error {
		r.Header.Set("X-Who", "me")
		return nil
	}})
	for to, want := range map[string]string{own: "me", other: ""} {
		text := strings.Repeat("x", 100_000)
		resp, err := c.Follow(t.Context(), http.MethodPut, to+"/webhdfs/v1/f?op=CREATE", bytes.NewReader([]byte(text)))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got != text || who != want {
			t.Errorf("%d bytes by %q", len(got), who)
		}
	}
}

func TestTokens(t *testing.T) {
	tok := token.Token{Identifier: []byte("id"), Password: []byte("pw"), Kind: "kms-dt", Service: "s"}
	var seen []string
	base := serve(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		seen = append(seen, r.Method+" "+q.Get("op"))
		switch {
		case q.Get("op") == "GETDELEGATIONTOKEN" && q.Get("renewer") == "nobody":
			fmt.Fprint(w, `{"Token":null}`)
		case q.Get("op") == "GETDELEGATIONTOKEN":
			fmt.Fprintf(w, `{"Token":{"urlString":%q}}`, tok.URLString())
		case q.Get("token") != tok.URLString():
			w.WriteHeader(http.StatusBadRequest)
		case q.Get("op") == "RENEWDELEGATIONTOKEN":
			fmt.Fprint(w, `{"long":1500}`)
		}
	})
	c := client(t, Config{Bases: []string{base}})
	got, ok, err := c.Token(t.Context(), "/", "rm")
	if err != nil || !ok || fmt.Sprint(got) != fmt.Sprint(tok) {
		t.Errorf("got %v, %v, %v", got, ok, err)
	}
	if _, ok, err := c.Token(t.Context(), "/", "nobody"); ok || err != nil {
		t.Errorf("no security: %v, %v", ok, err)
	}
	until, err := c.Renew(t.Context(), "/", tok)
	if err != nil || until.UnixMilli() != 1500 {
		t.Errorf("until %v, %v", until, err)
	}
	if err := c.Cancel(t.Context(), "/", tok); err != nil {
		t.Error(err)
	}
	if err := c.Cancel(t.Context(), "/", token.Token{Password: []byte("SECRET")}); err == nil || strings.Contains(err.Error(), "SECRET") || strings.Contains(err.Error(), token.Token{Password: []byte("SECRET")}.URLString()) {
		t.Errorf("another token: %v", err)
	}
	if want := []string{"GET GETDELEGATIONTOKEN", "GET GETDELEGATIONTOKEN", "PUT RENEWDELEGATIONTOKEN", "PUT CANCELDELEGATIONTOKEN", "PUT CANCELDELEGATIONTOKEN"}; !slices.Equal(seen, want) {
		t.Errorf("asked %v", seen)
	}
}

// FuzzException reads whatever a server may answer with.
func FuzzException(f *testing.F) {
	f.Add([]byte(standby))
	f.Add([]byte(`{"RemoteException":{}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := exception("h", "OP", 403, b); err == nil {
			t.Error("no error")
		}
	})
}
