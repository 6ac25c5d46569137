package yarnclient_test

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/yarnclient"
	"github.com/heddle-stream/heddle/yarnclient/report"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
	"github.com/heddle-stream/heddle/yarnclient/yarntest"
)

// options reach a cluster as alice, by both ways.
func options(c *yarntest.Cluster, bases []string, mode yarnclient.Mode, notices *[]string) yarnclient.Options {
	return yarnclient.Options{
		Mode: mode,
		REST: yarnclient.Config{Bases: bases, Auth: yarnclient.UserName("alice"), Transport: &http.Transport{DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) { return c.Dial(ctx, addr) }}},
		RPC:  yarnclient.RPCConfig{Addrs: c.ClientAddrs(), Auth: []hrpc.Authenticator{hrpc.Simple("alice")}, Dial: c.Dial},
		Notice: func(s string) {
			if notices != nil {
				*notices = append(*notices, s)
			}
		},
	}
}

// inBubble runs a test with a cluster and an access to it.
func inBubble(t *testing.T, opt yarntest.Options, mode yarnclient.Mode, f func(t *testing.T, c *yarntest.Cluster, a *yarnclient.Access, notices *[]string)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := yarntest.New(opt)
		var notices []string
		a, err := yarnclient.Open(options(c, c.ServeWeb(), mode, &notices))
		if err != nil {
			t.Fatal(err)
		}
		f(t, c, a, &notices)
		a.Close()
		c.Close()
	})
}

func submission(id yarnid.Application) *yarnclient.Submission {
	return &yarnclient.Submission{ID: id, Name: "job", Type: "HEDDLE", Tags: []string{"a", "b"}, Resource: yarnclient.Resource{MemoryMB: 512, VCores: 1}, Command: "run",
		Credentials: token.Credentials{Secrets: []token.Secret{{Name: "s", Value: []byte("secret")}}}}
}

// TestVerbs does everything that a command does, each way, with the same result.
func TestVerbs(t *testing.T) {
	for _, mode := range []yarnclient.Mode{yarnclient.REST, yarnclient.ByRPC, yarnclient.Auto} {
		t.Run(string(mode), func(t *testing.T) {
			inBubble(t, yarntest.Options{Nodes: 3}, mode, func(t *testing.T, c *yarntest.Cluster, a *yarnclient.Access, notices *[]string) {
				c.Describe(yarntest.World{Labels: []string{"gpu", "ssd"}, Nodes: []report.Node{{ID: "n1:8041", Host: "n1", State: "RUNNING", Used: report.Resource{MemoryMB: 1, VCores: 1}, Free: report.Resource{MemoryMB: 9, VCores: 1}}},
					Scheduler: report.Scheduler{Queues: []report.Queue{{Path: "root", State: "RUNNING", Capacity: 100}, {Path: "root.a", State: "RUNNING", Capacity: 50, Leaf: true}, {Path: "root.b", State: "STOPPED", Leaf: true}}}})
				life(t, c, a)
				if len(*notices) != 0 {
					t.Errorf("notices %q", *notices)
				}
				if mode != yarnclient.ByRPC && c.Asked("RPC submitApplication") != 0 {
					t.Error("submitted by RPC though REST would do")
				}
				describes(t, a)
			})
		})
	}
}

