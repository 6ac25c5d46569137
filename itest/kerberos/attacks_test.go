package kerberos

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/heddle-stream/heddle/appmaster/driver/yarn"
	"github.com/heddle-stream/heddle/internal/ctl"
	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
	"github.com/heddle-stream/heddle/internal/ctl/pki"
	"github.com/heddle-stream/heddle/internal/hadoop/hdfs"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/itest/testbed"
	"github.com/heddle-stream/heddle/yarnclient"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// hostile is a name for a job that a page, a shell and a log line would each read as something else.
const hostile = "x<script>alert(1)</script>$(touch pwned)`touch pwned`\"';touch pwned;{{PWD}} level=ERROR"

// password is a secret option's value.
const password = "hunter2-opensesame-4711"

// endless is a job of a hostile name that runs until it is cancelled.
func endless(name string) string {
	text, _ := json.Marshal(name) // a string always has a form in JSON, which is YAML too
	return fmt.Sprintf(`name: %s
source: { generator: { count: 1000000, rate: 20, record: { n: n } } }
steps: [{ key_by: n }, { window: { global: true, aggregate: { count: count() } } }]
sink: { file: { path: "hdfs:///user/alice/out-attacks", format: json } }
`, text)
}

// target is an application that is attacked.
type target struct {
	*cluster
	app    string
	exe    string // our program
	report yarnclient.App
	// What its containers know.
	secret struct{ Token string }
	agents []ctl.AgentSecrets
}

// testAttacks tries to get into an application of alice's that runs, as others who can reach the cluster may: bob, who may look at it as one of a group, carol,
// who may not, and whoever is on the network with secrets of another application or with none.
func (x *cluster) testAttacks(t *testing.T) {
	x.words(t)
	exe := testbed.BuildProgram(t, x.bed, "./cmd/heddle", "heddle")
	cache := "KRB5CCNAME=FILE:" + filepath.Join(x.bed.Dir("attacks"), "cc")
	x.kdc.Kinit(strings.TrimPrefix(cache, "KRB5CCNAME=FILE:"), x.kdc.KeytabOf("alice"), "alice")
	start := time.Now()
	conf := x.bed.File("attacks/heddle.yaml", "kafka.sasl.password: "+password+"\n")
	job := x.bed.File("attacks/job.yaml", endless(hostile))
	out, err := x.heddle(t, exe, []string{cache}, "run", job, "--config", conf, "--target", "yarn", "--agents", "2", "--parallelism", "2", "--agent.slots", "1", "--detach", "--quiet", "--yarn.acl-view", "dave users")
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, x.logs())
	}
	v := &target{cluster: x, exe: exe, app: strings.TrimSpace(out[strings.LastIndex(out, "application_"):])}
	v.open(t)
	t.Logf("it runs after %v", time.Since(start).Round(100*time.Millisecond))
	t.Run("secrets", v.secrets)
	t.Run("pages", v.pages)
	t.Run("direct", v.direct)
	t.Run("tickets", v.tickets)
	t.Run("control plane", v.control)
	t.Run("exchange", v.exchange)
	t.Run("names", v.names)
	t.Run("tokens", v.tokens)
	if out, err := x.heddle(t, exe, []string{cache}, "cancel", v.app, "--target", "yarn"); err != nil {
		t.Errorf("its owner can't cancel it: %v\n%s", err, out)
	}
}

