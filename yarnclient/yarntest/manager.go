package yarntest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/hrpctest"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/yarnclient/amrm"
	"github.com/heddle-stream/heddle/yarnclient/book"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// handle serves the ApplicationMaster's protocol.
func (c *Cluster) handle(r *hrpctest.Request) (proto.Message, error) {
	if r.Protocol != amrm.Protocol {
		return nil, &hrpc.RemoteError{Class: "org.apache.hadoop.ipc.RpcNoSuchProtocolException", Message: r.Protocol}
	}
	err := c.scripted(r.Method)
	if err != nil && !errors.Is(err, errLoseAnswer) {
		return nil, err
	}
	m, serr := c.serveCall(r)
	if err != nil {
		return nil, hrpctest.ErrDrop
	}
	return m, serr
}

func (c *Cluster) serveCall(r *hrpctest.Request) (proto.Message, error) {
	switch r.Method {
	case "registerApplicationMaster":
		return c.register()
	case "allocate":
		var m pb.AllocateRequestProto
		if err := r.Decode(&m); err != nil {
			return nil, err
		}
		return c.allocate(r, &m)
	case "finishApplicationMaster":
		var m pb.FinishApplicationMasterRequestProto
		if err := r.Decode(&m); err != nil {
			return nil, err
		}
		return c.finishMaster(&m)
	}
	return nil, &hrpc.RemoteError{Class: hrpc.ClassNoSuchMethod, Message: r.Method}
}

func (c *Cluster) register() (proto.Message, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rm.registers++
	if c.rm.registered {
		return nil, &hrpc.RemoteError{Class: hrpc.ClassInvalidAMRequest, Message: "Application Master is already registered : " + c.Attempt.App.String()}
	}
	c.rm.registered, c.rm.response = true, 0
	resp := &pb.RegisterApplicationMasterResponseProto{Queue: proto.String("default"), MaximumCapability: &pb.ResourceProto{Memory: proto.Int64(c.opt.MaxMB), VirtualCores: proto.Int32(32)}}
	for _, id := range slices.SortedFunc(maps.Keys(c.rm.held), func(a, b yarnid.Container) int { return int(a.Number - b.Number) }) {
		if k := c.started[id]; k != nil && k.kept {
			resp.ContainersFromPreviousAttempts = append(resp.ContainersFromPreviousAttempts, &pb.ContainerProto{Id: id.Proto(), NodeId: c.nodes[0].id()})
		}
	}
	return resp, nil
}

func (c *Cluster) allocate(r *hrpctest.Request, m *pb.AllocateRequestProto) (proto.Message, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	rm := &c.rm
	switch {
	case rm.over:
		return nil, &hrpc.RemoteError{Class: hrpc.ClassAttemptNotFound, Message: "Application attempt " + c.Attempt.String() + " doesn't exist in ApplicationMasterService cache."}
	case !rm.registered:
		return nil, &hrpc.RemoteError{Class: hrpc.ClassNotRegistered, Message: "AM is not registered for known application attempt: " + c.Attempt.String()}
	case rm.cached != nil && (m.GetResponseId()+1)&0x7FFFFFFF == rm.response:
		return rm.cached, nil
	case m.GetResponseId() != rm.response:
		return nil, &hrpc.RemoteError{Class: hrpc.ClassInvalidAMRequest,
			Message: fmt.Sprintf("Invalid responseId in AllocateRequest from application attempt: %s, expect responseId to be %d but get %d", c.Attempt, rm.response, m.GetResponseId())}
	}
	for _, a := range m.Ask {
		if a.GetCapability().GetMemory() > c.opt.MaxMB {
			return nil, &hrpc.RemoteError{Class: hrpc.ClassInvalidResource, Message: "Invalid resource request! Cannot allocate containers as requested resource is greater than maximum allowed allocation."}
		}
	}
	if len(m.SchedulingRequests) > 0 && !c.opt.Constraints {
		return nil, &hrpc.RemoteError{Class: hrpc.ClassYarn, Message: "Found non empty SchedulingRequest in AllocateRequest for application=" + c.Attempt.String() +
			", but the configured yarn.resourcemanager.placement-constraints.handler cannot handle placement constraints. Rejecting this allocate operation"}
	}
	rm.heard = append(rm.heard, m)
	rm.beats = append(rm.beats, time.Now())
	c.take(m)
	resp := &pb.AllocateResponseProto{AllocatedContainers: rm.made, CompletedContainerStatuses: rm.ended, UpdatedNodes: rm.updates, Preempt: rm.preempt, NumClusterNodes: proto.Int32(int32(len(c.nodes)))}
	for _, k := range rm.made {
		c.tellToken(k, resp)
	}
	rm.made, rm.ended, rm.updates, rm.preempt = nil, nil, nil, nil
	var id pb.AMRMTokenIdentifierProto
	if proto.Unmarshal(r.Identifier, &id) == nil && int(id.GetKeyId()) < c.key {
		resp.AmRmToken = c.amToken(c.key).Proto()
	}
	rm.response = (rm.response + 1) & 0x7FFFFFFF
	resp.ResponseId = proto.Int32(rm.response)
	rm.cached = resp
	c.schedule() // for the next heartbeat
	return resp, nil
}

