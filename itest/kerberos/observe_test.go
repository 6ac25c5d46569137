package kerberos

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/itest/testbed"
)

// observed is an application of alice's that others look at by commands.
type observed struct {
	*cluster
	exe, app string
	as       map[string][]string // environment of each user, with a ticket
	proxy    string              // configuration by which applications are behind a proxy that stands alone
}

// testObserve has commands and the exporter look at an application of alice's: as bob, who may look at it as one of a group, and as carol, who may not. They come by YARN's
// token for callers, and by a web proxy that stands alone, which answers other users than alice with a page that warns first.
func (x *cluster) testObserve(t *testing.T) {
	x.words(t)
	o := &observed{cluster: x, exe: testbed.BuildProgram(t, x.bed, "./cmd/heddle", "heddle"), as: map[string][]string{}}
	for _, u := range users {
		o.as[u] = x.ticketOf(u)
	}
	job := x.bed.File("observe/job.yaml", `name: observed
source: { generator: { count: 1000000, rate: 20, record: { n: n } } }
sink: { file: { path: "hdfs:///user/alice/out-observe", format: json } }
`)
	out, err := x.heddle(t, o.exe, o.as["alice"], "run", job, "--target", "yarn", "--agents", "1", "--detach", "--quiet", "--yarn.acl-view", "dave users")
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, x.logs())
	}
	o.app = strings.TrimSpace(out[strings.LastIndex(out, "application_"):])
	o.proxy = o.behindProxy(t)
	x.bed.Eventually("bob sees that the job runs", 3*time.Minute, func() error {
		out, err := x.heddle(t, o.exe, o.as["bob"], "status", o.app, "--json")
		var s struct{ State string }
		if err == nil {
			err = json.Unmarshal([]byte(out[strings.Index(out, "{"):]), &s)
		}
		if err != nil || s.State != "running" {
			return fmt.Errorf("%w %.2000s", err, out)
		}
		return nil
	})
	t.Run("warning", o.warning)
	t.Run("viewer", o.viewer)
	t.Run("stranger", o.stranger)
	t.Run("exporter", o.exporters)
	if out, err := x.heddle(t, o.exe, o.as["alice"], "cancel", o.app); err != nil {
		t.Fatalf("its owner can't cancel it: %v\n%s", err, out)
	}
	t.Run("history", o.history)
}

// proxyAddress begins the address of an application.
var proxyAddress = regexp.MustCompile(`//[^/"]+/proxy/`)

// behindProxy starts YARN's web proxy that stands alone and returns a configuration by which it leads to applications: that of a ResourceManager whose addresses of
// applications are its.
func (o *observed) behindProxy(t *testing.T) string {
	t.Helper()
	addr := fmt.Sprintf("127.0.0.1:%d", testbed.FreePort(t))
	conf := o.site(t, map[string]string{"yarn.web-proxy.address": addr, "yarn.web-proxy.principal": "yarn@" + o.kdc.Realm, "yarn.web-proxy.keytab": o.kdc.KeytabOf("yarn")})
	p := o.bed.Start(testbed.Spec{Name: "web-proxy", Path: "java", Env: []string{"HADOOP_CONF_DIR=" + conf}, Args: []string{"-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Djava.net.preferIPv4Stack=true", "--add-opens", "java.base/java.lang=ALL-UNNAMED", "-Djava.security.krb5.conf=" + o.kdc.Conf,
		"-cp", conf + ":" + filepath.Join(o.h.Lib(), "*"), "org.apache.hadoop.yarn.server.webproxy.WebAppProxyServer"}})
	t.Cleanup(p.Kill)
	o.bed.Eventually("the web proxy answers", 3*time.Minute, func() error {
		if !p.Running() {
			t.Fatalf("it ended:\n%s", p.Tail(30))
		}
		resp, err := http.Get("http://" + addr + "/")
		if err != nil {
			return err
		}
		return resp.Body.Close()
	})
	manager := &url.URL{Scheme: "http", Host: o.h.RMWeb[0]}
	front := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(manager)
			r.Out.Header.Del("Accept-Encoding")
		},
		ModifyResponse: func(r *http.Response) error {
			body, err := io.ReadAll(r.Body)
			_ = r.Body.Close()
			body = proxyAddress.ReplaceAll(body, []byte("//"+addr+"/proxy/"))
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			r.Header.Set("Content-Length", strconv.Itoa(len(body)))
			return err
		},
	})
	t.Cleanup(front.Close)
	return o.site(t, map[string]string{"yarn.resourcemanager.webapp.address": front.Listener.Addr().String()})
}