// open waits until the application runs and reads what its containers know.
func (v *target) open(t *testing.T) {
	t.Helper()
	id, err := yarnid.ParseApplication(v.app)
	if err != nil {
		t.Fatal(err)
	}
	rm, _ := v.yarn(t, v.identity(t, "alice"), yarnclient.REST)
	v.bed.Eventually("the application runs on two agents", 3*time.Minute, func() error {
		if v.report, err = rm.App(t.Context(), id); err != nil {
			return err
		}
		if v.report.Ended() {
			t.Fatalf("it is %s: %s\n%s", v.report.State, v.report.Diagnostics, v.logs())
		}
		if v.report.State != yarnclient.StateRunning || v.report.Containers < 3 {
			return fmt.Errorf("it is %s with %d containers", v.report.State, v.report.Containers)
		}
		code, body := v.as(t, "alice", "GET", "/api/job", "", nil)
		if code != 200 || !strings.Contains(body, `"state":"running"`) {
			return fmt.Errorf("%d %.300s", code, body)
		}
		return nil
	})
	files, err := filepath.Glob(filepath.Join(filepath.Dir(v.h.ConfDir), "nm*", "local", "usercache", "*", "appcache", v.app, "container_*", "container_tokens"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		creds, err := token.Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		if s := creds.Secret("heddle.app"); s != nil {
			if err := json.Unmarshal(s, &v.secret); err != nil {
				t.Fatal(err)
			}
			continue
		}
		sec, err := yarn.SecretsOf(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range creds.Tokens {
			if n.Token.Kind == "YARN_AM_RM_TOKEN" {
				t.Error("an agent has the ApplicationMaster's token for YARN")
			}
		}
		v.agents = append(v.agents, sec)
	}
	if v.secret.Token == "" || len(v.agents) != 2 {
		t.Fatalf("of %v, %d are agents'", files, len(v.agents))
	}
}

// as asks by YARN's web proxy as a user with a ticket.
func (v *target) as(t *testing.T, user, method, path, body string, header map[string]string) (int, string) {
	t.Helper()
	transport, _ := v.identity(t, user).REST(nil)
	approved := "?proxyapproved=true"
	if strings.Contains(path, "?") {
		approved = "&proxyapproved=true"
	}
	req, err := http.NewRequestWithContext(t.Context(), method, strings.TrimSuffix(v.report.TrackingURL, "/")+path+approved, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return answer(t, transport, req, header)
}

func answer(t *testing.T, transport http.RoundTripper, req *http.Request, header map[string]string) (int, string) {
	t.Helper()
	for k, value := range header {
		req.Header.Set(k, value)
	}
	c := http.Client{Transport: transport, Timeout: time.Minute}
	resp, err := c.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(data)
}

// pages are the dashboard and its actions by YARN's proxy: alice may all, bob look, carol nothing, and pages of other sites nothing either.
func (v *target) pages(t *testing.T) {
	session := func(user string) (s struct {
		User, Token string
		May         []string
	}) {
		code, body := v.as(t, user, "GET", "/api/session", "", nil)
		if err := json.Unmarshal([]byte(body), &s); err != nil || code != 200 {
			t.Errorf("%s: %d %.300s", user, code, body)
		}
		return s
	}
	alice, bob := session("alice"), session("bob")
	if alice.User != "alice" || alice.Token == "" || bob.User != "bob" || bob.Token != "" || !slices.Equal(bob.May, []string{"view"}) {
		t.Errorf("the sessions are %+v and %+v", alice, bob)
	}
	stolen, origin := `{"token":"`+alice.Token+`"}`, "Origin"
	for _, a := range []struct {
		user, method, path, body string
		origin                   string
		code                     int
	}{
		{"bob", "GET", "/api/job", "", "", 200},
		{"bob", "PUT", "/api/job/cancel", stolen, "", 403},
		{"bob", "PUT", "/api/profiles", stolen, "", 403},
		{"bob", "GET", "/api/profiles", "", "", 403},
		{"bob", "PUT", "/api/log-level", stolen, "", 403},
		{"carol", "GET", "/", "", "", 401},
		{"carol", "GET", "/api/job", "", "", 401},
		{"carol", "GET", "/api/logs/appmaster", "", "", 401},
		{"carol", "PUT", "/api/job/cancel", stolen, "", 401},
		{"alice", "PUT", "/api/job/cancel", "", "", 403},
		{"alice", "PUT", "/api/job/cancel", stolen, "http://evil.example", 403},
		{"alice", "PUT", "/api/job/cancel", stolen, "null", 403},
		{"alice", "GET", "/api/session", "", "http://evil.example", 403},
	} {
		header := map[string]string{}
		if a.origin != "" {
			header[origin] = a.origin
		}
		if code, body := v.as(t, a.user, a.method, a.path, a.body, header); code != a.code {
			t.Errorf("%s %s as %s from %q: %d, want %d: %.300s", a.method, a.path, a.user, a.origin, code, a.code, body)
		}
	}
	own := "http://" + v.h.RMWeb[0]
	if code, body := v.as(t, "alice", "PUT", "/api/log-level?level=info", stolen, map[string]string{origin: own}); code != 202 {
		t.Errorf("alice's own page at %s: %d %.300s", own, code, body)
	}
}

// direct asks the ApplicationMaster itself, from an address that is no proxy's, with all that could be forged.
func (v *target) direct(t *testing.T) {
	// Only the proxy sends from 127.0.0.1 here.
	stranger := &http.Transport{DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 99)}}).DialContext}
	defer stranger.CloseIdleConnections()
	for name, header := range map[string]map[string]string{
		"nothing":        nil,
		"forged cookie":  {"Cookie": "proxy-user=alice"},
		"forged headers": {"Cookie": "proxy-user=alice", "X-Forwarded-For": "127.0.0.1", "Forwarded": "for=127.0.0.1", "X-Real-IP": "127.0.0.1", "X-Forwarded-User": "alice", "Remote-User": "alice"},
		"wrong token":    {"Authorization": "Bearer " + strings.Repeat("A", len(v.secret.Token))},
		"wrong proof":    {"Authorization": "Heddle-Proof " + strconv.FormatInt(time.Now().Unix(), 10) + " x AAAA"},
		"basic":          {"Authorization": "Basic YWxpY2U6YWxpY2U="},
	} {
		for method, path := range map[string]string{"GET": "/api/job", "PUT": "/api/job/cancel"} {
			req, err := http.NewRequestWithContext(t.Context(), method, "http://"+v.report.AMAddress+path+"?user.name=alice&doAs=alice", nil)
			if err != nil {
				t.Fatal(err)
			}
			if code, body := answer(t, stranger, req, header); code != 401 {
				t.Errorf("%s with %s: %d %.300s", method, name, code, body)
			}
		}
	}
	// From a process of the same account on this host, without the proxy's word.
	near := &http.Transport{}
	defer near.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+v.report.AMAddress+"/api/job", nil)
	if err != nil {
		t.Fatal(err)
	}
	if code, body := answer(t, near, req, nil); code != 401 {
		t.Errorf("from the same host: %d %.300s", code, body)
	}
}

