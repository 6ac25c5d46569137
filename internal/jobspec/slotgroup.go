package jobspec

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/internal/cluster"
	"github.com/heddle-stream/heddle/internal/flow"
	"github.com/heddle-stream/heddle/internal/jobspec/strict"
)

// checkSlotGroups reads what slot sharing groups ask for, and finds those that nothing is in.
func (p *planner) checkSlotGroups() {
	if p.file.SlotGroups == nil {
		return
	}
	used := p.usedSlotGroups()
	for _, e := range p.file.SlotGroups.Entries {
		name := e.Key.Value
		if slices.ContainsFunc(p.groups, func(g flow.SlotGroup) bool { return g.Name == name }) {
			p.doc.Failf(e.Key.Place(), "slot group %q is there twice", name)
			continue
		}
		if name != heddle.DefaultSlotGroup && !slices.Contains(used, name) {
			p.doc.Failf(e.Key.Place(), "nothing is in the slot group %q%s", name, strict.Suggest(name, used))
		}
		p.groups = append(p.groups, flow.SlotGroup{
			Name: name, Resources: p.resources(&e.Value), Where: p.name + ":" + strconv.Itoa(e.Key.Place().Line),
		})
	}
}

// usedSlotGroups are the groups that sources, steps and sinks name.
func (p *planner) usedSlotGroups() (used []string) {
	add := func(s strict.String) {
		if s.IsSet() {
			used = append(used, s.Value)
		}
	}
	f := p.file
	if f.Source != nil {
		add(f.Source.SlotGroup)
	}
	if f.Sources != nil {
		for _, e := range f.Sources.Entries {
			add(e.Value.SlotGroup)
		}
	}
	for _, s := range f.Steps {
		add(s.SlotGroup)
	}
	if f.Sink != nil {
		add(f.Sink.SlotGroup)
	}
	if f.Sinks != nil {
		for _, e := range f.Sinks.Entries {
			add(e.Value.SlotGroup)
		}
	}
	return used
}

func (p *planner) resources(g *slotGroup) (r flow.Resources) {
	if g.CPU.IsSet() {
		n, err := strconv.ParseFloat(g.CPU.Value, 64)
		if err != nil || math.IsNaN(n) || n <= 0 || n > 1<<20 {
			p.doc.Failf(g.CPU.Place(), "%q is not a number of cores, such as 0.5", g.CPU.Value)
		}
		r.CPU = n
	}
	if g.Memory.IsSet() {
		var err error
		if r.Memory, err = parseMemory(g.Memory.Value); err != nil {
			p.doc.Failf(g.Memory.Place(), "%v", err)
		}
	}
	if g.Resources != nil {
		r.Custom = map[string]int64{}
		for _, e := range g.Resources.Entries {
			if err := cluster.CheckResourceName(e.Key.Value); err != nil {
				p.doc.Failf(e.Key.Place(), "%v", err)
			}
			if e.Value.Value < 1 {
				p.doc.Failf(e.Value.Place(), "an amount of %s must be at least 1", e.Key.Value)
			}
			r.Custom[e.Key.Value] = int64(e.Value.Value)
		}
	}
	return r
}

// memoryUnits are those of sizes, the longest names first.
var memoryUnits = []struct {
	name  string
	bytes float64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}}

// parseMemory reads a size such as 512MiB or 1.5GiB.
func parseMemory(text string) (int64, error) {
	for _, u := range memoryUnits {
		if number, ok := strings.CutSuffix(text, u.name); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
			if err == nil && n > 0 && n*u.bytes < 1<<60 {
				return int64(n * u.bytes), nil
			}
		}
	}
	return 0, fmt.Errorf("%q is not an amount of memory, such as 512MiB or 2GiB", text)
}

// setSlotGroups tells the job what its groups ask for, but for those of which no operator is left: a step that nobody needs is none.
func (p *planner) setSlotGroups(job *heddle.Job) {
	g := job.Graph()
	for _, group := range p.groups {
		if slices.ContainsFunc(g.Nodes, func(n *flow.Node) bool {
			return n.SlotGroup == group.Name || n.SlotGroup == "" && len(n.In) != 1 && group.Name == heddle.DefaultSlotGroup
		}) {
			g.SlotGroups = append(g.SlotGroups, group)
		}
	}
}
