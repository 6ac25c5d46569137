package yarntest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"sort"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/yarnclient/report"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// obj and arr are JSON.
type (
	obj = map[string]any
	arr = []any
)

// ServeWeb starts the ResourceManagers' web services on the cluster's network and returns their addresses.
func (c *Cluster) ServeWeb() []string {
	var bases []string
	for i := range c.opt.Managers {
		addr := fmt.Sprintf("rm%d:8088", i+1)
		s := &http.Server{Handler: c.WebHandler(i)}
		l := c.Net.Listen(addr)
		c.mu.Lock()
		c.webs = append(c.webs, s)
		c.mu.Unlock()
		go func() { _ = s.Serve(l) }() // until Close
		bases = append(bases, "http://"+addr)
	}
	return bases
}

// WebHandler is the web service of a ResourceManager.
func (c *Cluster) WebHandler(i int) http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, f func(*http.Request, string) (int, any)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			user := r.URL.Query().Get("user.name")
			if user == "" {
				user = "dr.who"
			}
			c.note("REST " + pattern)
			status, v := f(r, user)
			write(w, status, v)
		})
	}
	const ws = "/ws/v1/cluster"
	mux.HandleFunc("GET "+ws+"/info", func(w http.ResponseWriter, _ *http.Request) {
		state := "STANDBY"
		if _, active := c.view(); active == i {
			state = "ACTIVE"
		}
		write(w, 200, obj{"clusterInfo": obj{"state": "STARTED", "haState": state, "hadoopVersion": "3.4.3", "startedOn": c.startedOn()}})
	})
	handle("POST "+ws+"/apps/new-application", func(*http.Request, string) (int, any) {
		return 200, obj{"application-id": c.newApp().String(), "maximum-resource-capability": c.largestJSON()}
	})
	handle("POST "+ws+"/apps", c.webSubmit)
	handle("GET "+ws+"/apps", c.webList)
	handle("GET "+ws+"/apps/{id}", c.webApp)
	handle("GET "+ws+"/apps/{id}/{what}", c.webApp)
	handle("PUT "+ws+"/apps/{id}/{what}", c.webChange)
	handle("GET "+ws+"/apps/{id}/appattempts/{attempt}/containers", func(*http.Request, string) (int, any) { return 200, obj{} })
	handle("POST "+ws+"/containers/{id}/signal/{command}", func(r *http.Request, _ string) (int, any) {
		c.note("signal " + r.PathValue("id") + " " + r.PathValue("command"))
		return 200, obj{}
	})
	handle("POST "+ws+"/delegation-token", c.webToken)
	handle("POST "+ws+"/delegation-token/expiration", c.webToken)
	handle("DELETE "+ws+"/delegation-token", c.webToken)
	c.clusterPages(ws, handle)
	return c.gate(i, mux)
}

// gate is what stands before the pages: a standby's redirection, and the refusals of Web.
func (c *Cluster) gate(i int, pages http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, active := c.view()
		c.mu.Lock()
		refuse := c.web
		if refuse == WebBusy {
			c.web = WebOpen
		}
		c.mu.Unlock()
		writes := r.Method != http.MethodGet
		switch {
		case refuse == WebClosed:
			panic(http.ErrAbortHandler)
		case refuse == WebBusy:
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusServiceUnavailable)
		case refuse == WebElsewhere:
			http.NotFound(w, r)
		case refuse == WebUnproven:
			w.Header().Set("WWW-Authenticate", "Negotiate")
			w.WriteHeader(http.StatusUnauthorized)
		case refuse == WebStaticUser && writes:
			write(w, 403, exception("ForbiddenException", "java.lang.Exception: The default static user cannot carry out this operation."))
		case refuse == WebNoSubmissions && r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/apps"):
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte("App submission via REST is disabled."))
		case active != i && !strings.HasSuffix(r.URL.Path, "/info"):
			if active < 0 {
				w.Header().Set("Refresh", "3;url=http://"+r.Host+r.URL.Path)
			} else {
				w.Header().Set("Location", fmt.Sprintf("http://rm%d:8088%s", active+1, r.URL.RequestURI()))
			}
			w.WriteHeader(http.StatusTemporaryRedirect)
		default:
			pages.ServeHTTP(w, r)
		}
	})
}

func write(w http.ResponseWriter, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json;charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(data)
}

