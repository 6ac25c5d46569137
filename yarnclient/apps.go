package yarnclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/yarnclient/report"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

type appJSON struct {
	ID                string  `json:"id"`
	User              string  `json:"user"`
	Name              string  `json:"name"`
	Queue             string  `json:"queue"`
	State             string  `json:"state"`
	FinalStatus       string  `json:"finalStatus"`
	Progress          float64 `json:"progress"`
	TrackingURL       string  `json:"trackingUrl"`
	Diagnostics       string  `json:"diagnostics"`
	Type              string  `json:"applicationType"`
	Tags              string  `json:"applicationTags"`
	StartedTime       number  `json:"startedTime"`
	FinishedTime      number  `json:"finishedTime"`
	AMContainerLogs   string  `json:"amContainerLogs"`
	AMHostHTTPAddress string  `json:"amHostHttpAddress"`
	AMRPCAddress      string  `json:"amRPCAddress"`
	LaunchTime        number  `json:"launchTime"`
	Priority          number  `json:"priority"`
	RunningContainers number  `json:"runningContainers"`
	AllocatedMB       number  `json:"allocatedMB"`
	AllocatedVCores   number  `json:"allocatedVCores"`
	ReservedMB        number  `json:"reservedMB"`
	ReservedVCores    number  `json:"reservedVCores"`
	Label             string  `json:"appNodeLabelExpression"`
	AMLabel           string  `json:"amNodeLabelExpression"`
	Asks              list[struct {
		Priority number `json:"priority"`
		Where    string `json:"resourceName"`
		Label    string `json:"nodeLabelExpression"`
		Count    number `json:"numContainers"`
		Relax    *bool  `json:"relaxLocality"`
		Each     struct {
			MemoryMB number `json:"memory"`
			VCores   number `json:"vCores"`
		} `json:"capability"`
	}] `json:"resourceRequests"`
}

func (j appJSON) app() App {
	a := App{ID: j.ID, User: j.User, Name: j.Name, Queue: j.Queue, Type: j.Type, State: j.State, FinalStatus: j.FinalStatus, Progress: j.Progress,
		TrackingURL: j.TrackingURL, Diagnostics: strings.TrimSpace(j.Diagnostics), Started: millis(j.StartedTime), Finished: millis(j.FinishedTime),
		AMContainer: j.AMContainerLogs, AMHost: j.AMHostHTTPAddress, AMAddress: masterAddress(j.AMRPCAddress), Launched: millis(j.LaunchTime), Priority: int(j.Priority), Containers: int(max(0, j.RunningContainers)),
		MemoryMB: int64(max(0, j.AllocatedMB)), VCores: int64(max(0, j.AllocatedVCores)), Label: j.Label, AMLabel: j.AMLabel,
		Reserved: Resource{MemoryMB: int64(max(0, j.ReservedMB)), VCores: int64(max(0, j.ReservedVCores))}}
	for _, r := range j.Asks {
		if r.Count > 0 {
			a.Asks = append(a.Asks, report.Ask{Priority: int(r.Priority), Where: r.Where, Label: r.Label, Count: int(r.Count),
				Each: Resource{MemoryMB: int64(r.Each.MemoryMB), VCores: int64(r.Each.VCores)}, Strict: r.Relax != nil && !*r.Relax})
		}
	}
	if j.Tags != "" {
		a.Tags = strings.Split(j.Tags, ",")
	}
	return a
}

// masterAddress is what a master registered; YARN fills in "N/A" and port -1 where it did not.
func masterAddress(addr string) string {
	if host, port, err := net.SplitHostPort(addr); err != nil || host == "" || host == "N/A" || strings.HasPrefix(port, "-") || port == "0" {
		return ""
	}
	return addr
}

func millis(n number) time.Time {
	if n <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(n))
}

