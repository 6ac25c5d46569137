package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/internal/profile"
)

func (v view) TakeProfile(of string, kind profile.Kind, d time.Duration) (appmaster.ProcessProfile, error) {
	switch of {
	case "agent-2":
		return appmaster.ProcessProfile{}, appmaster.ErrProfiling
	case "agent-3":
		return appmaster.ProcessProfile{}, appmaster.ErrNoProfiles
	case "agent-9":
		return appmaster.ProcessProfile{}, fmt.Errorf("%w %q", appmaster.ErrNoProcess, of)
	}
	if err := profile.Check(kind, d); err != nil && kind != "" {
		return appmaster.ProcessProfile{}, err
	}
	return appmaster.ProcessProfile{ID: 7, Of: of, Kind: kind, State: appmaster.ProfileRunning}, nil
}

func (v view) Profiles() []appmaster.ProcessProfile {
	return []appmaster.ProcessProfile{{ID: 7, Of: "agent-1", Kind: profile.CPU, State: appmaster.ProfileTaken, Size: 3}}
}

func (v view) ProfileData(id uint64) []byte {
	if id != 7 {
		return nil
	}
	return []byte("\x1f\x8bx")
}

func TestProfiles(t *testing.T) {
	url, _ := serve(t)
	for _, x := range []struct {
		method, path, bearer string
		code                 int
		body                 string
	}{
		{"PUT", "api/profiles?of=agent-1&kind=cpu&for=30s", token, 202, `"id":7`},
		{"PUT", "api/profiles?of=agent-1&kind=cpu&for=30s", "wrong", 401, ""},
		{"PUT", "api/profiles?of=agent-1&kind=cpu&for=soon", token, 400, "no duration"},
		{"PUT", "api/profiles?of=agent-1&kind=cpu&for=9h", token, 400, "5m0s"},
		{"PUT", "api/profiles?of=agent-1&kind=keys", token, 400, "no profile"},
		{"PUT", "api/profiles?of=agent-2&kind=heap", token, 409, "only one"},
		{"PUT", "api/profiles?of=agent-3&kind=heap", token, 403, "profile.enabled"},
		{"PUT", "api/profiles?of=agent-9&kind=heap", token, 404, "agent-9"},
		{"GET", "api/profiles", token, 200, `"taken"`},
		{"GET", "api/profiles/7/data", token, 200, "\x1f\x8bx"},
		{"GET", "api/profiles/7/data", "", 401, ""},
		{"GET", "api/profiles/8/data", token, 404, ""},
		{"GET", "api/profiles/x/data", token, 404, ""},
	} {
		if code, body := do(t, client(t), x.method, url+x.path, x.bearer); code != x.code || !strings.Contains(body, x.body) {
			t.Errorf("%s %s: %d %s, want %d with %q", x.method, x.path, code, body, x.code, x.body)
		}
	}
}

// TestProfilesNeedTheRight: who may look but not change the application gets no profile.
func TestProfilesNeedTheRight(t *testing.T) {
	s, err := New(Config{Token: token, Proxy: &Proxy{Hosts: []string{"127.0.0.1"}, View: func(string) bool { return true }, Modify: func(u string) bool { return u == "alice" }}})
	if err != nil {
		t.Fatal(err)
	}
	s.view = view{snapshot: &appmaster.Snapshot{App: "app <1>"}}
	for user, want := range map[string]int{"alice": http.StatusOK, "bob": http.StatusForbidden} {
		for _, path := range []string{"/api/profiles", "/api/profiles/7/data"} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.RemoteAddr = "127.0.0.1:999"
			r.AddCookie(&http.Cookie{Name: proxyCookie, Value: user})
			w := httptest.NewRecorder()
			s.http.Handler.ServeHTTP(w, r)
			if w.Code != want {
				t.Errorf("%s by %s: %d, want %d", path, user, w.Code, want)
			}
			if name := w.Header().Get("Content-Disposition"); w.Code == 200 && strings.HasSuffix(path, "data") && name != `attachment; filename="app__1_-agent-1-cpu.pprof"` {
				t.Errorf("the file is called %s", name)
			}
		}
	}
}