func life(t *testing.T, c *yarntest.Cluster, a yarnclient.API) {
	ctx := t.Context()
	app, err := a.NewApplication(ctx)
	if err != nil || app.Max.MemoryMB != 8192 {
		t.Fatalf("new application %+v, %v", app, err)
	}
	if want := map[string]int64{"yarn.io/gpu": yarntest.GPUs}; !maps.Equal(app.Custom, want) {
		t.Errorf("the largest container has %v, want %v", app.Custom, want)
	}
	s := submission(app.ID)
	s.Queue = "a"
	for range 2 { // the second is the same application
		if err := a.Submit(ctx, s); err != nil {
			t.Fatal(err)
		}
	}
	if k, _ := c.Application(app.ID); string(k.Tokens.Secret("s")) != "secret" || k.Command != "run" || k.User != "alice" || !slices.Equal(k.Tags, s.Tags) {
		t.Errorf("the cluster has %+v", k)
	}
	got, err := a.App(ctx, app.ID)
	if err != nil || got.State != yarnclient.StateAccepted || got.Queue != "root.a" || got.Name != "job" || got.Type != "HEDDLE" || got.Ended() {
		t.Errorf("report %+v, %v", got, err)
	}
	list, err := a.Apps(ctx, yarnclient.Filter{Types: []string{"HEDDLE"}, Tags: []string{"B"}, States: []string{"ACCEPTED", "RUNNING"}, User: "alice"})
	if err != nil || len(list) != 1 || list[0].ID != app.ID.String() {
		t.Errorf("list %+v, %v", list, err)
	}
	if none, err := a.Apps(ctx, yarnclient.Filter{Tags: []string{"c"}, Limit: 9, Queue: "a"}); err != nil || len(none) != 0 {
		t.Errorf("list of none: %+v, %v", none, err)
	}
	expiry := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	for what, err := range map[string]error{"priority": a.SetPriority(ctx, app.ID, 7), "expiry": a.SetExpiry(ctx, app.ID, expiry), "queue": a.SetQueue(ctx, app.ID, "root.a")} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if k, _ := c.Application(app.ID); k.Priority != 7 || !k.Expiry.Equal(expiry) {
		t.Errorf("after changes %+v", k)
	}
	id := yarnid.Container{Attempt: yarnid.Attempt{App: app.ID, Number: 1}, Number: 2}
	if err := a.Signal(ctx, id, "GRACEFUL_SHUTDOWN"); err != nil || c.Asked("signal "+id.String()+" GRACEFUL_SHUTDOWN") != 1 {
		t.Errorf("signal: %v", err)
	}
	if err := a.SetQueue(ctx, app.ID, "nowhere"); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("moved to no queue: %v", err)
	}
	if err := a.Kill(ctx, app.ID, "enough"); err != nil {
		t.Error(err)
	}
	if s, err := a.State(ctx, app.ID); err != nil || s != yarnclient.StateKilled {
		t.Errorf("state %s, %v", s, err)
	}
	refusals(t, c, a)
}

func refusals(t *testing.T, c *yarntest.Cluster, a yarnclient.API) {
	ctx := t.Context()
	if _, err := a.App(ctx, yarnid.Application{Cluster: 1, Number: 1}); !yarnclient.IsUnknown(err) || yarnclient.IsDenied(err) || !yarnclient.IsRefused(err) {
		t.Errorf("unknown: %v", err)
	}
	c.Put(yarntest.Application{App: report.App{ID: "application_1_0009", User: "bob", State: "RUNNING"}})
	if err := a.Kill(ctx, yarnid.Application{Cluster: 1, Number: 9}, ""); !yarnclient.IsDenied(err) || yarnclient.IsUnknown(err) || !strings.Contains(err.Error(), "kill application_1_0009") {
		t.Errorf("denied: %v", err)
	}
	for queue, text := range map[string]string{"nope": "unknown queue", "root": "non-leaf", "b": "is STOPPED"} {
		app, err := a.NewApplication(ctx)
		if err != nil {
			t.Fatal(err)
		}
		s := submission(app.ID)
		s.Queue = queue
		if err := a.Submit(ctx, s); err != nil {
			t.Fatal(err)
		}
		if got, err := a.App(ctx, app.ID); err != nil || got.State != yarnclient.StateFailed || !strings.Contains(got.Diagnostics, text) {
			t.Errorf("queue %s: %+v, %v", queue, got, err)
		}
	}
	s := submission(yarnid.Application{Cluster: 1, Number: 10})
	s.Resource.MemoryMB = 1 << 20
	if err := a.Submit(ctx, s); !yarnclient.IsRefused(err) || !strings.Contains(err.Error(), "greater than maximum allowed allocation") {
		t.Errorf("too large: %v", err)
	}
	if err := a.Submit(ctx, &yarnclient.Submission{}); err == nil {
		t.Error("submitted nothing")
	}
}

