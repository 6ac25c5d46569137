// Package yarntest is a YARN cluster in the process, on the real wire formats: ResourceManagers and NodeManagers that tests
// can script to misbehave as no real cluster can be made to. It runs on a network in memory, so that it works under testing/synctest.
package yarntest

import (
	"context"
	"crypto/sha256"

	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/hrpctest"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/internal/testnet"
	"github.com/heddle-stream/heddle/yarnclient/book"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// Options say what a cluster is to be like.
type Options struct {
	Nodes        int      // NodeManagers; 0: 2
	Managers     int      // ResourceManagers, of which the first is active; 0: 1
	QOP          []string // protections that tokens are offered; nil: auth
	RoundUpMB    int64    // containers are rounded up to multiples of it; 0: as asked
	PerBeat      int      // most containers granted between two heartbeats; 0: all
	MaxMB        int64    // larger asks are refused; 0: 8192
	FinishRounds int      // unregistering is confirmed after so many calls; 0: 1
	Constraints  bool     // the scheduler takes placement constraints
}

// Cluster is the cluster and the one application that runs on it.
type Cluster struct {
	// Immutable.
	Net     *testnet.Network
	Attempt yarnid.Attempt
	opt     Options
	nodes   []*Node

	// Guarded by mu.
	mu       sync.Mutex
	active   int // index of the active ResourceManager; -1: none
	servers  []*hrpctest.Server
	rm       manager
	script   map[string][]func() error // by method: what the next calls do
	started  map[yarnid.Container]*Container
	onStart  func(*Container)
	surplus  int
	finished *pb.FinishApplicationMasterRequestProto
	key      int // of the master's token that is given out now
	minKey   int // of the oldest that is accepted

	clients []*hrpctest.Server // of the ResourceManagers' services for clients; the active one's alone
	webs    []*http.Server
	web     string // how the web services refuse
	world   World
	apps    map[yarnid.Application]*Application
	nextApp int32
	asked   map[string]int
	tokens  int
	issued  map[string]string // renewers by identifiers of delegation tokens
}

// manager is what the active ResourceManager knows; a restart forgets part of it.
type manager struct {
	registered bool
	over       bool
	response   int32
	last       int32
	cached     *pb.AllocateResponseProto
	asks       map[book.Key]map[string]*pb.ResourceRequestProto
	made       []*pb.ContainerProto
	ended      []*pb.ContainerStatusProto
	held       map[yarnid.Container]bool
	nodesTold  map[string]bool // NM tokens given
	updates    []*pb.NodeReportProto
	preempt    *pb.PreemptionMessageProto
	black      map[string]bool
	limits     map[book.Key]int // by placement constraints, a node
	onNode     map[string]int   // containers
	at         map[yarnid.Container]string
	next       int64
	placed     int
	finishes   int

	beats     []time.Time // of heartbeats that were answered
	granted   int
	released  []yarnid.Container
	heard     []*pb.AllocateRequestProto
	registers int
}

// New starts a cluster.
func New(opt Options) *Cluster {
	if opt.Nodes == 0 {
		opt.Nodes = 2
	}
	if opt.Managers == 0 {
		opt.Managers = 1
	}
	if opt.MaxMB == 0 {
		opt.MaxMB = 8192
	}
	if opt.FinishRounds == 0 {
		opt.FinishRounds = 1
	}
	c := &Cluster{
		Net: testnet.New(), opt: opt, script: map[string][]func() error{}, started: map[yarnid.Container]*Container{},
		Attempt: yarnid.Attempt{App: yarnid.Application{Cluster: 1700000000000, Number: 1}, Number: 1},
		apps:    map[yarnid.Application]*Application{}, nextApp: 1, asked: map[string]int{}, issued: map[string]string{},
	}
	c.rm = manager{asks: map[book.Key]map[string]*pb.ResourceRequestProto{}, held: map[yarnid.Container]bool{}, nodesTold: map[string]bool{}, black: map[string]bool{},
		limits: map[book.Key]int{}, onNode: map[string]int{}, at: map[yarnid.Container]string{}}
	c.servers, c.clients = make([]*hrpctest.Server, opt.Managers), make([]*hrpctest.Server, opt.Managers)
	c.serve(0)
	for i := range opt.Nodes {
		c.nodes = append(c.nodes, newNode(c, i))
	}
	c.world = c.defaultWorld()
	return c
}

// Close ends every server.
func (c *Cluster) Close() {
	c.mu.Lock()
	servers, webs := append(c.servers, c.clients...), c.webs
	c.servers, c.clients, c.webs = make([]*hrpctest.Server, c.opt.Managers), make([]*hrpctest.Server, c.opt.Managers), nil
	c.mu.Unlock()
	for _, s := range servers {
		if s != nil {
			s.Close()
		}
	}
	for _, w := range webs {
		_ = w.Close()
	}
	for _, n := range c.nodes {
		n.server.Close()
	}
}

// Dial connects to a server of the cluster.
func (c *Cluster) Dial(ctx context.Context, addr string) (net.Conn, error) {
	return c.Net.Dial(ctx, addr)
}

// Addrs are the addresses of the ResourceManagers' schedulers.
func (c *Cluster) Addrs() []string {
	var a []string
	for i := range c.opt.Managers {
		a = append(a, managerAddr(i))
	}
	return a
}

func managerAddr(i int) string { return fmt.Sprintf("rm%d:8030", i+1) }

func clientAddr(i int) string { return fmt.Sprintf("rm%d:8032", i+1) }

// Node returns a NodeManager.
func (c *Cluster) Node(i int) *Node { return c.nodes[i] }

// serve makes a ResourceManager active: it listens.
func (c *Cluster) serve(i int) {
	s := hrpctest.Serve(c.Net.Listen(managerAddr(i)), hrpctest.Config{Password: c.amPassword, QOP: c.opt.QOP, Handle: c.handle})
	k := hrpctest.Serve(c.Net.Listen(clientAddr(i)), c.ClientConfig())
	c.mu.Lock()
	c.active, c.servers[i], c.clients[i] = i, s, k
	c.mu.Unlock()
}

// Token is the master's token of the present key.
func (c *Cluster) Token() token.Token {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.amToken(c.key)
}

func (c *Cluster) amToken(key int) token.Token {
	id, err := proto.Marshal(&pb.AMRMTokenIdentifierProto{AppAttemptId: c.Attempt.Proto(), KeyId: proto.Int32(int32(key))})
	if err != nil {
		panic(err)
	}
	return token.Token{Identifier: id, Password: derive("am", id), Kind: token.KindAMRM}
}

// derive is a password that only the cluster can compute.
func derive(what string, id []byte) []byte {
	h := sha256.Sum256(append([]byte(what), id...))
	return h[:20]
}

func (c *Cluster) amPassword(id []byte) ([]byte, bool) {
	var m pb.AMRMTokenIdentifierProto
	if proto.Unmarshal(id, &m) != nil {
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	ok := int(m.GetKeyId()) >= c.minKey && int(m.GetKeyId()) <= c.key && !c.rm.over && yarnid.AttemptOf(m.GetAppAttemptId()) == c.Attempt
	return derive("am", id), ok
}

// Script lets the next calls of a method do something before they are served, in turn. An error is the call's outcome: hrpctest.ErrDrop and a
// *hrpc.RemoteError among others; nil lets it go on.
func (c *Cluster) Script(method string, do ...func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.script[method] = append(c.script[method], do...)
}

// LoseAnswer is for Script: the call is served, and the connection closed without its answer.
var LoseAnswer = func() error { return errLoseAnswer }

var errLoseAnswer = fmt.Errorf("serve, and lose the answer")

// scripted returns what the script says of this call.
func (c *Cluster) scripted(method string) error {
	c.mu.Lock()
	list := c.script[method]
	if len(list) == 0 {
		c.mu.Unlock()
		return nil
	}
	c.script[method] = list[1:]
	c.mu.Unlock()
	return list[0]()
}

// Restart restarts the active ResourceManager, which keeps running containers and forgets the master. With another index that one takes over; in
// between nobody listens.
func (c *Cluster) Restart(to int, between func()) {
	c.mu.Lock()
	old, clients := c.servers[c.active], c.clients[c.active]
	c.servers[c.active], c.clients[c.active], c.active = nil, nil, -1
	rm := &c.rm
	rm.registered, rm.response, rm.last, rm.cached = false, 0, 0, nil
	rm.asks, rm.nodesTold, rm.black, rm.limits = map[book.Key]map[string]*pb.ResourceRequestProto{}, map[string]bool{}, map[string]bool{}, map[book.Key]int{}
	for _, m := range rm.made { // granted and not told: lost
		delete(rm.held, yarnid.ContainerOf(m.GetId()))
		rm.onNode[yarnid.NodeOf(m.GetNodeId())]--
	}
	rm.made = nil
	c.mu.Unlock()
	old.Close()
	clients.Close()
	if between != nil {
		between()
	}
	c.serve(to)
}

// Cut closes every connection of the active ResourceManager.
func (c *Cluster) Cut() {
	c.mu.Lock()
	s := c.servers[c.active]
	c.mu.Unlock()
	s.Cut()
}

// RollKey makes a new key for the master's tokens; the old is good until Activate.
func (c *Cluster) RollKey() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.key++
}

// Activate refuses new connections by tokens of older keys.
func (c *Cluster) Activate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.minKey = c.key
}

