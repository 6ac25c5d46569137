package jobgraph

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/flow"
)

// ProfileOf is what a slot must have that is to have r: thousandths of a core, MiB, rounded up.
func ProfileOf(r flow.Resources) cluster.Profile {
	return cluster.Profile{
		MilliCPU: int64(math.Ceil(r.CPU*1000 - 1e-6)), MemoryMB: (r.Memory + 1<<20 - 1) >> 20, Custom: cluster.CustomOf(r.Custom),
	}
}

// checkSlotGroups finds slot sharing groups that ask for what can't be, or that nothing is in.
func (c *compilation) checkSlotGroups() {
	for _, g := range c.src.SlotGroups {
		for name, n := range g.Resources.Custom {
			if err := cluster.CheckResourceName(name); err != nil {
				c.failGroup(g, "%w", err)
			}
			if n < 0 {
				c.failGroup(g, "asks for %d of %s", n, name)
			}
		}
		if !slices.Contains(c.group, g.Name) {
			used := slices.Compact(slices.Sorted(slices.Values(c.group)))
			c.failGroup(g, "has resources, but no operator is in it; the groups of the job are %s", strings.Join(used, ", "))
		}
	}
}

func (c *compilation) failGroup(g flow.SlotGroup, format string, args ...any) {
	at := ""
	if g.Where != "" {
		at = g.Where + ": "
	}
	err := fmt.Errorf(at+"slot sharing group "+strings.ReplaceAll(g.Name, "%", "%%")+" "+format, args...)
	c.errs = append(c.errs, &Problem{Text: err.Error()})
}

// profiles are what the slot sharing groups ask for, of those that ask for something.
func (c *compilation) profiles() map[string]cluster.Profile {
	var out map[string]cluster.Profile
	for _, g := range c.src.SlotGroups {
		if p := ProfileOf(g.Resources); p != (cluster.Profile{}) {
			if out == nil {
				out = map[string]cluster.Profile{}
			}
			out[g.Name] = p
		}
	}
	return out
}
