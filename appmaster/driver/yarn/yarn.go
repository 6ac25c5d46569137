// Package yarn gets agents as containers of YARN. It is the application's master towards YARN: it registers, asks for containers, starts an agent in
// each, learns of their ends, gives back what it was not asked for, and unregisters at the end.
//
// An agent finds its secrets in its container's credentials file, which only it can read: SecretsOf reads them there.
package yarn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl"
	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/yarnclient"
	"github.com/heddle-stream/heddle/yarnclient/amrm"
	"github.com/heddle-stream/heddle/yarnclient/book"
	"github.com/heddle-stream/heddle/yarnclient/nm"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// Config is how agents are got and started. It must not change after New.
type Config struct {
	// Master is how the ResourceManager is spoken to; Heard, Rejected and Logger are filled in.
	Master amrm.Config
	// ClientKey is told by what key YARN makes the tokens of those who call the master, after each registration; nil: nobody wants to know.
	ClientKey func([]byte)
	// Nodes is how NodeManagers are spoken to; Token and Logger are filled in.
	Nodes nm.Config
	// RegisterTimeout bounds Start; 0: 1 min.
	RegisterTimeout time.Duration

	// What an agent's container is: its size, and where it may be.
	MemoryMB int64
	VCores   int32
	Custom   map[string]int64
	Label    string
	Priority int32 // 0: 1
	PerNode  int   // most agents on one host; 0: any number
	// Constrain leaves PerNode to the scheduler, where yarn.resourcemanager.placement-constraints.handler is scheduler.
	Constrain bool
	Hosts     []string // preferred ones
	Racks     []string // of the preferred hosts, or preferred by themselves
	Strict    bool     // nowhere else
	Spread    bool     // over as many hosts as there are, as long as that does not hold grants up

	// What runs in it: one line for bash, and what that needs.
	Command     string
	Env         map[string]string
	Resources   []yarnclient.LocalResource
	Credentials token.Credentials
	Fresh       func() token.Credentials // nil, or tokens that stand in for those of Credentials by then
	Files       map[string]string        // put into the secrets: name, and path of the file to be read for it

	// SizeEnv makes variables that tell a container its size, which YARN may have rounded up; nil: none.
	SizeEnv func(memoryMB int64, cores int32) map[string]string
	// Over is called when YARN has ended this attempt: the master must end without Finish. nil: the master is told that there are no more agents.
	Over func(error)
	// Logs returns the last lines that a container wrote, for one that failed; nil: none are told.
	Logs func(ctx context.Context, g book.Grant) []string

	// FinalURL is where people can look once the application is over; "": at YARN's own page of it, which its tracking URL leads to then. That of
	// the master would lead nowhere.
	FinalURL string

	Grace time.Duration // how long an agent that was told to go may take until it is taken for gone; 0: 5 s
}

// SecretName is the name of an agent's secrets in its container's credentials.
const SecretName = "heddle.agent"

// SecretsOf returns the secrets of the agent that runs in this container. file is what HADOOP_TOKEN_FILE_LOCATION names.
func SecretsOf(file string) (ctl.AgentSecrets, error) {
	var s ctl.AgentSecrets
	data, err := os.ReadFile(file)
	if err != nil {
		return s, fmt.Errorf("cannot read the container's credentials: %w", err)
	}
	creds, err := token.Parse(data)
	if err != nil {
		return s, fmt.Errorf("%s: %w", file, err)
	}
	secret := creds.Secret(SecretName)
	if secret == nil {
		return s, fmt.Errorf("the container's credentials %s hold no agent's secrets: an ApplicationMaster of Heddle did not start it", file)
	}
	if err := json.Unmarshal(secret, &s); err != nil {
		return s, fmt.Errorf("cannot read the agent's secrets in %s: %w", file, err)
	}
	return s, nil
}

// Driver implements appmaster.Driver, appmaster.Excluder, appmaster.Suspecter and appmaster.Witness.
type Driver struct {
	// Immutable after Start.
	cfg     Config
	env     appmaster.DriverEnv
	log     *slog.Logger
	session *amrm.Session
	nodes   *nm.Client
	key     book.Key
	ready   chan struct{} // closed when session is set: what is heard before waits

	life    context.Context // of calls to NodeManagers; ends when Stop has no more time
	end     context.CancelFunc
	workers sync.WaitGroup // one goroutine an agent
	wg      sync.WaitGroup // the others: of the session's end and of refusals

	// Guarded by mu.
	mu       sync.Mutex
	total    int // of the last Ask
	granted  int
	agents   map[cluster.AgentID]*worker
	byID     map[yarnid.Container]*worker
	draining map[string]bool // hosts that are going away
	stopped  bool
	finished bool // Finish or Close was called
}