// EndAttempt makes the ResourceManager forget the attempt.
func (c *Cluster) EndAttempt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rm.over = true
}

// Surplus grants so many containers more than were asked for, with the next that are.
func (c *Cluster) Surplus(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.surplus += n
}

// Preempt tells the master with the next heartbeat that a container will be taken.
func (c *Cluster) Preempt(id yarnid.Container) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rm.preempt = &pb.PreemptionMessageProto{StrictContract: &pb.StrictPreemptionContractProto{Container: []*pb.PreemptionContainerProto{{Id: id.Proto()}}}}
}

// PreemptAny tells the master with the next heartbeat that so many containers of a size are wanted back, which may be these or others.
func (c *Cluster) PreemptAny(count int, mb int64, ids ...yarnid.Container) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := &pb.PreemptionContractProto{Resource: []*pb.PreemptionResourceRequestProto{{Resource: &pb.ResourceRequestProto{
		NumContainers: proto.Int32(int32(count)), Capability: &pb.ResourceProto{Memory: &mb, VirtualCores: proto.Int32(1)}}}}}
	for _, id := range ids {
		k.Container = append(k.Container, &pb.PreemptionContainerProto{Id: id.Proto()})
	}
	c.rm.preempt = &pb.PreemptionMessageProto{Contract: k}
}