// control dials the control plane with another application's certificate, with that of an agent that is another one's, and without TLS.
func (v *target) control(t *testing.T) {
	ours := v.agents[0]
	other, err := pki.NewAuthority(v.app)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := other.Agent(pki.Name{App: v.app, Agent: ours.AgentID})
	if err != nil {
		t.Fatal(err)
	}
	stranger := ours
	stranger.Cert, stranger.Key = string(leaf.Cert), string(leaf.Key)
	posing := ours
	for name, a := range map[string]struct {
		secrets ctl.AgentSecrets
		id      string
	}{
		"another application's certificate": {stranger, string(ours.AgentID)},
		"another agent's name":              {posing, string(v.agents[1].AgentID)},
		"an agent nobody started":           {posing, "agent-99"},
	} {
		s, _, err := ctl.Join(t.Context(), a.secrets, &ctlpb.Register{AgentId: a.id, Slots: 1}, ctl.JoinOptions{Wait: 2 * time.Second})
		if err == nil {
			_ = s.Close()
			t.Errorf("%s was let in", name)
		}
	}
	v.refusesPlain(t, ours.MasterAddr)
	v.bed.Eventually("the log tells of the stranger", time.Minute, func() error {
		if !strings.Contains(v.logs(), "could not prove to be an agent of this application") {
			return errors.New("not yet")
		}
		return nil
	})
}

// refusesPlain sends plain text, and TLS without a certificate, to a port that takes neither.
func (v *target) refusesPlain(t *testing.T, addr string) {
	t.Helper()
	for name, text := range map[string]string{
		"HTTP": "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00", "a long record": "\x16\x03\x01\xff\xff" + strings.Repeat("x", 1<<16),
		"a frame of the exchange": "\x00\x00\x00\xff" + strings.Repeat("\x01", 300),
	} {
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		_ = nc.SetDeadline(time.Now().Add(time.Minute))
		_, _ = io.WriteString(nc, text)
		got, err := io.ReadAll(nc)
		if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
			t.Errorf("%s to %s: the connection is left open", name, addr)
		}
		if bytes.HasPrefix(got, []byte("HTTP/1.1 2")) || len(got) > 100 {
			t.Errorf("%s to %s is answered by %.200q", name, addr, got)
		}
		_ = nc.Close()
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	nc, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}}).DialContext(ctx, "tcp", addr)
	if err == nil { // with TLS 1.3 a client learns that its certificate is missing when it reads
		_ = nc.SetDeadline(time.Now().Add(time.Minute))
		_, err = io.ReadFull(nc, make([]byte, 1))
		_ = nc.Close()
	}
	if !refused(err) {
		t.Errorf("%s speaks with who has no certificate: %v", addr, err)
	}
}