// worker is an agent from its grant to its end.
type worker struct {
	// Immutable.
	id    cluster.AgentID
	grant book.Grant
	leave chan struct{} // closed when it shall go
	gone  chan struct{} // closed when it has ended

	// Guarded by Driver.mu.
	wanted bool // leave is closed
	lost   bool
	over   bool // gone is closed
	reason string
	blame  bool
	done   *book.Done // what YARN told of its end; nil: nothing
}

// New returns a driver.
func New(cfg Config) (*Driver, error) {
	if cfg.Command == "" || cfg.MemoryMB <= 0 {
		return nil, errors.New("cannot get agents from YARN without a command and a container's memory")
	}
	if cfg.RegisterTimeout == 0 {
		cfg.RegisterTimeout = time.Minute
	}
	if cfg.Priority == 0 {
		cfg.Priority = 1
	}
	if cfg.Grace == 0 {
		cfg.Grace = 5 * time.Second
	}
	d := &Driver{cfg: cfg, key: book.Key{Priority: cfg.Priority, Request: 1}, ready: make(chan struct{}),
		agents: map[cluster.AgentID]*worker{}, byID: map[yarnid.Container]*worker{}, draining: map[string]bool{}}
	d.life, d.end = context.WithCancel(context.Background())
	return d, nil
}

// Start implements appmaster.Driver: it registers the application's master. Containers of an earlier attempt go back.
func (d *Driver) Start(env appmaster.DriverEnv) error {
	d.env, d.log = env, env.Logger
	ctx, cancel := context.WithTimeout(context.Background(), d.cfg.RegisterTimeout)
	defer cancel()
	m := d.cfg.Master
	m.Logger, m.Heard, m.Rejected = d.log, d.heard, d.rejected
	m.Registered = func(r amrm.Registration) {
		if d.cfg.ClientKey != nil && len(r.ClientKey) > 0 {
			d.cfg.ClientKey(r.ClientKey)
		}
	}
	s, reg, err := amrm.Register(ctx, m)
	if err != nil {
		return err
	}
	d.session = s
	n := d.cfg.Nodes
	n.Logger, n.Token = d.log, s.NMToken
	d.nodes = nm.New(n)
	close(d.ready)
	d.log.Info("registered with YARN", "queue", reg.Queue, "largest-container", fmt.Sprintf("%d MB, %d cores", reg.MaxMemoryMB, reg.MaxVCores))
	for _, g := range reg.Kept {
		d.log.Info("giving back a container of an earlier attempt", "container", g.Container)
		s.Release(g.Container)
	}
	if d.cfg.MemoryMB > reg.MaxMemoryMB && reg.MaxMemoryMB > 0 {
		return fmt.Errorf("an agent wants %d MB, and the largest container of this cluster has %d MB: lower agent.memory", d.cfg.MemoryMB, reg.MaxMemoryMB)
	}
	if err := d.kinds(reg.Types); err != nil {
		return err
	}
	d.wg.Go(d.watch)
	return nil
}

// kinds refuses resources that the cluster does not have: YARN would leave them out of its containers without a word. Where it does not say which it has,
// there is a warning.
func (d *Driver) kinds(has []string) error {
	for _, name := range slices.Sorted(maps.Keys(d.cfg.Custom)) {
		switch {
		case d.cfg.Custom[name] == 0 || slices.Contains(has, name):
		case len(has) == 0:
			d.log.Warn("this cluster does not say which resources it has: if it lacks one, agents come without it", "resource", name)
		default:
			return fmt.Errorf("an agent wants %s, and this cluster has no such resource, only %s: change agent.resources", name, strings.Join(has, ", "))
		}
	}
	return nil
}

// watch tells the master when YARN has ended this attempt.
func (d *Driver) watch() {
	select {
	case <-d.session.Done():
	case <-d.life.Done():
		return
	}
	d.mu.Lock()
	silent := d.stopped || d.finished
	for _, w := range d.agents {
		d.over(w, "the ResourceManager has ended this attempt of the application", false)
	}
	d.mu.Unlock()
	if silent {
		return
	}
	if d.cfg.Over != nil {
		d.cfg.Over(d.session.Err())
	} else {
		d.env.Refused(fmt.Sprintf("the session with YARN is over: %v", d.session.Err()))
	}
}

// Ask implements appmaster.Driver.
func (d *Driver) Ask(total int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return
	}
	d.total = total
	d.want()
}

// want says how many containers are still wanted. d.mu is held.
func (d *Driver) want() {
	open := max(0, d.total-d.granted)
	if d.stopped {
		open = 0
	}
	d.session.Want(book.Ask{Key: d.key, Count: open, MemoryMB: d.cfg.MemoryMB, VCores: max(1, d.cfg.VCores), Custom: d.cfg.Custom, Label: d.cfg.Label,
		Spread: d.cfg.Spread, PerNode: d.cfg.PerNode, Constrain: d.cfg.Constrain, Nodes: d.cfg.Hosts, Racks: d.cfg.Racks, Strict: d.cfg.Strict})
}

