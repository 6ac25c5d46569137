package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/heddle-stream/heddle/appmaster/plane"
	"github.com/heddle-stream/heddle/appmaster/slotmgr"
	"github.com/heddle-stream/heddle/appmaster/slotpool"
	"github.com/heddle-stream/heddle/conf"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/jobgraph"
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
		AgentTotal:       cluster.Profile{MilliCPU: milliCPU(c.Int("agent.cpu")), MemoryMB: c.Bytes("agent.memory") >> 20, Custom: cluster.CustomOf(amounts(c, "agent.resources"))},
		MaxTotal:         cluster.Profile{MilliCPU: milliCPU(c.Int("agents.max-cpu")), MemoryMB: c.Bytes("agents.max-memory") >> 20, Custom: cluster.CustomOf(amounts(c, "agents.max-resources"))},
		FailureBudget:    c.Int("agents.failures"),
		FailureWindow:    c.Duration("agents.failure-window"),
		HostFailures:     c.Int("agents.host-failures"),
		HostExclusion:    c.Duration("agents.host-exclusion"),
	}
	if !given(c, "agent.register-timeout") {
		switch c.Text("target") {
		case "standalone":
			cfg.RegisterTimeout = -1
		case "yarn":
			cfg.RegisterTimeout = yarnRegister
		}
	}
	return cfg
}

// amounts are those of an option that names custom resources. checkResources has refused what can't be read.
func amounts(c *conf.Config, option string) map[string]int64 {
	m, err := cluster.ParseCustom(strings.Join(c.List(option), ","))
	if err != nil {
		return nil
	}
	return m
}

// checkResources refuses options on custom resources that can't be read, and a job of which a slot fits no agent.
func checkResources(plan *jobgraph.Graph, c *conf.Config) error {
	for _, option := range []string{"agent.resources", "agents.max-resources"} {
		if _, err := cluster.ParseCustom(strings.Join(c.List(option), ",")); err != nil {
			return usage(fmt.Errorf("option %s: %w", option, err))
		}
	}
	if c.Text("target") == "yarn" {
		return nil // the size of a container is the cluster's affair too
	}
	if err := plane.CheckProfiles(plan, agentsConfig(c).AgentTotal); err != nil {
		return precondition(err)
	}
	return nil
}

func milliCPU(cores int) int64 { return int64(cores) * 1000 }

// slotsConfig maps the options on how the job gets its slots.
func slotsConfig(c *conf.Config) slotpool.Config {
	cfg := slotpool.Config{Timeout: c.Duration("slot.request-timeout")}
	if !given(c, "slot.request-timeout") {
		switch c.Text("target") {
		case "standalone":
			cfg.Timeout = -1
		case "yarn":
			cfg.Timeout = yarnSlots
		}
	}
	if c.Text("slot.selection") == "evenly-spread" {
		cfg.Strategy = slotpool.EvenlySpread
	}
	return cfg
}

// How long a cluster may take unless options say it: to bring a program to a node and start it there, and to give containers, for which
// others may have to end.
const (
	yarnRegister = 2 * time.Minute
	yarnSlots    = 10 * time.Minute
)

// given reports whether somebody has set an option.
func given(c *conf.Config, name string) bool {
	v, _ := c.Value(name)
	return v.Layer != conf.FromDefault
}

// byHand reports whether people start agents, who take their time.
func byHand(c *conf.Config) bool { return c.Text("target") == "standalone" }
