package yarnclient

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	pb "github.com/heddle-stream/heddle/internal/hadoop/hadooppb"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// App implements API.
func (r *RPC) App(ctx context.Context, id yarnid.Application) (App, error) {
	var resp pb.GetApplicationReportResponseProto
	if err := r.call(ctx, "get the report of "+id.String(), "getApplicationReport", &pb.GetApplicationReportRequestProto{ApplicationId: id.Proto()}, &resp); err != nil {
		return App{}, err
	}
	return appOf(resp.GetApplicationReport()), nil
}

// ClientToken fetches a token by which the caller proves to be who he is to the master of an application that runs. Nil: there is none, since
// the cluster has no security, the master has not registered, or the caller may not see the application.
func (r *RPC) ClientToken(ctx context.Context, id yarnid.Application) (*token.Token, error) {
	var resp pb.GetApplicationReportResponseProto
	err := r.call(ctx, "get the report of "+id.String(), "getApplicationReport", &pb.GetApplicationReportRequestProto{ApplicationId: id.Proto()}, &resp)
	if p := resp.GetApplicationReport().GetClientToAmToken(); err == nil && len(p.GetPassword()) > 0 {
		t := token.FromProto(p)
		return &t, nil
	}
	return nil, err
}

// State implements API.
func (r *RPC) State(ctx context.Context, id yarnid.Application) (string, error) {
	a, err := r.App(ctx, id)
	return a.State, err
}

func appOf(p *pb.ApplicationReportProto) App {
	use := p.GetAppResource_Usage()
	a := App{
		ID: yarnid.ApplicationOf(p.GetApplicationId()).String(), User: p.GetUser(), Name: p.GetName(), Queue: p.GetQueue(), Type: p.GetApplicationType(),
		State: p.GetYarnApplicationState().String(), FinalStatus: strings.TrimPrefix(p.GetFinalApplicationStatus().String(), "APP_"),
		Progress: 100 * float64(p.GetProgress()), TrackingURL: p.GetTrackingUrl(), Tags: slices.Sorted(slices.Values(p.GetApplicationTags())),
		Started: millis(number(p.GetStartTime())), Finished: millis(number(p.GetFinishTime())), Priority: int(p.GetPriority().GetPriority()),
		Containers: int(max(0, use.GetNumUsedContainers())), MemoryMB: max(0, use.GetUsedResources().GetMemory()), VCores: max(0, int64(use.GetUsedResources().GetVirtualCores())),
		Label: p.GetAppNodeLabelExpression(), AMLabel: p.GetAmNodeLabelExpression(),
		Reserved: Resource{MemoryMB: max(0, use.GetReservedResources().GetMemory()), VCores: max(0, int64(use.GetReservedResources().GetVirtualCores()))},
	}
	if d := strings.TrimSpace(p.GetDiagnostics()); d != "N/A" {
		a.Diagnostics = d
	}
	a.AMAddress = masterAddress(net.JoinHostPort(p.GetHost(), strconv.Itoa(int(p.GetRpcPort()))))
	a.AMWeb = p.GetOriginalTrackingUrl()
	if a.TrackingURL == "N/A" {
		a.TrackingURL = ""
	}
	// RPC names these what is none; REST leaves it out.
	for _, label := range []*string{&a.Label, &a.AMLabel} {
		if *label == "<Not set>" || *label == "<DEFAULT_PARTITION>" {
			*label = ""
		}
	}
	return a
}

// Apps implements API.
func (r *RPC) Apps(ctx context.Context, f Filter) ([]App, error) {
	req := &pb.GetApplicationsRequestProto{ApplicationTypes: f.Types}
	for _, t := range f.Tags {
		req.ApplicationTags = append(req.ApplicationTags, strings.ToLower(t)) // as YARN keeps them
	}
	for _, s := range f.States {
		v, ok := pb.YarnApplicationStateProto_value[strings.ToUpper(s)]
		if !ok {
			return nil, fmt.Errorf("cannot list applications: %q is no state of an application", s)
		}
		req.ApplicationStates = append(req.ApplicationStates, pb.YarnApplicationStateProto(v))
	}
	if f.User != "" {
		req.Users = []string{f.User}
	}
	if f.Queue != "" {
		req.Queues = []string{f.Queue}
	}
	if f.Limit > 0 {
		req.Limit = proto.Int64(int64(f.Limit))
	}
	var resp pb.GetApplicationsResponseProto
	if err := r.call(ctx, "list applications", "getApplications", req, &resp); err != nil {
		return nil, err
	}
	var out []App
	for _, p := range resp.Applications {
		out = append(out, appOf(p))
	}
	return out, nil
}

// Kill implements API.
func (r *RPC) Kill(ctx context.Context, id yarnid.Application, diagnostics string) error {
	req := &pb.KillApplicationRequestProto{ApplicationId: id.Proto()}
	if diagnostics != "" {
		req.Diagnostics = &diagnostics
	}
	t := time.NewTicker(200 * time.Millisecond)
	defer t.Stop()
	for {
		var resp pb.KillApplicationResponseProto
		if err := r.call(ctx, "kill "+id.String(), "forceKillApplication", req, &resp); err != nil || resp.GetIsKillCompleted() {
			return err
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return fmt.Errorf("cannot kill %s: it is not over yet: %w", id, ctx.Err())
		}
	}
}