// App returns an application's report.
func (c *Client) App(ctx context.Context, id yarnid.Application) (App, error) {
	var out struct {
		App appJSON `json:"app"`
	}
	_, _, _, err := c.do(ctx, request{what: "get the report of " + id.String(), method: http.MethodGet, path: "/apps/" + id.String()}, &out)
	return out.App.app(), err
}

// Filter selects applications; empty fields select all.
type Filter struct {
	States, Types, Tags []string
	User, Queue         string
	Limit               int
}

// Apps lists applications.
func (c *Client) Apps(ctx context.Context, f Filter) ([]App, error) {
	q := url.Values{}
	set := func(k, v string) {
		if v != "" {
			q.Set(k, v)
		}
	}
	set("states", strings.Join(f.States, ","))
	set("applicationTypes", strings.Join(f.Types, ","))
	set("applicationTags", strings.Join(f.Tags, ","))
	set("user", f.User)
	set("queue", f.Queue)
	if f.Limit > 0 {
		set("limit", fmt.Sprint(f.Limit))
	}
	var out struct {
		Apps *struct {
			App list[appJSON] `json:"app"`
		} `json:"apps"`
	}
	if _, _, _, err := c.do(ctx, request{what: "list applications", method: http.MethodGet, path: "/apps", query: q}, &out); err != nil {
		return nil, err
	}
	var apps []App
	if out.Apps != nil {
		for _, j := range out.Apps.App {
			apps = append(apps, j.app())
		}
	}
	return apps, nil
}

// State returns an application's state.
func (c *Client) State(ctx context.Context, id yarnid.Application) (string, error) {
	var out struct {
		State string `json:"state"`
	}
	_, _, _, err := c.do(ctx, request{what: "get the state of " + id.String(), method: http.MethodGet, path: "/apps/" + id.String() + "/state"}, &out)
	return out.State, err
}

// Kill ends an application and waits until the ResourceManager says that it is over.
func (c *Client) Kill(ctx context.Context, id yarnid.Application, diagnostics string) error {
	body := map[string]string{"state": StateKilled}
	if diagnostics != "" {
		body["diagnostics"] = diagnostics
	}
	t := time.NewTicker(200 * time.Millisecond)
	defer t.Stop()
	for {
		var out struct {
			State string `json:"state"`
		}
		status, _, _, err := c.do(ctx, request{what: "kill " + id.String(), method: http.MethodPut, path: "/apps/" + id.String() + "/state", body: body}, &out)
		if err != nil || status == http.StatusOK {
			return err
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return fmt.Errorf("cannot kill %s: it is %s: %w", id, out.State, ctx.Err())
		}
	}
}

// SetQueue moves an application to another queue.
func (c *Client) SetQueue(ctx context.Context, id yarnid.Application, queue string) error {
	return c.put(ctx, "move "+id.String()+" to queue "+queue, "/apps/"+id.String()+"/queue", map[string]string{"queue": queue})
}

// SetPriority changes an application's priority.
func (c *Client) SetPriority(ctx context.Context, id yarnid.Application, priority int) error {
	return c.put(ctx, "change the priority of "+id.String(), "/apps/"+id.String()+"/priority", map[string]int{"priority": priority})
}

// expiryLayout is how YARN writes and reads a time.
const expiryLayout = "2006-01-02T15:04:05.000-0700"

// SetExpiry sets when YARN ends an application.
func (c *Client) SetExpiry(ctx context.Context, id yarnid.Application, at time.Time) error {
	return c.put(ctx, "limit the lifetime of "+id.String(), "/apps/"+id.String()+"/timeout",
		map[string]any{"timeout": map[string]string{"type": "LIFETIME", "expiryTime": at.Format(expiryLayout)}})
}

func (c *Client) put(ctx context.Context, what, path string, body any) error {
	_, _, _, err := c.do(ctx, request{what: what, method: http.MethodPut, path: path, body: body}, nil)
	return err
}

