// Package nm speaks to NodeManagers: it starts, stops and asks after containers. Its calls wait, so that they belong into goroutines of
// their own, never into a master's loop; how many are under way at once is bounded.
package nm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/yarnclient"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// Protocol is the name of the NodeManagers' protocol.
const Protocol = "org.apache.hadoop.yarn.api.ContainerManagementProtocolPB"

// Config is what a client needs to know.
type Config struct {
	// Token returns the NMToken for a node.
	Token func(node string) (token.Token, bool)
	// Concurrency is how many calls are under way at once; 0: 32.
	Concurrency int
	// CallTimeout bounds one attempt of a call; 0: 30 s.
	CallTimeout time.Duration
	// Attempts is how often a call is tried, while the NodeManager is not reachable or not ready; 0: 10.
	Attempts   int
	Protection []string
	Dial       func(ctx context.Context, addr string) (net.Conn, error)
	Logger     *slog.Logger
}

// Client calls NodeManagers. It keeps a connection to each for a while, and is for concurrent use.
type Client struct {
	// Immutable.
	cfg   Config
	slots chan struct{} // one for each call under way

	// Guarded by mu.
	mu     sync.Mutex
	nodes  map[string]*node
	closed bool
}

// node is the client of one NodeManager.
type node struct {
	rpc   *hrpc.Client
	token string // identifier of the token in use
}

// New returns a client.
func New(cfg Config) *Client {
	if cfg.Concurrency == 0 {
		cfg.Concurrency = 32
	}
	if cfg.CallTimeout == 0 {
		cfg.CallTimeout = 30 * time.Second
	}
	if cfg.Attempts == 0 {
		cfg.Attempts = 10
	}
	return &Client{cfg: cfg, slots: make(chan struct{}, cfg.Concurrency), nodes: map[string]*node{}}
}

// Close ends every connection and call.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	nodes := c.nodes
	c.nodes = nil
	c.mu.Unlock()
	for _, n := range nodes {
		_ = n.rpc.Close()
	}
}

// Launch is what to run in a container.
type Launch struct {
	Container yarnid.Container
	Node      string      // host:port of its NodeManager
	Token     token.Token // the container's own
	// Command is one line for bash; it must direct its streams into <LOG_DIR> itself.
	Command     string
	Env         map[string]string
	Resources   []yarnclient.LocalResource
	Credentials token.Credentials // the YARN_AM_RM_TOKEN is left out whatever it holds
	ViewACL     string
	ModifyACL   string
}

// Start starts a container.
func (c *Client) Start(ctx context.Context, l Launch) error {
	lc, err := launchContext(l)
	if err != nil {
		return fmt.Errorf("cannot start %s: %w", l.Container, err)
	}
	req := &pb.StartContainersRequestProto{StartContainerRequest: []*pb.StartContainerRequestProto{{ContainerLaunchContext: lc, ContainerToken: l.Token.Proto()}}}
	var resp pb.StartContainersResponseProto
	tries, err := c.call(ctx, l.Node, "startContainers", req, &resp, func() error { return firstFailure(l.Node, "startContainers", resp.FailedRequests) })
	if err != nil && tries > 1 && strings.Contains(err.Error(), "relaunch the same container") {
		return nil // an earlier try went through, whose answer was lost
	}
	if err != nil {
		return fmt.Errorf("cannot start %s: %w", l.Container, err)
	}
	return nil
}

// Stop ends a container: SIGTERM, and a moment later SIGKILL. A container that is over or not known counts as stopped.
func (c *Client) Stop(ctx context.Context, nodeID string, id yarnid.Container) error {
	req := &pb.StopContainersRequestProto{ContainerId: []*pb.ContainerIdProto{id.Proto()}}
	var resp pb.StopContainersResponseProto
	_, err := c.call(ctx, nodeID, "stopContainers", req, &resp, func() error { return firstFailure(nodeID, "stopContainers", resp.FailedRequests) })
	if err != nil && strings.Contains(err.Error(), "is not handled by this NodeManager") {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot stop %s: %w", id, err)
	}
	return nil
}

