package appmaster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/ctl/ctlpb"
	"github.com/heddle-stream/heddle/internal/profile"
)

// Profiler is implemented by a View that can take profiles of an application's processes.
type Profiler interface {
	// TakeProfile begins one of an agent, or of MasterProcess. It fails if that process is being profiled already.
	TakeProfile(of string, kind profile.Kind, d time.Duration) (ProcessProfile, error)
	// Profiles are those under way, and the latest of those that were taken, oldest first.
	Profiles() []ProcessProfile
	// ProfileData returns what one has come to; nil as long as it is under way, if it failed, or if it is not kept any more.
	ProfileData(id uint64) []byte
}

// MasterProcess is the ApplicationMaster's own process, to Profiler.
const MasterProcess = "appmaster"

// ProcessProfile is a profile of a process.
type ProcessProfile struct {
	ID    uint64       `json:"id"`
	Of    string       `json:"of"`   // agent, or appmaster
	Kind  profile.Kind `json:"kind"` // cpu, heap, stacks, trace
	State string       `json:"state"`
	Error string       `json:"error,omitempty"`
	Begun time.Time    `json:"begun"`
	Ready time.Time    `json:"ready"` // when it is expected, or was there
	Size  int          `json:"size"`
}

// States of a ProcessProfile.
const (
	ProfileRunning = "running"
	ProfileTaken   = "taken"
	ProfileFailed  = "failed"
)

// ErrProfiling says that a process is being profiled already.
var ErrProfiling = errors.New("a profile of it is being taken: only one is at a time")

// ErrNoProfiles says that profiles are not allowed.
var ErrNoProfiles = errors.New("profiles are switched off: profile.enabled is false")

// ErrNoProcess says that there is no such process.
var ErrNoProcess = errors.New("there is no such agent")

const (
	mostProfiles = 4                // that are kept
	profileGrace = time.Minute      // beyond its time, in which an agent is to send one
	profileKept  = 15 * time.Minute // how long one is kept
)

// profiles are those of an application. Any goroutine may use it.
type profiles struct {
	allowed bool // immutable

	mu   sync.Mutex // guards what follows
	next uint64
	all  []*profileRecord // oldest first
}

type profileRecord struct {
	ProcessProfile
	data []byte
}

// begin notes a new one.
func (p *profiles) begin(of string, kind profile.Kind, d time.Duration, now time.Time) (ProcessProfile, error) {
	if !p.allowed {
		return ProcessProfile{}, ErrNoProfiles
	}
	if err := profile.Check(kind, d); err != nil {
		return ProcessProfile{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tidy(now)
	if slices.ContainsFunc(p.all, func(r *profileRecord) bool { return r.Of == of && r.State == ProfileRunning }) {
		return ProcessProfile{}, ErrProfiling
	}
	if kind == profile.Heap || kind == profile.Stacks {
		d = 0
	}
	p.next++
	r := &profileRecord{ProcessProfile: ProcessProfile{ID: p.next, Of: of, Kind: kind, State: ProfileRunning, Begun: now, Ready: now.Add(d)}}
	p.all = append(p.all, r)
	return r.ProcessProfile, nil
}

// tidy gives up what is overdue, and forgets what is old. p.mu is held.
func (p *profiles) tidy(now time.Time) {
	for _, r := range p.all {
		if r.State == ProfileRunning && now.Sub(r.Ready) > profileGrace {
			r.end("it did not come in time", now)
		}
	}
	over := 0
	for i := len(p.all) - 1; i >= 0; i-- {
		r := p.all[i]
		if r.State == ProfileRunning {
			continue
		}
		if over++; over > mostProfiles || now.Sub(r.Ready) > profileKept {
			p.all = slices.Delete(p.all, i, i+1)
		}
	}
}

func (r *profileRecord) end(failure string, now time.Time) {
	r.State, r.Ready, r.Size = ProfileTaken, now, len(r.data)
	if failure != "" {
		r.State, r.Error, r.data, r.Size = ProfileFailed, failure, nil, 0
	}
}

// part adds a part that came from a process.
func (p *profiles) part(of string, id uint64, data []byte, last bool, failure string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.all, func(r *profileRecord) bool { return r.ID == id })
	if i < 0 || p.all[i].Of != of || p.all[i].State != ProfileRunning {
		return // late, or not of who says so
	}
	r := p.all[i]
	if len(r.data)+len(data) > profile.MaxSize {
		failure = profile.ErrTooLarge.Error()
	}
	r.data = append(r.data, data...)
	if last || failure != "" {
		r.end(cluster.Clip(failure, cluster.MaxText), now)
	}
}

// lost ends what is under way of a process that is gone.
func (p *profiles) lost(of, why string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.all {
		if r.Of == of && r.State == ProfileRunning {
			r.end(why, now)
		}
	}
}

// Profiles implements Profiler.
func (m *master) Profiles() []ProcessProfile {
	p := &m.profiles
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tidy(time.Now())
	out := make([]ProcessProfile, 0, len(p.all))
	for _, r := range p.all {
		out = append(out, r.ProcessProfile)
	}
	return out
}

// ProfileData implements Profiler.
func (m *master) ProfileData(id uint64) []byte {
	p := &m.profiles
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.all {
		if r.ID == id && r.State == ProfileTaken {
			return r.data
		}
	}
	return nil
}

// TakeProfile implements Profiler.
func (m *master) TakeProfile(of string, kind profile.Kind, d time.Duration) (ProcessProfile, error) {
	if of != MasterProcess && !slices.ContainsFunc(m.Snapshot().Agents, func(a Agent) bool { return a.ID == of && a.State != "lost" }) {
		return ProcessProfile{}, fmt.Errorf("%w %q", ErrNoProcess, of)
	}
	p, err := m.profiles.begin(of, kind, d, time.Now())
	if err != nil {
		return p, err
	}
	m.post(func() {
		m.log.Info("taking a profile", "of", of, "kind", kind, "for", d)
		if of == MasterProcess {
			m.wg.Go(func() { m.profileSelf(p.ID, kind, d) })
			return
		}
		a := m.agents[cluster.AgentID(of)]
		if a == nil || a.session == nil {
			m.profiles.lost(of, "the agent has no session with the ApplicationMaster", time.Now())
			return
		}
		a.session.send(&ctlpb.FromMaster{M: &ctlpb.FromMaster_Profile{Profile: &ctlpb.Profile{Id: p.ID, Kind: string(kind), ForMs: d.Milliseconds()}}})
	})
	return p, nil
}

// profileSelf takes a profile of this process.
func (m *master) profileSelf(id uint64, kind profile.Kind, d time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan struct{})
	defer close(done)
	m.wg.Go(func() {
		select {
		case <-m.stopped:
			cancel()
		case <-done:
		}
	})
	data, err := profile.Take(ctx, kind, d)
	failure := ""
	if err != nil {
		failure = err.Error()
	}
	m.profiles.part(MasterProcess, id, data, true, failure, time.Now())
}