func exception(name, message string) any {
	return obj{"RemoteException": obj{"exception": name, "message": message, "javaClassName": "org.apache.hadoop.yarn.webapp." + name}}
}

// refused is how the web service tells an exception.
func refused(err *hrpc.RemoteError) (int, any) {
	switch err.Class {
	case hrpc.ClassApplicationUnknown:
		return 404, exception("NotFoundException", "java.lang.Exception: "+err.Message)
	case hrpc.ClassAccessControl:
		return 403, exception("ForbiddenException", err.Message)
	}
	return 400, exception("BadRequestException", "java.lang.Exception: "+err.Message)
}

// some is a list as YARN's JSON writer writes it: a single element loses its brackets.
func some(list arr) any {
	if len(list) == 1 {
		return list[0]
	}
	return list
}

func appJSON(a Application) obj {
	var asks arr
	for _, q := range a.Asks {
		asks = append(asks, obj{"priority": q.Priority, "resourceName": q.Where, "numContainers": q.Count, "relaxLocality": !q.Strict, "nodeLabelExpression": q.Label,
			"capability": obj{"memory": q.Each.MemoryMB, "vCores": q.Each.VCores}})
	}
	out := obj{"id": a.ID, "user": a.User, "name": a.Name, "queue": a.Queue, "state": a.State, "finalStatus": a.FinalStatus, "progress": a.Progress, "trackingUrl": a.TrackingURL,
		"diagnostics": a.Diagnostics, "applicationType": a.Type, "applicationTags": strings.Join(a.Tags, ","), "priority": a.Priority, "startedTime": a.Started.UnixMilli(),
		"runningContainers": a.Containers, "allocatedMB": a.MemoryMB, "allocatedVCores": a.VCores, "appNodeLabelExpression": a.Label, "amNodeLabelExpression": a.AMLabel}
	if a.AMContainer != "" {
		out["amContainerLogs"] = a.AMContainer
	}
	if a.AMAddress != "" {
		out["amRPCAddress"] = a.AMAddress
	}
	if !a.Launched.IsZero() {
		out["launchTime"] = a.Launched.UnixMilli()
	}
	if len(asks) > 0 {
		out["resourceRequests"] = some(asks)
	}
	return out
}

func (c *Cluster) webSubmit(r *http.Request, user string) (int, any) {
	var b struct {
		ID       string `json:"application-id"`
		Name     string `json:"application-name"`
		Type     string `json:"application-type"`
		Queue    string `json:"queue"`
		Priority int    `json:"priority"`
		Label    string `json:"app-node-label-expression"`
		AMLabel  string `json:"am-container-node-label-expression"`
		Tags     struct {
			Tag []string `json:"tag"`
		} `json:"application-tags"`
		Resource struct {
			Memory int64 `json:"memory"`
		} `json:"resource"`
		Spec struct {
			Commands struct {
				Command string `json:"command"`
			} `json:"commands"`
			Credentials struct {
				Secrets struct {
					Entry []struct{ Key, Value string } `json:"entry"`
				} `json:"secrets"`
				Tokens struct {
					Entry []struct{ Key, Value string } `json:"entry"`
				} `json:"tokens"`
			} `json:"credentials"`
		} `json:"am-container-spec"`
	}
	if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
		return 400, exception("JsonParseException", err.Error())
	}
	a := Application{App: report.App{ID: b.ID, User: user, Name: b.Name, Type: b.Type, Queue: b.Queue, Tags: b.Tags.Tag, Priority: b.Priority, Label: b.Label, AMLabel: b.AMLabel}, Command: b.Spec.Commands.Command}
	for _, s := range b.Spec.Credentials.Secrets.Entry {
		v, err := base64.RawURLEncoding.DecodeString(s.Value)
		if err != nil {
			return 400, exception("BadRequestException", err.Error())
		}
		a.Tokens.Secrets = append(a.Tokens.Secrets, token.Secret{Name: s.Key, Value: v})
	}
	for _, s := range b.Spec.Credentials.Tokens.Entry {
		t, err := token.ParseURLString(s.Value)
		if err != nil {
			return 400, exception("BadRequestException", err.Error())
		}
		a.Tokens.Tokens = append(a.Tokens.Tokens, token.Named{Alias: s.Key, Token: t})
	}
	if err := c.submit(a, b.Resource.Memory); err != nil {
		return refused(err)
	}
	return 202, nil
}

