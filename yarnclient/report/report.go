// Package report holds what a ResourceManager tells about applications, queues and nodes, whichever way it was asked. It has data
// only, so that what explains it (package explain) can be pure.
package report

import (
	"fmt"
	"strings"
	"time"
)

// States of an application.
const (
	StateAccepted = "ACCEPTED"
	StateRunning  = "RUNNING"
	StateFinished = "FINISHED"
	StateFailed   = "FAILED"
	StateKilled   = "KILLED"
)

// Resource is what a container, queue or node has or gets.
type Resource struct {
	MemoryMB int64
	VCores   int64
}

// Fits reports whether r is at most o.
func (r Resource) Fits(o Resource) bool { return r.MemoryMB <= o.MemoryMB && r.VCores <= o.VCores }

// Plus is the sum.
func (r Resource) Plus(o Resource) Resource {
	return Resource{r.MemoryMB + o.MemoryMB, r.VCores + o.VCores}
}

// IsZero reports whether there is nothing.
func (r Resource) IsZero() bool { return r == Resource{} }

func (r Resource) String() string {
	cores := "cores"
	if r.VCores == 1 {
		cores = "core"
	}
	return fmt.Sprintf("%d MB and %d %s", r.MemoryMB, r.VCores, cores)
}

// Ask is what an application still wants, as the scheduler has it.
type Ask struct {
	Priority int
	Where    string // "*", a rack or a host
	Label    string // node label; "": the default
	Count    int
	Each     Resource
	Strict   bool // nowhere else
}

// App is the report of an application.
type App struct {
	ID          string
	User        string
	Name        string
	Queue       string
	Type        string
	State       string // such as ACCEPTED, RUNNING, FINISHED
	FinalStatus string // as its master reported it: UNDEFINED, SUCCEEDED, FAILED, KILLED
	Progress    float64
	TrackingURL string
	Diagnostics string // while it waits, what the scheduler says of that
	Tags        []string
	Started     time.Time
	Finished    time.Time // zero while it runs
	AMContainer string    // where its log is to be read
	AMHost      string    // host:port of its NodeManager's web service
	AMAddress   string    // host:port that the master registered as its own; "" before, and after its end
	AMWeb       string    // the address of its pages that it registered; "" likewise, and by REST, which does not tell
	Launched    time.Time // when its first master's container was started; zero: not yet, or not told
	Priority    int
	Containers  int
	MemoryMB    int64
	VCores      int64
	Label       string // node label of its containers; "": the default
	AMLabel     string // of its master's
	Asks        []Ask  // not told by RPC
	Reserved    Resource
}

