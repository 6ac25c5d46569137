package appmaster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"time"

	"github.com/heddle-stream/heddle/appmaster/sched"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl"
	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
	"github.com/heddle-stream/heddle/internal/flow"
)

// source is the master's record of a source's splits.
type source struct {
	// Immutable.
	vertex  int
	node    *flow.Node
	readers int

	// Owned by the loop.
	splits [][]flow.Split // by reader
	known  bool           // the first discovery is over
	final  bool
	failed int64 // discoveries that came to nothing
}

// assigned is a split with the reader that gets it.
type assigned struct {
	split  flow.Split
	reader int
}

// discovery is the goroutine of one source: the only one that calls its enumerator.
type discovery struct {
	m      *master
	src    *source
	budget time.Duration // negative: for ever
}

// Pauses between failed discoveries.
const (
	firstPause   = time.Second
	longestPause = 30 * time.Second
)

// run enumerates until there is nothing more to find or ctx ends.
func (d *discovery) run(ctx context.Context) {
	err := errExited // stands if the enumerator ends the goroutine
	defer func() {
		if err == nil || ctx.Err() != nil {
			return
		}
		f := classify(err)
		f.Message = fmt.Sprintf("cannot find the splits of %s: %s", d.src.node.KindAndTitle(), f.Message)
		f.Operator = d.src.node.Title()
		d.m.post(func() { d.m.onSourceFailed(f) })
	}()
	err = d.enumerate(ctx)
}

var errExited error = cluster.Failure{Kind: cluster.Invalid, Message: "its enumerator ended its goroutine (runtime.Goexit, which FailNow and " +
	"Fatal of a test call too): it must return an error instead"}

func (d *discovery) enumerate(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = cluster.Failure{Kind: cluster.Internal, Message: fmt.Sprintf("panic in the enumerator: %v", p)}
		}
	}()
	e, err := d.src.node.Source.Enumerator(ctx, flow.EnumeratorEnv{
		JobName: d.m.cfg.Job.Name, Node: d.src.node, Readers: d.src.readers, Option: d.m.cfg.Option, Warn: d.warn, Debug: d.debug,
	})
	if err != nil {
		return err
	}
	defer func() {
		if err := e.Close(); err != nil {
			d.warn("cannot close its enumerator: " + err.Error())
		}
	}()
	return d.discover(ctx, e)
}

func (d *discovery) warn(msg string) {
	d.m.post(func() { d.m.warn(fmt.Sprintf("%s: %s", d.src.node.KindAndTitle(), msg)) })
}

func (d *discovery) debug(msg string) { d.m.log.Debug(msg, "source", d.src.node.Title()) }

// discover calls Discover until the last split is found. The first call must succeed, so that a bad job is refused at once;
// later ones may fail for as long as the budget lasts.
func (d *discovery) discover(ctx context.Context, e flow.Enumerator) error {
	started, pause := false, firstPause
	var failing time.Time // since when; zero: it is not
	for {
		found, err := e.Discover(ctx)
		wait := found.Next
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			if found.Failed {
				d.countFailure()
			}
			if err := d.assign(e, found); err != nil || found.Final {
				return err
			}
			started, pause, failing = true, firstPause, time.Time{}
		case !started:
			return err
		default:
			if failing.IsZero() {
				failing = time.Now()
			}
			if d.budget >= 0 && time.Since(failing) >= d.budget {
				return fmt.Errorf("for %v: %w", time.Since(failing).Round(time.Second), err)
			}
			d.countFailure()
			d.warn(fmt.Sprintf("cannot look for new splits, next try in %v: %v", pause, err))
			wait, pause = pause, min(2*pause, longestPause)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(max(wait, time.Millisecond)):
		}
	}
}

func (d *discovery) countFailure() {
	d.m.post(func() { d.src.failed++ })
}

func (d *discovery) assign(e flow.Enumerator, found flow.Discovery) error {
	out := make([]assigned, len(found.Added))
	for i, s := range found.Added {
		r := e.Owner(s, d.src.readers)
		if r < 0 || r >= d.src.readers {
			return cluster.Failure{Kind: cluster.Internal, Message: fmt.Sprintf("split %s was given to reader %d of %d", s.ID, r, d.src.readers)}
		}
		out[i] = assigned{s, r}
	}
	d.m.post(func() { d.m.onSplits(d.src, out, found.Final) })
	return nil
}

