package web

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/heddle-stream/heddle/appmaster"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// view is a master that shows one snapshot.
type view struct {
	snapshot *appmaster.Snapshot
	canceled chan string
}

func (v view) Snapshot() *appmaster.Snapshot { return v.snapshot }
func (v view) Cancel(reason string)          { v.canceled <- reason }

const token = "s3cret"

// serve starts a server that takes every peer for another user's.
func serve(t *testing.T) (url string, v view) {
	t.Helper()
	return serveTo(t, func(_, _ netip.AddrPort) (int, bool) { return os.Getuid() + 1, true })
}

// serveTo starts a server for a snapshot full of markup.
func serveTo(t *testing.T, owner func(_, _ netip.AddrPort) (int, bool)) (url string, v view) {
	t.Helper()
	now := time.Now()
	evil := "<script>alert(1)</script>"
	mark := now.UnixMilli()
	v = view{&appmaster.Snapshot{
		App: "app-1", Job: evil, State: "failing", Waiting: evil, Since: now, Started: now, Time: now,
		Cause:    &appmaster.Cause{Kind: "lost", Message: evil, Agent: "agent-1", LastLogs: []string{evil}},
		Vertices: []appmaster.Vertex{{ID: 0, Name: evil, RecordsIn: 1234567, Tasks: map[string]int{"running": 2}, Watermark: &mark}},
		Agents:   []appmaster.Agent{{ID: "agent-1", State: "alive", Slots: []appmaster.Slot{{Agent: "agent-1", Job: "app-1", Tasks: []string{evil}}, {Agent: "agent-1", Index: 1}}}},
		Sources:  []appmaster.Source{{Name: evil, Splits: []appmaster.Split{{ID: evil, Position: -1}}}},
		Warnings: []appmaster.Warning{{Time: now, Message: evil}},
	}, make(chan string, 1)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{Listener: l, Token: token, Owner: owner,
		TokensThere: func() {},
		Options:     func() []Option { return []Option{{Name: "parallelism", Value: "4", Origin: "default"}} },
		Log:         func(string) ([]string, error) { return []string{evil}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	url, err = s.Start(v)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return url, v
}

// client leaves no connection behind.
func client(t *testing.T) *http.Client {
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func do(t *testing.T, c *http.Client, method, url, bearer string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if bearer != "" {
		req.Header.Set("Authorization", "Bearer "+bearer)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestAccess(t *testing.T) {
	url, v := serve(t)
	for _, c := range []struct {
		method, path, bearer string
		code                 int
	}{
		{"GET", "", "", 401},
		{"GET", "api/job", "", 401},
		{"GET", "api/job", "wrong", 401},
		{"GET", "?token=" + token, "", 401}, // no secret belongs into an address
		{"PUT", "api/job/cancel", "", 401},
		{"PUT", "api/job/cancel?token=" + token, "", 401},
		{"GET", "api/job", token, 200},
		{"GET", "api/vertices", token, 200},
		{"GET", "api/vertices/0", token, 200},
		{"GET", "api/vertices/1", token, 404},
		{"GET", "api/vertices/x", token, 404},
		{"GET", "api/agents", token, 200},
		{"GET", "api/slots", token, 200},
		{"GET", "api/nothing", token, 404},
		{"GET", "nothing", token, 404},
		{"GET", "api/job/cancel", token, 405},
		{"POST", "api/job/cancel", token, 405},
	} {
		if code, body := do(t, client(t), c.method, url+c.path, c.bearer); code != c.code {
			t.Errorf("%s /%s with token %q: %d, want %d: %s", c.method, c.path, c.bearer, code, c.code, body)
		}
	}
	if len(v.canceled) > 0 {
		t.Error("the job was cancelled without the token or by the wrong method")
	}
	if code, _ := do(t, client(t), "PUT", url+"api/job/cancel", token); code != 202 || len(v.canceled) != 1 {
		t.Errorf("cancel: %d, %d wishes; want 202 and one", code, len(v.canceled))
	}
}

// TestMethods: who asks by a wrong method is told the right ones.
func TestMethods(t *testing.T) {
	url, _ := serve(t)
	for _, c := range []struct{ method, path, allow string }{
		{"POST", "api/job", "GET, HEAD"}, {"GET", "api/job/cancel", "PUT"}, {"DELETE", "api/profiles", "GET, HEAD, PUT"}, {"PUT", "api/vertices/0", "GET, HEAD"},
		{"POST", "api/profiles/1/data", "GET, HEAD"}, {"POST", "api/nothing", ""}, {"POST", "metrics", "GET, HEAD"}, {"POST", "", "GET, HEAD"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, url+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := client(t).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		want := 405
		if c.allow == "" {
			want = 404
		}
		if got := resp.Header.Get("Allow"); resp.StatusCode != want || got != c.allow {
			t.Errorf("%s /%s: %d, Allow %q; want %d, %q", c.method, c.path, resp.StatusCode, got, want, c.allow)
		}
	}
}

// TestOwnBrowser: a process of the same user on this host needs no token; another user's does, and so does another site's page.
func TestOwnBrowser(t *testing.T) {
	url, v := serveTo(t, nil)
	c := client(t)
	code, body := do(t, c, "GET", url, "")
	if code != 200 || !strings.Contains(body, "<main") {
		t.Fatalf("page of our own user: %d %s", code, body)
	}
	for _, h := range []struct{ name, key, value string }{
		{"another site's page", "Sec-Fetch-Site", "cross-site"},
		{"another origin", "Origin", "http://evil.example"},
		{"a name bound to this address", "Host", "evil.example"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), "PUT", url+"api/job/cancel", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(h.key, h.value)
		if h.key == "Host" {
			req.Host = h.value
		}
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 401 || len(v.canceled) > 0 {
			t.Errorf("%s: %d, %d wishes; want 401 and none", h.name, resp.StatusCode, len(v.canceled))
		}
	}
	for mode, want := range map[string]int{"navigate": 200, "no-cors": 401} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Sec-Fetch-Site", "cross-site")
		req.Header.Set("Sec-Fetch-Mode", mode)
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s from another site's page: %d, want %d", mode, resp.StatusCode, want)
		}
	}
	if code, _ := do(t, c, "PUT", url+"api/job/cancel", ""); code != 403 || len(v.canceled) != 0 {
		t.Errorf("cancel by our own user without the token of its session: %d, want 403", code)
	}
}

// TestPage: the page's parts are all there, are few bytes, and come from nowhere else.
func TestPage(t *testing.T) {
	url, _ := serve(t)
	_, page := do(t, client(t), "GET", url, token)
	if strings.Contains(page, token) || strings.Contains(page, "http://") || strings.Contains(page, "https://") {
		t.Error("the page holds the token or an address outside")
	}
	total := len(page)
	entries, err := fs.ReadDir(ui, "ui")
	if err != nil {
		t.Fatal(err)
	}
	imports := regexp.MustCompile(`from "\./([a-z]+\.js)"`)
	for _, e := range entries {
		code, body := do(t, client(t), "GET", url+"ui/"+e.Name(), token)
		if code != 200 || body == "" {
			t.Errorf("GET /ui/%s: %d", e.Name(), code)
		}
		total += len(body)
		for _, m := range imports.FindAllStringSubmatch(body, -1) {
			if code, _ := do(t, client(t), "GET", url+"ui/"+m[1], token); code != 200 {
				t.Errorf("%s imports %s: %d", e.Name(), m[1], code)
			}
		}
	}
	if total > 300_000 {
		t.Errorf("the dashboard has %d bytes, at most 300,000 are wanted", total)
	}
	if code, _ := do(t, client(t), "GET", url+"ui/..%2fweb.go", token); code != 404 {
		t.Errorf("a file that is no part of the page: %d", code)
	}
}

// TestAction: an action needs the token that only a reader of our answers knows, or the application's.
func TestAction(t *testing.T) {
	url, v := serveTo(t, nil)
	c := client(t)
	_, body := do(t, c, "GET", url+"api/session", "")
	var session Session
	if err := json.Unmarshal([]byte(body), &session); err != nil || session.Token == "" {
		t.Fatalf("session %s: %v", body, err)
	}
	for _, wish := range []struct {
		body string
		code int
	}{{"", 403}, {`{}`, 403}, {`{"token":"` + session.Token + `x"}`, 403}, {`{"token":"` + session.Token + `"}`, 202}} {
		req, err := http.NewRequestWithContext(t.Context(), "PUT", url+"api/job/cancel", strings.NewReader(wish.body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != wish.code {
			t.Errorf("cancel with %s: %d, want %d", wish.body, resp.StatusCode, wish.code)
		}
	}
	if len(v.canceled) != 1 {
		t.Errorf("%d wishes to cancel, want 1", len(v.canceled))
	}
}

func TestJSON(t *testing.T) {
	url, v := serve(t)
	_, body := do(t, client(t), "GET", url+"api/job", token)
	var got appmaster.Snapshot
	if err := json.Unmarshal([]byte(body), &got); err != nil || got.App != v.snapshot.App || got.Vertices[0].RecordsIn != 1234567 {
		t.Errorf("snapshot %+v, %v", got, err)
	}
	_, body = do(t, client(t), "GET", url+"api/slots", token)
	var slots []appmaster.Slot
	if err := json.Unmarshal([]byte(body), &slots); err != nil || len(slots) != 2 {
		t.Errorf("slots %v, %v", slots, err)
	}
}

func TestReachable(t *testing.T) {
	if got := reachable("127.0.0.1:80"); got != "127.0.0.1:80" {
		t.Errorf("reachable(127.0.0.1:80) = %s", got)
	}
	if got := reachable("[::]:80"); strings.Contains(got, "::") || !strings.HasSuffix(got, ":80") {
		t.Errorf("reachable([::]:80) = %s", got)
	}
	if _, err := New(Config{}); err == nil {
		t.Error("New without a token succeeded")
	}
}