func (c *Cluster) webList(r *http.Request, _ string) (int, any) {
	q := r.URL.Query()
	split := func(k string) []string {
		if q.Get(k) == "" {
			return nil
		}
		return strings.Split(q.Get(k), ",")
	}
	var list arr
	for _, a := range c.selected(split("states"), split("applicationTypes"), split("applicationTags"), q.Get("user"), q.Get("queue")) {
		list = append(list, appJSON(a))
	}
	if list == nil {
		return 200, obj{"apps": obj{}}
	}
	return 200, obj{"apps": obj{"app": some(list)}}
}

func (c *Cluster) webApp(r *http.Request, _ string) (int, any) {
	id, err := yarnid.ParseApplication(r.PathValue("id"))
	if err != nil {
		return 400, exception("BadRequestException", err.Error())
	}
	a, ok := c.Application(id)
	if !ok {
		return refused(refusal(hrpc.ClassApplicationUnknown, "app with id: %s not found", id))
	}
	switch r.PathValue("what") {
	case "":
		return 200, obj{"app": appJSON(a)}
	case "state":
		return 200, obj{"state": a.State}
	case "appattempts":
		return 200, obj{"appAttempts": obj{"appAttempt": obj{"id": 1, "appAttemptId": yarnid.Attempt{App: id, Number: 1}.String()}}}
	}
	return 404, exception("NotFoundException", r.URL.Path)
}

func (c *Cluster) webChange(r *http.Request, user string) (int, any) {
	id, err := yarnid.ParseApplication(r.PathValue("id"))
	if err != nil {
		return 400, exception("BadRequestException", err.Error())
	}
	var b struct {
		State, Diagnostics, Queue string
		Priority                  int
		Timeout                   struct{ ExpiryTime string }
	}
	if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
		return 400, exception("JsonParseException", err.Error())
	}
	var re *hrpc.RemoteError
	switch r.PathValue("what") {
	case "state":
		over, re := c.kill(id, user, b.Diagnostics)
		switch {
		case re != nil:
			return refused(re)
		case over:
			return 200, obj{"state": "KILLED"}
		}
		return 202, obj{"state": "KILLING"}
	case "queue":
		re = c.move(id, user, b.Queue)
	case "priority":
		re = c.change(id, user, func(a *Application) *hrpc.RemoteError { a.Priority = b.Priority; return nil })
	case "timeout":
		re = c.expire(id, user, b.Timeout.ExpiryTime)
	default:
		return 404, exception("NotFoundException", r.URL.Path)
	}
	if re != nil {
		return refused(re)
	}
	return 200, obj{}
}

// webToken serves delegation tokens, as on a connection that Kerberos proves.
func (c *Cluster) webToken(r *http.Request, user string) (int, any) {
	if r.Method == http.MethodPost && !strings.HasSuffix(r.URL.Path, "expiration") {
		var b struct{ Renewer string }
		if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
			return 400, exception("JsonParseException", err.Error())
		}
		return 200, obj{"token": c.rmToken(user, b.Renewer).URLString(), "kind": token.KindRM}
	}
	t, err := token.ParseURLString(r.Header.Get("Hadoop-YARN-RM-Delegation-Token"))
	if err != nil {
		return 400, exception("BadRequestException", err.Error())
	}
	at, re := c.renew(t, user, r.Method == http.MethodDelete)
	if re != nil {
		return refused(re)
	}
	return 200, obj{"expiration-time": at.UnixMilli()}
}

