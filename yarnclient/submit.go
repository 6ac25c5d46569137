package yarnclient

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// NewApp is an identifier for an application to submit.
type NewApp struct {
	ID  yarnid.Application
	Max Resource // the largest container that the cluster grants
	// Custom is what the largest container has of the cluster's other kinds of resources, in the cluster's units, by name; nil: the cluster did not say which it has.
	Custom map[string]int64
}

// Resources that every cluster has, as lists of all kinds name them.
const (
	memoryResource = "memory-mb"
	coresResource  = "vcores"
)

// customAmounts is what a list of all kinds of resources says of those beside memory and cores; nil: the list is not there, as with Hadoop 2.
func customAmounts(kinds map[string]int64) map[string]int64 {
	if len(kinds) == 0 {
		return nil
	}
	custom := maps.Clone(kinds)
	delete(custom, memoryResource)
	delete(custom, coresResource)
	return custom
}

// NewApplication reserves an identifier.
func (c *Client) NewApplication(ctx context.Context) (NewApp, error) {
	var out struct {
		ID  string `json:"application-id"`
		Max struct {
			Memory number `json:"memory"`
			VCores number `json:"vCores"`
			Kinds  struct {
				Each list[struct {
					Name  string `json:"name"`
					Value number `json:"value"`
				}] `json:"resourceInformation"`
			} `json:"resourceInformations"`
		} `json:"maximum-resource-capability"`
	}
	r := request{what: "get a new application's identifier", method: http.MethodPost, path: "/apps/new-application", body: struct{}{}}
	if _, _, _, err := c.do(ctx, r, &out); err != nil {
		return NewApp{}, err
	}
	id, err := yarnid.ParseApplication(out.ID)
	kinds := map[string]int64{}
	for _, k := range out.Max.Kinds.Each {
		kinds[k.Name] = int64(k.Value)
	}
	return NewApp{id, Resource{MemoryMB: int64(out.Max.Memory), VCores: int64(out.Max.VCores)}, customAmounts(kinds)}, err
}

// LocalResource is a file that NodeManagers fetch for a container. Size and time must be exactly what the file system says.
type LocalResource struct {
	Name       string // in the container's working directory
	URI        string // such as hdfs://host:port/path
	Archive    bool   // unpacked into a directory of that name
	Visibility Visibility
	Size       int64
	Modified   time.Time // to the millisecond
}

// Visibility says who shares a fetched file on a node.
type Visibility string

// Visibilities.
const (
	Public      Visibility = "PUBLIC"      // everybody
	Private     Visibility = "PRIVATE"     // the user's applications
	Application Visibility = "APPLICATION" // this application's containers
)

// Submission is an application to run. Fields at zero are not sent, so that YARN's own rules and defaults hold.
type Submission struct {
	ID                 yarnid.Application
	Name, Type         string
	Queue              string
	Tags               []string
	Priority           int
	Resource           Resource // of the master's container
	Command            string   // one line for bash; it must direct its streams into <LOG_DIR> itself
	Env                map[string]string
	Resources          []LocalResource
	Credentials        token.Credentials
	ViewACL, ModifyACL string // "user1,user2 group1,group2"
	MaxAttempts        int
	FailuresValidity   time.Duration // failures older than that do not count against MaxAttempts
	KeepContainers     bool          // a later attempt takes over the containers of an earlier
	NodeLabel          string        // for all containers
	AMNodeLabel        string        // for the master's
	KeepTokens         bool          // delegation tokens are not cancelled at the end
	RollingLogs        string        // pattern of log files that are aggregated while they are written
	Logs               string        // pattern of those that are aggregated at the end; "": all

	// What REST can't carry, so that RPC must; Lifetime can be set by REST after the submission.
	Custom   map[string]int64 // other kinds of resources of the master's container by name, in the cluster's units
	Lifetime time.Duration    // after which YARN ends the application
	AMNodes  []string         // hosts that the master's container shall be on
	AMRacks  []string         // their racks, or racks by themselves
}

// beyondREST names what a submission has that REST can't carry.
func (s *Submission) beyondREST() []string {
	var names []string
	if len(s.Custom) > 0 {
		names = append(names, "other resources than memory and cores for the master ("+strings.Join(slices.Sorted(maps.Keys(s.Custom)), ", ")+")")
	}
	if s.Lifetime > 0 {
		names = append(names, "a lifetime")
	}
	if len(s.AMNodes)+len(s.AMRacks) > 0 {
		names = append(names, "hosts or racks for the master")
	}
	return names
}

// entries is YARN's form of a map.
type entries struct {
	Entry []entry `json:"entry"`
}

type entry struct {
	Key   string `json:"key"`
	Value any    `json:"value"`
}

