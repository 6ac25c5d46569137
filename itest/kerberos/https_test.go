package kerberos

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/appmaster/web"
	"github.com/heddle-stream/heddle/yarnclient"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// testMasterHTTPS looks at an application of alice's, and cancels it, where ApplicationMasters must speak HTTPS: by the ResourceManager's proxy, which knows the certificate that it gave and
// shows its own, and directly, by YARN's tokens for callers.
func (x *cluster) testMasterHTTPS(t *testing.T, exe string) {
	job := x.bed.File("https/job.yaml", `name: encrypted
source: { generator: { count: 1000000, rate: 20, record: { n: n } } }
sink: { file: { path: "hdfs:///user/alice/out-https", format: json } }
`)
	as := map[string][]string{"alice": x.ticketOf("alice"), "bob": x.ticketOf("bob")}
	out, err := x.heddle(t, exe, as["alice"], "run", job, "--target", "yarn", "--agents", "1", "--detach", "--quiet", "--yarn.acl-view", "bob")
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, x.logs())
	}
	v := &target{cluster: x, app: strings.TrimSpace(out[strings.LastIndex(out, "application_"):]), exe: exe}
	id, err := yarnid.ParseApplication(v.app)
	if err != nil {
		t.Fatal(err)
	}
	rm, _ := x.yarn(t, x.identity(t, "alice"), yarnclient.ByRPC)
	x.bed.Eventually("the application runs", 3*time.Minute, func() error {
		if v.report, err = rm.App(t.Context(), id); err != nil {
			return err
		}
		if v.report.Ended() {
			t.Fatalf("it is %s: %s\n%s", v.report.State, v.report.Diagnostics, x.logs())
		}
		out, err := x.heddle(t, exe, as["bob"], "status", v.app, "--json", "--yarn.client", "rest") // by the proxy, since REST gives no tokens
		if err != nil || !strings.Contains(out, `"state":"running"`) && !strings.Contains(out, `"state": "running"`) {
			return fmt.Errorf("%w %.3000s", err, out)
		}
		return nil
	})
	if want := "https://" + v.report.AMAddress + "/"; v.report.AMWeb != want {
		t.Errorf("it registered %s, want %s", v.report.AMWeb, want)
	}
	if out, err := x.heddle(t, exe, as["bob"], "status", v.app, "--yarn.client", "rpc"); err != nil || !strings.Contains(out, "agent-1") {
		t.Errorf("bob's status by RPC: %v\n%s", err, out)
	}
	t.Run("ticket", func(t *testing.T) { v.byTicketOverTLS(t, id) })
	t.Run("strangers", v.strangersToTLS)
	if code, body := v.as(t, "bob", "GET", "/", "", nil); code != 200 || !strings.Contains(body, "<title>") {
		t.Errorf("bob sees the dashboard by the proxy: %d %.300s", code, body)
	}
	out, err = x.heddle(t, exe, as["bob"], "cancel", v.app)
	if ee, ok := err.(*exec.ExitError); !ok || ee.ExitCode() != 3 {
		t.Errorf("bob cancels: %v\n%s", err, out)
	}
	var s struct{ Token string }
	code, body := v.as(t, "alice", "GET", "/api/session", "", nil)
	if err := json.Unmarshal([]byte(body), &s); err != nil || s.Token == "" {
		t.Fatalf("alice's session: %d %.300s", code, body)
	}
	if code, body := v.as(t, "alice", "PUT", "/api/job/cancel", `{"token":"`+s.Token+`"}`, nil); code != 202 {
		t.Fatalf("alice cancels by the proxy: %d %.300s", code, body)
	}
	x.bed.Eventually("the application is over", 3*time.Minute, func() error {
		a, err := rm.App(t.Context(), id)
		if err == nil && !a.Ended() {
			err = fmt.Errorf("it is %s", a.State)
		}
		if err == nil && !strings.Contains(a.Diagnostics, "was cancelled") {
			t.Errorf("it is %s, %s: %s", a.State, a.FinalStatus, a.Diagnostics)
		}
		return err
	})
}

// byTicketOverTLS asks the ApplicationMaster directly as bob, who may look and not act.
func (v *target) byTicketOverTLS(t *testing.T, id yarnid.Application) {
	rm, _ := v.yarn(t, v.identity(t, "bob"), yarnclient.ByRPC)
	ticket, err := rm.ClientToken(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	ch, err := web.Meet(t.Context(), v.report.AMAddress)
	if err != nil {
		t.Fatal(err)
	}
	c := http.Client{Transport: &http.Transport{TLSClientConfig: ch.TLS()}, Timeout: time.Minute}
	defer c.CloseIdleConnections()
	for path, want := range map[string]int{"GET /api/job": 200, "PUT /api/job/cancel": 403} {
		method, path, _ := strings.Cut(path, " ")
		req, err := http.NewRequestWithContext(t.Context(), method, "https://"+v.report.AMAddress+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		check := web.ByTicket(ticket.Identifier, ticket.Password).Prove(req, nil, ch)
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if err := check(resp); err != nil || resp.StatusCode != want {
			t.Errorf("%s %s: %s, want %d; who answers: %v", method, path, resp.Status, want, err)
		}
	}
}

// strangersToTLS ask the ApplicationMaster directly, from the address that its proxy has, too.
func (v *target) strangersToTLS(t *testing.T) {
	get := func(how *http.Transport, scheme string, header map[string]string) (int, string) {
		t.Helper()
		defer how.CloseIdleConnections()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, scheme+"://"+v.report.AMAddress+"/api/job", nil)
		if err != nil {
			t.Fatal(err)
		}
		return answer(t, how, req, header)
	}
	ch, err := web.Meet(t.Context(), v.report.AMAddress)
	if err != nil {
		t.Fatal(err)
	}
	cookie := map[string]string{"Cookie": "proxy-user=alice"}
	if code, body := get(&http.Transport{TLSClientConfig: ch.TLS()}, "https", cookie); code != 401 {
		t.Errorf("a forged cookie from the proxy's address: %d %.300s", code, body)
	}
	theirs := ch.TLS()
	theirs.Certificates = []tls.Certificate{v.h.CA.Leaf("localhost")}
	if code, body := get(&http.Transport{TLSClientConfig: theirs}, "https", cookie); code != 401 {
		t.Errorf("with a certificate of the cluster's authority: %d %.300s", code, body)
	}
	if code, body := get(&http.Transport{}, "http", cookie); code != 400 || strings.Contains(body, "encrypted") {
		t.Errorf("in clear: %d %.300s", code, body)
	}
	if code, body := get(&http.Transport{TLSClientConfig: &tls.Config{RootCAs: v.h.CA.Pool()}}, "https", nil); code != 0 {
		t.Errorf("its certificate is verified: %d %.300s", code, body)
	}
}