func describes(t *testing.T, a *yarnclient.Access) {
	ctx := t.Context()
	ns, err := a.Nodes(ctx)
	if err != nil || len(ns) != 1 || ns[0].ID != "n1:8041" || ns[0].Total().MemoryMB != 10 || ns[0].State != "RUNNING" {
		t.Errorf("nodes %+v, %v", ns, err)
	}
	s, err := a.Scheduler(ctx)
	if err != nil || len(s.Queues) != 3 || s.Queues[0].Leaf || s.Queues[1].Path != "root.a" || s.Queues[1].Capacity != 50 || s.Queues[2].State != "STOPPED" {
		t.Errorf("scheduler %+v, %v", s, err)
	}
	if ls, err := a.Labels(ctx); err != nil || !slices.Equal(ls, []string{"gpu", "ssd"}) {
		t.Errorf("labels %v, %v", ls, err)
	}
	if m, err := a.Metrics(ctx); err != nil || m.Nodes != 1 {
		t.Errorf("metrics %+v, %v", m, err)
	}
	ds, err := a.Activities(ctx, yarnid.Application{Cluster: 1, Number: 9})
	if a.Web() == nil && !errors.Is(err, yarnclient.ErrNotServed) || a.Web() != nil && (err != nil || len(ds) != 1) {
		t.Errorf("activities %+v, %v", ds, err)
	}
	tok, err := a.DelegationToken(ctx, "alice")
	if err != nil || tok.Kind != token.KindRM {
		t.Fatalf("token %v, %v", tok, err)
	}
	if at, err := a.RenewToken(ctx, tok); err != nil || time.Until(at) < time.Hour {
		t.Errorf("renewed until %v, %v", at, err)
	}
	if err := a.CancelToken(ctx, tok); err != nil {
		t.Error(err)
	}
	if _, err := a.RenewToken(ctx, tok); err == nil {
		t.Error("a cancelled token is renewed")
	}
}

