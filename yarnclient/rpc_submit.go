package yarnclient

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// NewApplication implements API.
func (r *RPC) NewApplication(ctx context.Context) (NewApp, error) {
	var resp pb.GetNewApplicationResponseProto
	if err := r.call(ctx, "get a new application's identifier", "getNewApplication", &pb.GetNewApplicationRequestProto{}, &resp); err != nil {
		return NewApp{}, err
	}
	largest := resp.GetMaximumCapability()
	kinds := map[string]int64{}
	for _, k := range largest.GetResourceValueMap() {
		kinds[k.GetKey()] = k.GetValue()
	}
	return NewApp{yarnid.ApplicationOf(resp.GetApplicationId()), Resource{MemoryMB: largest.GetMemory(), VCores: int64(largest.GetVirtualCores())}, customAmounts(kinds)}, nil
}

// Submit implements API. An application that is there under the identifier is taken for the submitted one, as YARN does.
func (r *RPC) Submit(ctx context.Context, s *Submission) error {
	if s.Command == "" || s.ID == (yarnid.Application{}) {
		return errors.New("cannot submit an application without identifier and command")
	}
	p, err := s.proto()
	if err != nil {
		return fmt.Errorf("cannot submit %s: %w", s.ID, err)
	}
	req := &pb.SubmitApplicationRequestProto{ApplicationSubmissionContext: p}
	return r.call(ctx, "submit "+s.ID.String(), "submitApplication", req, &pb.SubmitApplicationResponseProto{})
}

// proto is the submission as RPC carries it.
func (s *Submission) proto() (*pb.ApplicationSubmissionContextProto, error) {
	lc, err := Launch{Command: s.Command, Env: s.Env, Resources: s.Resources, Credentials: s.Credentials, ViewACL: s.ViewACL, ModifyACL: s.ModifyACL}.Proto()
	if err != nil {
		return nil, err
	}
	if len(s.Credentials.Tokens)+len(s.Credentials.Secrets) == 0 {
		lc.Tokens = nil
	}
	p := &pb.ApplicationSubmissionContextProto{
		ApplicationId: s.ID.Proto(), ApplicationName: &s.Name, AmContainerSpec: lc, CancelTokensWhenComplete: proto.Bool(!s.KeepTokens), UnmanagedAm: proto.Bool(false),
		Resource: s.masterResource(), KeepContainersAcrossApplicationAttempts: &s.KeepContainers, AmContainerResourceRequest: s.masterRequests(),
	}
	for _, t := range s.Tags {
		p.ApplicationTags = append(p.ApplicationTags, strings.ToLower(t)) // as YARN looks for them, and makes them itself by REST
	}
	if s.Type != "" {
		p.ApplicationType = &s.Type
	}
	if s.Queue != "" {
		p.Queue = &s.Queue
	}
	if s.Priority != 0 {
		p.Priority = &pb.PriorityProto{Priority: proto.Int32(int32(s.Priority))}
	}
	if s.MaxAttempts > 0 {
		p.MaxAppAttempts = proto.Int32(int32(s.MaxAttempts))
	}
	if s.FailuresValidity > 0 {
		p.AttemptFailuresValidityInterval = proto.Int64(s.FailuresValidity.Milliseconds())
	}
	if s.NodeLabel != "" {
		p.NodeLabelExpression = &s.NodeLabel
	}
	if s.RollingLogs != "" || s.Logs != "" {
		p.LogAggregationContext = &pb.LogAggregationContextProto{}
	}
	if l := p.LogAggregationContext; s.RollingLogs != "" {
		l.RolledLogsIncludePattern, l.RolledLogsExcludePattern = &s.RollingLogs, proto.String("")
	}
	if s.Logs != "" {
		p.LogAggregationContext.IncludePattern = &s.Logs
	}
	if s.Lifetime > 0 {
		p.ApplicationTimeouts = []*pb.ApplicationTimeoutMapProto{{ApplicationTimeoutType: pb.ApplicationTimeoutTypeProto_APP_TIMEOUT_LIFETIME.Enum(), Timeout: proto.Int64(max(1, int64(s.Lifetime.Seconds())))}}
	}
	return p, nil
}

func (s *Submission) masterResource() *pb.ResourceProto {
	r := &pb.ResourceProto{Memory: &s.Resource.MemoryMB, VirtualCores: proto.Int32(int32(s.Resource.VCores))}
	for _, name := range slices.Sorted(maps.Keys(s.Custom)) {
		r.ResourceValueMap = append(r.ResourceValueMap, &pb.ResourceInformationProto{Key: &name, Value: proto.Int64(s.Custom[name]), Type: pb.ResourceTypesProto_COUNTABLE.Enum()})
	}
	return r
}

// masterRequests says where the master's container shall be; nil if it does not matter.
func (s *Submission) masterRequests() []*pb.ResourceRequestProto {
	if s.AMNodeLabel == "" && len(s.AMNodes)+len(s.AMRacks) == 0 {
		return nil
	}
	one := func(where string, relax bool) *pb.ResourceRequestProto {
		r := &pb.ResourceRequestProto{Priority: &pb.PriorityProto{Priority: proto.Int32(0)}, ResourceName: &where, Capability: s.masterResource(), NumContainers: proto.Int32(1), RelaxLocality: &relax}
		if s.AMNodeLabel != "" && where == "*" {
			r.NodeLabelExpression = &s.AMNodeLabel
		}
		return r
	}
	var out []*pb.ResourceRequestProto
	for _, n := range s.AMNodes {
		out = append(out, one(n, true))
	}
	for _, n := range s.AMRacks {
		out = append(out, one(n, true))
	}
	return append(out, one("*", true))
}