// Signal sends a container OUTPUT_THREAD_DUMP (SIGQUIT), GRACEFUL_SHUTDOWN (SIGTERM) or FORCEFUL_SHUTDOWN (SIGKILL).
func (c *Client) Signal(ctx context.Context, id yarnid.Container, command string) error {
	_, _, _, err := c.do(ctx, request{what: "signal " + id.String(), method: http.MethodPost, path: "/containers/" + id.String() + "/signal/" + url.PathEscape(command)}, nil)
	return err
}

// Attempts lists the runs of an application's master.
func (c *Client) Attempts(ctx context.Context, id yarnid.Application) ([]Attempt, error) {
	var out struct {
		Attempts *struct {
			Attempt list[struct {
				ID              number `json:"id"`
				AppAttemptID    string `json:"appAttemptId"`
				State           string `json:"appAttemptState"`
				ContainerID     string `json:"containerId"`
				NodeHTTPAddress string `json:"nodeHttpAddress"`
				NodeID          string `json:"nodeId"`
				LogsLink        string `json:"logsLink"`
				StartTime       number `json:"startTime"`
			}] `json:"appAttempt"`
		} `json:"appAttempts"`
	}
	if _, _, _, err := c.do(ctx, request{what: "list the attempts of " + id.String(), method: http.MethodGet, path: "/apps/" + id.String() + "/appattempts"}, &out); err != nil {
		return nil, err
	}
	var as []Attempt
	if out.Attempts != nil {
		for _, j := range out.Attempts.Attempt {
			as = append(as, Attempt{Number: int(j.ID), ID: j.AppAttemptID, State: j.State, Container: j.ContainerID, Node: j.NodeHTTPAddress, NodeID: j.NodeID,
				LogsLink: j.LogsLink, Started: millis(j.StartTime)})
		}
	}
	return as, nil
}

// Containers lists the containers of an attempt that run.
func (c *Client) Containers(ctx context.Context, id yarnid.Attempt) ([]Container, error) {
	type containerJSON struct {
		ID          string `json:"containerId"`
		State       string `json:"containerState"`
		ExitStatus  number `json:"containerExitStatus"`
		Diagnostics string `json:"diagnosticsInfo"`
		NodeID      string `json:"assignedNodeId"`
		NodeHTTP    string `json:"nodeHttpAddress"`
		LogURL      string `json:"logUrl"`
		MB          number `json:"allocatedMB"`
		VCores      number `json:"allocatedVCores"`
		Priority    number `json:"priority"`
	}
	var raw json.RawMessage
	path := "/apps/" + id.App.String() + "/appattempts/" + id.String() + "/containers"
	if _, _, _, err := c.do(ctx, request{what: "list the containers of " + id.String(), method: http.MethodGet, path: path}, &raw); err != nil {
		var ae *APIError
		if errors.As(err, &ae) && ae.Status == http.StatusNotFound && strings.Contains(ae.Message, "container") {
			return nil, nil // that is how some versions say none
		}
		return nil, err
	}
	// The list is {"container": …}, wrapped in "containers" or not, by version.
	var out struct {
		Container  list[containerJSON] `json:"container"`
		Containers struct {
			Container list[containerJSON] `json:"container"`
		} `json:"containers"`
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, fmt.Errorf("cannot list the containers of %s: %w", id, err)
	}
	var cs []Container
	for _, j := range append(out.Container, out.Containers.Container...) {
		cs = append(cs, Container{ID: j.ID, State: j.State, ExitStatus: int(j.ExitStatus), Diagnostics: j.Diagnostics, Node: j.NodeID, NodeHTTP: withoutScheme(j.NodeHTTP), LogURL: j.LogURL,
			MemoryMB: int64(j.MB), VCores: int64(j.VCores), Priority: int(j.Priority)})
	}
	return cs, nil
}

// withoutScheme is the host:port of an address that may have http:// or https:// before it.
func withoutScheme(addr string) string {
	if _, after, ok := strings.Cut(addr, "://"); ok {
		return after
	}
	return addr
}
