package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/heddle-stream/heddle/appmaster/plane"
	"github.com/heddle-stream/heddle/conf"
	"github.com/heddle-stream/heddle/internal/jobgraph"
)

// checkOptions refuses, before anything is started, options that contradict each other or with which the job can never get its slots.
func checkOptions(plan *jobgraph.Graph, c *conf.Config) error {
	if c.Text("target") == "inproc" {
		return nil // it has neither agents nor limits
	}
	for _, check := range []func(*conf.Config) error{checkHeartbeat, checkLimits, checkAddresses, checkExchangeOptions} {
		if err := check(c); err != nil {
			return err
		}
	}
	if err := checkResources(plan, c); err != nil {
		return err
	}
	return enoughAgents(plan, c)
}

// beatsPerTimeout is how many heartbeats there must be in the time after which an agent counts as lost: one or two may be late.
const beatsPerTimeout = 3

// checkHeartbeat refuses heartbeats so rare that an agent counts as lost between them.
func checkHeartbeat(c *conf.Config) error {
	every, timeout := c.Duration("agent.heartbeat-interval"), c.Duration("agent.heartbeat-timeout")
	if every == 0 || timeout == 0 || every <= timeout/beatsPerTimeout {
		return nil
	}
	return usage(fmt.Errorf("agent.heartbeat-interval %s is too long for agent.heartbeat-timeout %s: agents would count as lost between two heartbeats",
		conf.FormatDuration(every), conf.FormatDuration(timeout)),
		fmt.Sprintf("set --agent.heartbeat-interval to %s at most, or --agent.heartbeat-timeout to %s at least",
			conf.FormatDuration((timeout/beatsPerTimeout).Truncate(time.Millisecond)), conf.FormatDuration(beatsPerTimeout*every)))
}

// checkExchangeOptions refuses what every agent's exchange would refuse as it starts.
func checkExchangeOptions(c *conf.Config) error {
	if err := exchangeConfig(c).Check(); err != nil {
		return usage(err, "`heddle config` shows where each value came from")
	}
	return nil
}

// checkLimits refuses limits on what all agents have together if it is not said what one has. On a cluster, that says so.
func checkLimits(c *conf.Config) error {
	if c.Text("target") == "yarn" {
		return nil
	}
	if c.Int("agents.max-cpu") > 0 && c.Int("agent.cpu") == 0 {
		return usage(errors.New("agents.max-cpu limits nothing: it is not said how many cores an agent has"), "set --agent.cpu too, or agents.max to limit their number")
	}
	if c.Bytes("agents.max-memory") > 0 && c.Bytes("agent.memory") == 0 {
		return usage(errors.New("agents.max-memory limits nothing: it is not said how much memory an agent has"), "set --agent.memory too, or agents.max to limit their number")
	}
	return nil
}

// bound is how many agents one option allows.
type bound struct {
	option string
	agents int
}

// tightest is the least number of agents that limits on all of them together allow, if any does. One agent may always be.
func tightest(c *conf.Config) (least bound, found bool) {
	lower := func(option string, most, each int64) {
		if most <= 0 || each <= 0 {
			return
		}
		if n := max(1, int(most/each)); !found || n < least.agents {
			least, found = bound{option, n}, true
		}
	}
	lower("slots.max", int64(c.Int("slots.max")), int64(c.Int("agent.slots")))
	lower("agents.max-cpu", int64(c.Int("agents.max-cpu")), int64(c.Int("agent.cpu")))
	lower("agents.max-memory", c.Bytes("agents.max-memory"), c.Bytes("agent.memory"))
	has := amounts(c, "agent.resources")
	for name, most := range amounts(c, "agents.max-resources") {
		lower("agents.max-resources", most, has[name])
	}
	return least, found
}

// enoughCut refuses a job that says what its slots must have if they can't be cut from as many agents as limits allow.
func enoughCut(plan *jobgraph.Graph, c *conf.Config) error {
	_, limited := tightest(c)
	if c.Text("target") == "yarn" || !limited && c.Int("agents.max") == 0 {
		return nil // the size of a container is the cluster's affair too
	}
	if _, err := plane.Preview(plan, agentsConfig(c), slotsConfig(c)); err != nil {
		return precondition(err, "raise the limit, give agents more, or set a smaller parallelism")
	}
	return nil
}

// enoughSlots refuses a job that can't get its slots within the limits on all agents together.
func enoughSlots(need int, c *conf.Config) error {
	least, found := tightest(c)
	slots := c.Int("agent.slots")
	if !found || need <= least.agents*slots {
		return nil
	}
	return precondition(fmt.Errorf("the job needs %d slots, but %s allows only %s of %d slots", need, least.option, plane.Count(least.agents, "agent"), slots),
		fmt.Sprintf("raise %s, or set a smaller parallelism", least.option))
}
