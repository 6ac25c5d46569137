package yarnclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var app7 = yarnid.Application{Cluster: 1700000000000, Number: 7}

// rm is a web server that answers as a ResourceManager by a function.
func rm(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func client(t *testing.T, cfg Config, servers ...*httptest.Server) *Client {
	t.Helper()
	for _, s := range servers {
		cfg.Bases = append(cfg.Bases, s.URL)
	}
	if cfg.PauseMin == 0 {
		cfg.PauseMin, cfg.PauseMax = time.Millisecond, 20*time.Millisecond
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func answer(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json;charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

func running(w http.ResponseWriter, _ *http.Request) { answer(w, 200, `{"state":"RUNNING"}`) }

func TestHighAvailability(t *testing.T) {
	active := rm(t, running)
	var loops atomic.Int32
	var self *httptest.Server
	self = rm(t, func(w http.ResponseWriter, r *http.Request) {
		if loops.Add(1) > 2 {
			running(w, r)
			return
		}
		http.Redirect(w, r, self.URL+r.URL.Path, http.StatusTemporaryRedirect)
	})
	gone := httptest.NewServer(nil)
	gone.Close()
	for _, x := range []struct {
		name  string
		first http.HandlerFunc
	}{
		{"points to the active", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, active.URL+r.URL.Path+"?user.name=x", http.StatusTemporaryRedirect)
		}},
		{"points to a host that is not configured", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://evil.example/ws", http.StatusTemporaryRedirect)
		}},
		{"knows no active", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Refresh", "3; url="+gone.URL+"/ws/v1/cluster?next.refresh.interval=6")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}},
		{"says so in text", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(w, "There is no active RM right now. Will retry in next 3 seconds.")
		}},
		{"old, by Refresh", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Refresh", "3; url="+active.URL+"/")
			_, _ = io.WriteString(w, "This is standby RM. Redirecting to the current active RM: x")
		}},
		{"answers 503", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }},
		{"hangs up", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
	} {
		t.Run(x.name, func(t *testing.T) {
			var asked atomic.Int32
			first := rm(t, func(w http.ResponseWriter, r *http.Request) { asked.Add(1); x.first(w, r) })
			c := client(t, Config{Auth: UserName("alice")}, first, active)
			for range 2 {
				if s, err := c.State(t.Context(), app7); err != nil || s != "RUNNING" {
					t.Fatalf("got %q, %v", s, err)
				}
			}
			if n := asked.Load(); n != 1 {
				t.Errorf("the first was asked %d times: the active is not remembered", n)
			}
		})
	}
	if s, err := client(t, Config{}, gone, active).State(t.Context(), app7); err != nil || s != "RUNNING" {
		t.Errorf("the first is gone: %q, %v", s, err)
	}
	if s, err := client(t, Config{}, self).State(t.Context(), app7); err != nil || s != "RUNNING" {
		t.Errorf("pointing to itself just after the switch: %q, %v", s, err)
	}
	_, err := client(t, Config{Attempts: 3}, gone).State(t.Context(), app7)
	if ue, ok := errors.AsType[*UnreachableError](err); !ok || !strings.Contains(ue.Error(), gone.URL) {
		t.Errorf("all gone: %v", err)
	}
}