// kinder is an error that knows its kind, as connectors give it to theirs.
type kinder interface {
	error
	ErrorKind() cluster.ErrorKind
}

// classify makes a failure of an error.
func classify(err error) cluster.Failure {
	if f, ok := errors.AsType[cluster.Failure](err); ok {
		f.Message = err.Error()
		return f
	}
	f := cluster.Failure{Kind: cluster.Invalid, Message: err.Error()}
	if k, ok := errors.AsType[kinder](err); ok {
		f.Kind = k.ErrorKind()
		return f
	}
	_, isNet := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.Kind = cluster.NotFound
	case errors.Is(err, fs.ErrPermission):
		f.Kind = cluster.Denied
	case isNet, errors.Is(err, context.DeadlineExceeded):
		f.Kind = cluster.Unavailable
	}
	return f
}

// onSplits records new splits and passes them to the readers that run already. The others get them with their deployment.
func (m *master) onSplits(src *source, found []assigned, final bool) {
	added := make([][]flow.Split, src.readers)
	for _, a := range found {
		added[a.reader] = append(added[a.reader], a.split)
	}
	src.known, src.final = true, src.final || final
	m.near(src, added)
	m.beginIfChecked()
	for r := range added {
		src.splits[r] = append(src.splits[r], added[r]...)
		e := m.job0().Execution(src.vertex, r)
		if len(added[r]) == 0 && !final || e.State != cluster.Deploying && e.State != cluster.Running {
			continue
		}
		m.toAgent(e.Slot.Agent, &ctlpb.FromMaster{M: &ctlpb.FromMaster_Splits{Splits: &ctlpb.Splits{
			Id: ctl.PBExecution(e.ID), Splits: pbSplits(added[r]), NoMore: src.final,
		}}})
	}
	m.log.Info("found splits", "source", src.node.Title(), "splits", len(found), "final", final)
}

// near tells the scheduler where readers read best: most of their splits, and among those of the first to be found.
func (m *master) near(src *source, added [][]flow.Split) {
	for r, splits := range added {
		hosts, racks := favourites(splits, func(s flow.Split) []string { return s.Hosts }), favourites(splits, func(s flow.Split) []string { return s.Racks })
		if len(hosts)+len(racks) > 0 {
			m.schedEvent(time.Now(), sched.Near{Vertex: src.vertex, Subtask: r, Hosts: hosts, Racks: racks})
		}
	}
}

// mostPlaces is how many places a reader is said to read best at.
const mostPlaces = 3

// favourites are the places that most splits have, best first.
func favourites(splits []flow.Split, of func(flow.Split) []string) (names []string) {
	count := map[string]int{}
	for _, s := range splits {
		for _, name := range of(s) {
			if count[name]++; count[name] == 1 {
				names = append(names, name)
			}
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return count[b] - count[a] })
	return names[:min(len(names), mostPlaces)]
}

// undiscovered returns a source whose first discovery is not over, or nil. Before that nothing is deployed,
// so that a source that can't be read is what the job fails by, and not what its tasks stumble over meanwhile.
func (m *master) undiscovered() *source {
	for _, src := range m.sources {
		if !src.known {
			return src
		}
	}
	return nil
}

// resendSplits gives the readers of an agent that came back all their splits again, since some may have been lost on the way.
// The agent takes each once.
func (m *master) resendSplits(agent cluster.AgentID) {
	for _, src := range m.sources {
		for e := range m.job0().Executions(src.vertex) {
			if e.Slot.Agent == agent && (e.State == cluster.Deploying || e.State == cluster.Running) {
				m.toAgent(agent, &ctlpb.FromMaster{M: &ctlpb.FromMaster_Splits{Splits: &ctlpb.Splits{
					Id: ctl.PBExecution(e.ID), Splits: pbSplits(src.splits[e.ID.Subtask]), NoMore: src.final,
				}}})
			}
		}
	}
}

func pbSplits(splits []flow.Split) []*ctlpb.Split {
	out := make([]*ctlpb.Split, len(splits))
	for i, s := range splits {
		out[i] = &ctlpb.Split{Id: []byte(s.ID), State: s.State}
	}
	return out
}
