package yarntest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/yarnclient/report"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// World is what the ResourceManager tells clients of the cluster beside applications. Zero parts are as New makes them.
type World struct {
	Scheduler  report.Scheduler
	Nodes      []report.Node
	Labels     []string
	Activities []report.Diagnostic
	Started    time.Time // when the active ResourceManager was started; zero: it does not tell
	Denied     []string  // paths of queues that clients may not submit to
}

// Application is one that a client submitted, or a test put there.
type Application struct {
	report.App
	Command  string
	Custom   map[string]int64 // other resources of its master
	Lifetime time.Duration
	Expiry   time.Time
	AMHosts  []string
	Tokens   token.Credentials
	ByRPC    bool // it came by RPC
	killing  bool
}

// The ways in which the web service can refuse.
const (
	WebOpen          = ""
	WebStaticUser    = "static user"     // nobody may change anything
	WebNoSubmissions = "no submissions"  // yarn.webapp.enable-rest-app-submissions is false
	WebUnproven      = "unproven"        // 401 to everything
	WebElsewhere     = "something else"  // another service listens there
	WebClosed        = "nobody listens"  // connections are refused
	WebBusy          = "busy for a call" // 503 once, then open
)

// Web sets how the web services refuse from now on.
func (c *Cluster) Web(refuse string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.web = refuse
}

// Describe sets what the ResourceManager tells of the cluster.
func (c *Cluster) Describe(w World) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.world = w
}

// Put makes an application known, or replaces it.
func (c *Cluster) Put(a Application) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id, err := yarnid.ParseApplication(a.ID)
	if err != nil {
		panic(err)
	}
	c.apps[id] = &a
}

// Application returns an application that is known.
func (c *Cluster) Application(id yarnid.Application) (Application, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.apps[id]
	if a == nil {
		return Application{}, false
	}
	return *a, true
}

// Asked is how often clients were answered, by "REST path's first part" or "RPC method".
func (c *Cluster) Asked(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked[what]
}

func (c *Cluster) note(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked[what]++
}

// defaultWorld has the cluster's nodes and one queue.
func (c *Cluster) defaultWorld() World {
	w := World{Scheduler: report.Scheduler{Type: "capacityScheduler", MaxAllocation: report.Resource{MemoryMB: c.opt.MaxMB, VCores: 32}, Queues: []report.Queue{
		{Path: "root", State: "RUNNING", Capacity: 100, MaxCapacity: 100, OfCluster: 100, MaxOfCluster: 100},
		{Path: "root.default", State: "RUNNING", Capacity: 100, MaxCapacity: 100, OfCluster: 100, MaxOfCluster: 100, Leaf: true},
	}}}
	for _, n := range c.nodes {
		w.Nodes = append(w.Nodes, report.Node{ID: n.ID, Host: n.host, HTTP: n.host + ":8042", Rack: "/default-rack", State: "RUNNING", Free: report.Resource{MemoryMB: c.opt.MaxMB, VCores: 32}})
	}
	return w
}

// refusal is an exception of YARN's.
func refusal(class, format string, args ...any) *hrpc.RemoteError {
	return &hrpc.RemoteError{Class: class, Message: fmt.Sprintf(format, args...)}
}

// newApp reserves an identifier.
func (c *Cluster) newApp() yarnid.Application {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nextApp++
	return yarnid.Application{Cluster: c.Attempt.App.Cluster, Number: c.nextApp}
}

// submit takes an application as YARN does: what is wrong with the queue shows only later, in its state.
func (c *Cluster) submit(a Application, mb int64) *hrpc.RemoteError {
	c.mu.Lock()
	defer c.mu.Unlock()
	id, err := yarnid.ParseApplication(a.ID)
	if err != nil {
		return refusal("java.lang.IllegalArgumentException", "Invalid ApplicationId: %s", a.ID)
	}
	if mb > c.opt.MaxMB {
		return refusal(hrpc.ClassInvalidResource, "Invalid resource request! Cannot allocate containers as requested resource is greater than maximum allowed allocation. Requested resource=<memory:%d>, maximum allowed allocation=<memory:%d>", mb, c.opt.MaxMB)
	}
	if c.apps[id] != nil {
		return nil // submitted before
	}
	a.State, a.FinalStatus, a.Started = report.StateAccepted, "UNDEFINED", time.Now()
	if a.Queue == "" {
		a.Queue = "default"
	}
	q, ok := report.Find(c.world.Scheduler.Queues, a.Queue)
	switch {
	case !ok:
		a.Diagnostics = fmt.Sprintf("Application %s submitted by user %s to unknown queue: %s", a.ID, a.User, a.Queue)
	case !q.Leaf:
		a.Diagnostics = fmt.Sprintf("Application %s submitted by user : %s to non-leaf queue : %s", a.ID, a.User, a.Queue)
	case q.State == "STOPPED":
		a.Diagnostics = fmt.Sprintf("org.apache.hadoop.security.AccessControlException: Queue %s is STOPPED. Cannot accept submission of application: %s", q.Path, a.ID)
	default:
		a.Queue = q.Path
	}
	if a.Diagnostics != "" {
		a.State, a.FinalStatus, a.Finished = report.StateFailed, "FAILED", time.Now()
	}
	c.apps[id] = &a
	return nil
}