// refused reports whether the other side of a TLS connection said no, and did not merely wait or end.
func refused(err error) bool { return err != nil && strings.Contains(err.Error(), "remote error: tls") }

// exchange dials the agents' exchange, which is encrypted since the cluster is a secure one.
func (v *target) exchange(t *testing.T) {
	code, body := v.as(t, "alice", "GET", "/api/agents", "", nil)
	var agents []struct{ Exchange string }
	if err := json.Unmarshal([]byte(body), &agents); err != nil || code != 200 || len(agents) != 2 {
		t.Fatalf("%d %.300s", code, body)
	}
	other, err := pki.NewAuthority(v.app)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := other.Agent(pki.Name{App: v.app, Agent: v.agents[0].AgentID})
	if err != nil {
		t.Fatal(err)
	}
	dial := func(cert pki.Leaf, addr string, patience time.Duration) error {
		_, client, err := pki.ExchangeTLS(cert, []byte(v.agents[0].CA))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		nc, err := (&tls.Dialer{Config: client}).DialContext(ctx, "tcp", addr)
		if err != nil {
			return err
		}
		defer nc.Close()
		_ = nc.SetDeadline(time.Now().Add(patience))
		_, err = io.ReadFull(nc, make([]byte, 1)) // whoever is let in hears nothing before its hello
		return err
	}
	for _, a := range agents {
		addr := a.Exchange
		v.refusesPlain(t, addr)
		if err := dial(leaf, addr, time.Minute); !refused(err) {
			t.Errorf("%s lets in an agent of another application: %v", addr, err)
		}
		if err := dial(v.agents[0].Leaf(), addr, time.Second); refused(err) {
			t.Errorf("%s does not let in an agent of its own: %v", addr, err)
		}
	}
}

// names: the job's name did nothing in a shell, and is text in JSON and in logs.
func (v *target) names(t *testing.T) {
	code, body := v.as(t, "alice", "GET", "/api/job", "", nil)
	var s struct{ Job string }
	if err := json.Unmarshal([]byte(body), &s); err != nil || code != 200 || s.Job != hostile || strings.Contains(body, "<script>") {
		t.Errorf("%d, the job is %q in %.300s", code, s.Job, body)
	}
	root := filepath.Dir(filepath.Dir(v.h.ConfDir))
	err := filepath.WalkDir(root, func(p string, d os.DirEntry, err error) error {
		if err == nil && d.Name() == "pwned" {
			t.Errorf("a name was run by a shell: %s", p)
		}
		return nil // what is removed meanwhile is none of ours
	})
	if err != nil {
		t.Error(err)
	}
	for line := range strings.SplitSeq(v.logs(), "\n") {
		if strings.HasPrefix(line, "level=ERROR") {
			t.Errorf("a name made a line of the log: %s", line)
		}
	}
}