// proxied is a user's environment of commands that come by the proxy that stands alone, and how to have them do so.
func (o *observed) proxied(user string) []string {
	return append(slices.Clone(o.as[user]), "HADOOP_CONF_DIR="+o.proxy)
}

// warning shows that the proxy that stands alone does warn, so that the other tests have something to pass.
func (o *observed) warning(t *testing.T) {
	var s struct{ Web string }
	o.bed.Eventually("bob sees the job by the proxy that stands alone", 3*time.Minute, func() error { // its first answers may take long
		out, err := o.heddle(t, o.exe, o.proxied("bob"), "status", o.app, "--json", "--yarn.client", "rest")
		if err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
		return json.Unmarshal([]byte(out[strings.Index(out, "{"):]), &s)
	})
	transport, _ := o.identity(t, "bob").REST(nil)
	for cookie, warned := range map[string]bool{"": true, "checked_" + o.app + "=true": false} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(s.Web, "/")+"/api/job?proxyapproved=true", nil)
		if err != nil {
			t.Fatal(err)
		}
		header := map[string]string{}
		if cookie != "" {
			header["Cookie"] = cookie
		}
		code, body := answer(t, transport, req, header)
		if code != http.StatusOK || strings.Contains(body, "WARNING") != warned || strings.Contains(body, `"state":"running"`) == warned {
			t.Errorf("with the cookie %q: %d %.500s", cookie, code, body)
		}
	}
}

// looks are commands that look, and what they show.
var looks = map[string]string{"status": "  observed  running, started", "top --once": "VERTEX", "explain --quick": "observed", "logs": "agent-1 "}

// viewer is bob, who may look and not act.
func (o *observed) viewer(t *testing.T) {
	for way, how := range map[string]struct{ env, args []string }{"token": {o.as["bob"], nil}, "proxy": {o.proxied("bob"), []string{"--yarn.client", "rest"}}} {
		for verb, want := range looks {
			args := append(strings.Fields(verb), o.app)
			if out, err := o.heddle(t, o.exe, how.env, append(args, how.args...)...); err != nil || !strings.Contains(out, want) {
				t.Errorf("%s as bob by %s: %v\n%s", verb, way, err, out)
			}
		}
		for _, verb := range []string{"cancel", "kill", "profile --master --stacks", "log-level"} {
			args := append(strings.Fields(verb), o.app)
			if verb == "log-level" {
				args = append(args, "debug")
			}
			o.refuses(t, "bob by "+way, how.env, append(args, how.args...), "yarn.acl-modify", "bob", "alice")
		}
	}
}

// refuses runs a command that is to end with exit code 3, and what it says.
func (o *observed) refuses(t *testing.T, who string, env, args []string, want ...string) {
	t.Helper()
	out, err := o.heddle(t, o.exe, env, args...)
	ee, ok := errors.AsType[*exec.ExitError](err)
	if !ok || ee.ExitCode() != 3 {
		t.Errorf("%v as %s: %v\n%s", args, who, err, out)
		return
	}
	for _, w := range want {
		if !strings.Contains(out, w) {
			t.Errorf("%v as %s says\n%s\nwant %q in it", args, who, out, w)
		}
	}
}

// stranger is carol, who may not even look.
func (o *observed) stranger(t *testing.T) {
	for _, client := range []string{"auto", "rest", "rpc"} {
		for _, verb := range []string{"status", "top --once", "explain --quick", "logs", "wait --quiet", "cancel", "kill", "profile --master --stacks", "log-level"} {
			if verb == "logs" && client == "rpc" {
				continue // there are none by RPC
			}
			if client == "rest" && verb != "status" && verb != "top --once" {
				continue // as auto
			}
			args := append(strings.Fields(verb), o.app)
			if verb == "log-level" {
				args = append(args, "debug")
			}
			o.refuses(t, "carol by "+client, o.as["carol"], append(args, "--yarn.client", client), "yarn.acl-view", "carol", "alice", o.app)
		}
	}
}