// Exclude implements appmaster.Excluder.
func (d *Driver) Exclude(hosts []string) { d.session.Blacklist(hosts) }

// Joined implements appmaster.Witness.
func (d *Driver) Joined(cluster.AgentID) {}

// Parted implements appmaster.Witness. When the application is over, an agent that took its leave is not waited for: what its container's
// exit status is does not matter any more, and YARN tells of it some heartbeats later only.
func (d *Driver) Parted(id cluster.AgentID, _ string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if w := d.agents[id]; w != nil && d.total == 0 {
		d.over(w, "it took its leave", false)
	}
}

// hurry is how long YARN is asked more often for the end of an agent whose session broke: some heartbeats of a node.
const hurry = 5 * time.Second

// Suspect implements appmaster.Suspecter: how the agent's container ended, a heartbeat soon tells.
func (d *Driver) Suspect(cluster.AgentID) { d.session.Hurry(hurry) }

// Return implements appmaster.Driver.
func (d *Driver) Return(id cluster.AgentID, lost bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if w := d.agents[id]; w != nil {
		d.sendAway(w, lost)
	}
}

// sendAway tells a worker to go. d.mu is held.
func (d *Driver) sendAway(w *worker, lost bool) {
	if lost && !w.lost {
		// It can't be asked to go: YARN ends it.
		w.lost = true
		d.session.Release(w.grant.Container)
	}
	if !w.wanted {
		w.wanted = true
		close(w.leave)
	}
}

// over notes a worker's end, once. d.mu is held.
func (d *Driver) over(w *worker, reason string, blame bool) {
	if w.over {
		return
	}
	w.over, w.reason, w.blame = true, reason, blame && !w.wanted
	delete(d.byID, w.grant.Container)
	close(w.gone)
}

// heard takes what a heartbeat brought. It runs in the session's goroutine for that.
func (d *Driver) heard(o book.Outcome) {
	<-d.ready
	for _, g := range o.Granted {
		d.take(g)
	}
	for _, g := range o.Kept {
		d.release(g)
	}
	for _, c := range o.Completed {
		d.mu.Lock()
		if w := d.byID[c.Container]; w != nil {
			reason, blame := judge(c, d.cfg.MemoryMB)
			if !w.over {
				w.done = &c
			}
			d.over(w, reason, blame)
		}
		d.mu.Unlock()
	}
	d.nodesChanged(o.Nodes)
	d.wantedBack(o.Preempt, o.Wishes)
}

// release gives back a container that nobody asked for, such as one of an earlier attempt that is told of late.
func (d *Driver) release(g book.Grant) {
	d.mu.Lock()
	ours := d.byID[g.Container] != nil
	d.mu.Unlock()
	if !ours {
		d.session.Release(g.Container)
	}
}

// take makes an agent of a container, unless the driver has stopped.
func (d *Driver) take(g book.Grant) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped || d.granted >= d.total {
		d.session.Release(g.Container)
		return
	}
	d.granted++
	w := &worker{id: cluster.AgentID("agent-" + strconv.Itoa(d.granted)), grant: g, leave: make(chan struct{}), gone: make(chan struct{})}
	d.agents[w.id], d.byID[g.Container] = w, w
	d.workers.Go(func() { d.run(w) })
}

// rejected tells that YARN will not grant such containers.
func (d *Driver) rejected(_ book.Key, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return
	}
	d.wg.Go(func() {
		d.env.Refused(fmt.Sprintf("YARN refuses containers of %d MB and %d cores: %v", d.cfg.MemoryMB, d.cfg.VCores, err))
	})
}

// run is the goroutine of an agent.
func (d *Driver) run(w *worker) {
	host, _, err := net.SplitHostPort(w.grant.Node)
	if err != nil {
		host = w.grant.Node
	}
	d.env.Granted(w.id, cluster.ContainerID(w.grant.Container.String()), host)
	if err := d.launch(w); err != nil {
		d.session.Release(w.grant.Container)
		d.mu.Lock()
		d.over(w, err.Error(), true)
		d.mu.Unlock()
	}
	select {
	case <-w.gone:
	case <-w.leave:
		d.bringDown(w)
	}
	d.mu.Lock()
	delete(d.agents, w.id)
	exit := appmaster.AgentExit{Agent: w.id, Reason: w.reason, Blame: w.blame}
	if w.done != nil {
		exit.Status, exit.Told = &w.done.ExitStatus, told(*w.done)
		if !w.wanted {
			exit.Fix = verdictOn(w.done.ExitStatus).fix
		}
	}
	d.mu.Unlock()
	if exit.Blame && d.cfg.Logs != nil {
		ctx, cancel := context.WithTimeout(d.life, d.cfg.Grace)
		exit.LastLogs = d.cfg.Logs(ctx, w.grant)
		cancel()
	}
	if exit.Blame && len(exit.LastLogs) == 0 && w.done != nil {
		exit.LastLogs = wrote(w.done.Diagnostics, lastLines) // where the NodeManager's web service lets us in no more than its log files
	}
	d.env.Exited(exit)
}