// Decommission tells the master that a node will go.
func (c *Cluster) Decommission(i int) { c.NodeState(i, pb.NodeStateProto_NS_DECOMMISSIONING) }

// NodeState tells the master that a node's state is another now.
func (c *Cluster) NodeState(i int, state pb.NodeStateProto) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rm.updates = append(c.rm.updates, &pb.NodeReportProto{NodeId: c.nodes[i].id(), NodeState: &state, DecommissioningTimeout: proto.Uint32(60)})
}

// End ends a container with a status, as its process would or, with a negative one, YARN.
func (c *Cluster) End(id yarnid.Container, status int, diagnostics string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end(id, int32(status), diagnostics)
}

func (c *Cluster) end(id yarnid.Container, status int32, diagnostics string) {
	if !c.rm.held[id] {
		return
	}
	delete(c.rm.held, id)
	c.rm.onNode[c.rm.at[id]]--
	if k := c.started[id]; k != nil {
		k.running = false
	}
	c.rm.ended = append(c.rm.ended, &pb.ContainerStatusProto{ContainerId: id.Proto(), State: pb.ContainerStateProto_C_COMPLETE.Enum(), ExitStatus: &status, Diagnostics: &diagnostics})
}

// Keep gives the application running containers of an earlier attempt, which registration tells of.
func (c *Cluster) Keep(n int) []yarnid.Container {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ids []yarnid.Container
	for range n {
		c.rm.next++
		id := yarnid.Container{Attempt: c.Attempt, Number: c.rm.next}
		c.rm.held[id] = true
		c.started[id] = &Container{ID: id, kept: true, running: true}
		ids = append(ids, id)
	}
	return ids
}

// Held returns the containers that the application has.
func (c *Cluster) Held() []yarnid.Container {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(maps.Keys(c.rm.held), func(a, b yarnid.Container) int { return int(a.Number - b.Number) })
}

// Figures is what has happened so far.
type Figures struct {
	Beats     []time.Time // when heartbeats were answered
	Heard     []*pb.AllocateRequestProto
	Granted   int // containers, told or not
	Held      int // containers that the application has
	Open      int // containers that it still asks for
	Released  []yarnid.Container
	Registers int
	Finished  *pb.FinishApplicationMasterRequestProto // nil: not unregistered
	Blacklist int
}

// Figures returns what has happened so far.
func (c *Cluster) Figures() Figures {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := Figures{Beats: append([]time.Time(nil), c.rm.beats...), Heard: append([]*pb.AllocateRequestProto(nil), c.rm.heard...), Granted: c.rm.granted, Held: len(c.rm.held),
		Released: append([]yarnid.Container(nil), c.rm.released...), Registers: c.rm.registers, Finished: c.finished, Blacklist: len(c.rm.black)}
	for _, names := range c.rm.asks {
		if a := names["*"]; a != nil {
			f.Open += int(a.GetNumContainers())
		}
	}
	return f
}
