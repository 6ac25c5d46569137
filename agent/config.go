package agent

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/heddle-stream/heddle/agent/task"
	"github.com/heddle-stream/heddle/internal/ctl"
	"github.com/heddle-stream/heddle/internal/ctl/pki"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/jobgraph"
	"github.com/heddle-stream/heddle/netstack"
)

// Config is what an agent needs to know. Zero values are defaults.
type Config struct {
	Dir     string           // of the agent: secrets are read from there
	Secrets ctl.AgentSecrets // used instead of Dir's, if it has an agent id

	// The job as this process built it.
	Graph *flow.Graph
	Plan  *jobgraph.Graph // nil: it could not be compiled; the master will then refuse the agent

	Slots    int              // 0: 1
	MemoryMB int64            // given to the master; 0: not said
	MilliCPU int64            // given to the master; 0: not said
	Custom   map[string]int64 // other resources, given to the master
	Host     string           // for people and locality; "": the host's name
	Rack     string
	Version  string // of the binary

	Exchange     netstack.Config // Auth, TLS, Identity and Logger are filled in
	ExchangeTLS  bool
	FlushTimeout time.Duration
	Follow       task.Follow       // zero: no record is followed
	TraceParent  flow.TraceContext // what started this process, for the spans of its start
	Started      time.Time         // of this process; zero: now
	// LogLevel changes what this process logs; nil: it can't be changed.
	LogLevel func(component string, level slog.Level, d time.Duration, reset bool)
	Option   func(name string) (string, bool) // nil: none is set
	Logger   *slog.Logger                     // nil: discard
	// Tokens takes fresh tokens for services outside, which the master sends. It must return soon. Nil: they are refused.
	Tokens func(credentials []byte) error

	JoinTimeout   time.Duration // how long the master may not be reachable at the start; 0: 20 s
	RejoinTimeout time.Duration // how long it may not be reachable after the session broke; 0: the heartbeat timeout
	RefuseTimeout time.Duration // how long its host may refuse connections meanwhile, since nobody listens there; 0: 5 s
	// Locate tells before each try to join where the master is now; "": where the secrets say. Nil: there. Where the master says
	// that another attempt of it may come, both timeouts are at least as long as it says.
	Locate        func(context.Context) string
	CancelTimeout time.Duration // after which a task that does not stop is reported with its stack; 0: 30 s
	StopTimeout   time.Duration // how long tasks have when the agent ends; 0: 5 s
}

// complete fills in defaults and reads the secrets.
func (c Config) complete() (Config, error) {
	if c.Secrets.AgentID == "" {
		s, err := ctl.ReadSecrets(filepath.Join(c.Dir, ctl.SecretsFile))
		if err != nil {
			return c, err
		}
		c.Secrets = s
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Logger = c.Logger.With("agent", string(c.Secrets.AgentID))
	if c.Started.IsZero() {
		c.Started = time.Now()
	}
	if c.Slots == 0 {
		c.Slots = 1
	}
	if c.Host == "" {
		host, err := os.Hostname()
		if err != nil {
			return c, fmt.Errorf("cannot tell this host's name: %w", err)
		}
		c.Host = host
	}
	if c.JoinTimeout == 0 {
		c.JoinTimeout = 20 * time.Second
	}
	if c.RefuseTimeout == 0 {
		c.RefuseTimeout = 5 * time.Second
	}
	if c.CancelTimeout == 0 {
		c.CancelTimeout = 30 * time.Second
	}
	if c.StopTimeout == 0 {
		c.StopTimeout = 5 * time.Second
	}
	return c, c.completeExchange()
}

func (c *Config) completeExchange() error {
	c.Exchange.Identity = string(c.Secrets.AgentID)
	c.Exchange.Logger = c.Logger.With("component", "exchange")
	c.Exchange.Auth.Key = c.Secrets.ExchangeKey
	if !c.ExchangeTLS {
		return nil
	}
	server, client, err := pki.ExchangeTLS(c.Secrets.Leaf(), []byte(c.Secrets.CA))
	if err != nil {
		return fmt.Errorf("cannot encrypt the exchange: %w", err)
	}
	c.Exchange.TLS = &netstack.TLS{Server: server, Client: client}
	return nil
}

// LimitMemory tells Go's garbage collector to stay below limitMB, and with a limit to let garbage grow further below it:
// the hot path makes next to none, and collections cost more than the memory that is there anyway. What the environment
// variables GOGC and GOMEMLIMIT say stands. A process that is nothing but an agent calls it once.
func LimitMemory(limitMB int64) {
	if limitMB <= 0 || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetMemoryLimit(limitMB << 20 / 10 * 9) // the rest is for stacks of C-less Go: page tables, kernel buffers
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}
