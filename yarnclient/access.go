package yarnclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/heddle-stream/heddle/internal/hadoop/hrpc/token"
	"github.com/heddle-stream/heddle/internal/hadoop/ssl"
	"github.com/heddle-stream/heddle/yarnclient/yarnid"
)

// Mode is how the ResourceManager is spoken to.
type Mode string

// Modes. Auto is by REST where that can carry what is to be said and is let, and by RPC otherwise.
const (
	Auto  Mode = "auto"
	REST  Mode = "rest"
	ByRPC Mode = "rpc"
)

// Options say how Open reaches YARN.
type Options struct {
	Mode Mode // "": Auto
	REST Config
	RPC  RPCConfig // without Addrs or Auth, Auto has REST alone
	// Notice is told, once for each reason, why RPC stands in for REST. It must return at once.
	Notice func(string)
}

// Access is an API by REST, by RPC, or by whichever of them works.
type Access struct {
	// Immutable.
	rest   *Client // nil: not to be used
	rpc    *RPC    // nil: not to be used
	notice func(string)

	mu     sync.Mutex // guards what follows
	closed bool       // REST is refused or out of reach: RPC comes first
	told   map[string]bool
}

// Open returns a client of the mode.
func Open(o Options) (*Access, error) {
	a := &Access{notice: o.Notice, told: map[string]bool{}}
	if a.notice == nil {
		a.notice = func(string) {}
	}
	var err error
	switch o.Mode {
	case Auto, "":
		if len(o.RPC.Addrs) > 0 && len(o.RPC.Auth) > 0 {
			if a.rpc, err = NewRPC(o.RPC); err != nil {
				return nil, err
			}
			// A few rounds tell whether the web service is there; patience with ResourceManagers that are away is RPC's then.
			if rounds := 2*len(o.REST.Bases) + 1; o.REST.Attempts == 0 || o.REST.Attempts > rounds {
				o.REST.Attempts = rounds
			}
		}
		a.rest, err = New(o.REST)
	case REST:
		a.rest, err = New(o.REST)
	case ByRPC:
		a.rpc, err = NewRPC(o.RPC)
	default:
		return nil, fmt.Errorf("cannot reach YARN by %q: yarn.client is auto, rest or rpc", o.Mode)
	}
	if err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
}

// Close implements API.
func (a *Access) Close() {
	if a.rest != nil {
		a.rest.Close()
	}
	if a.rpc != nil {
		a.rpc.Close()
	}
}

// Web returns the client of the web services, for what they alone have: the state of each ResourceManager, and the logs of containers. It is nil by RPC alone.
func (a *Access) Web() *Client { return a.rest }

// ClientToken is RPC.ClientToken. It is by RPC only: without it there is none.
func (a *Access) ClientToken(ctx context.Context, id yarnid.Application) (*token.Token, error) {
	if a.rpc == nil {
		return nil, nil
	}
	return a.rpc.ClientToken(ctx, id)
}

func (a *Access) rpcFirst() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.closed
}

// turn makes RPC come first, or not.
func (a *Access) turn(closed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = closed
}

// tell gives notice of a reason that was not told yet.
func (a *Access) tell(why string) {
	a.mu.Lock()
	known := a.told[why]
	a.told[why] = true
	a.mu.Unlock()
	if !known {
		a.notice(why)
	}
}

// via asks by REST, and by RPC if that is refused or out of reach; once it was, the other way round.
func via[T any](ctx context.Context, a *Access, byREST func(*Client) (T, error), byRPC func(*RPC) (T, error)) (T, error) {
	switch {
	case a.rest == nil:
		return byRPC(a.rpc)
	case a.rpc == nil:
		return byREST(a.rest)
	}
	if a.rpcFirst() {
		v, err := byRPC(a.rpc)
		if err == nil || answered(err) || ctx.Err() != nil {
			return v, err
		}
		w, rerr := byREST(a.rest)
		switch {
		case rerr != nil && refusal(rerr) != "":
			return w, both(rerr, err)
		case !errors.Is(err, ErrNotServed):
			a.turn(false) // it is RPC that is out of reach now
		}
		return w, rerr
	}
	v, err := byREST(a.rest)
	why := refusal(err)
	if err == nil || why == "" || ctx.Err() != nil {
		return v, err
	}
	w, rerr := byRPC(a.rpc)
	if rerr != nil && !answered(rerr) {
		return w, both(err, rerr)
	}
	a.turn(true)
	a.tell("asking the ResourceManager by RPC, since " + why)
	return w, rerr
}

// answered reports whether an error of RPC's is a ResourceManager's answer, so that REST would have no other.
func answered(err error) bool {
	_, remote := errors.AsType[*rpcError](err)
	return remote
}

// both is the error when neither way leads anywhere. It is that of REST, with RPC's told.
func both(rest, rpc error) error {
	if errors.Is(rpc, ErrNotServed) {
		return rest
	}
	if u, ok := errors.AsType[*UnreachableError](rest); ok {
		if _, ok := errors.AsType[*UnreachableError](rpc); ok {
			var again *UnreachableError
			_ = errors.As(rpc, &again)
			return &UnreachableError{What: u.What, Bases: append(append([]string(nil), u.Bases...), again.Bases...), Err: errors.Join(u.Err, again.Err)}
		}
	}
	return fmt.Errorf("%w (nor by RPC: %w)", rest, rpc)
}

// refusal says why REST can't be used, if that is what an error means; "" if it is an answer to the question.
func refusal(err error) string {
	if te, ok := errors.AsType[*ssl.Error](err); ok {
		return "its web service can't be used: " + te.Error()
	}
	if _, ok := errors.AsType[*UnreachableError](err); ok {
		return "its web service can't be reached"
	}
	ae, ok := errors.AsType[*APIError](err)
	if !ok {
		return ""
	}
	switch ae.Status {
	case http.StatusUnauthorized:
		return "its web service doesn't accept our proof of who we are"
	case http.StatusForbidden:
		for _, sign := range []struct{ text, why string }{
			{"static user", "its web service has no authentication, so that it lets nobody change anything"},
			{"REST is disabled", "its web service takes no submissions (yarn.webapp.enable-rest-app-submissions is false)"},
			{"not authenticated", "its web service has no authentication"},
			{"Kerberos authenticated", "its web service gives delegation tokens to Kerberos only"},
			{"GSSException", "its web service doesn't accept our Kerberos ticket"},
			{"Anonymous requests are disallowed", "its web service doesn't accept our proof of who we are"},
		} {
			if strings.Contains(ae.Message, sign.text) {
				return sign.why
			}
		}
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		if ae.Exception == "" {
			return "its web service doesn't have YARN's REST API"
		}
	}
	return ""
}