// secrets: none is in arguments, environments, scripts, logs, answers of YARN or of the application, or in a file that others can read.
func (v *target) secrets(t *testing.T) {
	known := map[string]string{"the password": password, "the token": v.secret.Token}
	for i, a := range v.agents {
		for _, line := range strings.Split(a.Key, "\n") {
			if len(line) > 40 && !strings.HasPrefix(line, "-") {
				known[fmt.Sprintf("agent %d's key", i)] = line
			}
		}
		known["the exchange's key"] = string(a.ExchangeKey)
	}
	look := func(where string, data []byte) {
		t.Helper()
		for name, secret := range known {
			if bytes.Contains(data, []byte(secret)) {
				t.Errorf("%s is in %s", name, where)
			}
		}
	}
	pids := v.h.Containers()
	if len(pids) < 3 {
		t.Errorf("there are %d processes of containers", len(pids))
	}
	for _, pid := range pids {
		for _, f := range []string{"environ", "cmdline"} {
			if data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, f)); err == nil {
				look(fmt.Sprintf("%s of process %d", f, pid), data)
			}
		}
		v.noCore(t, pid)
	}
	look("the logs", []byte(v.logs()))
	root := filepath.Dir(v.h.ConfDir)
	for _, pattern := range []string{"nm*/local/nmPrivate/" + v.app + "/*/*.sh", "nm*/local/usercache/*/appcache/" + v.app + "/*/*.sh", "nm*/local/usercache/*/appcache/" + v.app + "/filecache/*/*/*"} {
		files, _ := filepath.Glob(filepath.Join(root, pattern))
		for _, f := range files {
			if st, err := os.Stat(f); err != nil || !st.Mode().IsRegular() || st.Size() > 1<<20 {
				continue // the program itself
			}
			if data, err := os.ReadFile(f); err == nil {
				look(f, data)
			}
		}
	}
	for _, path := range []string{"/api/job", "/api/configuration", "/api/agents", "/api/containers", "/api/session", "/api/logs/appmaster", "/metrics", "/"} {
		_, body := v.as(t, "alice", "GET", path, "", nil)
		look("GET "+path, []byte(body))
	}
	transport, _ := v.identity(t, "alice").REST(nil)
	for _, path := range []string{"", "/appattempts"} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+v.h.RMWeb[0]+"/ws/v1/cluster/apps/"+v.app+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, body := answer(t, transport, req, nil)
		look("YARN's answer", []byte(body))
	}
	v.staged(t, look)
	tokens, _ := filepath.Glob(filepath.Join(root, "nm*", "local", "usercache", "*", "appcache", v.app, "container_*", "container_tokens"))
	for _, f := range tokens {
		if !hidden(f, root) {
			t.Errorf("others can read %s", f)
		}
	}
}

// staged: what is in HDFS of the application is closed to others, and holds no secret.
func (v *target) staged(t *testing.T, look func(where string, data []byte)) {
	t.Helper()
	how, err := v.identity(t, "alice").HDFS()
	if err != nil {
		t.Fatal(err)
	}
	how.NameNodes = []string{v.h.NameNode}
	files, err := hdfs.Open(how)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	seen := 0
	var walk func(dir string)
	walk = func(dir string) {
		list, err := files.List(dir)
		if err != nil {
			t.Error(err)
		}
		for _, f := range list {
			if seen++; f.Mode.Perm()&0o077 != 0 {
				t.Errorf("others can open %s, whose mode is %v", f.Path, f.Mode)
			}
			if f.Dir {
				walk(f.Path)
			} else if f.Size < 1<<20 { // not the program
				data, err := files.ReadFile(f.Path, 1<<20)
				if err != nil {
					t.Errorf("%s: %v", f.Path, err)
					continue
				}
				look(f.Path, unpacked(t, f.Path, data))
			}
		}
	}
	walk("/user/alice/.heddle")
	if seen < 5 {
		t.Errorf("there are %d files and folders", seen)
	}
}

// unpacked is the text of all entries of a zip, and other data as it is.
func unpacked(t *testing.T, name string, data []byte) []byte {
	t.Helper()
	if !strings.HasSuffix(name, ".zip") {
		return data
	}
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var out []byte
	for _, e := range z.File {
		r, err := e.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Close()
		out = append(out, text...)
	}
	return out
}

// noCore: a process of ours leaves no core file. (Shells of YARN's that wait for it may.)
func (v *target) noCore(t *testing.T, pid int) {
	t.Helper()
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || !bytes.HasPrefix(args, []byte("./heddle\x00")) {
		return
	}
	limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	if err != nil {
		return // it has ended
	}
	_, line, _ := strings.Cut(string(limits), "Max core file size")
	if size := strings.Fields(line); len(size) == 0 || size[0] != "0" {
		t.Errorf("process %d may leave a core file of %.20q", pid, line)
	}
}

// hidden reports whether a file, or a folder above it but below root, is closed to others. NodeManagers protect what is in containers by folders.
func hidden(file, root string) bool {
	for p := file; len(p) > len(root); p = filepath.Dir(p) {
		if st, err := os.Stat(p); err == nil && st.Mode().Perm()&0o007 == 0 {
			return true
		}
	}
	return false
}