// take takes asks, releases and the blacklist.
func (c *Cluster) take(m *pb.AllocateRequestProto) {
	for _, a := range m.Ask {
		k := book.Key{Priority: a.GetPriority().GetPriority(), Request: a.GetAllocationRequestId()}
		if c.rm.asks[k] == nil {
			c.rm.asks[k] = map[string]*pb.ResourceRequestProto{}
		}
		c.rm.asks[k][a.GetResourceName()] = a
	}
	for _, q := range m.SchedulingRequests {
		// It is an ask for any place, and a limit a node.
		k := book.Key{Priority: q.GetPriority().GetPriority(), Request: q.GetAllocationRequestId()}
		c.rm.asks[k] = map[string]*pb.ResourceRequestProto{"*": {Priority: q.Priority, ResourceName: proto.String("*"), Capability: q.GetResourceSizing().GetResources(),
			NumContainers: q.GetResourceSizing().NumAllocations, AllocationRequestId: q.AllocationRequestId}}
		c.rm.limits[k] = max(1, int(q.GetPlacementConstraint().GetSimpleConstraint().GetMaxCardinality()))
	}
	for _, p := range m.Release {
		id := yarnid.ContainerOf(p)
		c.rm.released = append(c.rm.released, id)
		c.end(id, -100, "Container released by application")
	}
	for _, h := range m.GetBlacklistRequest().GetBlacklistAdditions() {
		c.rm.black[h] = true
	}
	for _, h := range m.GetBlacklistRequest().GetBlacklistRemovals() {
		delete(c.rm.black, h)
	}
}

// tellToken adds the token of a container's node, which is told once.
func (c *Cluster) tellToken(k *pb.ContainerProto, resp *pb.AllocateResponseProto) {
	node := yarnid.NodeOf(k.GetNodeId())
	if c.rm.nodesTold[node] {
		return
	}
	c.rm.nodesTold[node] = true
	id, err := proto.Marshal(&pb.NMTokenIdentifierProto{AppAttemptId: c.Attempt.Proto(), NodeId: k.GetNodeId()})
	if err != nil {
		panic(err)
	}
	t := token.Token{Identifier: id, Password: derive("nm", id), Kind: token.KindNM, Service: node}
	resp.NmTokens = append(resp.NmTokens, &pb.NMTokenProto{NodeId: k.GetNodeId(), Token: t.Proto()})
}

// schedule grants what is asked for, node after node.
func (c *Cluster) schedule() {
	left := c.opt.PerBeat
	if left == 0 {
		left = 1 << 30
	}
	keys := slices.SortedFunc(maps.Keys(c.rm.asks), func(a, b book.Key) int {
		if a.Priority != b.Priority {
			return int(a.Priority - b.Priority)
		}
		return int(a.Request - b.Request)
	})
	for _, k := range keys {
		any := c.rm.asks[k]["*"]
		if any == nil || any.GetNumContainers() == 0 {
			continue
		}
		for any.GetNumContainers() > 0 && left > 0 && c.room(k) != nil {
			any = proto.Clone(any).(*pb.ResourceRequestProto)
			any.NumContainers = proto.Int32(any.GetNumContainers() - 1)
			c.rm.asks[k]["*"] = any
			c.place(k, any)
			left--
		}
		for ; c.surplus > 0 && c.room(k) != nil; c.surplus-- {
			c.place(k, any)
		}
	}
}

// room returns the next node that may get a container under a key: it is not blacklisted, nor full by a placement constraint.
func (c *Cluster) room(k book.Key) *Node {
	for i := range c.nodes {
		n := c.nodes[(c.rm.placed+1+i)%len(c.nodes)]
		if most := c.rm.limits[k]; !c.rm.black[n.host] && (most == 0 || c.rm.onNode[n.ID] < most) {
			return n
		}
	}
	return nil
}

// place makes a container on the next node that may have it.
func (c *Cluster) place(k book.Key, a *pb.ResourceRequestProto) {
	n := c.room(k)
	for c.rm.placed++; c.nodes[c.rm.placed%len(c.nodes)] != n; c.rm.placed++ {
	}
	c.rm.next++
	c.rm.onNode[n.ID]++
	c.rm.granted++
	id := yarnid.Container{Attempt: c.Attempt, Number: c.rm.next}
	mb := a.GetCapability().GetMemory()
	if u := c.opt.RoundUpMB; u > 0 {
		mb = (mb + u - 1) / u * u
	}
	res := &pb.ResourceProto{Memory: &mb, VirtualCores: proto.Int32(a.GetCapability().GetVirtualCores())}
	tid, err := proto.Marshal(&pb.ContainerTokenIdentifierProto{ContainerId: id.Proto(), NmHostAddr: proto.String(n.ID), Resource: res})
	if err != nil {
		panic(err)
	}
	t := token.Token{Identifier: tid, Password: derive("container", tid), Kind: token.KindContainer}
	c.rm.held[id] = true
	c.rm.at[id] = n.ID
	c.rm.made = append(c.rm.made, &pb.ContainerProto{Id: id.Proto(), NodeId: n.id(), NodeHttpAddress: proto.String(n.host + ":8042"), Resource: res,
		Priority: &pb.PriorityProto{Priority: &k.Priority}, AllocationRequestId: &k.Request, ContainerToken: t.Proto()})
}

func (c *Cluster) finishMaster(m *pb.FinishApplicationMasterRequestProto) (proto.Message, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.rm.registered {
		return nil, &hrpc.RemoteError{Class: hrpc.ClassNotRegistered, Message: "not registered"}
	}
	c.rm.finishes++
	done := c.rm.finishes >= c.opt.FinishRounds
	if done {
		c.finished = m
		for id := range c.rm.held { // the ResourceManager ends what is left
			c.end(id, -107, "Container killed since the application is over")
		}
	}
	return &pb.FinishApplicationMasterResponseProto{IsUnregistered: &done}, nil
}
