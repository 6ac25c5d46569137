package web

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/appmaster/web"
	"github.com/heddle-stream/heddle/internal/profile"
	"github.com/heddle-stream/heddle/itest/testbed"
)

var address = regexp.MustCompile(`http://[0-9.]+:[0-9]+/`)

// demo starts the demo and returns the address of its dashboard.
func demo(t *testing.T) string {
	b := testbed.New(t)
	heddle := testbed.BuildHeddle(t, b)
	p := b.Start(testbed.Spec{Name: "demo", Path: heddle, Args: []string{"demo", "--duration", "10m", "--rate", "20000"},
		Env: []string{"XDG_STATE_HOME=" + b.Dir("state")}})
	t.Cleanup(func() {
		p.Interrupt()
		if code := p.Wait(patience); code != 0 && code != 6 {
			t.Errorf("the demo exits with %d:\n%s", code, p.Tail(20))
		}
	})
	var found string
	b.Eventually("the demo's dashboard", patience, func() error {
		found = address.FindString(p.Output())
		if found == "" {
			return fmt.Errorf("no address yet in: %s", p.Tail(5))
		}
		return nil
	})
	return found
}

// TestDemo: every page shows the running demo, light and dark, without an error in the console.
func TestDemo(t *testing.T) {
	testbed.Group(t, "web")
	p := open(t, demo(t), 1400, 900)
	p.await("the running job", `document.querySelector("header .pill.running") !== null && document.querySelectorAll(".graph .vertex").length > 1`)
	p.await("records that flow", `/[1-9].* k?\/s/.test(document.querySelector(".graph").textContent.replaceAll("\u202f", " "))`)
	p.await("a course of rates", `document.querySelector(".fact polyline")?.points.numberOfItems > 12`)
	id := eval[string](p, `document.querySelector(".graph .vertex").getAttribute("href").split("/").pop()`)
	for _, c := range []struct{ page, shows, script string }{
		{"overview", "sparklines", `document.querySelectorAll("main .spark polyline").length > 5`},
		{"vertex/" + id, "subtasks", `document.querySelectorAll("main table")[1]?.rows.length > 4`},
		{"slots", "tasks in slots", `document.querySelectorAll(".slots .task").length > 3`},
		{"sources", "splits with positions", `document.querySelectorAll("main tbody tr").length > 3`},
		{"agents", "two agents", `document.querySelectorAll("main .pill.alive").length === 2`},
		{"containers", "two containers with their times", `document.querySelectorAll("main table")[0]?.querySelectorAll(".pill.alive").length === 2`},
		{"agent/agent-1", "its tasks and the profiles of its process", `document.querySelectorAll("main tbody a").length > 1 && document.querySelectorAll("button[data-do=profile]").length === 4`},
		{"agent/appmaster", "the ApplicationMaster's figures", `document.querySelectorAll("main .fact").length >= 5`},
		{"latency", "where the time goes", `document.querySelectorAll("main .stack i").length >= 5`},
		{"logs", "the log of the ApplicationMaster", `document.querySelector("pre.log")?.textContent.includes("level=")`},
		{"configuration", "origins", `document.querySelector("main table")?.innerText.includes("heddle demo")`},
	} {
		p.script(`location.hash = "#/` + c.page + `"`)
		p.await(c.shows, c.script)
		for _, theme := range []string{"light", "dark"} {
			p.theme(theme)
			p.picture(pictureOf(c.page) + "-" + theme)
			legible(p, c.page+", "+theme)
		}
		fits(p, c.page)
		p.do(chromedp.EmulateViewport(400, 800))
		fits(p, c.page)
		p.picture(pictureOf(c.page) + "-narrow")
		p.do(chromedp.EmulateViewport(1400, 900))
		accessible(p, c.page)
	}
	profileOf(p, "agent-1")
	p.clean()
}

