package yarnclient

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/heddle-stream/heddle/yarnclient/report"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// Queues lists the queues of the capacity or fair scheduler, parents first.
func (c *Client) Queues(ctx context.Context) ([]Queue, error) {
	s, err := c.Scheduler(ctx)
	return s.Queues, err
}

// Scheduler describes the scheduler with its queues, parents first.
func (c *Client) Scheduler(ctx context.Context) (Scheduler, error) {
	var out struct {
		Scheduler struct {
			Info queueJSON `json:"schedulerInfo"`
		} `json:"scheduler"`
	}
	if _, _, _, err := c.do(ctx, request{what: "list queues", method: http.MethodGet, path: "/scheduler"}, &out); err != nil {
		return Scheduler{}, err
	}
	root := out.Scheduler.Info
	s := Scheduler{Type: root.Type, MaxAllocation: root.MaxAllocation.resource()}
	if root.Root != nil {
		root = *root.Root
	}
	s.Queues = root.flatten(nil, "")
	report.Sum(s.Queues)
	for _, q := range s.Queues {
		if s.MaxAllocation.IsZero() {
			s.MaxAllocation = q.MaxAllocation
		}
	}
	return s, nil
}

// resourceJSON is an amount. Some of its forms have the numbers as text.
type resourceJSON struct {
	Memory number `json:"memory"`
	VCores number `json:"vCores"`
}

// resource leaves out what is as good as no limit.
func (j resourceJSON) resource() Resource {
	const none = 1 << 40
	if j.Memory >= none {
		return Resource{}
	}
	return Resource{MemoryMB: int64(j.Memory), VCores: int64(j.VCores)}
}

// queueJSON is a queue, or the scheduler, which has the same form as its root queue.
type queueJSON struct {
	Type          string          `json:"type"`
	Root          *queueJSON      `json:"rootQueue"` // of the fair scheduler
	Name          string          `json:"queueName"`
	Path          string          `json:"queuePath"`
	State         string          `json:"state"`
	Capacity      float64         `json:"capacity"`
	MaxCapacity   float64         `json:"maxCapacity"`
	Used          float64         `json:"usedCapacity"`
	OfCluster     float64         `json:"absoluteCapacity"`
	MaxOfCluster  float64         `json:"absoluteMaxCapacity"`
	UsedOfCluster float64         `json:"absoluteUsedCapacity"`
	Apps          number          `json:"numApplications"`
	Pending       number          `json:"numPendingApplications"`
	Queues        json.RawMessage `json:"queues"`
	ChildQueues   json.RawMessage `json:"childQueues"` // of the fair scheduler

	ResourcesUsed   resourceJSON  `json:"resourcesUsed"`
	AMUsed          resourceJSON  `json:"usedAMResource"`
	AMLimit         resourceJSON  `json:"AMResourceLimit"`
	UserAMLimit     resourceJSON  `json:"userAMResourceLimit"`
	MaxAllocation   resourceJSON  `json:"maximumAllocation"`
	MaxApps         number        `json:"maxApplications"`
	MaxAppsPerUser  number        `json:"maxApplicationsPerUser"`
	UserLimit       float64       `json:"userLimit"`
	UserLimitFactor float64       `json:"userLimitFactor"`
	Users           usersJSON     `json:"users"`
	Labels          list[string]  `json:"nodeLabels"`
	DefaultLabel    string        `json:"defaultNodeLabelExpression"`
	Capacities      capacityJSON  `json:"capacities"`
	Resources       usageJSON     `json:"resources"`
	NoPreemption    bool          `json:"preemptionDisabled"`
	MaxEffective    *resourceJSON `json:"maxEffectiveCapacity"`

	// Of the fair scheduler.
	FairUsed   *resourceJSON `json:"usedResources"`
	FairMax    *resourceJSON `json:"maxResources"`
	FairAM     *resourceJSON `json:"amUsedResources"`
	FairAMMax  *resourceJSON `json:"amMaxResources"`
	FairMaxApp number        `json:"maxApps"`
	FairActive number        `json:"numActiveApps"`
	FairWait   number        `json:"numPendingApps"`
}

type usersJSON struct {
	User list[struct {
		Name    string       `json:"username"`
		Active  number       `json:"numActiveApplications"`
		Pending number       `json:"numPendingApplications"`
		Used    resourceJSON `json:"resourcesUsed"`
		Limit   resourceJSON `json:"userResourceLimit"`
		AMUsed  resourceJSON `json:"AMResourceUsed"`
	}] `json:"user"`
}

