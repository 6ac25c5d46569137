package yarnclient

import (
	"context"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/yarnclient/report"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// none is the result of what has none.
type none struct{}

func only(err error) (none, error) { return none{}, err }

// NewApplication implements API.
func (a *Access) NewApplication(ctx context.Context) (NewApp, error) {
	return via(ctx, a, func(c *Client) (NewApp, error) { return c.NewApplication(ctx) }, func(r *RPC) (NewApp, error) { return r.NewApplication(ctx) })
}

// Submit implements API. What REST can't carry goes by RPC, if there is that.
func (a *Access) Submit(ctx context.Context, s *Submission) error {
	if names := s.beyondREST(); a.rest != nil && a.rpc != nil && len(names) > 0 && !a.rpcFirst() {
		err := a.rpc.Submit(ctx, s)
		if err == nil || answered(err) || ctx.Err() != nil {
			a.tell("submitting by RPC, since REST can't carry " + strings.Join(names, " and "))
			return err
		}
		if rerr := a.rest.Submit(ctx, s); rerr != nil {
			return both(rerr, err)
		}
		return nil
	}
	_, err := via(ctx, a, func(c *Client) (none, error) { return only(c.Submit(ctx, s)) }, func(r *RPC) (none, error) { return only(r.Submit(ctx, s)) })
	return err
}

// App implements API.
func (a *Access) App(ctx context.Context, id yarnid.Application) (App, error) {
	return via(ctx, a, func(c *Client) (App, error) { return c.App(ctx, id) }, func(r *RPC) (App, error) { return r.App(ctx, id) })
}

// Apps implements API.
func (a *Access) Apps(ctx context.Context, f Filter) ([]App, error) {
	return via(ctx, a, func(c *Client) ([]App, error) { return c.Apps(ctx, f) }, func(r *RPC) ([]App, error) { return r.Apps(ctx, f) })
}

// State implements API.
func (a *Access) State(ctx context.Context, id yarnid.Application) (string, error) {
	return via(ctx, a, func(c *Client) (string, error) { return c.State(ctx, id) }, func(r *RPC) (string, error) { return r.State(ctx, id) })
}

// Kill implements API.
func (a *Access) Kill(ctx context.Context, id yarnid.Application, diagnostics string) error {
	_, err := via(ctx, a, func(c *Client) (none, error) { return only(c.Kill(ctx, id, diagnostics)) },
		func(r *RPC) (none, error) { return only(r.Kill(ctx, id, diagnostics)) })
	return err
}

// Attempts implements API.
func (a *Access) Attempts(ctx context.Context, id yarnid.Application) ([]Attempt, error) {
	return via(ctx, a, func(c *Client) ([]Attempt, error) { return c.Attempts(ctx, id) }, func(r *RPC) ([]Attempt, error) { return r.Attempts(ctx, id) })
}

// Containers implements API.
func (a *Access) Containers(ctx context.Context, id yarnid.Attempt) ([]Container, error) {
	return via(ctx, a, func(c *Client) ([]Container, error) { return c.Containers(ctx, id) }, func(r *RPC) ([]Container, error) { return r.Containers(ctx, id) })
}

// SetQueue implements API.
func (a *Access) SetQueue(ctx context.Context, id yarnid.Application, queue string) error {
	_, err := via(ctx, a, func(c *Client) (none, error) { return only(c.SetQueue(ctx, id, queue)) },
		func(r *RPC) (none, error) { return only(r.SetQueue(ctx, id, queue)) })
	return err
}

// SetPriority implements API.
func (a *Access) SetPriority(ctx context.Context, id yarnid.Application, priority int) error {
	_, err := via(ctx, a, func(c *Client) (none, error) { return only(c.SetPriority(ctx, id, priority)) },
		func(r *RPC) (none, error) { return only(r.SetPriority(ctx, id, priority)) })
	return err
}

// SetExpiry implements API.
func (a *Access) SetExpiry(ctx context.Context, id yarnid.Application, at time.Time) error {
	_, err := via(ctx, a, func(c *Client) (none, error) { return only(c.SetExpiry(ctx, id, at)) },
		func(r *RPC) (none, error) { return only(r.SetExpiry(ctx, id, at)) })
	return err
}

// Signal implements API.
func (a *Access) Signal(ctx context.Context, id yarnid.Container, command string) error {
	_, err := via(ctx, a, func(c *Client) (none, error) { return only(c.Signal(ctx, id, command)) },
		func(r *RPC) (none, error) { return only(r.Signal(ctx, id, command)) })
	return err
}

// Metrics implements API.
func (a *Access) Metrics(ctx context.Context) (Metrics, error) {
	return via(ctx, a, func(c *Client) (Metrics, error) { return c.Metrics(ctx) }, func(r *RPC) (Metrics, error) { return r.Metrics(ctx) })
}

// Nodes implements API.
func (a *Access) Nodes(ctx context.Context, states ...string) ([]Node, error) {
	return via(ctx, a, func(c *Client) ([]Node, error) { return c.Nodes(ctx, states...) }, func(r *RPC) ([]Node, error) { return r.Nodes(ctx, states...) })
}

// Scheduler implements API.
func (a *Access) Scheduler(ctx context.Context) (Scheduler, error) {
	return via(ctx, a, func(c *Client) (Scheduler, error) { return c.Scheduler(ctx) }, func(r *RPC) (Scheduler, error) { return r.Scheduler(ctx) })
}

// Labels implements API.
func (a *Access) Labels(ctx context.Context) ([]string, error) {
	return via(ctx, a, func(c *Client) ([]string, error) { return c.Labels(ctx) }, func(r *RPC) ([]string, error) { return r.Labels(ctx) })
}

// Activities implements API.
func (a *Access) Activities(ctx context.Context, id yarnid.Application) ([]report.Diagnostic, error) {
	return via(ctx, a, func(c *Client) ([]report.Diagnostic, error) { return c.Activities(ctx, id) }, func(r *RPC) ([]report.Diagnostic, error) { return r.Activities(ctx, id) })
}

// DelegationToken implements API.
func (a *Access) DelegationToken(ctx context.Context, renewer string) (token.Token, error) {
	return via(ctx, a, func(c *Client) (token.Token, error) { return c.DelegationToken(ctx, renewer) }, func(r *RPC) (token.Token, error) { return r.DelegationToken(ctx, renewer) })
}

// RenewToken implements API.
func (a *Access) RenewToken(ctx context.Context, t token.Token) (time.Time, error) {
	return via(ctx, a, func(c *Client) (time.Time, error) { return c.RenewToken(ctx, t) }, func(r *RPC) (time.Time, error) { return r.RenewToken(ctx, t) })
}

// CancelToken implements API.
func (a *Access) CancelToken(ctx context.Context, t token.Token) error {
	_, err := via(ctx, a, func(c *Client) (none, error) { return only(c.CancelToken(ctx, t)) }, func(r *RPC) (none, error) { return only(r.CancelToken(ctx, t)) })
	return err
}
