package heddle

import "github.com/heddle-stream/heddle/internal/flow"

// Resources are what each slot of a slot sharing group must have; see Job.SlotGroup.
type Resources = flow.Resources

// DefaultSlotGroup is the slot sharing group of operators that are in no other.
const DefaultSlotGroup = "default"

// SlotGroup says what each slot of a slot sharing group must have: it is cut in that size from an agent that has as much left.
// The group's operators say that they are in it by SlotGroup; DefaultSlotGroup is that of all others.
//
//	job.SlotGroup("models", heddle.Resources{CPU: 2, Memory: 4 << 30, Custom: map[string]int64{"gpu": 1}})
//	scores := heddle.Map(clicks, score).SlotGroup("models")
//
// Where no group of a job says anything, agents are cut into agent.slots equal slots. Else a group that says nothing gets
// slots of that equal size. What agents have is a matter of configuration: agent.cpu, agent.memory and agent.resources.
func (j *Job) SlotGroup(name string, r Resources) *Job {
	switch {
	case name == "":
		j.errorf("a slot sharing group needs a name; heddle.DefaultSlotGroup is that of operators in no other")
	case r.CPU < 0 || r.CPU > 1<<20:
		j.errorf("slot sharing group %s asks for %v cores", name, r.CPU)
	case r.Memory < 0:
		j.errorf("slot sharing group %s asks for %d bytes of memory", name, r.Memory)
	}
	for _, g := range j.graph.SlotGroups {
		if g.Name == name {
			j.errorf("the resources of slot sharing group %s were set before, at %s", name, g.Where)
			return j
		}
	}
	j.graph.SlotGroups = append(j.graph.SlotGroups, flow.SlotGroup{Name: name, Resources: r, Where: callSite()})
	return j
}