type capacityJSON struct {
	Partitions list[struct {
		Name   string  `json:"partitionName"`
		Share  float64 `json:"capacity"`
		Max    float64 `json:"maxCapacity"`
		Used   float64 `json:"usedCapacity"`
		Of     float64 `json:"absoluteCapacity"`
		MaxOf  float64 `json:"absoluteMaxCapacity"`
		UsedOf float64 `json:"absoluteUsedCapacity"`
	}] `json:"queueCapacitiesByPartition"`
}

type usageJSON struct {
	Partitions list[struct {
		Name    string       `json:"partitionName"`
		AMUsed  resourceJSON `json:"amUsed"`
		AMLimit resourceJSON `json:"amLimit"`
		UserAM  resourceJSON `json:"userAmLimit"`
	}] `json:"resourceUsagesByPartition"`
}

func (j queueJSON) flatten(to []Queue, parent string) []Queue {
	path := j.Path
	if path == "" {
		path = j.Name
		if parent != "" && !strings.HasPrefix(path, parent+".") {
			path = parent + "." + path
		}
	}
	at := len(to)
	to = append(to, j.queue(path))
	for _, raw := range []json.RawMessage{j.Queues, j.ChildQueues} {
		for _, child := range children(raw) {
			to[at].Leaf = false
			to = child.flatten(to, path)
		}
	}
	return to
}

func (j queueJSON) queue(path string) Queue {
	q := Queue{Path: path, State: j.State, Capacity: j.Capacity, MaxCapacity: j.MaxCapacity, UsedCapacity: j.Used, Apps: int(j.Apps), Pending: int(j.Pending), Leaf: true,
		OfCluster: j.OfCluster, MaxOfCluster: j.MaxOfCluster, UsedOfCluster: j.UsedOfCluster, Used: j.ResourcesUsed.resource(),
		AMUsed: j.AMUsed.resource(), AMLimit: j.AMLimit.resource(), UserAMLimit: j.UserAMLimit.resource(), MaxAllocation: j.MaxAllocation.resource(),
		MaxApps: int(j.MaxApps), MaxAppsPerUser: int(j.MaxAppsPerUser), UserLimit: j.UserLimit, UserLimitFactor: j.UserLimitFactor,
		Labels: j.Labels, DefaultLabel: j.DefaultLabel, NoPreemption: j.NoPreemption}
	if q.State == "" && q.Path == "root" {
		q.State = "RUNNING" // it is not told, and root can't be stopped
	}
	if j.MaxEffective != nil {
		q.Max = j.MaxEffective.resource()
	}
	for _, u := range j.Users.User {
		q.Users = append(q.Users, report.QueueUser{Name: u.Name, Active: int(u.Active), Pending: int(u.Pending), Used: u.Used.resource(), Limit: u.Limit.resource(), AMUsed: u.AMUsed.resource()})
	}
	for _, p := range j.Capacities.Partitions {
		q.Partitions = append(q.Partitions, report.Partition{Label: p.Name, Capacity: p.Share, Max: p.Max, Used: p.Used, OfLabel: p.Of, MaxOf: p.MaxOf, UsedOf: p.UsedOf})
	}
	for _, p := range j.Resources.Partitions {
		for i := range q.Partitions {
			if x := &q.Partitions[i]; x.Label == p.Name {
				x.AMUsed, x.AMLimit, x.UserAM = p.AMUsed.resource(), p.AMLimit.resource(), p.UserAM.resource()
			}
		}
	}
	j.fair(&q)
	return q
}

// fair adds what the fair scheduler tells under names of its own.
func (j queueJSON) fair(q *Queue) {
	if j.FairUsed == nil {
		return
	}
	q.State = "RUNNING"
	q.Used, q.Apps, q.Pending, q.MaxApps = j.FairUsed.resource(), int(j.FairActive+j.FairWait), int(j.FairWait), int(j.FairMaxApp)
	if j.FairMax != nil {
		q.Max = j.FairMax.resource()
	}
	if j.FairAM != nil && j.FairAMMax != nil {
		q.AMUsed, q.AMLimit = j.FairAM.resource(), j.FairAMMax.resource()
	}
	if q.Max.MemoryMB > 0 {
		q.UsedCapacity = 100 * float64(q.Used.MemoryMB) / float64(q.Max.MemoryMB)
	}
}

// children reads {"queue": …}, or a bare list.
func children(raw json.RawMessage) []queueJSON {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var wrapped struct {
		Queue list[queueJSON] `json:"queue"`
	}
	if json.Unmarshal(raw, &wrapped) == nil {
		return wrapped.Queue
	}
	var bare list[queueJSON]
	if json.Unmarshal(raw, &bare) != nil {
		return nil
	}
	return bare
}