// Attempts implements API. By RPC the nodes are not told.
func (r *RPC) Attempts(ctx context.Context, id yarnid.Application) ([]Attempt, error) {
	var resp pb.GetApplicationAttemptsResponseProto
	err := r.call(ctx, "list the attempts of "+id.String(), "getApplicationAttempts", &pb.GetApplicationAttemptsRequestProto{ApplicationId: id.Proto()}, &resp)
	if err != nil {
		return nil, err
	}
	var out []Attempt
	for _, p := range resp.ApplicationAttempts {
		at := yarnid.AttemptOf(p.GetApplicationAttemptId())
		a := Attempt{Number: int(at.Number), ID: at.String(), State: strings.TrimPrefix(p.GetYarnApplicationAttemptState().String(), "APP_ATTEMPT_"), Started: millis(number(p.GetStartTime()))}
		if p.AmContainerId != nil {
			a.Container = yarnid.ContainerOf(p.AmContainerId).String()
		}
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b Attempt) int { return a.Number - b.Number })
	return out, nil
}

// Containers implements API.
func (r *RPC) Containers(ctx context.Context, id yarnid.Attempt) ([]Container, error) {
	var resp pb.GetContainersResponseProto
	if err := r.call(ctx, "list the containers of "+id.String(), "getContainers", &pb.GetContainersRequestProto{ApplicationAttemptId: id.Proto()}, &resp); err != nil {
		return nil, err
	}
	var out []Container
	for _, p := range resp.Containers {
		out = append(out, Container{ID: yarnid.ContainerOf(p.GetContainerId()).String(), State: strings.TrimPrefix(p.GetContainerState().String(), "C_"),
			ExitStatus: int(p.GetContainerExitStatus()), Diagnostics: p.GetDiagnosticsInfo(), Node: yarnid.NodeOf(p.GetNodeId()),
			NodeHTTP: withoutScheme(p.GetNodeHttpAddress()), LogURL: p.GetLogUrl(),
			MemoryMB: p.GetResource().GetMemory(), VCores: int64(p.GetResource().GetVirtualCores()), Priority: int(p.GetPriority().GetPriority())})
	}
	return out, nil
}

// SetQueue implements API.
func (r *RPC) SetQueue(ctx context.Context, id yarnid.Application, queue string) error {
	req := &pb.MoveApplicationAcrossQueuesRequestProto{ApplicationId: id.Proto(), TargetQueue: &queue}
	return r.call(ctx, "move "+id.String()+" to queue "+queue, "moveApplicationAcrossQueues", req, &pb.MoveApplicationAcrossQueuesResponseProto{})
}

// SetPriority implements API.
func (r *RPC) SetPriority(ctx context.Context, id yarnid.Application, priority int) error {
	req := &pb.UpdateApplicationPriorityRequestProto{ApplicationId: id.Proto(), ApplicationPriority: &pb.PriorityProto{Priority: proto.Int32(int32(priority))}}
	return r.call(ctx, "change the priority of "+id.String(), "updateApplicationPriority", req, &pb.UpdateApplicationPriorityResponseProto{})
}

// SetExpiry implements API.
func (r *RPC) SetExpiry(ctx context.Context, id yarnid.Application, at time.Time) error {
	req := &pb.UpdateApplicationTimeoutsRequestProto{ApplicationId: id.Proto(), ApplicationTimeouts: []*pb.ApplicationUpdateTimeoutMapProto{
		{ApplicationTimeoutType: pb.ApplicationTimeoutTypeProto_APP_TIMEOUT_LIFETIME.Enum(), ExpireTime: proto.String(at.Format(expiryLayout))}}}
	return r.call(ctx, "limit the lifetime of "+id.String(), "updateApplicationTimeouts", req, &pb.UpdateApplicationTimeoutsResponseProto{})
}

// Signal implements API.
func (r *RPC) Signal(ctx context.Context, id yarnid.Container, command string) error {
	v, ok := pb.SignalContainerCommandProto_value[command]
	if !ok {
		return fmt.Errorf("cannot signal %s: there is no signal %q", id, command)
	}
	req := &pb.SignalContainerRequestProto{ContainerId: id.Proto(), Command: pb.SignalContainerCommandProto(v).Enum()}
	return r.call(ctx, "signal "+id.String(), "signalToContainer", req, &pb.SignalContainerResponseProto{})
}

// DelegationToken implements API.
func (r *RPC) DelegationToken(ctx context.Context, renewer string) (token.Token, error) {
	var resp pb.GetDelegationTokenResponseProto
	if err := r.call(ctx, "get a delegation token of the ResourceManager", "getDelegationToken", &pb.GetDelegationTokenRequestProto{Renewer: &renewer}, &resp); err != nil {
		return token.Token{}, err
	}
	return token.FromProto(resp.GetToken()), nil
}

// RenewToken implements API.
func (r *RPC) RenewToken(ctx context.Context, t token.Token) (time.Time, error) {
	var resp pb.RenewDelegationTokenResponseProto
	if err := r.call(ctx, "renew a delegation token of the ResourceManager", "renewDelegationToken", &pb.RenewDelegationTokenRequestProto{Token: t.Proto()}, &resp); err != nil {
		return time.Time{}, err
	}
	return millis(number(resp.GetNewExpiryTime())), nil
}

// CancelToken implements API.
func (r *RPC) CancelToken(ctx context.Context, t token.Token) error {
	return r.call(ctx, "cancel a delegation token of the ResourceManager", "cancelDelegationToken", &pb.CancelDelegationTokenRequestProto{Token: t.Proto()}, &pb.CancelDelegationTokenResponseProto{})
}