// lastLines is how many lines of a container's log are told.
const lastLines = 10

// launch starts the agent, unless it is to go already.
func (d *Driver) launch(w *worker) error {
	select {
	case <-w.leave:
		return errors.New("it was not needed any more")
	case <-w.gone:
		return nil
	default:
	}
	secrets, err := d.env.Secrets(w.id, cluster.ContainerID(w.grant.Container.String()))
	if err != nil {
		return err
	}
	secrets.Files = map[string][]byte{}
	for name, from := range d.cfg.Files {
		if secrets.Files[name], err = os.ReadFile(from); err != nil {
			return fmt.Errorf("cannot read what agents get: %w", err)
		}
	}
	data, err := json.Marshal(secrets)
	if err != nil {
		return fmt.Errorf("cannot encode the secrets of %s: %w", w.id, err)
	}
	creds := d.cfg.Credentials
	if d.cfg.Fresh != nil {
		creds = d.cfg.Fresh()
	}
	creds.Secrets = append(creds.Secrets[:len(creds.Secrets):len(creds.Secrets)], token.Secret{Name: SecretName, Value: data})
	return d.nodes.Start(d.life, nm.Launch{Container: w.grant.Container, Node: w.grant.Node, Token: w.grant.Token,
		Command: d.cfg.Command, Env: d.environment(w), Resources: d.cfg.Resources, Credentials: creds})
}

// environment is that of an agent's container.
func (d *Driver) environment(w *worker) map[string]string {
	env := map[string]string{}
	if d.cfg.SizeEnv != nil {
		env = d.cfg.SizeEnv(w.grant.MemoryMB, w.grant.VCores)
	}
	for _, line := range d.env.Environ {
		name, value, _ := strings.Cut(line, "=")
		env[name] = value
	}
	for k, v := range d.cfg.Env {
		if _, ok := env[k]; !ok {
			env[k] = v
		}
	}
	return env
}

// bringDown ends an agent that shall go: the NodeManager sends it SIGTERM and soon SIGKILL; if that can't be reached, the
// ResourceManager takes the container back.
func (d *Driver) bringDown(w *worker) {
	ctx, cancel := context.WithTimeout(d.life, d.cfg.Grace)
	defer cancel()
	d.mu.Lock()
	lost := w.lost
	d.mu.Unlock()
	if !lost {
		if err := d.nodes.Stop(ctx, w.grant.Node, w.grant.Container); err != nil {
			d.log.Warn("cannot stop an agent, giving its container back", "agent", w.id, "err", err)
			d.session.Release(w.grant.Container)
		}
	}
	select {
	case <-w.gone:
		return
	case <-ctx.Done():
	}
	d.session.Release(w.grant.Container)
	d.mu.Lock()
	d.over(w, "its container was given back", false)
	d.mu.Unlock()
}

// Stop implements appmaster.Driver. The session with YARN goes on until Finish or Close.
func (d *Driver) Stop(ctx context.Context) {
	d.mu.Lock()
	d.stopped = true
	d.want()
	for _, w := range d.agents {
		d.sendAway(w, false)
	}
	d.mu.Unlock()
	unhook := context.AfterFunc(ctx, d.end)
	d.workers.Wait()
	unhook()
	d.end()
	d.wg.Wait()
}

// Finish unregisters the application with its final status. It comes after Stop, or in place of Start for an application that can't begin at all: it
// registers then, so that YARN does not try again.
func (d *Driver) Finish(ctx context.Context, status pb.FinalApplicationStatusProto, diagnostics string) error {
	d.mu.Lock()
	d.finished = true
	d.mu.Unlock()
	if d.session == nil {
		s, _, err := amrm.Register(ctx, d.cfg.Master)
		if err != nil {
			return err
		}
		defer s.Close()
		return s.Finish(ctx, status, diagnostics, d.cfg.FinalURL)
	}
	err := d.session.Finish(ctx, status, diagnostics, d.cfg.FinalURL)
	d.Close()
	return err
}

// Close ends the session with YARN, without unregistering if Finish did not.
func (d *Driver) Close() {
	d.mu.Lock()
	d.finished = true
	d.mu.Unlock()
	d.end()
	if d.session != nil {
		d.session.Close()
		d.nodes.Close()
	}
	d.wg.Wait()
}