// TestBodiesDrained repeats a request whose refusals are long, over one connection.
func TestBodiesDrained(t *testing.T) {
	var n, conns atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if b, _ := io.ReadAll(r.Body); len(b) == 0 {
			t.Error("the repeated request has no body")
		}
		if n.Add(1)%5 != 0 {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(429)
			_, _ = io.WriteString(w, strings.Repeat("busy ", 20000))
			return
		}
		answer(w, 200, `{"priority":1}`)
	}))
	s.Config.ConnState = func(_ net.Conn, st http.ConnState) {
		if st == http.StateNew {
			conns.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	c := client(t, Config{}, s)
	start := time.Now()
	for range 4 {
		if err := c.SetPriority(t.Context(), app7, 1); err != nil {
			t.Fatal(err)
		}
	}
	if conns.Load() != 1 {
		t.Errorf("%d connections for one client's requests in a row", conns.Load())
	}
	if d := time.Since(start); d > time.Minute {
		t.Errorf("Retry-After is not capped: %v", d)
	}
}

func TestErrors(t *testing.T) {
	for _, x := range []struct {
		status     int
		typ, body  string
		want       string
		denied, un bool
	}{
		{404, "application/json", `{"RemoteException":{"exception":"NotFoundException","message":"app with id: x not found","javaClassName":"org"}}`, "404: NotFoundException: app with id", false, true},
		{403, "text/plain", "App submission via REST is disabled.", "403: App submission via REST is disabled.", true, false},
		{400, "text/html", "<html>tomcat</html>", "400: Bad Request", false, false},
		{200, "application/json", `{"state":`, "cannot read the answer", false, false},
		{500, "application/json", `{}`, "500: {}", false, false},
	} {
		var n atomic.Int32
		s := rm(t, func(w http.ResponseWriter, _ *http.Request) {
			n.Add(1)
			w.Header().Set("Content-Type", x.typ)
			w.WriteHeader(x.status)
			_, _ = io.WriteString(w, x.body)
		})
		_, err := client(t, Config{}, s).State(t.Context(), app7)
		if err == nil || !strings.Contains(err.Error(), x.want) || !strings.Contains(err.Error(), app7.String()) || n.Load() != 1 {
			t.Errorf("%d: %v after %d requests, want %q after one", x.status, err, n.Load(), x.want)
		}
		if IsDenied(err) != x.denied || IsUnknown(err) != x.un {
			t.Errorf("%d: denied %v, unknown %v", x.status, IsDenied(err), IsUnknown(err))
		}
	}
}

func TestDeadline(t *testing.T) {
	hang := make(chan struct{})
	s := rm(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-hang:
		}
	})
	defer close(hang)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := client(t, Config{Timeout: 50 * time.Millisecond, Attempts: 1000, PauseMax: 10 * time.Millisecond, PauseMin: time.Millisecond}, s).State(ctx, app7)
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > time.Minute {
		t.Errorf("got %v after %v", err, time.Since(start))
	}
	if strings.Contains(err.Error(), "user.name") {
		t.Errorf("the error shows the query: %v", err)
	}
}

// TestSubmitAdopts loses the answer of a submission that went through; the repetition is refused, as old ResourceManagers do.
func TestSubmitAdopts(t *testing.T) {
	for _, x := range []struct {
		name, there string
		ok          bool
	}{{"ours", "job", true}, {"another's", "other", false}} {
		var posts atomic.Int32
		s := rm(t, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodPost && posts.Add(1) == 1:
				panic(http.ErrAbortHandler)
			case r.Method == http.MethodPost:
				answer(w, 400, `{"RemoteException":{"exception":"YarnException","message":"Application is already present! Cannot add a duplicate!"}}`)
			default:
				answer(w, 200, `{"app":{"id":"`+app7.String()+`","name":"`+x.there+`","state":"ACCEPTED"}}`)
			}
		})
		err := client(t, Config{}, s).Submit(t.Context(), &Submission{ID: app7, Name: "job", Command: "x"})
		if (err == nil) != x.ok {
			t.Errorf("%s: %v", x.name, err)
		}
		if posts.Load() != 2 {
			t.Errorf("%s: %d posts", x.name, posts.Load())
		}
	}
}

