// Package doctor looks whether everything is there that a job needs on a cluster, without leaving anything behind: Hadoop's configuration, Kerberos, the
// NameNodes, the ResourceManagers, queues, Kafka and the rest. What it sees is judged by package verdict.
//
// Checks run side by side. One whose precondition failed is skipped, so that one fault is told once. Each has a time limit, after which its
// connections are closed.
package doctor

import (
	"context"
	"net"
	"time"

	"github.com/heddle-stream/heddle/internal/doctor/verdict"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/kafka"
	"github.com/heddle-stream/heddle/yarnclient"
)

// Config says what to look at.
type Config struct {
	Env func(string) (string, bool)

	// Hadoop is false where no cluster is meant; NoHadoop says why.
	Hadoop   bool
	NoHadoop string
	ConfDir  string // "": as the environment says
	User     string // where clusters believe it
	Keytab   string
	// Principal is who logs in; "": the only one of the keytab, or whose the ticket cache is.
	Principal string
	// HTTP are properties beside Hadoop's configuration, which say how HDFS is spoken to over HTTP, and HTTPPassword is that of who logs in there; HTTPErr is why
	// that can't be told.
	HTTP         map[string]string
	HTTPPassword string
	HTTPErr      error
	Queue        string
	Label        string
	StagingDir   string   // folder or URI in HDFS; "": .heddle in the user's home
	FileSystems  []string // beside the default one and that of the staging folder
	// Fit says whether the containers that are configured fit into the cluster's, and what helps if not; nil: they are not looked at.
	Fit func(yarnclient.NewApp) (fix string, err error)

	// Needs are what a job needs, with the clusters of Kafka that it speaks to.
	Needs []flow.Need
	Kafka []KafkaCluster

	// Registry are the options of the schema registry; nil: there is none.
	Registry  func(option string) (string, bool)
	Collector string // URL that traces are sent to; "": none

	Resolver Resolver         // nil: net.DefaultResolver
	Now      func() time.Time // nil: time.Now
	Limit    time.Duration    // of each check; 0: 15 s
}

// KafkaCluster is a cluster that a job speaks to.
type KafkaCluster struct {
	At     string // as Need.At has it; "": the configured one
	Config kafka.Config
	Err    error // why it can't be told
	Tokens TokenUse
	Barred error // why a token of its, which is demanded, is not to be had whatever it says; nil: nothing is known
}

// TokenUse is whether a job logs in to a cluster of Kafka by a delegation token of its.
type TokenUse int

// Uses of tokens.
const (
	NoTokens TokenUse = iota
	IfThere           // agents that get none need a login of their own
	Demanded
)

// Resolver looks names up.
type Resolver interface {
	LookupHost(ctx context.Context, host string) ([]string, error)
	LookupAddr(ctx context.Context, addr string) ([]string, error)
}

// Result is the outcome of a check.
type Result struct {
	Check     string         `json:"check"` // its name, which stays the same between versions
	Title     string         `json:"title"`
	Status    verdict.Status `json:"status"`
	Diagnosis string         `json:"diagnosis,omitempty"`
	Tried     string         `json:"tried,omitempty"`
	Means     string         `json:"means,omitempty"`
	Fix       string         `json:"fix,omitempty"`
	Millis    int64          `json:"ms"`
}

// Run makes every check and returns the results in their order. Each is also told as soon as those before it are known.
func Run(ctx context.Context, cfg Config, tell func(Result)) []Result {
	if cfg.Resolver == nil {
		cfg.Resolver = net.DefaultResolver
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Limit == 0 {
		cfg.Limit = 15 * time.Second
	}
	if cfg.NoHadoop == "" {
		cfg.NoHadoop = "no cluster is meant"
	}
	p := &patient{cfg: cfg}
	return perform(ctx, p.checks(), cfg.Limit, tell)
}

// Failed reports whether any check failed.
func Failed(rs []Result) bool {
	for _, r := range rs {
		if r.Status == verdict.Fail {
			return true
		}
	}
	return false
}
