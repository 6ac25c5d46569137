package cli

import (
	"github.com/heddle-stream/heddle/appmaster/slotmgr"
	"github.com/heddle-stream/heddle/appmaster/slotpool"
	"github.com/heddle-stream/heddle/conf"
	"github.com/heddle-stream/heddle/internal/cluster"
)

// agentsConfig maps the options on agents and their number.
func agentsConfig(c *conf.Config) slotmgr.Config {
	idle := c.Duration("agent.idle-timeout")
	if idle == 0 {
		idle = -1
	}
	cfg := slotmgr.Config{
		SlotsPerAgent:    c.Int("agent.slots"),
		MinAgents:        c.Int("agents"),
		MaxAgents:        mostAgents(c),
		EvenlySpread:     c.Text("slot.selection") == "evenly-spread",
		RegisterTimeout:  c.Duration("agent.register-timeout"),
		HeartbeatTimeout: c.Duration("agent.heartbeat-timeout"),
		IdleTimeout:      idle,
		SpareAgents:      c.Int("agents.spare"),
		MaxSlots:         c.Int("slots.max"),
		AgentTotal:       cluster.Profile{MilliCPU: milliCPU(c.Int("agent.cpu")), MemoryMB: c.Bytes("agent.memory") >> 20},
		MaxTotal:         cluster.Profile{MilliCPU: milliCPU(c.Int("agents.max-cpu")), MemoryMB: c.Bytes("agents.max-memory") >> 20},
		FailureBudget:    c.Int("agents.failures"),
		FailureWindow:    c.Duration("agents.failure-window"),
		HostFailures:     c.Int("agents.host-failures"),
		HostExclusion:    c.Duration("agents.host-exclusion"),
	}
	if byHand(c) && !given(c, "agent.register-timeout") {
		cfg.RegisterTimeout = -1
	}
	return cfg
}

func milliCPU(cores int) int64 { return int64(cores) * 1000 }

// slotsConfig maps the options on how the job gets its slots.
func slotsConfig(c *conf.Config) slotpool.Config {
	cfg := slotpool.Config{Timeout: c.Duration("slot.request-timeout")}
	if byHand(c) && !given(c, "slot.request-timeout") {
		cfg.Timeout = -1
	}
	if c.Text("slot.selection") == "evenly-spread" {
		cfg.Strategy = slotpool.EvenlySpread
	}
	return cfg
}

// given reports whether somebody has set an option.
func given(c *conf.Config, name string) bool {
	v, _ := c.Value(name)
	return v.Layer != conf.FromDefault
}

// byHand reports whether people start agents, who take their time.
func byHand(c *conf.Config) bool { return c.Text("target") == "standalone" }
