package yarnclient

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/internal/hadoop/hrpc"
	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/yarnclient/report"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// What a ResourceManager reports.
type (
	App       = report.App
	Node      = report.Node
	Queue     = report.Queue
	Resource  = report.Resource
	Attempt   = report.Attempt
	Container = report.Container
	Metrics   = report.Metrics
	Scheduler = report.Scheduler
)

// States of an application.
const (
	StateAccepted = report.StateAccepted
	StateRunning  = report.StateRunning
	StateFinished = report.StateFinished
	StateFailed   = report.StateFailed
	StateKilled   = report.StateKilled
)

// API is what a user's command asks of YARN. Client serves it by REST, RPC by ApplicationClientProtocol, and what Open returns by
// the one or the other. All are for concurrent use.
type API interface {
	// NewApplication reserves an identifier.
	NewApplication(ctx context.Context) (NewApp, error)
	// Submit submits an application. A repeated one is the same application.
	Submit(ctx context.Context, s *Submission) error
	// App returns an application's report, Apps those that a filter selects, State the state alone.
	App(ctx context.Context, id yarnid.Application) (App, error)
	Apps(ctx context.Context, f Filter) ([]App, error)
	State(ctx context.Context, id yarnid.Application) (string, error)
	// Kill ends an application and waits until it is over.
	Kill(ctx context.Context, id yarnid.Application, diagnostics string) error
	// Attempts lists the runs of an application's master, Containers the running ones of an attempt.
	Attempts(ctx context.Context, id yarnid.Application) ([]Attempt, error)
	Containers(ctx context.Context, id yarnid.Attempt) ([]Container, error)
	// SetQueue, SetPriority and SetExpiry change an application that runs or waits.
	SetQueue(ctx context.Context, id yarnid.Application, queue string) error
	SetPriority(ctx context.Context, id yarnid.Application, priority int) error
	SetExpiry(ctx context.Context, id yarnid.Application, at time.Time) error
	// Signal sends a container OUTPUT_THREAD_DUMP (SIGQUIT), GRACEFUL_SHUTDOWN (SIGTERM) or FORCEFUL_SHUTDOWN (SIGKILL).
	Signal(ctx context.Context, id yarnid.Container, command string) error

	// Metrics, Nodes, Scheduler and Labels describe the cluster.
	Metrics(ctx context.Context) (Metrics, error)
	Nodes(ctx context.Context, states ...string) ([]Node, error)
	Scheduler(ctx context.Context) (Scheduler, error)
	Labels(ctx context.Context) ([]string, error)
	// Activities returns why the scheduler gave an application nothing lately. By REST only.
	Activities(ctx context.Context, id yarnid.Application) ([]report.Diagnostic, error)

	// DelegationToken fetches a token for the ResourceManager that renewer may renew; RenewToken and CancelToken are for its renewer and its owner.
	DelegationToken(ctx context.Context, renewer string) (token.Token, error)
	RenewToken(ctx context.Context, t token.Token) (time.Time, error)
	CancelToken(ctx context.Context, t token.Token) error

	// Close ends connections.
	Close()
}

var (
	_ API = (*Client)(nil)
	_ API = (*RPC)(nil)
	_ API = (*Access)(nil)
)

// ErrNotServed says that a way to the ResourceManager has no such question.
var ErrNotServed = errors.New("the ResourceManager tells it on its web service only")

// IsDenied reports whether the ResourceManager refused for want of a right.
func IsDenied(err error) bool {
	if ae, ok := errors.AsType[*APIError](err); ok {
		return ae.Status == http.StatusForbidden || ae.Status == http.StatusUnauthorized
	}
	switch hrpc.ClassOf(err) {
	case hrpc.ClassAccessControl, hrpc.ClassAuthorization:
		return true
	}
	// A secure ResourceManager wraps its refusal in an exception of YARN's.
	re, ok := errors.AsType[*hrpc.RemoteError](err)
	return ok && strings.Contains(re.Message, "AccessControlException:")
}

// IsUnknown reports whether the ResourceManager knows nothing of what was asked about.
func IsUnknown(err error) bool {
	if ae, ok := errors.AsType[*APIError](err); ok {
		return ae.Status == http.StatusNotFound
	}
	switch hrpc.ClassOf(err) {
	case hrpc.ClassApplicationUnknown, hrpc.ClassAttemptNotFound, hrpc.ClassContainerUnknown:
		return true
	}
	return false
}

// IsRefused reports whether the ResourceManager heard the question and won't have it: what was asked for is wrong, unknown or not allowed.
func IsRefused(err error) bool {
	if ae, ok := errors.AsType[*APIError](err); ok {
		return ae.Status >= 400 && ae.Status < 500
	}
	_, ok := errors.AsType[*rpcError](err)
	return ok
}
