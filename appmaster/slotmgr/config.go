package slotmgr

import (
	"time"

	"github.com/heddle-stream/heddle/internal/cluster"
)

// Config is how a Machine behaves. It must not change after New.
type Config struct {
	Attempt       uint32 // agents of another attempt are refused, but for those that the driver has recovered
	SlotsPerAgent int    // expected of an agent that is starting; 0 means 1
	MinAgents     int    // kept even when nobody needs them
	SpareAgents   int    // kept beyond what is needed, so that a lost one is replaced at once
	MaxAgents     int    // 0: no limit
	MaxSlots      int    // of all agents; 0: no limit
	Cut           bool   // cut slots from agents as jobs ask for them, by profile; else each agent into equal ones. It needs AgentTotal
	EvenlySpread  bool   // give slots of the agents with most free ones; else of those with fewest, so that others get idle

	RegisterTimeout  time.Duration // from Granted to Registered; 0 means 30 s, negative for ever
	HeartbeatTimeout time.Duration // of silence until lost, half of it until probation; 0 means 10 s
	SessionGrace     time.Duration // from a broken session until lost, unless the agent comes back; 0 means HeartbeatTimeout
	ExitWait         time.Duration // how long an agent that is gone for certain is kept for its driver to say why; 0: not at all
	IdleTimeout      time.Duration // without a used slot until returned; 0 means 30 s, negative never
	RecoverTimeout   time.Duration // from Recovered to Registered, and from then until it has stopped what it ran; 0 means 30 s
	SpreadWait       time.Duration // how long EvenlySpread holds grants back while agents are starting; 0 means 10 s, negative not at all

	// GrantBatch is how many slots one Due grants at most, so that no event takes long; what is left is due at once. 0: 1,000.
	GrantBatch int

	AgentTotal cluster.Profile // resources expected of an agent that is starting
	MaxTotal   cluster.Profile // of all agents; a zero part: no limit

	FailureBudget int           // agents that may fail within FailureWindow, beside SpareAgents, before no more are asked for
	FailureWindow time.Duration // 0: all the time
	HostFailures  int           // agents of one host that may fail within FailureWindow before it is excluded; 0: any number
	HostExclusion time.Duration // how long a host stays excluded; 0 means 10 min
}

// limit is the most agents that all limits together allow, 0 if there is none, and which of them it is. One agent is always allowed.
func (c Config) limit() (limit int, by Limit) {
	limit, by = c.MaxAgents, LimitAgents
	lower := func(most, each int64, l Limit) {
		if most > 0 && each > 0 && (limit == 0 || int64(limit) > most/each) {
			limit, by = max(1, int(most/each)), l
		}
	}
	if !c.Cut { // else slots are counted as they are cut
		lower(int64(c.MaxSlots), int64(c.SlotsPerAgent), LimitSlots)
	}
	lower(c.MaxTotal.MilliCPU, c.AgentTotal.MilliCPU, LimitCPU)
	lower(c.MaxTotal.MemoryMB, c.AgentTotal.MemoryMB, LimitMemory)
	most, each := c.MaxTotal.Amounts(), c.AgentTotal.Amounts()
	for name, n := range most {
		lower(n, each[name], LimitCustom)
	}
	return limit, by
}

func (c Config) defaults() Config {
	or := func(d *time.Duration, def time.Duration) {
		if *d == 0 {
			*d = def
		}
	}
	or(&c.RegisterTimeout, 30*time.Second)
	or(&c.HeartbeatTimeout, 10*time.Second)
	or(&c.SessionGrace, c.HeartbeatTimeout)
	or(&c.IdleTimeout, 30*time.Second)
	or(&c.SpreadWait, 10*time.Second)
	or(&c.RecoverTimeout, 30*time.Second)
	or(&c.HostExclusion, 10*time.Minute)
	c.SlotsPerAgent = max(c.SlotsPerAgent, 1)
	if c.GrantBatch == 0 {
		c.GrantBatch = 1000
	}
	return c
}

// Limit is what bounds the number of agents.
type Limit uint8

// Limits.
const (
	LimitAgents Limit = iota // Config.MaxAgents
	LimitSlots               // Config.MaxSlots
	LimitCPU                 // Config.MaxTotal, by cores
	LimitMemory              // Config.MaxTotal, by memory
	LimitCustom              // Config.MaxTotal, by another resource
)
