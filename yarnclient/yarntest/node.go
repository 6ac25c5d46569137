package yarntest

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/hrpctest"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// Node is a NodeManager.
type Node struct {
	ID     string // host:port
	host   string
	c      *Cluster
	server *hrpctest.Server
}

// Container is a container that was started.
type Container struct {
	ID      yarnid.Container
	Node    string
	Context *pb.ContainerLaunchContextProto

	// Guarded by the cluster's mu.
	running bool
	kept    bool
}

func newNode(c *Cluster, i int) *Node {
	n := &Node{host: fmt.Sprintf("node%d", i+1), c: c}
	n.ID = n.host + ":8041"
	n.server = hrpctest.Serve(c.Net.Listen(n.ID), hrpctest.Config{Password: n.password, QOP: c.opt.QOP, Handle: n.handle})
	return n
}

func (n *Node) id() *pb.NodeIdProto {
	return &pb.NodeIdProto{Host: &n.host, Port: proto.Int32(8041)}
}

// password accepts the tokens of this node alone.
func (n *Node) password(id []byte) ([]byte, bool) {
	var m pb.NMTokenIdentifierProto
	if proto.Unmarshal(id, &m) != nil || yarnid.NodeOf(m.GetNodeId()) != n.ID {
		return nil, false
	}
	return derive("nm", id), true
}

// OnStart sets what is called when a container starts.
func (c *Cluster) OnStart(f func(*Container)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onStart = f
}

// Running returns the containers that run.
func (c *Cluster) Running() []*Container {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []*Container
	for _, k := range c.started {
		if k.running {
			out = append(out, k)
		}
	}
	return out
}

// Slow is for Script: the call takes a while.
func Slow(d time.Duration) func() error {
	return func() error { time.Sleep(d); return nil }
}

// Fail is for Script: the call fails with an exception.
func Fail(class, message string) func() error {
	return func() error { return &hrpc.RemoteError{Class: class, Message: message} }
}

func (n *Node) handle(r *hrpctest.Request) (proto.Message, error) {
	err := n.c.scripted(r.Method)
	if err != nil && !errors.Is(err, errLoseAnswer) {
		return nil, err
	}
	m, serr := n.serve(r)
	if err != nil {
		return nil, hrpctest.ErrDrop
	}
	return m, serr
}

func (n *Node) serve(r *hrpctest.Request) (proto.Message, error) {
	switch r.Method {
	case "startContainers":
		var m pb.StartContainersRequestProto
		if err := r.Decode(&m); err != nil {
			return nil, err
		}
		out := &pb.StartContainersResponseProto{}
		for _, s := range m.StartContainerRequest {
			id, err := n.start(s)
			if err != nil {
				if err.Class == hrpc.ClassInvalidToken {
					return nil, err // fails the whole call
				}
				out.FailedRequests = append(out.FailedRequests, failure(id, err))
				continue
			}
			out.SucceededRequests = append(out.SucceededRequests, id)
		}
		return out, nil
	case "stopContainers":
		var m pb.StopContainersRequestProto
		if err := r.Decode(&m); err != nil {
			return nil, err
		}
		out := &pb.StopContainersResponseProto{}
		for _, id := range m.ContainerId {
			if !n.known(id) {
				out.FailedRequests = append(out.FailedRequests, failure(id, unknown(id)))
				continue
			}
			n.c.End(yarnid.ContainerOf(id), -105, "Container killed by the ApplicationMaster.\nExit code is 143")
			out.SucceededRequests = append(out.SucceededRequests, id)
		}
		return out, nil
	case "getContainerStatuses":
		var m pb.GetContainerStatusesRequestProto
		if err := r.Decode(&m); err != nil {
			return nil, err
		}
		return n.statuses(&m), nil
	}
	return nil, &hrpc.RemoteError{Class: hrpc.ClassNoSuchMethod, Message: r.Method}
}

func failure(id *pb.ContainerIdProto, e *hrpc.RemoteError) *pb.ContainerExceptionMapProto {
	return &pb.ContainerExceptionMapProto{ContainerId: id, Exception: &pb.SerializedExceptionProto{Message: &e.Message, ClassName: &e.Class}}
}

func unknown(id *pb.ContainerIdProto) *hrpc.RemoteError {
	return &hrpc.RemoteError{Class: "org.apache.hadoop.yarn.exceptions.YarnException", Message: "Container " + yarnid.ContainerOf(id).String() + " is not handled by this NodeManager"}
}

func (n *Node) known(id *pb.ContainerIdProto) bool {
	n.c.mu.Lock()
	defer n.c.mu.Unlock()
	return n.c.started[yarnid.ContainerOf(id)] != nil
}

// start starts a container, if its token is good and it was not started before.
func (n *Node) start(s *pb.StartContainerRequestProto) (*pb.ContainerIdProto, *hrpc.RemoteError) {
	t := token.FromProto(s.GetContainerToken())
	var m pb.ContainerTokenIdentifierProto
	if proto.Unmarshal(t.Identifier, &m) != nil || string(derive("container", t.Identifier)) != string(t.Password) || m.GetNmHostAddr() != n.ID {
		return nil, &hrpc.RemoteError{Class: hrpc.ClassInvalidToken, Message: "Invalid container token used for starting container on : " + n.ID}
	}
	id := yarnid.ContainerOf(m.GetContainerId())
	n.c.mu.Lock()
	held, again := n.c.rm.held[id], n.c.started[id] != nil
	k := &Container{ID: id, Node: n.ID, Context: s.GetContainerLaunchContext(), running: true}
	if held && !again {
		n.c.started[id] = k
	}
	f := n.c.onStart
	n.c.mu.Unlock()
	switch {
	case again:
		return m.GetContainerId(), &hrpc.RemoteError{Class: "org.apache.hadoop.yarn.exceptions.YarnException", Message: "Attempt to relaunch the same container with id " + id.String() + "."}
	case !held:
		return m.GetContainerId(), &hrpc.RemoteError{Class: "org.apache.hadoop.yarn.exceptions.YarnException", Message: "Unauthorized request to start container. \nThis token is expired."}
	}
	if f != nil {
		f(k)
	}
	return m.GetContainerId(), nil
}

func (n *Node) statuses(m *pb.GetContainerStatusesRequestProto) *pb.GetContainerStatusesResponseProto {
	n.c.mu.Lock()
	defer n.c.mu.Unlock()
	out := &pb.GetContainerStatusesResponseProto{}
	for _, id := range m.ContainerId {
		k := n.c.started[yarnid.ContainerOf(id)]
		if k == nil {
			out.FailedRequests = append(out.FailedRequests, failure(id, unknown(id)))
			continue
		}
		state := pb.ContainerStateProto_C_RUNNING
		if !k.running {
			state = pb.ContainerStateProto_C_COMPLETE
		}
		out.Status = append(out.Status, &pb.ContainerStatusProto{ContainerId: id, State: &state})
	}
	return out
}
