package yarn

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/heddle-stream/heddle/internal/telemetry/otlptest"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// scheduled is the trace that a scheduler's task has begun, which the application's goes on from.
const scheduled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// testInside looks into an application that runs: by the trace of its life, and through the ResourceManager's web proxy as its owner, as
// a second user who may look, and as one who may not.
func (c *command) testInside(t *testing.T) {
	collector := otlptest.Start(t)
	p := c.startWith(t, []string{"TRACEPARENT=" + scheduled}, append([]string{"run", "--quiet", "--detach", c.endless(), "--trace.endpoint", collector.URL,
		"--trace.protocol", "http/protobuf", "--yarn.acl-view", "bob"}, eight...)...)
	app := strings.TrimSpace(c.ends(t, p, 0))
	c.running(t, app)
	c.life(t, collector, app)

	id, err := yarnid.ParseApplication(app)
	if err != nil {
		t.Fatal(err)
	}
	report, err := c.rm.App(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	base := strings.TrimSuffix(report.TrackingURL, "/")
	alice, bob, eve := newVisitor(t, base, user), newVisitor(t, base, "bob"), newVisitor(t, base, "eve")
	alice.pages()
	bob.pages() // without Kerberos, YARN does not ask whether one trusts another user's page
	bob.approved = true
	bob.pages()
	eve.approved = true
	eve.wants("GET", "/api/job", "", http.StatusUnauthorized)
	if s := bob.session(); s.User != "bob" || s.Token != "" || !slices.Equal(s.May, []string{"view"}) {
		t.Errorf("bob's session is %+v", s)
	}
	c.commands(t, app)

	s := alice.session()
	if s.User != user || s.Token == "" || !slices.Contains(s.May, "modify") {
		t.Errorf("the owner's session is %+v", s)
	}
	bob.wants("PUT", "/api/job/cancel", `{"token":"`+s.Token+`"}`, http.StatusForbidden)
	alice.wants("POST", "/api/job/cancel", `{"token":"`+s.Token+`"}`, http.StatusMethodNotAllowed)
	for _, body := range []string{"", "{}", `{"token":"x"}`} { // what a page of another site could send: it can't read the token
		alice.wants("PUT", "/api/job/cancel", body, http.StatusForbidden)
	}
	alice.wants("GET", "/api/job", "", http.StatusOK, `"state":"running"`)
	alice.wants("PUT", "/api/job/cancel", "{\n\"token\":\n\""+s.Token+"\"}\n", http.StatusAccepted)
	c.run(t, 6, []string{"cancelled"}, "wait", app)
	c.clean(t)
}

// commands are those that have nothing but the proxy to reach the application by.
func (c *command) commands(t *testing.T, app string) {
	t.Helper()
	as := func(name string, code int, texts []string, args ...string) {
		t.Helper()
		c.ends(t, c.startWith(t, []string{"HADOOP_USER_NAME=" + name}, args...), code, texts...)
	}
	for _, name := range []string{user, "bob"} {
		as(name, 0, []string{"8 running", "agent-4"}, "status", app)
		as(name, 0, []string{app, "agent-4"}, "top", app)
	}
	as(user, 0, nil, "log-level", app, "kafkasource=debug", "--for", "1m")
	as("bob", 3, nil, "log-level", app, "debug", "--for", "1m")
	as("bob", 3, nil, "cancel", app)
}

// life makes sure that the application's life is one trace, of client, ApplicationMaster and agents.
func (c *command) life(t *testing.T, collector *otlptest.Collector, app string) {
	t.Helper()
	var spans []otlptest.Span
	c.bed.Eventually("the trace of the application's life is whole", patience, func() error {
		spans = nil
		count := map[string]int{}
		for _, s := range collector.Spans() {
			if hex.EncodeToString(s.TraceId) == scheduled[3:35] {
				spans = append(spans, s)
				count[s.Name]++
			}
		}
		for name, want := range map[string]int{
			"submit endless": 1, "job loaded": 1, "cluster asked": 1, "uploaded": 1, "submitted": 1, "accepted": 1, "start application": 1, "start master": 1,
			"allocate": 4, "start agent": 4, "localize": 4, "register agent": 4, "deploy": 4, "open": 16, "first record": 9, // not each window gets one of the ten keys
		} {
			if count[name] < want {
				return fmt.Errorf("%d spans %q, want %d; there are %v", count[name], name, want, count)
			}
		}
		return nil
	})
	byID, roles := map[string]otlptest.Span{}, map[string]bool{}
	for _, s := range spans {
		byID[string(s.SpanId)] = s
		roles[s.Resource["heddle.role"]] = true
	}
	for _, s := range spans {
		parent, ok := byID[string(s.ParentSpanId)]
		switch {
		case strings.HasPrefix(s.Name, "submit "):
			if hex.EncodeToString(s.ParentSpanId) != scheduled[36:52] || s.Attrs["heddle.app"] != app {
				t.Errorf("%s has the parent %x and the attributes %v", s.Name, s.ParentSpanId, s.Attrs)
			}
		case !ok:
			t.Errorf("%s has no parent in the trace", s.Name)
		case s.StartTimeUnixNano+1e9 < parent.StartTimeUnixNano: // YARN tells times in milliseconds, and all clocks are one here
			t.Errorf("%s begins before %s", s.Name, parent.Name)
		case s.EndTimeUnixNano < s.StartTimeUnixNano:
			t.Errorf("%s ends before it begins", s.Name)
		}
	}
	if !roles["client"] || !roles["appmaster"] || !roles["agent"] {
		t.Errorf("the trace has spans of %v, want client, appmaster and agent", roles)
	}
}

// visitor is somebody with a browser at the ResourceManager's web proxy.
type visitor struct {
	t        *testing.T
	base     string // the application's address there, without a slash at its end
	user     string
	approved bool // by a parameter, as a command does
	http     *http.Client
}

func newVisitor(t *testing.T, base, user string) *visitor {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	v := &visitor{t: t, base: base, user: user, http: &http.Client{Jar: jar, Timeout: patience, Transport: &http.Transport{}}}
	t.Cleanup(v.http.CloseIdleConnections)
	return v
}

// send sends a request as YARN's simple authentication has it, and a page of another site might too.
func (v *visitor) send(method, path, body string) (int, string) {
	v.t.Helper()
	q := url.Values{"user.name": {v.user}}
	if v.approved {
		q.Set("proxyapproved", "true")
	}
	req, err := http.NewRequestWithContext(v.t.Context(), method, v.base+path+"?"+q.Encode(), strings.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "text/plain")
	resp, err := v.http.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

func (v *visitor) wants(method, path, body string, code int, texts ...string) {
	v.t.Helper()
	got, answer := v.send(method, path, body)
	if got != code {
		v.t.Errorf("%s %s as %s: %d, want %d: %.500s", method, path, v.user, got, code, answer)
	}
	for _, text := range texts {
		if !strings.Contains(answer, text) {
			v.t.Errorf("%s %s as %s: want %q in %.500s", method, path, v.user, text, answer)
		}
	}
}

// pages looks at what whoever may look can see, with and without a trailing slash.
func (v *visitor) pages() {
	v.t.Helper()
	v.wants("GET", "", "", http.StatusOK, "<title>", "<script>")
	v.wants("GET", "/", "", http.StatusOK, "<title>", "<script>")
	v.wants("GET", "/ui/style.css", "", http.StatusOK, "{")
	v.wants("GET", "/api/job", "", http.StatusOK, `"job":"endless"`, `"agent-4"`)
	for _, path := range []string{"/api/vertices", "/api/vertices/0", "/api/agents", "/api/slots", "/api/configuration", "/api/openapi.json"} {
		v.wants("GET", path, "", http.StatusOK)
	}
	v.wants("GET", "/metrics", "", http.StatusOK, "# TYPE heddle_subtask_records_in_total counter", "heddle_agent_")
}

// session is what the dashboard asks first.
func (v *visitor) session() (s struct {
	User  string
	May   []string
	Token string
}) {
	v.t.Helper()
	code, body := v.send("GET", "/api/session", "")
	if err := json.Unmarshal([]byte(body), &s); err != nil || code != http.StatusOK {
		v.t.Errorf("the session of %s is %d, %.500s (%v)", v.user, code, body, err)
	}
	return s
}