// TestRefusedWeb: what the web service refuses or does not serve goes by RPC, once it is known so at once, and the reason is told once.
func TestRefusedWeb(t *testing.T) {
	for refuse, why := range map[string]string{
		yarntest.WebStaticUser: "lets nobody change", yarntest.WebNoSubmissions: "takes no submissions", yarntest.WebUnproven: "proof of who we are",
		yarntest.WebElsewhere: "doesn't have YARN's REST API", yarntest.WebClosed: "can't be reached",
	} {
		t.Run(refuse, func(t *testing.T) {
			inBubble(t, yarntest.Options{}, yarnclient.Auto, func(t *testing.T, c *yarntest.Cluster, a *yarnclient.Access, notices *[]string) {
				c.Web(refuse)
				app, err := a.NewApplication(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if err := a.Submit(t.Context(), submission(app.ID)); err != nil {
					t.Fatal(err)
				}
				if err := a.Kill(t.Context(), app.ID, ""); err != nil {
					t.Fatal(err)
				}
				if k, _ := c.Application(app.ID); !k.ByRPC || k.State != yarnclient.StateKilled {
					t.Errorf("the cluster has %+v", k)
				}
				if len(*notices) != 1 || !strings.Contains((*notices)[0], why) {
					t.Errorf("notices %q, want one that says %q", *notices, why)
				}
				// What only the web service tells is still asked there.
				if _, err := a.Activities(t.Context(), app.ID); (refuse == yarntest.WebStaticUser || refuse == yarntest.WebNoSubmissions) != (err == nil) {
					t.Errorf("activities: %v", err)
				}
				if a.Kill(t.Context(), app.ID, "") != nil || len(*notices) != 1 {
					t.Errorf("later notices %q", *notices)
				}
			})
			inBubble(t, yarntest.Options{}, yarnclient.REST, func(t *testing.T, c *yarntest.Cluster, a *yarnclient.Access, _ *[]string) {
				c.Web(refuse)
				app := yarnid.Application{Cluster: 1, Number: 5}
				if err := a.Submit(t.Context(), submission(app)); err == nil {
					t.Error("REST alone submitted")
				}
			})
		})
	}
}

// TestBeyondREST: what REST can't carry goes by RPC, and with REST alone is refused by name, or set afterwards.
func TestBeyondREST(t *testing.T) {
	full := func(id yarnid.Application) *yarnclient.Submission {
		s := submission(id)
		s.Custom, s.Lifetime, s.AMNodes, s.AMNodeLabel = map[string]int64{"yarn.io/gpu": 1}, time.Hour, []string{"node1"}, "gpu"
		return s
	}
	inBubble(t, yarntest.Options{}, yarnclient.Auto, func(t *testing.T, c *yarntest.Cluster, a *yarnclient.Access, notices *[]string) {
		app, err := a.NewApplication(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Submit(t.Context(), full(app.ID)); err != nil {
			t.Fatal(err)
		}
		k, _ := c.Application(app.ID)
		if !k.ByRPC || k.Custom["yarn.io/gpu"] != 1 || k.Lifetime != time.Hour || !slices.Equal(k.AMHosts, []string{"node1"}) || k.AMLabel != "gpu" {
			t.Errorf("the cluster has %+v", k)
		}
		if len(*notices) != 1 || !strings.Contains((*notices)[0], "yarn.io/gpu") || c.Asked("REST GET /ws/v1/cluster/apps/{id}") != 0 {
			t.Errorf("notices %q", *notices)
		}
		if _, err := a.App(t.Context(), app.ID); err != nil || c.Asked("REST GET /ws/v1/cluster/apps/{id}") != 1 {
			t.Errorf("reports come by RPC now: %v", err)
		}
	})
	inBubble(t, yarntest.Options{}, yarnclient.REST, func(t *testing.T, c *yarntest.Cluster, a *yarnclient.Access, _ *[]string) {
		id := yarnid.Application{Cluster: 1, Number: 7}
		if err := a.Submit(t.Context(), full(id)); err == nil || !strings.Contains(err.Error(), "yarn.client") || !strings.Contains(err.Error(), "yarn.io/gpu") {
			t.Errorf("REST submitted it all: %v", err)
		}
		s := submission(id)
		s.Lifetime = time.Hour
		if err := a.Submit(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if k, _ := c.Application(id); time.Until(k.Expiry) != time.Hour {
			t.Errorf("it expires in %v", time.Until(k.Expiry))
		}
	})
}

// TestManagersChange follows the active ResourceManager each way; with none for a while, every call waits for one.
func TestManagersChange(t *testing.T) {
	for _, mode := range []yarnclient.Mode{yarnclient.REST, yarnclient.ByRPC, yarnclient.Auto} {
		t.Run(string(mode), func(t *testing.T) {
			inBubble(t, yarntest.Options{Managers: 2}, mode, func(t *testing.T, c *yarntest.Cluster, a *yarnclient.Access, _ *[]string) {
				app, err := a.NewApplication(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				c.Restart(1, nil)
				if err := a.Submit(t.Context(), submission(app.ID)); err != nil {
					t.Fatal(err)
				}
				result := make(chan error, 1)
				c.Restart(0, func() {
					go func() { _, err := a.App(t.Context(), app.ID); result <- err }()
					time.Sleep(5 * time.Second)
				})
				if err := <-result; err != nil {
					t.Errorf("while none was active: %v", err)
				}
			})
		})
	}
}

// TestNobodyThere: with neither way open the error says so in bounded time, and names every address.
func TestNobodyThere(t *testing.T) {
	for _, mode := range []yarnclient.Mode{yarnclient.REST, yarnclient.ByRPC, yarnclient.Auto} {
		synctest.Test(t, func(t *testing.T) {
			c := yarntest.New(yarntest.Options{})
			a, err := yarnclient.Open(options(c, []string{"http://gone1:8088", "http://gone2:8088"}, mode, nil))
			if err != nil {
				t.Fatal(err)
			}
			c.Close()
			start := time.Now()
			_, err = a.State(t.Context(), yarnid.Application{Cluster: 1, Number: 1})
			if u, ok := errors.AsType[*yarnclient.UnreachableError](err); !ok || yarnclient.IsRefused(err) || mode == yarnclient.Auto && len(u.Bases) != 3 || time.Since(start) > 2*time.Minute {
				t.Errorf("%s: %v after %v", mode, err, time.Since(start))
			}
			a.Close()
		})
	}
	if _, err := yarnclient.Open(yarnclient.Options{Mode: "smoke", REST: yarnclient.Config{Bases: []string{"http://x"}}}); err == nil || !strings.Contains(err.Error(), "yarn.client") {
		t.Errorf("opened by smoke: %v", err)
	}
	if _, err := yarnclient.Open(yarnclient.Options{Mode: yarnclient.ByRPC}); err == nil {
		t.Error("opened by RPC without addresses")
	}
	if _, err := yarnclient.NewRPC(yarnclient.RPCConfig{Addrs: []string{"x:1"}}); err == nil {
		t.Error("opened by RPC without a user")
	}
}

// TestBusyWeb: a web service that is busy once is asked again, not given up.
func TestBusyWeb(t *testing.T) {
	inBubble(t, yarntest.Options{}, yarnclient.Auto, func(t *testing.T, c *yarntest.Cluster, a *yarnclient.Access, notices *[]string) {
		c.Web(yarntest.WebBusy)
		if _, err := a.NewApplication(t.Context()); err != nil || len(*notices) != 0 {
			t.Errorf("%v; notices %q", err, *notices)
		}
	})
}