// fits: the page is not wider than the window, and the page's name is to be seen among those of the others.
func fits(p *page, name string) {
	p.t.Helper()
	if wide := eval[int](p, `document.documentElement.scrollWidth - innerWidth`); wide > 0 {
		p.t.Errorf("the page %s is %d pixels wider than a window of %d", name, wide, eval[int](p, `innerWidth`))
	}
	p.await("in its navigation that it is "+name, `(() => { const a = document.querySelector("nav [aria-current]").getBoundingClientRect(); return a.left >= 0 && a.right <= innerWidth; })()`)
}

// pictureOf is the name of a page's picture.
func pictureOf(page string) string {
	name, of, _ := strings.Cut(page, "/")
	if of == "appmaster" {
		return name + "-" + of
	}
	return name
}

// profileOf has the stacks of an agent taken by the button on its page, and looks at what comes.
func profileOf(p *page, agent string) {
	p.t.Helper()
	p.script(`location.hash = "#/agent/` + agent + `"`)
	p.await("the button", `document.querySelector("button[data-kind=stacks]:not([disabled])")`)
	p.script(`document.querySelector("button[data-kind=stacks]").click()`)
	p.await("a profile to load down", `document.querySelector("main a[download]")`)
	p.picture("profile")
	p.script(`fetch(document.querySelector("main a[download]").getAttribute("href")).then((r) => r.text()).then((t) => (window.stacks = t))`)
	p.await("the stacks of an agent", `window.stacks?.includes("goroutine ") && stacks.includes("agent.Run(…)")`)
	p.theme("light")
}

