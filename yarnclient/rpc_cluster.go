package yarnclient

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/yarnclient/report"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// Metrics implements API. By RPC only nodes are counted.
func (r *RPC) Metrics(ctx context.Context) (Metrics, error) {
	var resp pb.GetClusterMetricsResponseProto
	if err := r.call(ctx, "get the cluster's figures", "getClusterMetrics", &pb.GetClusterMetricsRequestProto{}, &resp); err != nil {
		return Metrics{}, err
	}
	m := resp.GetClusterMetrics()
	return Metrics{Nodes: int(m.GetNumNodeManagers()), Active: int(m.GetNumActiveNms()), Lost: int(m.GetNumLostNms()), Unhealthy: int(m.GetNumUnhealthyNms()),
		Decommissioning: int(m.GetNumDecommissioningNms())}, nil
}

// inUse are the states of nodes that are listed if none are named.
var inUse = []string{"NEW", "RUNNING", "UNHEALTHY", "DECOMMISSIONING"}

// Nodes implements API.
func (r *RPC) Nodes(ctx context.Context, states ...string) ([]Node, error) {
	if len(states) == 0 {
		states = inUse
	}
	req := &pb.GetClusterNodesRequestProto{}
	for _, s := range states {
		v, ok := pb.NodeStateProto_value["NS_"+strings.ToUpper(s)]
		if !ok {
			return nil, fmt.Errorf("cannot list nodes: %q is no state of a node", s)
		}
		req.NodeStates = append(req.NodeStates, pb.NodeStateProto(v))
	}
	var resp pb.GetClusterNodesResponseProto
	if err := r.call(ctx, "list nodes", "getClusterNodes", req, &resp); err != nil {
		return nil, err
	}
	var out []Node
	for _, p := range resp.NodeReports {
		used, all := p.GetUsed(), p.GetCapability()
		out = append(out, Node{ID: yarnid.NodeOf(p.GetNodeId()), Host: p.GetNodeId().GetHost(), HTTP: p.GetHttpAddress(), Rack: p.GetRackName(),
			State: strings.TrimPrefix(p.GetNodeState().String(), "NS_"), Health: strings.TrimSpace(p.GetHealthReport()), Containers: int(p.GetNumContainers()),
			Used:   Resource{MemoryMB: used.GetMemory(), VCores: int64(used.GetVirtualCores())},
			Free:   Resource{MemoryMB: all.GetMemory() - used.GetMemory(), VCores: int64(all.GetVirtualCores() - used.GetVirtualCores())},
			Labels: p.GetNodeLabels(), LastContact: millis(number(p.GetLastHealthReportTime()))})
	}
	slices.SortFunc(out, func(a, b Node) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

// Scheduler implements API. By RPC limits for masters and users are not told.
func (r *RPC) Scheduler(ctx context.Context) (Scheduler, error) {
	var resp pb.GetQueueInfoResponseProto
	req := &pb.GetQueueInfoRequestProto{QueueName: proto.String("root"), IncludeApplications: proto.Bool(false), IncludeChildQueues: proto.Bool(true), Recursive: proto.Bool(true)}
	if err := r.call(ctx, "list queues", "getQueueInfo", req, &resp); err != nil {
		return Scheduler{}, err
	}
	if resp.QueueInfo == nil {
		return Scheduler{}, fmt.Errorf("cannot list queues: the ResourceManager has no queue root")
	}
	s := Scheduler{Queues: queuesOf(nil, resp.QueueInfo, "")}
	report.Sum(s.Queues)
	return s, nil
}

func queuesOf(to []Queue, p *pb.QueueInfoProto, parent string) []Queue {
	path := p.GetQueuePath()
	if path == "" { // of old versions
		path = p.GetQueueName()
		if parent != "" && !strings.HasPrefix(path, parent+".") {
			path = parent + "." + path
		}
	}
	q := Queue{Path: path, State: strings.TrimPrefix(p.GetState().String(), "Q_"), Capacity: 100 * float64(p.GetCapacity()), MaxCapacity: 100 * float64(p.GetMaximumCapacity()),
		UsedCapacity: 100 * float64(p.GetCurrentCapacity()), Apps: int(p.GetQueueStatistics().GetNumAppsRunning() + p.GetQueueStatistics().GetNumAppsPending()),
		Pending: int(p.GetQueueStatistics().GetNumAppsPending()), Leaf: len(p.ChildQueues) == 0, Labels: p.GetAccessibleNodeLabels(), DefaultLabel: p.GetDefaultNodeLabelExpression(),
		NoPreemption: p.GetPreemptionDisabled()}
	for _, m := range p.QueueConfigurationsMap {
		c := m.GetQueueConfigurations()
		if m.GetPartitionName() == "" {
			q.OfCluster, q.MaxOfCluster = 100*float64(c.GetAbsoluteCapacity()), 100*float64(c.GetAbsoluteMaxCapacity())
			q.Max = Resource{MemoryMB: c.GetEffectiveMaxCapacity().GetMemory(), VCores: int64(c.GetEffectiveMaxCapacity().GetVirtualCores())}
		}
		q.Partitions = append(q.Partitions, report.Partition{Label: m.GetPartitionName(), Capacity: 100 * float64(c.GetCapacity()), Max: 100 * float64(c.GetMaxCapacity()),
			OfLabel: 100 * float64(c.GetAbsoluteCapacity()), MaxOf: 100 * float64(c.GetAbsoluteMaxCapacity())})
	}
	to = append(to, q)
	for _, c := range p.ChildQueues {
		to = queuesOf(to, c, path)
	}
	return to
}

// Labels implements API.
func (r *RPC) Labels(ctx context.Context) ([]string, error) {
	var resp pb.GetClusterNodeLabelsResponseProto
	if err := r.call(ctx, "list node labels", "getClusterNodeLabels", &pb.GetClusterNodeLabelsRequestProto{}, &resp); err != nil {
		return nil, err
	}
	var out []string
	for _, l := range resp.NodeLabels {
		if l.GetName() != "" {
			out = append(out, l.GetName())
		}
	}
	slices.Sort(out)
	return out, nil
}

// Activities implements API, and answers ErrNotServed.
func (r *RPC) Activities(_ context.Context, id yarnid.Application) ([]report.Diagnostic, error) {
	return nil, fmt.Errorf("cannot get the scheduler's activities for %s: %w", id, ErrNotServed)
}