// scrapeOf runs an exporter as a user, scrapes it thrice and returns what it served last, and what it said.
func (o *observed) scrapeOf(t *testing.T, user string, want string) (text, said string) {
	t.Helper()
	p := o.bed.Start(testbed.Spec{Name: "exporter-" + user, Path: o.exe, Env: append(append(o.kdc.Env(), "HOME="+o.bed.Dir("home")), o.proxied(user)...),
		Args: []string{"exporter", "--target", "yarn", "--listen", "127.0.0.1:0", "--refresh", "0s", "--app-timeout", "1m", "--yarn.client", "rest"}})
	at := ""
	o.bed.Eventually("the exporter of "+user+" serves "+want, 2*time.Minute, func() error {
		if !p.Running() {
			t.Fatalf("it ended:\n%s", p.Tail(30))
		}
		line, _, ok := strings.Cut(p.Output(), "/metrics")
		if i := strings.LastIndex(line, "http://"); ok && i >= 0 {
			at = line[i:] + "/metrics"
		}
		if at == "" {
			return errors.New("it does not listen yet")
		}
		for range 3 {
			resp, err := http.Get(at)
			if err != nil {
				return err
			}
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err != nil {
				return err
			}
			text = string(body)
		}
		if !strings.Contains(text, want) {
			return fmt.Errorf("it serves\n%.3000s\n%s", text, p.Tail(10))
		}
		return nil
	})
	p.Interrupt()
	if code := p.Wait(time.Minute); code != 0 {
		t.Errorf("the exporter of %s ends with %d\n%s", user, code, p.Tail(10))
	}
	return text, p.Output()
}

// exporters serve what their users may see.
func (o *observed) exporters(t *testing.T) {
	labels := `{app="` + o.app + `",job="observed",queue="`
	text, said := o.scrapeOf(t, "bob", "heddle_app_up"+labels)
	for _, want := range []string{"heddle_app_up" + labels, "heddle_subtask_records_in_total" + labels, `user="alice"} 1`, "heddle_exporter_up 1", "heddle_exporter_denied_applications 0"} {
		if !strings.Contains(text, want) {
			t.Errorf("bob's exporter does not serve %s:\n%.3000s", want, text)
		}
	}
	if strings.Contains(said, "WARN") {
		t.Errorf("bob's exporter says\n%s", said)
	}
	text, said = o.scrapeOf(t, "carol", "heddle_exporter_denied_applications 1")
	if strings.Contains(text, o.app) || strings.Count(said, "WARN") != 1 || !strings.Contains(said, "yarn.acl-view") || !strings.Contains(said, o.app) {
		t.Errorf("carol's exporter serves\n%.3000s\nand says\n%s", text, said)
	}
}

// history is read by its owner, and by others when he opens it in HDFS: yarn.acl-view is none of HDFS's business.
func (o *observed) history(t *testing.T) {
	const dir = "/user/alice/.heddle/history"
	report := dir + "/" + o.app + ".json"
	if out, err := o.heddle(t, o.exe, o.as["alice"], "history", o.app); err != nil || !strings.Contains(out, "observed") {
		t.Fatalf("alice's history: %v\n%s", err, out)
	}
	alice := o.open(t, "alice")
	if i, err := alice.Stat(report); err != nil || i.Mode.Perm() != 0o600 {
		t.Errorf("the report is %+v, %v", i, err)
	}
	for _, who := range []string{"bob", "carol"} {
		o.refuses(t, who, o.as[who], []string{"history", o.app}, report, "of alice's", "-setfacl -m user:"+who+":r-- "+report)
	}
	open := func(mode fs.FileMode) {
		for _, d := range []string{"/user/alice", "/user/alice/.heddle", dir} {
			if err := alice.Chmod(d, mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	open(0o711)
	defer open(0o700)
	if out, err := o.h.Tool("alice", "org.apache.hadoop.fs.FsShell", "-setfacl", "-m", "user:bob:r--", report); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := o.heddle(t, o.exe, o.as["bob"], "history", o.app); err != nil || !strings.Contains(out, "observed") {
		t.Errorf("bob's history of what alice opened to him: %v\n%s", err, out)
	}
	o.refuses(t, "carol", o.as["carol"], []string{"history", o.app}, report)
}
