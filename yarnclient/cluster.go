package yarnclient

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
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
			ns = append(ns, Node{ID: j.ID, Host: j.Host, HTTP: j.HTTP, Rack: j.Rack, State: j.State, Health: strings.TrimSpace(j.Health), Containers: int(j.Containers),
				Used: Resource{MemoryMB: int64(j.UsedMB), VCores: int64(j.UsedCores)}, Free: Resource{MemoryMB: int64(j.AvailMB), VCores: int64(j.AvailCores)}, Labels: j.Labels, LastContact: millis(j.LastUpdate)})
		}
	}
	return ns, nil
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
