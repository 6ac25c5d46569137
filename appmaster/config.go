package appmaster

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/heddle-stream/heddle/appmaster/plane"
	"github.com/heddle-stream/heddle/appmaster/sched"
	"github.com/heddle-stream/heddle/appmaster/slotmgr"
	"github.com/heddle-stream/heddle/appmaster/slotpool"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/jobgraph"
	"github.com/heddle-stream/heddle/internal/telemetry"
)

// Config is what Run needs to know. It must not change while Run runs.
type Config struct {
	App     string          // id of the application
	Attempt uint32          // of the ApplicationMaster, from 0
	AppDir  string          // where appmaster.addr and result.json go; "": nowhere
	Job     *flow.Graph     // as this process built it
	Graph   *jobgraph.Graph // Job, compiled
	Driver  Driver          // starts agents
	Front   Front           // serves people; nil: nobody
	Logger  *slog.Logger    // nil: discards

	Listener  net.Listener // of the control plane; Run closes it
	Advertise string       // the address agents dial; "": the listener's
	// Keys are those of the application, where other attempts of the master have them too: agents of an earlier one can come
	// back then. Nil: new ones, which nobody else has.
	Keys *Keys
	// CertificateLife is how long certificates are good that Keys sign; they are replaced when half of it is over. 0: pki.DefaultLife.
	CertificateLife time.Duration
	// Rejoin is how long agents shall look for another attempt when this one is gone; 0: there is none to come.
	Rejoin time.Duration

	Agents        slotmgr.Config // Attempt and Cut are set from the above
	Slots         slotpool.Config
	Restart       sched.Restart // nil: never
	CancelTimeout time.Duration // how long agents have to stop tasks; 0: 30 s

	HeartbeatInterval time.Duration     // that agents are told; 0: 1 s
	DiscoveryBudget   time.Duration     // how long discovery of a source's splits may fail before the job does; 0: 2 min, negative: for ever
	StopGrace         time.Duration     // how long agents have to go by themselves at the end; 0: 5 s
	Secrets           map[string]string // options that agents may know but nobody else
	// Tokens brings news of tokens for services outside: fresh ones go to all agents and to those that come later. Whoever sends waits until it
	// is taken. Nil: there are none.
	Tokens <-chan TokenUpdate
	Option func(name string) (string, bool) // options for enumerators; nil: none

	// LogLevel changes what this process logs; nil: it can't be changed. See LogLevels.
	LogLevel func(component string, level slog.Level, d time.Duration, reset bool)
	Profiles bool // profiles of the processes may be taken; see Profiler

	Trace       *telemetry.Provider // of this process; nil: the application's life is not traced
	TraceParent flow.TraceContext   // what started it
	Started     time.Time           // of this process; zero: now
	Submitted   time.Time           // when YARN took the application, by its clock; zero: not known
}

func (c Config) complete() (Config, error) {
	switch {
	case c.Job == nil || c.Graph == nil:
		return c, errors.New("cannot run an application without a job")
	case c.Driver == nil:
		return c, errors.New("cannot run an application without a driver")
	case c.Listener == nil:
		return c, errors.New("cannot run an application without a listener for its agents")
	}
	or := func(d *time.Duration, def time.Duration) {
		if *d == 0 {
			*d = def
		}
	}
	or(&c.HeartbeatInterval, time.Second)
	or(&c.Agents.HeartbeatTimeout, 10*time.Second)
	or(&c.DiscoveryBudget, 2*time.Minute)
	or(&c.StopGrace, 5*time.Second)
	if _, never := c.Restart.(sched.Never); c.Restart != nil && !never {
		c.Agents.ExitWait = 0 // the job goes on sooner; why the agent ended is told when it is known
	}
	if c.Started.IsZero() {
		c.Started = time.Now()
	}
	c.Agents.Attempt, c.Agents.Cut = c.Attempt, len(c.Graph.Profiles) > 0
	if err := plane.CheckProfiles(c.Graph, c.Agents.AgentTotal); err != nil {
		return c, err
	}
	if c.Keys == nil {
		var err error
		if c.Keys, err = NewKeys(c.App); err != nil {
			return c, err
		}
	}
	c.Keys.authority.SetLife(c.CertificateLife)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Option == nil {
		c.Option = func(string) (string, bool) { return "", false }
	}
	if c.Advertise == "" {
		c.Advertise = c.Listener.Addr().String()
	}
	return c, nil
}