// clusterPages tell of nodes, queues and labels.
func (c *Cluster) clusterPages(ws string, handle func(string, func(*http.Request, string) (int, any))) {
	handle("GET "+ws+"/metrics", func(*http.Request, string) (int, any) {
		w, _ := c.view()
		free := int64(0)
		for _, n := range w.Nodes {
			free += n.Free.MemoryMB
		}
		return 200, obj{"clusterMetrics": obj{"totalNodes": len(w.Nodes), "activeNodes": len(w.Nodes), "availableMB": free}}
	})
	handle("GET "+ws+"/nodes", func(r *http.Request, _ string) (int, any) {
		w, _ := c.view()
		var list arr
		for _, n := range w.Nodes {
			if s := r.URL.Query().Get("states"); s != "" && !strings.Contains(s, n.State) {
				continue
			}
			list = append(list, obj{"id": n.ID, "nodeHostName": n.Host, "nodeHTTPAddress": n.HTTP, "rack": n.Rack, "state": n.State, "healthReport": n.Health, "numContainers": n.Containers,
				"usedMemoryMB": n.Used.MemoryMB, "availMemoryMB": n.Free.MemoryMB, "usedVirtualCores": n.Used.VCores, "availableVirtualCores": n.Free.VCores, "nodeLabels": n.Labels,
				"lastHealthUpdate": time.Now().UnixMilli()})
		}
		return 200, obj{"nodes": obj{"node": some(list)}}
	})
	handle("GET "+ws+"/scheduler", func(*http.Request, string) (int, any) {
		w, _ := c.view()
		root := queueJSON(w.Scheduler.Queues, "root")
		root["type"], root["maximumAllocation"] = w.Scheduler.Type, resourceJSON(w.Scheduler.MaxAllocation)
		return 200, obj{"scheduler": obj{"schedulerInfo": root}}
	})
	handle("GET "+ws+"/get-node-labels", func(*http.Request, string) (int, any) {
		w, _ := c.view()
		var list arr
		for _, l := range w.Labels {
			list = append(list, obj{"name": l})
		}
		return 200, obj{"nodeLabelInfo": some(list)}
	})
	handle("GET "+ws+"/scheduler/app-activities/{id}", func(r *http.Request, _ string) (int, any) {
		w, _ := c.view()
		if len(w.Activities) == 0 {
			return 200, obj{"appActivities": obj{"applicationId": r.PathValue("id"), "diagnostic": "waiting for display"}}
		}
		var list arr
		for _, d := range w.Activities {
			list = append(list, obj{"requestPriority": 1, "allocationState": "REJECTED", "diagnostic": d.Text, "count": d.Count, "nodeIds": d.Nodes})
		}
		return 200, obj{"appActivities": obj{"allocations": arr{obj{"queueName": "default", "children": list}}}}
	})
}

func resourceJSON(r report.Resource) obj { return obj{"memory": r.MemoryMB, "vCores": r.VCores} }

// queueJSON is a queue with those below it.
func queueJSON(qs []report.Queue, path string) obj {
	out := obj{}
	var children arr
	for _, q := range qs {
		parent, name := "", q.Path
		if i := strings.LastIndexByte(q.Path, '.'); i >= 0 {
			parent, name = q.Path[:i], q.Path[i+1:]
		}
		if parent == path && parent != "" {
			children = append(children, queueJSON(qs, q.Path))
		}
		if q.Path != path {
			continue
		}
		var users, parts arr
		for _, u := range q.Users {
			users = append(users, obj{"username": u.Name, "resourcesUsed": resourceJSON(u.Used), "userResourceLimit": resourceJSON(u.Limit), "numActiveApplications": u.Active})
		}
		for _, p := range q.Partitions {
			parts = append(parts, obj{"partitionName": p.Label, "capacity": p.Capacity, "absoluteCapacity": p.OfLabel, "absoluteMaxCapacity": p.MaxOf, "absoluteUsedCapacity": p.UsedOf})
		}
		out = obj{"queueName": name, "queuePath": q.Path, "state": q.State, "capacity": q.Capacity, "maxCapacity": q.MaxCapacity, "usedCapacity": q.UsedCapacity,
			"absoluteCapacity": q.OfCluster, "absoluteMaxCapacity": q.MaxOfCluster, "absoluteUsedCapacity": q.UsedOfCluster, "numApplications": q.Apps, "numPendingApplications": q.Pending,
			"resourcesUsed": resourceJSON(q.Used), "maxEffectiveCapacity": resourceJSON(q.Max), "AMResourceLimit": resourceJSON(q.AMLimit), "usedAMResource": resourceJSON(q.AMUsed),
			"nodeLabels": q.Labels, "users": obj{"user": some(users)}, "capacities": obj{"queueCapacitiesByPartition": some(parts)}}
	}
	sort.Slice(children, func(i, j int) bool {
		return children[i].(obj)["queueName"].(string) < children[j].(obj)["queueName"].(string)
	})
	if len(children) > 0 {
		out["queues"] = obj{"queue": some(children)}
	}
	return out
}