// Status is what a NodeManager says of a container.
type Status struct {
	Complete    bool
	ExitStatus  int
	Diagnostics string
}

// Status asks after a container.
func (c *Client) Status(ctx context.Context, nodeID string, id yarnid.Container) (Status, error) {
	req := &pb.GetContainerStatusesRequestProto{ContainerId: []*pb.ContainerIdProto{id.Proto()}}
	var resp pb.GetContainerStatusesResponseProto
	_, err := c.call(ctx, nodeID, "getContainerStatuses", req, &resp, func() error { return firstFailure(nodeID, "getContainerStatuses", resp.FailedRequests) })
	if err == nil && len(resp.Status) != 1 {
		err = fmt.Errorf("%s answered with %d containers", nodeID, len(resp.Status))
	}
	if err != nil {
		return Status{}, fmt.Errorf("cannot get the status of %s: %w", id, err)
	}
	s := resp.Status[0]
	return Status{s.GetState() == pb.ContainerStateProto_C_COMPLETE, int(s.GetExitStatus()), s.GetDiagnostics()}, nil
}

// call calls a NodeManager, tries again while it is not ready, and returns how often it tried.
func (c *Client) call(ctx context.Context, nodeID, method string, req, resp proto.Message, check func() error) (int, error) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	pause := 200 * time.Millisecond
	for try := 1; ; try++ {
		n, err := c.node(nodeID)
		if err != nil {
			return try, err
		}
		if err = n.Call(ctx, method, req, resp); err == nil {
			err = check()
		}
		if err == nil || try >= c.cfg.Attempts || !passing(err) {
			return try, err
		}
		proto.Reset(resp)
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return try, fmt.Errorf("%w (and then %w)", err, ctx.Err())
		}
		pause = min(2*pause, 10*time.Second)
	}
}

func passing(err error) bool {
	if _, ok := errors.AsType[*hrpc.ConnError](err); ok {
		return true
	}
	class := hrpc.ClassOf(err)
	return class == hrpc.ClassNMNotReady || class == hrpc.ClassRetriable
}

// node returns the client of a NodeManager, with its newest token.
func (c *Client) node(id string) (*hrpc.Client, error) {
	t, ok := c.cfg.Token(id)
	if !ok {
		return nil, fmt.Errorf("there is no NMToken for %s", id)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, hrpc.ErrClosed
	}
	n := c.nodes[id]
	if n == nil {
		n = &node{rpc: hrpc.New(hrpc.Config{Protocol: Protocol, Addrs: []string{id}, Protection: c.cfg.Protection, Dial: c.cfg.Dial, Logger: c.cfg.Logger,
			ConnectTimeout: 10 * time.Second, CallTimeout: c.cfg.CallTimeout})}
		c.nodes[id] = n
	}
	if n.token != string(t.Identifier) {
		n.token = string(t.Identifier)
		n.rpc.SetAuth(hrpc.ByToken(t))
	}
	return n.rpc, nil
}

// firstFailure returns a container's failure inside an answer as the exception it is.
func firstFailure(nodeID, method string, failed []*pb.ContainerExceptionMapProto) error {
	if len(failed) == 0 {
		return nil
	}
	e := failed[0].GetException()
	return &hrpc.RemoteError{Addr: nodeID, Method: method, Class: e.GetClassName(), Message: strings.TrimSpace(e.GetMessage())}
}

func launchContext(l Launch) (*pb.ContainerLaunchContextProto, error) {
	return yarnclient.Launch{Command: l.Command, Env: l.Env, Resources: l.Resources, Credentials: l.Credentials.Without(token.KindAMRM), ViewACL: l.ViewACL, ModifyACL: l.ModifyACL}.Proto()
}