// Metrics returns figures of the cluster.
func (c *Client) Metrics(ctx context.Context) (Metrics, error) {
	var out struct {
		M struct {
			TotalNodes           number `json:"totalNodes"`
			ActiveNodes          number `json:"activeNodes"`
			LostNodes            number `json:"lostNodes"`
			UnhealthyNodes       number `json:"unhealthyNodes"`
			DecommissioningNodes number `json:"decommissioningNodes"`
			TotalMB              number `json:"totalMB"`
			AvailableMB          number `json:"availableMB"`
			ReservedMB           number `json:"reservedMB"`
			PendingMB            number `json:"pendingMB"`
			TotalCores           number `json:"totalVirtualCores"`
			AvailableCores       number `json:"availableVirtualCores"`
			ReservedCores        number `json:"reservedVirtualCores"`
			PendingCores         number `json:"pendingVirtualCores"`
			Submitted            number `json:"appsSubmitted"`
			Running              number `json:"appsRunning"`
			Pending              number `json:"appsPending"`
			Containers           number `json:"containersAllocated"`
		} `json:"clusterMetrics"`
	}
	if _, _, _, err := c.do(ctx, request{what: "get the cluster's figures", method: http.MethodGet, path: "/metrics"}, &out); err != nil {
		return Metrics{}, err
	}
	m := out.M
	return Metrics{Nodes: int(m.TotalNodes), Active: int(m.ActiveNodes), Lost: int(m.LostNodes), Unhealthy: int(m.UnhealthyNodes), Decommissioning: int(m.DecommissioningNodes),
		Total: Resource{MemoryMB: int64(m.TotalMB), VCores: int64(m.TotalCores)}, Free: Resource{MemoryMB: int64(m.AvailableMB), VCores: int64(m.AvailableCores)},
		Reserved: Resource{MemoryMB: int64(m.ReservedMB), VCores: int64(m.ReservedCores)}, Pending: Resource{MemoryMB: int64(m.PendingMB), VCores: int64(m.PendingCores)},
		Apps: int(m.Submitted), AppsRunning: int(m.Running), AppsPending: int(m.Pending), Containers: int(m.Containers)}, nil
}

// Activities returns why the scheduler gave an application nothing lately. The first call makes the ResourceManager note it; later ones,
// some seconds after, show it. Versions before 3.3 know less.
func (c *Client) Activities(ctx context.Context, id yarnid.Application) ([]report.Diagnostic, error) {
	q := url.Values{"groupBy": {"diagnostic"}, "summarize": {"true"}, "maxTime": {"10"}}
	var raw json.RawMessage
	what := "get the scheduler's activities for " + id.String()
	if _, _, _, err := c.do(ctx, request{what: what, method: http.MethodGet, path: "/scheduler/app-activities/" + id.String(), query: q}, &raw); err != nil {
		return nil, err
	}
	return diagnostics(raw), nil
}

// diagnostics collects what an answer of any version says in its tree of queues, requests and nodes.
func diagnostics(raw []byte) []report.Diagnostic {
	var tree any
	if json.Unmarshal(raw, &tree) != nil {
		return nil
	}
	var w activityWalk
	w.visit(tree, "")
	slices.SortFunc(w.found, func(a, b report.Diagnostic) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Text, b.Text))
	})
	return w.found
}

// activityWalk goes through the answer.
type activityWalk struct{ found []report.Diagnostic }

func (w *activityWalk) visit(v any, node string) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			w.visit(x, node)
		}
	case map[string]any:
		if id, ok := v["nodeId"].(string); ok {
			node = id
		}
		if text, ok := v["diagnostic"].(string); ok && text != "" {
			w.add(strings.TrimSpace(text), node, v)
		}
		for k, x := range v {
			if k != "diagnostic" {
				w.visit(x, node)
			}
		}
	}
}

// add notes a diagnostic of one node or, grouped, of many.
func (w *activityWalk) add(text, node string, v map[string]any) {
	count := 1
	if n, ok := v["count"].(float64); ok && n > 0 {
		count = int(n)
	} else if s, ok := v["count"].(string); ok {
		var n number
		if n.UnmarshalJSON([]byte(s)) == nil && n > 0 {
			count = int(n)
		}
	}
	var nodes []string
	if ids, ok := v["nodeIds"].([]any); ok {
		for _, id := range ids {
			if s, ok := id.(string); ok {
				nodes = append(nodes, s)
			}
		}
	} else if node != "" {
		nodes = []string{node}
	}
	for i := range w.found {
		if f := &w.found[i]; f.Text == text {
			f.Count += count
			for _, n := range nodes {
				f.Nodes = appendNew(f.Nodes, n)
			}
			return
		}
	}
	w.found = append(w.found, report.Diagnostic{Text: text, Nodes: nodes, Count: count})
}

func appendNew(list []string, s string) []string {
	for _, x := range list {
		if x == s {
			return list
		}
	}
	return append(list, s)
}
