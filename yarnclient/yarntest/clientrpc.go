package yarntest

import (
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/hrpctest"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/yarnclient"
	"github.com/heddle-stream/heddle/yarnclient/report"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// ClientConfig is how a server of clients' RPC is to be set up: it takes users at their word, and the tokens that the ResourceManager issued.
func (c *Cluster) ClientConfig() hrpctest.Config {
	return hrpctest.Config{Simple: true, QOP: c.opt.QOP, Handle: c.handleClient, Password: func(id []byte) ([]byte, bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, ok := c.issued[string(id)]
		return derive("rm", id), ok
	}}
}

// ClientAddrs are the addresses of the ResourceManagers' services for clients.
func (c *Cluster) ClientAddrs() []string {
	var out []string
	for i := range c.opt.Managers {
		out = append(out, clientAddr(i))
	}
	return out
}

// handleClient serves ApplicationClientProtocol.
func (c *Cluster) handleClient(r *hrpctest.Request) (proto.Message, error) {
	if r.Protocol != yarnclient.ClientProtocol {
		return nil, &hrpc.RemoteError{Class: "org.apache.hadoop.ipc.RpcNoSuchProtocolException", Message: r.Protocol}
	}
	if err := c.scripted(r.Method); err != nil {
		return nil, err
	}
	user := r.User
	if user == "" {
		user, _, _ = strings.Cut(string(r.Identifier), "/")
	}
	c.note("RPC " + r.Method)
	m, err := c.serveClient(r, user)
	if err != nil {
		return nil, err
	}
	return m, nil
}

// decoded reads a call's message.
func decoded[T any, P interface {
	*T
	proto.Message
}](r *hrpctest.Request) (P, *hrpc.RemoteError) {
	m := P(new(T))
	if err := r.Decode(m); err != nil {
		return nil, refusal("java.io.IOException", "%v", err)
	}
	return m, nil
}

// answer is a reply that comes with an error or not. A nil *hrpc.RemoteError must not become an error that is not nil.
func answer(m proto.Message, err *hrpc.RemoteError) (proto.Message, error) {
	if err != nil {
		return nil, err
	}
	return m, nil
}

func (c *Cluster) serveClient(r *hrpctest.Request, user string) (proto.Message, error) {
	switch r.Method {
	case "getNewApplication":
		return &pb.GetNewApplicationResponseProto{ApplicationId: c.newApp().Proto(), MaximumCapability: c.largest()}, nil
	case "submitApplication":
		m, err := decoded[pb.SubmitApplicationRequestProto](r)
		if err == nil {
			err = c.submitRPC(m.GetApplicationSubmissionContext(), user)
		}
		return answer(&pb.SubmitApplicationResponseProto{}, err)
	case "getApplicationReport":
		m, err := decoded[pb.GetApplicationReportRequestProto](r)
		if err != nil {
			return nil, err
		}
		a, ok := c.Application(yarnid.ApplicationOf(m.GetApplicationId()))
		if !ok {
			return nil, refusal(hrpc.ClassApplicationUnknown, "Application with id '%s' doesn't exist in RM.", yarnid.ApplicationOf(m.GetApplicationId()))
		}
		return &pb.GetApplicationReportResponseProto{ApplicationReport: reportProto(a)}, nil
	case "getApplications":
		return c.listRPC(r)
	case "forceKillApplication":
		m, err := decoded[pb.KillApplicationRequestProto](r)
		if err != nil {
			return nil, err
		}
		over, err := c.kill(yarnid.ApplicationOf(m.GetApplicationId()), user, m.GetDiagnostics())
		return answer(&pb.KillApplicationResponseProto{IsKillCompleted: &over}, err)
	case "getDelegationToken", "renewDelegationToken", "cancelDelegationToken":
		return c.serveTokens(r, user)
	case "moveApplicationAcrossQueues", "updateApplicationPriority", "updateApplicationTimeouts", "signalToContainer":
		return c.serveChange(r, user)
	}
	return c.serveCluster(r)
}

// GPUs is how many of resource yarn.io/gpu the largest container has.
const GPUs = 4

// largest is the largest container, as Hadoop 3 tells it: memory and cores in fields of their own, and all kinds of resources in a list.
func (c *Cluster) largest() *pb.ResourceProto {
	kind := func(name, units string, n int64) *pb.ResourceInformationProto {
		return &pb.ResourceInformationProto{Key: &name, Units: &units, Value: &n, Type: pb.ResourceTypesProto_COUNTABLE.Enum()}
	}
	return &pb.ResourceProto{Memory: proto.Int64(c.opt.MaxMB), VirtualCores: proto.Int32(32), ResourceValueMap: []*pb.ResourceInformationProto{
		kind("memory-mb", "Mi", c.opt.MaxMB), kind("vcores", "", 32), kind("yarn.io/gpu", "", GPUs),
	}}
}

// largestJSON is the largest container as the web service tells it.
func (c *Cluster) largestJSON() obj {
	p := c.largest()
	kinds := []obj{}
	for _, k := range p.ResourceValueMap {
		kinds = append(kinds, obj{"name": k.GetKey(), "units": k.GetUnits(), "value": k.GetValue()})
	}
	return obj{"memory": p.GetMemory(), "vCores": p.GetVirtualCores(), "resourceInformations": obj{"resourceInformation": kinds}}
}

func (c *Cluster) submitRPC(p *pb.ApplicationSubmissionContextProto, user string) *hrpc.RemoteError {
	a := Application{App: report.App{ID: yarnid.ApplicationOf(p.GetApplicationId()).String(), User: user, Name: p.GetApplicationName(), Type: p.GetApplicationType(), Tags: p.GetApplicationTags(),
		Priority: int(p.GetPriority().GetPriority()), Label: p.GetNodeLabelExpression()}, ByRPC: true, Command: strings.Join(p.GetAmContainerSpec().GetCommand(), " "), Custom: map[string]int64{}}
	if p.Queue != nil {
		a.Queue = p.GetQueue()
	}
	for _, v := range p.GetResource().GetResourceValueMap() {
		a.Custom[v.GetKey()] = v.GetValue()
	}
	for _, t := range p.ApplicationTimeouts {
		a.Lifetime = time.Duration(t.GetTimeout()) * time.Second
	}
	for _, q := range p.AmContainerResourceRequest {
		if q.GetResourceName() == "*" {
			a.AMLabel = q.GetNodeLabelExpression()
		} else {
			a.AMHosts = append(a.AMHosts, q.GetResourceName())
		}
	}
	if b := p.GetAmContainerSpec().GetTokens(); len(b) > 0 {
		creds, err := token.Parse(b)
		if err != nil {
			return refusal("java.io.IOException", "cannot read the tokens: %v", err)
		}
		a.Tokens = creds
	}
	return c.submit(a, p.GetResource().GetMemory())
}

func reportProto(a Application) *pb.ApplicationReportProto {
	id, err := yarnid.ParseApplication(a.ID)
	if err != nil {
		panic(err)
	}
	state := pb.YarnApplicationStateProto(pb.YarnApplicationStateProto_value[a.State])
	final := pb.FinalApplicationStatusProto(pb.FinalApplicationStatusProto_value["APP_"+a.FinalStatus])
	return &pb.ApplicationReportProto{ApplicationId: id.Proto(), User: &a.User, Queue: &a.Queue, Name: &a.Name, YarnApplicationState: &state, FinalApplicationStatus: &final,
		TrackingUrl: &a.TrackingURL, Diagnostics: &a.Diagnostics, StartTime: proto.Int64(a.Started.UnixMilli()), ApplicationType: &a.Type, ApplicationTags: a.Tags,
		Progress: proto.Float32(float32(a.Progress / 100)), Priority: &pb.PriorityProto{Priority: proto.Int32(int32(a.Priority))},
		AppResource_Usage: &pb.ApplicationResourceUsageReportProto{NumUsedContainers: proto.Int32(int32(a.Containers)), UsedResources: &pb.ResourceProto{Memory: &a.MemoryMB}}}
}

func (c *Cluster) listRPC(r *hrpctest.Request) (proto.Message, error) {
	m, err := decoded[pb.GetApplicationsRequestProto](r)
	if err != nil {
		return nil, err
	}
	var states []string
	for _, s := range m.ApplicationStates {
		states = append(states, s.String())
	}
	out := &pb.GetApplicationsResponseProto{}
	for _, a := range c.selected(states, m.ApplicationTypes, m.ApplicationTags, strings.Join(m.Users, ","), strings.Join(m.Queues, ",")) {
		out.Applications = append(out.Applications, reportProto(a))
	}
	return out, nil
}

func (c *Cluster) serveTokens(r *hrpctest.Request, user string) (proto.Message, error) {
	switch r.Method {
	case "getDelegationToken":
		m, err := decoded[pb.GetDelegationTokenRequestProto](r)
		if err != nil {
			return nil, err
		}
		return &pb.GetDelegationTokenResponseProto{Token: c.rmToken(user, m.GetRenewer()).Proto()}, nil
	case "renewDelegationToken":
		m, err := decoded[pb.RenewDelegationTokenRequestProto](r)
		if err != nil {
			return nil, err
		}
		t, err := c.renew(token.FromProto(m.GetToken()), user, false)
		return answer(&pb.RenewDelegationTokenResponseProto{NewExpiryTime: proto.Uint64(uint64(max(0, t.UnixMilli())))}, err)
	}
	m, err := decoded[pb.CancelDelegationTokenRequestProto](r)
	if err != nil {
		return nil, err
	}
	_, err = c.renew(token.FromProto(m.GetToken()), user, true)
	return answer(&pb.CancelDelegationTokenResponseProto{}, err)
}

func (c *Cluster) serveChange(r *hrpctest.Request, user string) (proto.Message, error) {
	switch r.Method {
	case "moveApplicationAcrossQueues":
		m, err := decoded[pb.MoveApplicationAcrossQueuesRequestProto](r)
		if err == nil {
			err = c.move(yarnid.ApplicationOf(m.GetApplicationId()), user, m.GetTargetQueue())
		}
		return answer(&pb.MoveApplicationAcrossQueuesResponseProto{}, err)
	case "updateApplicationPriority":
		m, err := decoded[pb.UpdateApplicationPriorityRequestProto](r)
		if err == nil {
			err = c.change(yarnid.ApplicationOf(m.GetApplicationId()), user, func(a *Application) *hrpc.RemoteError {
				a.Priority = int(m.GetApplicationPriority().GetPriority())
				return nil
			})
		}
		return answer(&pb.UpdateApplicationPriorityResponseProto{}, err)
	case "updateApplicationTimeouts":
		m, err := decoded[pb.UpdateApplicationTimeoutsRequestProto](r)
		if err == nil {
			err = c.expire(yarnid.ApplicationOf(m.GetApplicationId()), user, m.ApplicationTimeouts[0].GetExpireTime())
		}
		return answer(&pb.UpdateApplicationTimeoutsResponseProto{}, err)
	}
	m, err := decoded[pb.SignalContainerRequestProto](r)
	if err == nil {
		c.note("signal " + yarnid.ContainerOf(m.GetContainerId()).String() + " " + m.GetCommand().String())
	}
	return answer(&pb.SignalContainerResponseProto{}, err)
}

func (c *Cluster) expire(id yarnid.Application, user, at string) *hrpc.RemoteError {
	t, err := time.Parse("2006-01-02T15:04:05.000-0700", at)
	if err != nil {
		return refusal(hrpc.ClassYarn, "Expire time is not in ISO8601 format: %s", at)
	}
	return c.change(id, user, func(a *Application) *hrpc.RemoteError { a.Expiry = t; return nil })
}

// serveCluster tells of nodes, queues and labels.
func (c *Cluster) serveCluster(r *hrpctest.Request) (proto.Message, error) {
	w, _ := c.view()
	switch r.Method {
	case "getClusterMetrics":
		return &pb.GetClusterMetricsResponseProto{ClusterMetrics: &pb.YarnClusterMetricsProto{NumNodeManagers: proto.Int32(int32(len(w.Nodes))), NumActiveNms: proto.Int32(int32(len(w.Nodes)))}}, nil
	case "getClusterNodes":
		out := &pb.GetClusterNodesResponseProto{}
		for _, n := range w.Nodes {
			state := pb.NodeStateProto(pb.NodeStateProto_value["NS_"+n.State])
			all := n.Total()
			out.NodeReports = append(out.NodeReports, &pb.NodeReportProto{NodeId: &pb.NodeIdProto{Host: &n.Host, Port: proto.Int32(8041)}, HttpAddress: &n.HTTP, RackName: &n.Rack, NodeState: &state,
				HealthReport: &n.Health, NodeLabels: n.Labels, Used: &pb.ResourceProto{Memory: &n.Used.MemoryMB, VirtualCores: proto.Int32(int32(n.Used.VCores))},
				Capability: &pb.ResourceProto{Memory: &all.MemoryMB, VirtualCores: proto.Int32(int32(all.VCores))}})
		}
		return out, nil
	case "getQueueInfo":
		return &pb.GetQueueInfoResponseProto{QueueInfo: queueProto(w.Scheduler.Queues, "root")}, nil
	case "getClusterNodeLabels":
		out := &pb.GetClusterNodeLabelsResponseProto{}
		for _, l := range w.Labels {
			out.NodeLabels = append(out.NodeLabels, &pb.NodeLabelProto{Name: &l})
		}
		return out, nil
	case "getQueueUserAcls":
		out := &pb.GetQueueUserAclsInfoResponseProto{}
		for _, q := range w.Scheduler.Queues {
			a := &pb.QueueUserACLInfoProto{QueueName: &q.Path}
			if !slices.Contains(w.Denied, q.Path) {
				a.UserAcls = append(a.UserAcls, pb.QueueACLProto_QACL_SUBMIT_APPLICATIONS)
			}
			out.QueueUserAcls = append(out.QueueUserAcls, a)
		}
		return out, nil
	}
	return nil, refusal(hrpc.ClassNoSuchMethod, "%s", r.Method)
}

func queueProto(qs []report.Queue, path string) *pb.QueueInfoProto {
	var out *pb.QueueInfoProto
	for _, q := range qs {
		parent, name := "", q.Path
		if i := strings.LastIndexByte(q.Path, '.'); i >= 0 {
			parent, name = q.Path[:i], q.Path[i+1:]
		}
		switch {
		case q.Path == path:
			state := pb.QueueStateProto(pb.QueueStateProto_value["Q_"+q.State])
			out = &pb.QueueInfoProto{QueueName: &name, QueuePath: &q.Path, State: &state, Capacity: proto.Float32(float32(q.Capacity / 100)),
				MaximumCapacity: proto.Float32(float32(q.MaxCapacity / 100)), CurrentCapacity: proto.Float32(float32(q.UsedCapacity / 100)), AccessibleNodeLabels: q.Labels}
		case parent == path && out != nil:
			out.ChildQueues = append(out.ChildQueues, queueProto(qs, q.Path))
		}
	}
	return out
}