// Ended reports whether the application is over.
func (a App) Ended() bool {
	return a.State == StateFinished || a.State == StateFailed || a.State == StateKilled
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

// Total is what the node has.
func (n Node) Total() Resource { return n.Used.Plus(n.Free) }

// HasLabel reports whether a node belongs to a label's partition; "" is that of nodes without.
func (n Node) HasLabel(label string) bool {
	if label == "" {
		return len(n.Labels) == 0 || len(n.Labels) == 1 && n.Labels[0] == ""
	}
	for _, l := range n.Labels {
		if l == label {
			return true
		}
	}
	return false
}

// Queue is a queue of the scheduler. Shares are percentages; what a scheduler does not tell is zero, and negative is none.
type Queue struct {
	Path                                string // such as root.default
	State                               string // RUNNING, STOPPED, DRAINING
	Capacity, MaxCapacity, UsedCapacity float64
	Apps, Pending                       int
	Leaf                                bool

	OfCluster, MaxOfCluster, UsedOfCluster float64 // the capacities as shares of the cluster
	Used                                   Resource
	Max                                    Resource // of the fair scheduler; of the capacity scheduler where it is configured so
	AMUsed, AMLimit, UserAMLimit           Resource
	MaxAllocation                          Resource // largest container
	MaxApps, MaxAppsPerUser                int
	UserLimit, UserLimitFactor             float64
	Users                                  []QueueUser
	Labels                                 []string // accessible; "*" is all
	DefaultLabel                           string
	Partitions                             []Partition // shares by label, "" among them
	NoPreemption                           bool
}

// Partition is a queue's share of the nodes of a label.
type Partition struct {
	Label                   string
	Capacity, Max, Used     float64 // of the parent's
	OfLabel, MaxOf, UsedOf  float64 // of all the label's
	AMUsed, AMLimit, UserAM Resource
}

// Partition returns the queue's share of a label's nodes.
func (q Queue) Partition(label string) (Partition, bool) {
	for _, p := range q.Partitions {
		if p.Label == label {
			return p, true
		}
	}
	return Partition{}, false
}

// Accesses reports whether applications of the queue may use nodes of a label.
func (q Queue) Accesses(label string) bool {
	if label == "" || len(q.Labels) == 0 && len(q.Partitions) == 0 {
		return true // every queue has those without; and nothing is known of others
	}
	for _, l := range q.Labels {
		if l == "*" || l == label {
			return true
		}
	}
	return false
}

// QueueUser is what a user has in a queue.
type QueueUser struct {
	Name            string
	Active, Pending int // applications
	Used, Limit     Resource
	AMUsed          Resource
}

// Find returns the queue of a path, or the only one of such a last name.
func Find(qs []Queue, name string) (Queue, bool) {
	found, n := Queue{}, 0
	for _, q := range qs {
		if q.Path == name {
			return q, true
		}
		if strings.HasSuffix(q.Path, "."+name) {
			found, n = q, n+1
		}
	}
	return found, n == 1
}

// Parents returns a queue and those above it, from the leaf up.
func Parents(qs []Queue, path string) []Queue {
	var out []Queue
	for path != "" {
		for _, q := range qs {
			if q.Path == path {
				out = append(out, q)
			}
		}
		i := strings.LastIndexByte(path, '.')
		path = path[:max(i, 0)]
	}
	return out
}

// Sum gives queues that have others below them what these have together, where the scheduler does not tell it; and root, which is all of the cluster, its
// shares. Parents stand before their children.
func Sum(qs []Queue) {
	for i := len(qs) - 1; i >= 0; i-- {
		q := &qs[i]
		if q.Path == "root" {
			q.OfCluster, q.MaxOfCluster = 100, 100
			q.UsedOfCluster = max(q.UsedOfCluster, q.UsedCapacity)
		}
		if q.Leaf {
			continue
		}
		var sum Queue
		for _, c := range qs[i+1:] {
			if rest, ok := strings.CutPrefix(c.Path, q.Path+"."); ok && !strings.Contains(rest, ".") {
				sum.Used, sum.AMUsed = sum.Used.Plus(c.Used), sum.AMUsed.Plus(c.AMUsed)
				sum.Apps, sum.Pending = sum.Apps+c.Apps, sum.Pending+c.Pending
			}
		}
		if q.Used.IsZero() {
			q.Used = sum.Used
		}
		if q.AMUsed.IsZero() {
			q.AMUsed = sum.AMUsed
		}
		q.Apps, q.Pending = max(q.Apps, sum.Apps), max(q.Pending, sum.Pending)
	}
}

// Scheduler is the scheduler with its queues.
type Scheduler struct {
	Type          string // such as capacityScheduler; "" if it was not told
	Queues        []Queue
	MaxAllocation Resource // largest container; zero if it was not told
}

// Metrics are figures of the cluster as a whole. By RPC, only nodes are known.
type Metrics struct {
	Nodes, Active, Lost, Unhealthy int // NodeManagers
	Decommissioning                int
	Total, Free, Reserved, Pending Resource
	Apps, AppsRunning, AppsPending int
	Containers                     int
}

// Attempt is one run of an application's master.
type Attempt struct {
	Number    int
	ID        string
	State     string
	Container string
	Node      string // host:port of its NodeManager's web service
	NodeID    string
	LogsLink  string
	Started   time.Time
}

// Container is a container that an attempt has or had.
type Container struct {
	ID          string
	State       string
	ExitStatus  int
	Diagnostics string
	Node        string // its NodeId, host:port
	NodeHTTP    string
	LogURL      string
	MemoryMB    int64
	VCores      int64
	Priority    int
}

// Diagnostic is why the scheduler did not give an application a container, and how often it said so lately.
type Diagnostic struct {
	Text  string
	Nodes []string // that it was said of; none: of the queue or the application
	Count int
}
