package web

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
)

// TestProof lets in who has the token without its being sent, once for each proof, and for nothing but the request that it was made for.
func TestProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nobody := func(string) bool { return false }
		s, err := New(Config{Token: token, Proxy: &Proxy{View: nobody, Modify: nobody}})
		if err != nil {
			t.Fatal(err)
		}
		v := view{&appmaster.Snapshot{State: "running"}, make(chan string, 100)}
		s.view = v
		made := func(with, method, target, body string) *http.Request {
			r := httptest.NewRequest(method, target, strings.NewReader(body))
			ByToken(with).Prove(r, []byte(body), nil)
			return r
		}
		answer := func(r *http.Request) (int, string) {
			w := httptest.NewRecorder()
			s.handler().ServeHTTP(w, r)
			return w.Code, w.Body.String()
		}
		altered := func(f func(*http.Request)) *http.Request {
			r := made(token, "GET", "/api/job", "")
			f(r)
			return r
		}
		for name, x := range map[string]struct {
			r    *http.Request
			code int
			says string
		}{
			"good":              {made(token, "GET", "/api/job?attached", ""), 200, `"state":"running"`},
			"an action":         {made(token, "PUT", "/api/job/cancel", ""), 202, ""},
			"with a body":       {made(token, "PUT", "/api/job/cancel", "{}"), 202, ""},
			"another token":     {made("guess", "GET", "/api/job", ""), 401, "not that of the application's token"},
			"another method":    {altered(func(r *http.Request) { r.Method = "PUT" }), 401, "not that"},
			"another address":   {altered(func(r *http.Request) { r.RequestURI = "/api/agents" }), 401, "not that"},
			"another body":      {altered(func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("x")) }), 401, "not that"},
			"a long body":       {altered(func(r *http.Request) { r.Body = io.NopCloser(bytes.NewReader(make([]byte, maxAction+1))) }), 401, "too long"},
			"a part is missing": {altered(func(r *http.Request) { r.Header.Set("Authorization", proofScheme+"1 2") }), 401, "a time, a word and a hash"},
			"no hash":           {altered(func(r *http.Request) { r.Header.Set("Authorization", proofScheme+"1 2 ?") }), 401, "not that"},
		} {
			if code, text := answer(x.r); code != x.code || !strings.Contains(text, x.says) {
				t.Errorf("%s: %d %s; want %d and %q", name, code, text, x.code, x.says)
			}
		}
		if len(v.canceled) != 2 {
			t.Errorf("%d wishes to cancel, want 2", len(v.canceled))
		}

		r := made(token, "GET", "/api/job", "")
		if strings.Contains(r.Header.Get("Authorization"), token) {
			t.Error("the proof shows the token")
		}
		again, late := r.Clone(t.Context()), made(token, "GET", "/api/job", "")
		if code, _ := answer(r); code != 200 {
			t.Errorf("the first time: %d", code)
		}
		time.Sleep(proofLife - time.Second)
		answer(made(token, "GET", "/api/job", ""))
		if code, text := answer(again.Clone(t.Context())); code != 401 || !strings.Contains(text, "used before") {
			t.Errorf("played back: %d %s", code, text)
		}
		time.Sleep(time.Minute)
		for _, old := range []*http.Request{again, late} {
			if code, text := answer(old); code != 401 || !strings.Contains(text, "clocks") {
				t.Errorf("late: %d %s", code, text)
			}
		}
		time.Sleep(3 * proofLife)
		answer(made(token, "GET", "/api/job", ""))
		if n := len(s.proofs.taken); n != 1 {
			t.Errorf("%d proofs are remembered, want 1", n)
		}
	})
}

// TestTicket lets in who has a ticket of YARN's, as far as its user may.
func TestTicket(t *testing.T) {
	var asked []string
	only := func(name string) func(string) bool {
		return func(user string) bool { asked = append(asked, user); return user == name }
	}
	people := map[string]Ticket{
		"owner": {User: "alice", Password: []byte("a")},
		"guest": {User: "bob", Password: []byte("b")},
		"other": {User: "carol", Password: []byte("c")},
	}
	s, err := New(Config{Token: token, Proxy: &Proxy{View: only("bob"), Modify: only("alice")}, Ticket: func(id []byte) (Ticket, error) {
		if p, ok := people[string(id)]; ok {
			return p, nil
		}
		return Ticket{}, errors.New("it is another attempt's")
	}})
	if err != nil {
		t.Fatal(err)
	}
	s.view = view{&appmaster.Snapshot{State: "running"}, make(chan string, 100)}
	answer := func(r *http.Request) (int, string) {
		w := httptest.NewRecorder()
		s.handler().ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	for name, x := range map[string]struct {
		id, password, method, path string
		code                       int
		says                       string
	}{
		"the owner looks":       {"owner", "a", "GET", "/api/job", 200, "running"},
		"the owner acts":        {"owner", "a", "PUT", "/api/job/cancel", 202, ""},
		"a guest looks":         {"guest", "b", "GET", "/api/job", 200, "running"},
		"a guest's session":     {"guest", "b", "GET", "/api/session", 200, `"user":"bob"`},
		"a guest acts":          {"guest", "b", "PUT", "/api/job/cancel", 403, "may look at this application but not change it"},
		"who may not look":      {"other", "c", "GET", "/api/job", 401, ""},
		"who may not look acts": {"other", "c", "PUT", "/api/job/cancel", 401, ""},
		"another's password":    {"owner", "b", "GET", "/api/job", 401, "not that of the ticket"},
		"an unknown ticket":     {"none", "a", "GET", "/api/job", 401, "another attempt's"},
	} {
		r := httptest.NewRequest(x.method, x.path, nil)
		ByTicket([]byte(x.id), []byte(x.password)).Prove(r, nil, nil)
		asked = nil
		if code, text := answer(r); code != x.code || !strings.Contains(text, x.says) {
			t.Errorf("%s: %d %s; want %d and %q", name, code, text, x.code, x.says)
		}
		if good := bytes.Equal([]byte(x.password), people[x.id].Password); good != (len(asked) > 0) {
			t.Errorf("%s: what %q may do was asked; they have proven to be somebody: %v", name, asked, good)
		}
	}
	r := httptest.NewRequest("GET", "/api/job", nil)
	ByTicket([]byte("guest"), []byte("b")).Prove(r, nil, nil)
	again := r.Clone(t.Context())
	if code, _ := answer(r); code != 200 {
		t.Errorf("first: %d", code)
	}
	if code, text := answer(again); code != 401 || !strings.Contains(text, "used before") {
		t.Errorf("played back: %d %s", code, text)
	}
	for _, header := range []string{"x", "?? 1 2 3", "", "Z3Vlc3Q 1 2"} {
		r.Header.Set("Authorization", ticketScheme+header)
		if code, _ := answer(r); code != 401 {
			t.Errorf("%q: %d", header, code)
		}
	}
}
