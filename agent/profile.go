package agent

import (
	"context"
	"errors"
	"time"

	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
	"github.com/heddle-stream/heddle/internal/profile"
)

// profileTaken is the event that a profile of this process is there, or why there is none.
type profileTaken struct {
	id   uint64
	data []byte
	err  error
}

var errProfiling = errors.New("a profile of this process is being taken")

// profilePart is how much of a profile goes into one message: heartbeats come between two.
const profilePart = 256 << 10

// takeProfile takes a profile that the master asks for, unless one is being taken.
func (a *agent) takeProfile(ctx context.Context, order *ctlpb.Profile) {
	if a.profiling {
		a.sendProfile(profileTaken{id: order.GetId(), err: errProfiling})
		return
	}
	a.profiling = true
	kind, d := profile.Kind(order.GetKind()), time.Duration(order.GetForMs())*time.Millisecond
	a.cfg.Logger.Info("taking a profile", "kind", kind, "for", d)
	a.wg.Go(func() {
		data, err := profile.Take(ctx, kind, d)
		a.events.put(profileTaken{order.GetId(), data, err})
	})
}

// sendProfile sends a profile to the master, in parts.
func (a *agent) sendProfile(p profileTaken) {
	out := &ctlpb.ProfilePart{Id: p.id, Last: true}
	if p.err != nil {
		out.Error = p.err.Error()
		a.send(&ctlpb.FromAgent{M: &ctlpb.FromAgent_Profile{Profile: out}})
		return
	}
	for more := true; more; {
		n := min(profilePart, len(p.data))
		more = n < len(p.data)
		a.send(&ctlpb.FromAgent{M: &ctlpb.FromAgent_Profile{Profile: &ctlpb.ProfilePart{Id: p.id, Data: p.data[:n], Last: !more}}})
		p.data = p.data[n:]
	}
}
