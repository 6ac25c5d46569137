package appmaster

import (
	"cmp"
	"slices"
	"time"

	"github.com/heddle-stream/heddle/appmaster/sched"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/telemetry"
)

// Container is what an agent runs in, on YARN a container and else a process, from its grant to its end.
type Container struct {
	ID      string    `json:"id"`
	Agent   string    `json:"agent"`
	Host    string    `json:"host"`
	State   string    `json:"state"`            // of the agent: starting, alive, probation, lost; ended
	Asked   time.Time `json:"asked,omitzero"`   // when an agent more was wanted
	Granted time.Time `json:"granted,omitzero"` // when the driver had got it
	Started time.Time `json:"started,omitzero"` // when its process was started, by its own host's clock
	Joined  time.Time `json:"joined,omitzero"`  // when its agent registered
	Ended   time.Time `json:"ended,omitzero"`
	Former  bool      `json:"former,omitempty"` // an earlier attempt of the master has got it
	Exit    *Exit     `json:"exit,omitempty"`   // once it has ended
}

// Exit is how a container ended.
type Exit struct {
	Status   *int     `json:"status,omitempty"` // as whoever ran it tells; absent: nobody told
	Reason   string   `json:"reason"`           // in words
	Failed   bool     `json:"failed"`           // by its own fault
	Told     string   `json:"told,omitempty"`   // what YARN said
	Fix      string   `json:"fix,omitempty"`    // what helps
	LastLogs []string `json:"last_logs,omitempty"`
}

// StateChange is a state of the job and when it began.
type StateChange struct {
	State string    `json:"state"`
	Time  time.Time `json:"time"`
}

// Process are figures of the ApplicationMaster's own process.
type Process struct {
	RSS        int64   `json:"rss"`
	Heap       int64   `json:"heap"`
	Memory     int64   `json:"memory"` // that Go has from the system
	GCs        int64   `json:"gcs"`
	GCPause    float64 `json:"gc_pause"` // seconds in all
	CPU        float64 `json:"cpu"`      // seconds used
	Goroutines int     `json:"goroutines"`

	SpansExported int64  `json:"spans_exported"`
	SpansDropped  int64  `json:"spans_dropped"`
	Service       string `json:"service,omitempty"` // that the traces are of; "" if there are none
}

// How much of the past a snapshot shows.
const (
	mostEnded    = 100 // containers that have ended
	mostWords    = 20  // of those, that are shown with their last log lines
	mostStates   = 50
	mostFailures = 20
)

// asking notes that so many agents in all are wanted now, and so when each was.
func (m *master) asking(total int, now time.Time) {
	for len(m.asks) < total {
		m.asks = append(m.asks, now)
	}
	m.asks = m.asks[:min(len(m.asks), max(total, m.counts.Granted))]
}

// askedAt is when the agent that was granted as the nth, from 0, was wanted.
func (m *master) askedAt(n int) time.Time {
	if n < len(m.asks) {
		return m.asks[n]
	}
	return time.Time{}
}

// became notes a new state of the job and, when it begins or has ceased to fail, why: the cause that is known at the end counts.
func (m *master) became(e sched.StateChanged, now time.Time) {
	m.states = last(append(m.states, StateChange{e.To.String(), now}), mostStates)
	c := m.causeView()
	switch {
	case c == nil:
	case e.From == sched.Failing && len(m.failures) > 0:
		m.failures[len(m.failures)-1] = *c
	case e.To == sched.Failing || e.To == sched.Failed:
		m.failures = last(append(m.failures, *c), mostFailures)
	}
}

func last[T any](s []T, most int) []T { return s[max(0, len(s)-most):] }

// containerViews are the containers that there are, after the latest that have ended.
func (m *master) containerViews(there []Agent) []Container {
	states := map[string]string{}
	for _, a := range there {
		states[a.ID] = a.State
	}
	all := make([]Container, 0, len(m.agents))
	for id, a := range m.agents {
		all = append(all, containerView(id, a, cmp.Or(states[string(id)], "starting")))
	}
	slices.SortFunc(all, func(a, b Container) int {
		return cmp.Or(a.Ended.Compare(b.Ended), a.Granted.Compare(b.Granted), len(a.Agent)-len(b.Agent), cmp.Compare(a.Agent, b.Agent))
	})
	// Those that have not ended, whose time is zero, come first.
	n := slices.IndexFunc(all, func(c Container) bool { return c.Exit != nil })
	if n < 0 {
		return all
	}
	ended := last(all[n:], mostEnded)
	for i := range ended[:max(0, len(ended)-mostWords)] {
		ended[i].Exit.LastLogs = nil
	}
	return append(all[:n:n], ended...)
}

func containerView(id cluster.AgentID, a *agentRecord, state string) Container {
	c := Container{ID: string(a.container), Agent: string(id), Host: a.host, State: state,
		Asked: a.asked, Granted: a.granted, Started: a.started, Joined: a.joined, Ended: a.ended, Former: a.granted.IsZero()}
	if x := a.exit; x != nil {
		c.State, c.Exit = "ended", &Exit{Status: x.Status, Reason: x.Reason, Failed: x.Blame, Told: x.Told, Fix: x.Fix, LastLogs: x.LastLogs}
	}
	return c
}

// processView are this process's figures.
func processView(trace *telemetry.Provider) Process {
	p, spans := telemetry.ReadProcess(), trace.Stats()
	return Process{SpansExported: spans.Exported, SpansDropped: spans.Dropped + spans.Failed, Service: trace.Service(),
		RSS: p.RSS, Heap: p.Heap, Memory: p.Memory, GCs: p.GCs, GCPause: p.GCPause.Seconds(), CPU: p.CPU.Seconds(), Goroutines: p.Goroutines}
}