// TestExporter: what the exporter serves of the running demo pleases Prometheus's own checker, and so do the alerts on it.
func TestExporter(t *testing.T) {
	testbed.Group(t, "web")
	b := testbed.New(t)
	heddle := testbed.BuildHeddle(t, b)
	env := []string{"XDG_STATE_HOME=" + b.Dir("state")}
	p := b.Start(testbed.Spec{Name: "demo", Path: heddle, Args: []string{"demo", "--duration", "10m", "--rate", "2000"}, Env: env})
	t.Cleanup(func() { p.Interrupt(); p.Wait(patience) })
	e := b.Start(testbed.Spec{Name: "exporter", Path: heddle, Args: []string{"exporter", "--listen", "127.0.0.1:0", "--refresh", "0s"}, Env: env})
	t.Cleanup(func() {
		e.Interrupt()
		if code := e.Wait(patience); code != 0 {
			t.Errorf("the exporter exits with %d:\n%s", code, e.Tail(20))
		}
	})
	var text string
	b.Eventually("metrics of the demo", patience, func() error {
		at := address.FindString(e.Output())
		if at == "" {
			return fmt.Errorf("no address yet in: %s", e.Tail(5))
		}
		r, err := http.Get(at + "metrics")
		if err != nil {
			return err
		}
		defer r.Body.Close()
		data, err := io.ReadAll(r.Body)
		if text = string(data); !strings.Contains(text, "heddle_split_records_total{") {
			return fmt.Errorf("%v in\n%.2000s", err, text)
		}
		return nil
	})
	if !regexp.MustCompile(`heddle_app_up\{app="heddle-[^"]+",job="clicks-per-user",user="[^"]+"\} 1\n`).MatchString(text) {
		t.Errorf("the demo was not read:\n%.2000s", text)
	}
	if out, err := testbed.Promtool(b, text, "check", "metrics"); err != nil {
		t.Errorf("promtool does not like what the exporter serves: %v\n%s", err, out)
	}
	rules, err := filepath.Abs(filepath.Join("..", "..", "conf", "monitoring", "heddle-alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := testbed.Promtool(b, "", "check", "rules", rules); err != nil {
		t.Errorf("promtool does not like the alerts: %v\n%s", err, out)
	}
	cases, err := os.ReadFile(filepath.Join("testdata", "alerts-test.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := testbed.Promtool(b, "", "test", "rules", b.File("alerts-test.yaml", fmt.Sprintf("rule_files: [%q]\n%s", rules, cases))); err != nil {
		t.Errorf("the alerts do not tell what they should: %v\n%s", err, out)
	}
}

// fake is a master whose job the tests make up.
type fake struct {
	mu       sync.Mutex
	snapshot func() *appmaster.Snapshot // guarded by mu
	canceled chan string
}

func (f *fake) Snapshot() *appmaster.Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.snapshot()
}

func (f *fake) Cancel(reason string) { f.canceled <- reason }

// TakeProfile implements appmaster.Profiler.
func (f *fake) TakeProfile(of string, kind profile.Kind, _ time.Duration) (appmaster.ProcessProfile, error) {
	return appmaster.ProcessProfile{ID: 1, Of: of, Kind: kind, State: appmaster.ProfileRunning}, nil
}

// Profiles implements appmaster.Profiler.
func (f *fake) Profiles() []appmaster.ProcessProfile { return nil }

// ProfileData implements appmaster.Profiler.
func (f *fake) ProfileData(uint64) []byte { return nil }

// serve serves the dashboard of a made-up job.
func serve(t *testing.T, f *fake) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, err := web.New(web.Config{Listener: l, Token: "token",
		Options: func() []web.Option {
			return []web.Option{{Name: "trace.ui-url", Value: "http://jaeger.example/trace/{trace}"}}
		}})
	if err != nil {
		t.Fatal(err)
	}
	addr, err := s.Start(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return addr
}

// big is a job of 500 subtasks on 60 agents whose figures grow.
func big() func() *appmaster.Snapshot {
	start, n := time.Now(), int64(0)
	return func() *appmaster.Snapshot {
		n++
		now := time.Now()
		s := &appmaster.Snapshot{App: "application_1_0001", Job: "big", State: "running", Since: start, Started: start, Time: now, Attempt: 1,
			Slots: appmaster.SlotCounts{Needed: 100, Total: 120, Free: 20}}
		for a := range 60 {
			agent := appmaster.Agent{ID: fmt.Sprintf("agent-%d", a), Container: fmt.Sprintf("container_1_0001_01_%06d", a+2), Host: fmt.Sprintf("host-%02d", a%12),
				State: "alive", Heard: now, RSS: 80 << 20, Segments: 2000, SegmentsUse: n % 2000, ExchangeIn: n << 20, ExchangeOut: n << 20}
			for i := range 2 {
				slot := appmaster.Slot{Agent: agent.ID, Index: i}
				if k := a*2 + i; k < 100 {
					slot.Job = s.App
					for v := range 5 {
						slot.Tasks = append(slot.Tasks, fmt.Sprintf("vertex %d %d/100", v, k+1))
					}
				}
				agent.Slots = append(agent.Slots, slot)
			}
			s.Agents = append(s.Agents, agent)
			s.Held = append(s.Held, appmaster.Container{ID: agent.Container, Agent: agent.ID, Host: agent.Host, State: "alive", Asked: start, Granted: start.Add(time.Second), Joined: start.Add(2 * time.Second)})
		}
		for a := range 100 {
			status := []int{-104, 137, 0, -102}[a%4]
			s.Held = append(s.Held, appmaster.Container{ID: fmt.Sprintf("container_1_0001_01_%06d", a+100), Agent: fmt.Sprintf("agent-%d", a+100), Host: fmt.Sprintf("host-%02d", a%12), State: "ended",
				Asked: start.Add(-time.Hour), Granted: start.Add(-time.Hour), Started: start.Add(-time.Hour), Ended: start.Add(-time.Duration(100-a) * time.Second),
				Exit: &appmaster.Exit{Status: &status, Failed: status != 0 && status != -102, Reason: "it used more memory than its container has: raise agent.memory (its container has 1024 MB)", Fix: "raise agent.memory",
					Told: "Container is running beyond physical memory limits. Current usage: 1.0 GB of 1 GB physical memory used", LastLogs: []string{"level=WARN msg=\"memory is short\"", "level=ERROR msg=\"out of memory\""}}})
		}
		s.Process.Service = "renamed" // by OTEL_SERVICE_NAME
		s.Containers = appmaster.Containers{Asked: 160, Granted: 160, Released: 20, Ended: 100, Failed: 50}
		for v := range 5 {
			x := appmaster.Vertex{ID: v, Name: fmt.Sprintf("vertex %d", v), Parallelism: 100, Tasks: map[string]int{"running": 100}, InRate: 1e6, OutRate: 1e6, RecordsIn: n * 1e6, RecordsOut: n * 1e6, Busy: .4, Blocked: .1 * float64(v)}
			var held []appmaster.Hop
			if v == 4 { // whose channels wait for each other at barriers
				held = []appmaster.Hop{{Edge: 3, Phase: "alignment", Count: 9, Mean: .02, P50: .02, P99: .1}}
			}
			for i := range 100 {
				x.Subtasks = append(x.Subtasks, appmaster.Subtask{Index: i, State: "running", Since: start, Agent: fmt.Sprintf("agent-%d", i/2), Slot: i % 2, RecordsIn: n * int64(1000+i), RecordsOut: n * 1000, Busy: .3,
					Hops: append([]appmaster.Hop{{Edge: v - 1, Phase: "fill", Count: 9, Mean: .004, P50: .004, P99: .02}, {Edge: v - 1, Phase: "credit", Count: 9, Mean: .002 * float64(v), P50: .001, P99: .1}, {Edge: v - 1, Phase: "wire", Count: 9, Mean: .0004, P50: .0004, P99: .001}, {Edge: v - 1, Phase: "receive_queue", Count: 9, Mean: .001, P50: .001, P99: .004}}, held...)})
			}
			s.Vertices = append(s.Vertices, x)
			if v > 0 {
				s.Edges = append(s.Edges, appmaster.Edge{From: v - 1, To: v, Partitioning: "hash"})
			}
		}
		return s
	}
}

// TestBig: a job of 500 subtasks and 60 agents is drawn fast enough to feel alive.
func TestBig(t *testing.T) {
	testbed.Group(t, "web")
	p := open(t, serve(t, &fake{snapshot: big()}), 1400, 900)
	p.await("the graph", `document.querySelectorAll(".graph .vertex").length === 5`)
	const polls = `performance.getEntriesByType("resource").filter((e) => e.name.endsWith("api/job")).length`
	for _, c := range []struct{ page, shows, script string }{
		{"vertex/2", "100 subtasks", `document.querySelectorAll("main table")[1]?.tBodies[0].rows.length === 100`},
		{"slots", "120 slots", `document.querySelectorAll(".slots li").length === 120`},
		{"latency", "bars for each edge", `document.querySelectorAll(".stack i").length === 24 && [...document.querySelectorAll(".stack")].every((s) => Math.abs([...s.children].reduce((n, i) => n + parseFloat(i.style.width), 0) - 100) < 0.1)`},
		{"agents", "60 agents", `document.querySelectorAll("main tbody tr").length === 60`},
		{"containers", "60 containers, and 100 that ended", `document.querySelectorAll("main tbody tr").length === 160 && document.querySelector("main details")`},
	} {
		p.script(`location.hash = "#/` + c.page + `"`)
		p.await(c.shows, c.script)
		var costs []time.Duration
		for range 5 {
			costs = append(costs, p.spends("one more poll", func() {
				n := eval[int](p, polls)
				p.await("one more poll", fmt.Sprintf("%s > %d", polls, n))
			}))
		}
		slices.Sort(costs)
		t.Logf("a poll of the page %s costs the browser %.0f ms, at most %.0f", c.page, costs[2].Seconds()*1e3, costs[4].Seconds()*1e3)
		if costs[2] > 500*time.Millisecond || costs[4] > 1500*time.Millisecond {
			t.Errorf("polls of the page %s cost the browser %v of each second", c.page, costs)
		}
		p.picture("big-" + strings.Split(c.page, "/")[0])
		if c.page == "latency" {
			p.await("links to the traces through each edge", `document.querySelectorAll("a.traces[href^='http://jaeger.example/search?service=renamed'][href*='heddle.edge']").length === 4`)
		}
	}
	p.clean()
}

// TestHostile: whatever a job's names and records hold is shown as text.
func TestHostile(t *testing.T) {
	testbed.Group(t, "web")
	evil, now, zero := `"><img src=x onerror="window.hit=1"><script>window.hit=1</script>${window.hit=1}`, time.Now(), 0
	f := &fake{snapshot: func() *appmaster.Snapshot {
		return &appmaster.Snapshot{App: evil, Job: evil, State: "failing", Waiting: evil, Since: now, Started: now, Time: now, Attempt: 2,
			Cause:    &appmaster.Cause{Kind: evil, Message: evil, Operator: evil, Vertex: evil, Subtask: &zero, Agent: evil, Host: evil, LastLogs: []string{evil}},
			Vertices: []appmaster.Vertex{{Name: evil, Parallelism: 1, Tasks: map[string]int{evil: 1}, Operators: []appmaster.Operator{{Name: evil, Kind: evil, Counters: map[string]int64{evil: 1}}}, Subtasks: []appmaster.Subtask{{State: evil, Agent: evil, Error: evil}}}},
			Agents:   []appmaster.Agent{{ID: evil, Container: evil, Host: evil, State: evil, Why: evil, Exchange: evil, LastLogs: []string{evil}, Slots: []appmaster.Slot{{Agent: evil, Job: evil, Tasks: []string{evil}}}}},
			Sources:  []appmaster.Source{{Name: evil, Splits: []appmaster.Split{{ID: evil, Trouble: evil}}}},
			Held:     []appmaster.Container{{ID: evil, Agent: evil, Host: evil, State: evil}, {ID: "x", Agent: evil, Exit: &appmaster.Exit{Reason: evil, Told: evil + "told", Fix: evil + "fix", LastLogs: []string{evil}}}},
			Warnings: []appmaster.Warning{{Time: now, Message: evil}}}
	}}
	p := open(t, serve(t, f), 1400, 900)
	p.await("the job", `document.querySelector(".cause") !== null`)
	for _, name := range []string{"overview", "vertex/0", "slots", "sources", "agents", "containers", "agent/\" + encodeURIComponent(document.querySelector(\"header h1\").textContent) + \""} {
		p.script(`location.hash = "#/` + name + `"`)
		p.await("the name as text", `document.querySelector("main").textContent.includes("<script>")`)
		if n := eval[int](p, `document.querySelectorAll("main img, main script").length + (window.hit ?? 0)`); n != 0 {
			t.Errorf("the page %s takes the job's names for markup", name)
		}
	}
	p.clean()
}

// TestProxy: the dashboard works behind a proxy that knows GET and PUT, forgets most headers, and whose link to it
// lacks the trailing slash, as YARN's does (Hadoop 3.4, WebAppProxyServlet); and the job can be cancelled there.
func TestProxy(t *testing.T) {
	testbed.Group(t, "web")
	f := &fake{snapshot: big(), canceled: make(chan string, 1)}
	p := open(t, proxied(t, f, func() bool { return true }), 1000, 700)
	p.await("the graph", `document.querySelectorAll(".graph .vertex").length === 5`)
	p.do(chromedp.Click(chromedp.CSS(`header button[data-do=cancel]`)), chromedp.Click(chromedp.CSS(`#ask button[value=yes]`)))
	select {
	case <-f.canceled:
	case <-time.After(patience):
		t.Error("the button does not cancel the job")
	}
	p.clean()
}

// proxied serves the dashboard of a made-up job behind a proxy that is like YARN's, as long as the master is alive.
func proxied(t *testing.T, f *fake, alive func() bool) string {
	t.Helper()
	to, err := url.Parse(serve(t, f))
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.URL.Path = strings.TrimPrefix(strings.TrimPrefix(r.In.URL.Path, "/proxy/application_1_0001"), "/")
		if !strings.HasPrefix(r.Out.URL.Path, "/") {
			r.Out.URL.Path = "/" + r.Out.URL.Path
		}
		kept := http.Header{}
		for _, name := range []string{"User-Agent", "Accept", "Accept-Encoding", "Accept-Language", "Content-Type"} {
			if v := r.In.Header.Get(name); v != "" {
				kept.Set(name, v)
			}
		}
		r.Out.Header, r.Out.Host = kept, to.Host
	}}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodPut {
			http.Error(w, "405", http.StatusMethodNotAllowed)
			return
		}
		if !alive() {
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	return front.URL + "/proxy/application_1_0001"
}