// Driver starts and ends agents. Start is called first, Stop last, both once; Ask and Return in between, by the loop:
// they note what is wanted and return at once.
type Driver interface {
	// Start makes the driver ready. It may call env's functions from now on, from any goroutine, until Stop has returned.
	Start(env DriverEnv) error
	// Ask sets how many agents shall have been granted since Start. Lowering it withdraws what was not granted yet.
	Ask(total int)
	// Return ends an agent, if it still runs: first kindly, then for good; at once if it is lost, so that no reaction is to be expected.
	Return(id cluster.AgentID, lost bool)
	// Stop ends every agent and waits until all are gone; when ctx ends, it kills them.
	Stop(ctx context.Context)
}

// Witness is implemented by a Driver that can't see its agents' processes: it is told what their sessions show. The methods
// note it and return at once.
type Witness interface {
	// Joined says that an agent has registered.
	Joined(id cluster.AgentID)
	// Parted says that an agent said goodbye: its process is ending.
	Parted(id cluster.AgentID, reason string)
}

// Suspecter is implemented by a Driver that learns of ends some time after they happened, and can ask sooner.
type Suspecter interface {
	// Suspect says that an agent's session broke, so that it may have ended. It notes that and returns at once.
	Suspect(id cluster.AgentID)
}

// Excluder is implemented by a Driver that can choose hosts. What it starts on an excluded one goes back at once.
type Excluder interface {
	// Exclude sets the hosts on which to start no agents, in place of those before. It notes them and returns at once.
	Exclude(hosts []string)
}

// DriverEnv is what the master offers its driver. None of the functions waits for
// an answer of the loop, though they may wait a moment when it is far behind.
type DriverEnv struct {
	App     string
	Attempt uint32
	AppDir  string
	Logger  *slog.Logger
	Environ []string // for each agent's process, "NAME=value"
	// Secrets makes the secrets of a new agent. What lets it in is good for SecretsLife.
	Secrets     func(cluster.AgentID, cluster.ContainerID) (ctl.AgentSecrets, error)
	SecretsLife time.Duration
	// Granted says that an agent is being started. It comes before anything else about it.
	Granted func(id cluster.AgentID, container cluster.ContainerID, host string)
	// Recovered says that an agent which an earlier attempt has started may still run. A driver that knows of some calls it
	// in Start, so that they are expected before the first of them can register. Exited comes for them as for others.
	Recovered func(id cluster.AgentID, container cluster.ContainerID, host string)
	// Exited says that an agent has ended, or that it could not be started. It comes once for each Granted and Recovered.
	Exited func(AgentExit)
	// Refused says that there will be no more agents.
	Refused func(reason string)
	// Draining sets the hosts that are going away, in place of those before: no new agents there, and those there go once they are free.
	Draining func(hosts []string)
	// Reclaim says that agents are wanted back: these are taken for certain, and beside them count in all would do, whichever they are.
	Reclaim func(agents []cluster.AgentID, count int)
}

// AgentExit is how an agent ended.
type AgentExit struct {
	Agent    cluster.AgentID
	Reason   string   // such as "exit status 3" or "killed by signal 9"
	Blame    bool     // it counts as a failure of the agent's: neither asked for, nor the environment's doing
	LastLogs []string // the last lines that it wrote, oldest first

	Status *int   // of the container's or process's end, by whoever ran it: YARN's are negative, 128 and a signal's number for signals; nil: not known
	Told   string // what the resource manager said of it; "": nothing
	Fix    string // what helps against such an end; "": nothing that is known
}

// Front serves people: the dashboard and the REST API.
type Front interface {
	// Start begins to serve view, and returns the address to open.
	Start(view View) (addr string, err error)
	// Close ends it, waiting for requests until ctx ends.
	Close(ctx context.Context) error
}

// View is what a Front sees of the master. Its methods may be called by any goroutine and don't wait.
type View interface {
	// Snapshot is the latest state. It must not be changed.
	Snapshot() *Snapshot
	// Cancel asks for the end of the job.
	Cancel(reason string)
}

// Addr is the content of appmaster.addr: where this application's ApplicationMaster is.
type Addr struct {
	Web     string `json:"web,omitempty"`
	Control string `json:"control"`
	PID     int    `json:"pid"`
	Attempt uint32 `json:"attempt"`
}

// Names of the files that Run writes into AppDir.
const (
	AddrFile   = "appmaster.addr"
	ResultFile = "result.json"
)

// Result is how the application ended: the content of result.json.
type Result struct {
	App      string    `json:"app"`
	Job      string    `json:"job"`
	State    string    `json:"state"` // finished, failed or canceled
	Cause    *Cause    `json:"cause,omitempty"`
	Started  time.Time `json:"started"`
	Ended    time.Time `json:"ended"`
	Vertices []Vertex  `json:"vertices"` // as at the end
	Warnings []Warning `json:"warnings,omitempty"`
}