func TestSubmitBody(t *testing.T) {
	var got map[string]any
	var query string
	s := rm(t, func(w http.ResponseWriter, r *http.Request) {
		query = r.URL.RawQuery
		_ = json.NewDecoder(r.Body).Decode(&got)
		w.WriteHeader(202)
	})
	tok := token.Token{Identifier: []byte("i"), Password: []byte("p"), Kind: "k", Service: "s"}
	err := client(t, Config{Auth: UserName("al ice")}, s).Submit(t.Context(), &Submission{
		ID: app7, Name: "n", Type: "HEDDLE", Tags: []string{"a"}, Resource: Resource{MemoryMB: 512, VCores: 1}, Command: "./am", Env: map[string]string{"B": "2", "A": "1"},
		Resources:   []LocalResource{{Name: "am", URI: "hdfs://h:1/x", Visibility: Private, Size: 3, Modified: time.UnixMilli(1234)}},
		Credentials: token.Credentials{Tokens: []token.Named{{Alias: "al", Token: tok}}, Secrets: []token.Secret{{Name: "s", Value: []byte{0xff}}}},
		ViewACL:     "bob", MaxAttempts: 2, FailuresValidity: time.Minute, KeepContainers: true, RollingLogs: ".*log", Logs: "std.*",
	})
	if err != nil {
		t.Fatal(err)
	}
	if query != "user.name=al+ice" {
		t.Errorf("query %q", query)
	}
	want := `{"am-container-spec":{"application-acls":{"entry":[{"key":"VIEW_APP","value":"bob"}]},"commands":{"command":"./am"},` +
		`"credentials":{"secrets":{"entry":[{"key":"s","value":"_w"}]},"tokens":{"entry":[{"key":"al","value":"` + tok.URLString() + `"}]}},` +
		`"environment":{"entry":[{"key":"A","value":"1"},{"key":"B","value":"2"}]},` +
		`"local-resources":{"entry":[{"key":"am","value":{"resource":"hdfs://h:1/x","size":3,"timestamp":1234,"type":"FILE","visibility":"PRIVATE"}}]}},` +
		`"application-id":"application_1700000000000_0007","application-name":"n","application-tags":{"tag":["a"]},"application-type":"HEDDLE",` +
		`"attempt-failures-validity-interval":60000,"cancel-tokens-when-complete":true,"keep-containers-across-application-attempts":true,` +
		`"log-aggregation-context":{"log-include-pattern":"std.*","rolled-log-include-pattern":".*log"},"max-app-attempts":2,"resource":{"memory":512,"vCores":1},"unmanaged-AM":false}`
	if b, _ := json.Marshal(got); string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
}

func TestKill(t *testing.T) {
	var n atomic.Int32
	s := rm(t, func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) < 3 {
			answer(w, 202, `{"state":"KILLING"}`)
			return
		}
		answer(w, 200, `{"state":"KILLED"}`)
	})
	if err := client(t, Config{}, s).Kill(t.Context(), app7, "why"); err != nil || n.Load() != 3 {
		t.Errorf("%v after %d requests", err, n.Load())
	}
}

