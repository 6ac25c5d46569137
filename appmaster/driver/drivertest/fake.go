package drivertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/heddle-stream/heddle/appmaster"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl"
)

// Fake is a driver whose agents are goroutines of this process, with faults.
type Fake struct {
	// Agent is an agent, from its start until it returns. It must return soon when ctx ends.
	Agent func(ctx context.Context, id cluster.AgentID, secrets ctl.AgentSecrets) error
	// Faults, set before Start.
	Surplus     int                         // agents granted beyond what is asked for, with the first grant
	Most        int                         // refuse more; 0: no limit
	Unreachable bool                        // Return does nothing to lost agents: they go on, unseen
	Forgetful   bool                        // like Unreachable, but what it can't reach it reports as ended, as ResourceManagers do of lost nodes
	Slow        time.Duration               // from a grant to the agent's start
	BeforeStart func(id cluster.AgentID)    // called between the grant and the agent's start, by the agent's goroutine
	Doubled     bool                        // an exit is reported twice
	ExitFirst   func(cluster.AgentID) error // not nil: the agent ends so before it has begun

	env appmaster.DriverEnv
	wg  sync.WaitGroup

	mu       sync.Mutex
	n        int                                         // guarded by mu
	cancels  map[cluster.AgentID]context.CancelCauseFunc // guarded by mu
	away     map[cluster.AgentID]bool                    // guarded by mu
	reported map[cluster.AgentID]bool                    // guarded by mu: ended, though they may go on
	stopped  bool                                        // guarded by mu
	refused  bool                                        // guarded by mu
}

var errReturned = errors.New("it was returned")

// Start implements appmaster.Driver.
func (f *Fake) Start(env appmaster.DriverEnv) error {
	f.env, f.cancels, f.away, f.reported = env, map[cluster.AgentID]context.CancelCauseFunc{}, map[cluster.AgentID]bool{}, map[cluster.AgentID]bool{}
	return nil
}

// Ask implements appmaster.Driver.
func (f *Fake) Ask(total int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if total > 0 && f.n == 0 {
		total += f.Surplus
	}
	for f.n < total && !f.stopped {
		if f.Most > 0 && f.n == f.Most {
			if !f.refused {
				f.refused = true
				f.wg.Go(func() { f.env.Refused("the cluster is full") })
			}
			return
		}
		f.n++
		id := cluster.AgentID(fmt.Sprint("agent-", f.n))
		ctx, cancel := context.WithCancelCause(context.Background())
		f.cancels[id] = cancel
		f.wg.Go(func() { f.run(ctx, id) })
	}
}

func (f *Fake) run(ctx context.Context, id cluster.AgentID) {
	f.env.Granted(id, cluster.ContainerID(id), "localhost")
	if f.BeforeStart != nil {
		f.BeforeStart(id)
	}
	if f.Slow > 0 {
		select {
		case <-time.After(f.Slow):
		case <-ctx.Done():
		}
	}
	err := f.play(ctx, id)
	f.mu.Lock()
	f.cancels[id](nil)
	delete(f.cancels, id)
	reported := f.reported[id]
	f.mu.Unlock()
	if reported {
		return
	}
	exit := appmaster.AgentExit{Agent: id, Reason: "it ended", Blame: !errors.Is(context.Cause(ctx), errReturned)}
	if err != nil {
		exit.Reason = err.Error()
	}
	f.env.Exited(exit)
	if f.Doubled {
		f.env.Exited(exit)
	}
}

func (f *Fake) play(ctx context.Context, id cluster.AgentID) error {
	if f.ExitFirst != nil {
		if err := f.ExitFirst(id); err != nil {
			return err
		}
	}
	secrets, err := f.env.Secrets(id, cluster.ContainerID(id))
	if err != nil {
		return err
	}
	return f.Agent(ctx, id, secrets)
}

// Return implements appmaster.Driver.
func (f *Fake) Return(id cluster.AgentID, lost bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if lost && (f.Unreachable || f.Forgetful) {
		f.away[id] = true
	}
	if f.away[id] && f.Forgetful && f.cancels[id] != nil && !f.reported[id] && !f.stopped {
		f.reported[id] = true
		f.wg.Go(func() { f.env.Exited(appmaster.AgentExit{Agent: id, Reason: "its node was lost"}) })
	}
	if cancel := f.cancels[id]; cancel != nil && !f.away[id] {
		cancel(errReturned)
	}
}

// End ends an agent by its own fault.
func (f *Fake) End(id cluster.AgentID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if cancel := f.cancels[id]; cancel != nil {
		cancel(errors.New("crashed"))
	}
}

// Stop implements appmaster.Driver.
func (f *Fake) Stop(context.Context) {
	f.mu.Lock()
	f.stopped = true
	for _, cancel := range f.cancels {
		cancel(errReturned)
	}
	f.mu.Unlock()
	f.wg.Wait()
}
