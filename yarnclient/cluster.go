package yarnclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// ClusterInfo is what a ResourceManager says of itself.
type ClusterInfo struct {
	Base    string // its web address
	State   string // STARTED, …
	HAState string // ACTIVE, STANDBY, INITIALIZING
	Version string // of Hadoop
	Started time.Time
}

// Infos asks every ResourceManager, in their order. The error of one that can't be asked stands in its place.
func (c *Client) Infos(ctx context.Context) ([]ClusterInfo, []error) {
	infos, errs := make([]ClusterInfo, len(c.bases)), make([]error, len(c.bases))
	for i, b := range c.bases {
		var out struct {
			Info struct {
				State     string `json:"state"`
				HAState   string `json:"haState"`
				Version   string `json:"hadoopVersion"`
				StartedOn number `json:"startedOn"`
			} `json:"clusterInfo"`
		}
		_, _, _, errs[i] = c.do(ctx, request{what: "ask " + b.Host + " about itself", method: http.MethodGet, path: "/info", fixed: true, at: i}, &out)
		infos[i] = ClusterInfo{b.String(), out.Info.State, out.Info.HAState, out.Info.Version, millis(out.Info.StartedOn)}
	}
	return infos, errs
}

// Node is a machine of the cluster.
type Node struct {
	ID          string // host:port of its NodeManager
	Host        string
	HTTP        string // host:port of its web service
	Rack        string
	State       string // RUNNING, UNHEALTHY, DECOMMISSIONING, LOST, …
	Health      string // a report, if it is not well
	Containers  int
	Used, Free  Resource
	Labels      []string
	LastContact time.Time
}

// Nodes lists nodes; states as YARN names them, none for those in use.
func (c *Client) Nodes(ctx context.Context, states ...string) ([]Node, error) {
	q := url.Values{}
	if len(states) > 0 {
		q.Set("states", strings.Join(states, ","))
	}
	var out struct {
		Nodes *struct {
			Node list[struct {
				ID         string       `json:"id"`
				Host       string       `json:"nodeHostName"`
				HTTP       string       `json:"nodeHTTPAddress"`
				Rack       string       `json:"rack"`
				State      string       `json:"state"`
				Health     string       `json:"healthReport"`
				Containers number       `json:"numContainers"`
				UsedMB     number       `json:"usedMemoryMB"`
				AvailMB    number       `json:"availMemoryMB"`
				UsedCores  number       `json:"usedVirtualCores"`
				AvailCores number       `json:"availableVirtualCores"`
				Labels     list[string] `json:"nodeLabels"`
				LastUpdate number       `json:"lastHealthUpdate"`
			}] `json:"node"`
		} `json:"nodes"`
	}
	if _, _, _, err := c.do(ctx, request{what: "list nodes", method: http.MethodGet, path: "/nodes", query: q}, &out); err != nil {
		return nil, err
	}
	var ns []Node
	if out.Nodes != nil {
		for _, j := range out.Nodes.Node {
			ns = append(ns, Node{j.ID, j.Host, j.HTTP, j.Rack, j.State, strings.TrimSpace(j.Health), int(j.Containers),
				Resource{int64(j.UsedMB), int64(j.UsedCores)}, Resource{int64(j.AvailMB), int64(j.AvailCores)}, j.Labels, millis(j.LastUpdate)})
		}
	}
	return ns, nil
}

// Queue is a queue of the scheduler.
type Queue struct {
	Path                                string // such as root.default
	State                               string // RUNNING, STOPPED
	Capacity, MaxCapacity, UsedCapacity float64
	Apps, Pending                       int
	Leaf                                bool
}

// Queues lists the queues of the capacity or fair scheduler, parents first.
func (c *Client) Queues(ctx context.Context) ([]Queue, error) {
	var out struct {
		Scheduler struct {
			Info queueJSON `json:"schedulerInfo"`
		} `json:"scheduler"`
	}
	if _, _, _, err := c.do(ctx, request{what: "list queues", method: http.MethodGet, path: "/scheduler"}, &out); err != nil {
		return nil, err
	}
	root := out.Scheduler.Info
	if root.Root != nil {
		root = *root.Root
	}
	return root.flatten(nil, ""), nil
}

type queueJSON struct {
	Root        *queueJSON      `json:"rootQueue"` // of the fair scheduler
	Name        string          `json:"queueName"`
	Path        string          `json:"queuePath"`
	State       string          `json:"state"`
	Capacity    float64         `json:"capacity"`
	MaxCapacity float64         `json:"maxCapacity"`
	Used        float64         `json:"usedCapacity"`
	Apps        number          `json:"numApplications"`
	Pending     number          `json:"numPendingApplications"`
	Queues      json.RawMessage `json:"queues"`
	ChildQueues json.RawMessage `json:"childQueues"` // of the fair scheduler
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
	to = append(to, Queue{path, j.State, j.Capacity, j.MaxCapacity, j.Used, int(j.Apps), int(j.Pending), true})
	for _, raw := range []json.RawMessage{j.Queues, j.ChildQueues} {
		for _, child := range children(raw) {
			to[at].Leaf = false
			to = child.flatten(to, path)
		}
	}
	return to
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

// Labels lists the cluster's node labels; none where labels are switched off.
func (c *Client) Labels(ctx context.Context) ([]string, error) {
	var raw json.RawMessage
	if _, _, _, err := c.do(ctx, request{what: "list node labels", method: http.MethodGet, path: "/get-node-labels"}, &raw); err != nil {
		return nil, err
	}
	var out struct {
		Info list[struct {
			Name string `json:"name"`
		}] `json:"nodeLabelInfo"`
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, fmt.Errorf("cannot list node labels: %w", err)
	}
	var names []string
	for _, l := range out.Info {
		if l.Name != "" {
			names = append(names, l.Name)
		}
	}
	return names, nil
}

// Activities returns what the scheduler did lately for an application and why, as the ResourceManager's JSON: its form differs between versions. The
// first call makes the ResourceManager note it; later ones show it.
func (c *Client) Activities(ctx context.Context, id yarnid.Application) (json.RawMessage, error) {
	var raw json.RawMessage
	_, _, _, err := c.do(ctx, request{what: "get the scheduler's activities for " + id.String(), method: http.MethodGet, path: "/scheduler/app-activities/" + id.String()}, &raw)
	return raw, err
}

// IsDenied reports whether the ResourceManager refused for want of a right.
func IsDenied(err error) bool {
	var ae *APIError
	return errors.As(err, &ae) && (ae.Status == http.StatusForbidden || ae.Status == http.StatusUnauthorized)
}

// IsUnknown reports whether the ResourceManager knows nothing of what was asked about.
func IsUnknown(err error) bool {
	var ae *APIError
	return errors.As(err, &ae) && ae.Status == http.StatusNotFound
}