// TestShapes reads answers as real clusters write them: lists of one as objects, none as null, numbers as strings.
func TestShapes(t *testing.T) {
	var mu sync.Mutex
	body := ""
	s := rm(t, func(w http.ResponseWriter, _ *http.Request) { mu.Lock(); defer mu.Unlock(); answer(w, 200, body) })
	c := client(t, Config{}, s)
	say := func(b string) { mu.Lock(); body = b; mu.Unlock() }
	for in, want := range map[string]int{
		`{"apps":{}}`: 0, `{"apps":null}`: 0, `{"apps":{"app":{"id":"a","startedTime":"12"}}}`: 1, `{"apps":{"app":[{"id":"a"},{"id":"b","applicationTags":"x,y"}]}}`: 2,
	} {
		say(in)
		apps, err := c.Apps(t.Context(), Filter{Tags: []string{"x"}})
		if err != nil || len(apps) != want {
			t.Errorf("%s: %v, %v; want %d", in, apps, err, want)
		}
	}
	say(`{"nodes":{"node":{"id":"h:1","rack":"/r","state":"RUNNING","nodeLabels":"gpu","usedMemoryMB":1.0}}}`)
	ns, err := c.Nodes(t.Context(), "RUNNING")
	if err != nil || len(ns) != 1 || ns[0].ID != "h:1" || !reflect.DeepEqual([]string(ns[0].Labels), []string{"gpu"}) || ns[0].Used.MemoryMB != 1 {
		t.Errorf("nodes: %+v, %v", ns, err)
	}
	say(`{"scheduler":{"schedulerInfo":{"type":"capacityScheduler","queueName":"root","capacity":100.0,"queues":{"queue":[{"queueName":"default","state":"RUNNING","numApplications":2},{"queueName":"p","queues":{"queue":{"queueName":"q"}}}]}}}}`)
	qs, err := c.Queues(t.Context())
	var paths []string
	for _, q := range qs {
		paths = append(paths, fmt.Sprint(q.Path, q.Leaf))
	}
	if want := "[rootfalse root.defaulttrue root.pfalse root.p.qtrue]"; err != nil || fmt.Sprint(paths) != want {
		t.Errorf("queues: %v, %v; want %s", paths, err, want)
	}
	att := yarnid.Attempt{App: app7, Number: 1}
	for in, want := range map[string]int{
		`{"container":[{"containerId":"c1"},{"containerId":"c2"}]}`: 2, `{"container":{"containerId":"c1"}}`: 1, `{"containers":{"container":{"containerId":"c1"}}}`: 1, `{}`: 0, `null`: 0,
	} {
		say(in)
		cs, err := c.Containers(t.Context(), att)
		if err != nil || len(cs) != want {
			t.Errorf("%s: %v, %v; want %d", in, cs, err, want)
		}
	}
	say(`{"appAttempts":{"appAttempt":{"id":1,"containerId":"c"}}}`)
	if as, err := c.Attempts(t.Context(), app7); err != nil || len(as) != 1 || as[0].Number != 1 {
		t.Errorf("attempts: %v, %v", as, err)
	}
	say(`{"application-id":"application_1_0002","maximum-resource-capability":{"memory":8192,"vCores":4,"resourceInformations":{"resourceInformation":[
		{"name":"memory-mb","units":"Mi","value":8192},{"name":"vcores","units":"","value":4},{"name":"yarn.io/gpu","units":"","value":2}]}}}`)
	if n, err := c.NewApplication(t.Context()); err != nil || !reflect.DeepEqual(n.Custom, map[string]int64{"yarn.io/gpu": 2}) {
		t.Errorf("got %+v, %v", n, err)
	}
	say(`{"application-id":"application_1_0002","maximum-resource-capability":{"memory":8192,"vCores":4}}`)
	if n, err := c.NewApplication(t.Context()); err != nil || n.ID.Number != 2 || n.Max != (Resource{MemoryMB: 8192, VCores: 4}) || n.Custom != nil {
		t.Errorf("new application: %+v, %v", n, err)
	}
	for in, want := range map[string]int{`{}`: 0, `null`: 0, `{"nodeLabelInfo":{"name":"gpu"}}`: 1, `{"nodeLabelInfo":[{"name":""},{"name":"a"},{"name":"b"}]}`: 2} {
		say(in)
		if ls, err := c.Labels(t.Context()); err != nil || len(ls) != want {
			t.Errorf("labels %s: %v, %v; want %d", in, ls, err, want)
		}
	}
	say(`{"appActivities":{"diagnostic":"waiting for display"}}`)
	if ds, err := c.Activities(t.Context(), app7); err != nil || len(ds) != 1 || ds[0].Text != "waiting for display" {
		t.Errorf("activities: %+v, %v", ds, err)
	}
	say(`{"clusterInfo":{"haState":"ACTIVE","hadoopVersion":"3.4.3"}}`)
	if is, errs := c.Infos(t.Context()); errs[0] != nil || is[0].HAState != "ACTIVE" {
		t.Errorf("infos: %v, %v", is, errs)
	}
}
