package cli

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/yarnclient"
)

// TestHidden: YARN's reports of applications that we may not look at are told from those of applications that have just begun.
func TestHidden(t *testing.T) {
	now := time.Now()
	for name, x := range map[string]struct {
		app  yarnclient.App
		want bool
	}{
		"shown":           {yarnclient.App{State: yarnclient.StateRunning, Started: now, TrackingURL: "http://rm/proxy/x/", AMAddress: "n1:1"}, false},
		"shown, no pages": {yarnclient.App{State: yarnclient.StateRunning, Started: now, AMAddress: "n1:1"}, false},
		"by REST":         {yarnclient.App{State: yarnclient.StateRunning, TrackingURL: "http://rm/proxy/x/"}, true},
		"by RPC":          {yarnclient.App{State: yarnclient.StateRunning, Started: now}, true},
		"waits":           {yarnclient.App{State: yarnclient.StateAccepted, Started: now}, false},
	} {
		x.app.User = "alice"
		if (&hadoop{user: "bob"}).hidden(x.app) != x.want || (&hadoop{user: "alice"}).hidden(x.app) {
			t.Errorf("%s: %v", name, !x.want)
		}
	}
}

// TestMayNot: who may not change an application of another user is told what allows it; errors of other kinds, and of the owner, are not dressed up so.
func TestMayNot(t *testing.T) {
	h, alices := &hadoop{user: "bob"}, yarnclient.App{ID: appOne.String(), User: "alice"}
	for name, x := range map[string]struct {
		err  error
		user string
		acl  bool
		code int
	}{
		"refused by YARN":   {&yarnclient.APIError{Status: 403}, "alice", true, exitPrecondition},
		"refused by master": {fmt.Errorf("x: %w", &answerError{403, "no"}), "alice", true, exitPrecondition},
		"no profiles":       {&answerError{403, "profiles are off"}, "bob", false, exitPrecondition},
		"silent":            {errors.New("connection refused"), "alice", false, exitUnreachable},
	} {
		alices.User = x.user
		e, ok := errors.AsType[*exitError](h.refused(alices, x.err))
		if name == "refused by YARN" {
			e, ok = errors.AsType[*exitError](h.mayNot(alices, x.err))
		}
		if !ok || e.code != x.code || x.acl != strings.Contains(strings.Join(e.hints, " "), "yarn.acl-modify") {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// TestProxyWarned: a proxy that warns who is not the owner is told by the cookie's name that this was seen.
func TestProxyWarned(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, err := r.Cookie("checked_" + appOne.String()); err != nil || c.Value != "true" {
			fmt.Fprint(w, "<html>WARNING")
			return
		}
		fmt.Fprint(w, `{"state":"running"}`)
	}))
	defer srv.Close()
	c := clientOf(appOne.String(), "")
	defer c.close()
	c.web = srv.URL
	if _, err := c.snapshot(t.Context()); err == nil {
		t.Error("the page that warns is taken for an answer")
	}
	c.cookie = proxyWarned(appOne)
	if s, err := c.snapshot(t.Context()); err != nil || s.State != "running" {
		t.Errorf("%+v, %v", s, err)
	}
}