func (s *Submission) json() map[string]any {
	spec := map[string]any{"commands": map[string]string{"command": s.Command}}
	if len(s.Env) > 0 {
		var es entries
		for _, k := range slices.Sorted(maps.Keys(s.Env)) {
			es.Entry = append(es.Entry, entry{k, s.Env[k]})
		}
		spec["environment"] = es
	}
	if len(s.Resources) > 0 {
		var es entries
		for _, r := range s.Resources {
			typ := "FILE"
			if r.Archive {
				typ = "ARCHIVE"
			}
			es.Entry = append(es.Entry, entry{r.Name, map[string]any{"resource": r.URI, "type": typ, "visibility": string(r.Visibility), "size": r.Size, "timestamp": r.Modified.UnixMilli()}})
		}
		spec["local-resources"] = es
	}
	if len(s.Credentials.Tokens)+len(s.Credentials.Secrets) > 0 {
		spec["credentials"] = credentialsJSON(s.Credentials)
	}
	var acls entries
	if s.ViewACL != "" {
		acls.Entry = append(acls.Entry, entry{"VIEW_APP", s.ViewACL})
	}
	if s.ModifyACL != "" {
		acls.Entry = append(acls.Entry, entry{"MODIFY_APP", s.ModifyACL})
	}
	if len(acls.Entry) > 0 {
		spec["application-acls"] = acls
	}
	m := map[string]any{
		"application-id": s.ID.String(), "application-name": s.Name, "am-container-spec": spec, "unmanaged-AM": false,
		"resource":                    map[string]int64{"memory": s.Resource.MemoryMB, "vCores": s.Resource.VCores},
		"cancel-tokens-when-complete": !s.KeepTokens, "keep-containers-across-application-attempts": s.KeepContainers,
	}
	s.optional(m)
	return m
}

// optional sets what has a default of YARN's.
func (s *Submission) optional(m map[string]any) {
	for k, v := range map[string]string{"application-type": s.Type, "queue": s.Queue, "app-node-label-expression": s.NodeLabel, "am-container-node-label-expression": s.AMNodeLabel} {
		if v != "" {
			m[k] = v
		}
	}
	if len(s.Tags) > 0 {
		m["application-tags"] = map[string][]string{"tag": s.Tags}
	}
	if s.Priority != 0 {
		m["priority"] = s.Priority
	}
	if s.MaxAttempts > 0 {
		m["max-app-attempts"] = s.MaxAttempts
	}
	if s.FailuresValidity > 0 {
		m["attempt-failures-validity-interval"] = s.FailuresValidity.Milliseconds()
	}
	logs := map[string]string{}
	if s.RollingLogs != "" {
		logs["rolled-log-include-pattern"] = s.RollingLogs
	}
	if s.Logs != "" {
		logs["log-include-pattern"] = s.Logs
	}
	if len(logs) > 0 {
		m["log-aggregation-context"] = logs
	}
}

func credentialsJSON(c token.Credentials) map[string]any {
	m := map[string]any{}
	var ts, ss entries
	for _, t := range c.Tokens {
		ts.Entry = append(ts.Entry, entry{t.Alias, t.Token.URLString()})
	}
	for _, s := range c.Secrets {
		ss.Entry = append(ss.Entry, entry{s.Name, base64.RawURLEncoding.EncodeToString(s.Value)})
	}
	if len(ts.Entry) > 0 {
		m["tokens"] = ts
	}
	if len(ss.Entry) > 0 {
		m["secrets"] = ss
	}
	return m
}

// Submit submits an application. When an answer was lost, the application that is there under the identifier is taken for the one that was submitted.
//
// YARN takes most faults of a submission only later: the application becomes FAILED with diagnostics.
func (c *Client) Submit(ctx context.Context, s *Submission) error {
	if s.Command == "" || s.ID == (yarnid.Application{}) {
		return errors.New("cannot submit an application without identifier and command")
	}
	if len(s.Custom)+len(s.AMNodes)+len(s.AMRacks) > 0 {
		return fmt.Errorf("cannot submit %s: REST can't carry %s: use RPC (yarn.client: auto or rpc)", s.ID, strings.Join(s.beyondREST(), " and "))
	}
	if err := c.submit(ctx, s); err != nil {
		return err
	}
	if s.Lifetime > 0 {
		return c.SetExpiry(ctx, s.ID, time.Now().Add(s.Lifetime))
	}
	return nil
}

func (c *Client) submit(ctx context.Context, s *Submission) error {
	r := request{what: "submit " + s.ID.String(), method: http.MethodPost, path: "/apps", body: s.json()}
	_, _, tries, err := c.do(ctx, r, nil)
	var ae *APIError
	if err == nil || tries == 0 || !errors.As(err, &ae) {
		return err
	}
	// A repeated submission was refused. It may be because the first went through.
	app, aerr := c.App(ctx, s.ID)
	if aerr == nil && app.Name == s.Name && (s.Type == "" || strings.EqualFold(app.Type, s.Type)) {
		return nil
	}
	return fmt.Errorf("%w (after an earlier attempt whose answer was lost)", err)
}