// change does something to an application that a user may change.
func (c *Cluster) change(id yarnid.Application, user string, f func(*Application) *hrpc.RemoteError) *hrpc.RemoteError {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.apps[id]
	switch {
	case a == nil:
		return refusal(hrpc.ClassApplicationUnknown, "Application with id '%s' doesn't exist in RM. Please check that the job submission was successful.", id)
	case user != a.User:
		return refusal(hrpc.ClassAccessControl, "User %s cannot perform operation MODIFY_APP on %s", user, id)
	}
	return f(a)
}

// kill ends an application; it takes two calls, as it takes YARN a while.
func (c *Cluster) kill(id yarnid.Application, user, why string) (bool, *hrpc.RemoteError) {
	over := false
	err := c.change(id, user, func(a *Application) *hrpc.RemoteError {
		switch {
		case a.Ended():
			over = true
		case a.killing:
			a.State, a.FinalStatus, a.Finished = report.StateKilled, "KILLED", time.Now()
			a.Diagnostics = fmt.Sprintf("Application %s was killed by user %s with diagnostic message: %s", id, user, why)
			over = true
		}
		a.killing = true
		return nil
	})
	return over, err
}

func (c *Cluster) move(id yarnid.Application, user, queue string) *hrpc.RemoteError {
	return c.change(id, user, func(a *Application) *hrpc.RemoteError {
		q, ok := report.Find(c.world.Scheduler.Queues, queue)
		if !ok || !q.Leaf {
			return refusal(hrpc.ClassYarn, "Cannot move application %s to target queue %s: no such queue", id, queue)
		}
		a.Queue = q.Path
		return nil
	})
}

// selected lists applications, by number.
func (c *Cluster) selected(states, types, tags []string, user, queue string) []Application {
	c.mu.Lock()
	defer c.mu.Unlock()
	some := func(want []string, has ...string) bool {
		return len(want) == 0 || slices.ContainsFunc(has, func(h string) bool {
			return slices.ContainsFunc(want, func(w string) bool { return strings.EqualFold(w, h) })
		})
	}
	var out []Application
	for _, a := range c.apps {
		if some(states, a.State) && some(types, a.Type) && some(tags, a.Tags...) && (user == "" || user == a.User) && (queue == "" || strings.HasSuffix(a.Queue, queue)) {
			out = append(out, *a)
		}
	}
	slices.SortFunc(out, func(a, b Application) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// startedOn is when the active ResourceManager was started, as it writes it.
func (c *Cluster) startedOn() int64 {
	w, _ := c.view()
	if w.Started.IsZero() {
		return 0
	}
	return w.Started.UnixMilli()
}

// view is what is told of the cluster now.
func (c *Cluster) view() (World, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.world, c.active
}

// rmToken is a delegation token of the ResourceManager's.
func (c *Cluster) rmToken(owner, renewer string) token.Token {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens++
	id := []byte(fmt.Sprintf("%s/%s/%d", owner, renewer, c.tokens))
	c.issued[string(id)] = renewer
	return token.Token{Identifier: id, Password: derive("rm", id), Kind: token.KindRM}
}

// renew prolongs a token, or ends it.
func (c *Cluster) renew(t token.Token, user string, cancel bool) (time.Time, *hrpc.RemoteError) {
	c.mu.Lock()
	defer c.mu.Unlock()
	renewer, ok := c.issued[string(t.Identifier)]
	switch {
	case !ok:
		return time.Time{}, refusal(hrpc.ClassInvalidToken, "token can't be found in cache")
	case cancel:
		delete(c.issued, string(t.Identifier))
	case user != renewer:
		return time.Time{}, refusal(hrpc.ClassAccessControl, "%s tries to renew a token with renewer %s", user, renewer)
	}
	return time.Now().Add(24 * time.Hour), nil
}
