package agent

import (
	"fmt"

	"github.com/heddle-stream/heddle/internal/cluster"
)

// slotTable is what the agent's slots hold. A slot serves one allocation at a time. Under it, subtasks of several
// vertices share the slot, but never two of one vertex. Owned by the agent's loop.
type slotTable []slot

// maxSlots bounds the slots of an agent, so that a wrong number can't fill the memory.
const maxSlots = 10_000

type slot struct {
	allocation cluster.AllocationID // 0: none yet
	tasks      []cluster.ExecutionID
}

// occupy puts an execution into a slot, or says why it can't be there.
func (p *slotTable) occupy(index int, alloc cluster.AllocationID, id cluster.ExecutionID) error {
	if index < 0 || index >= maxSlots {
		return fmt.Errorf("slot %d can't be: there are at most %d", index, maxSlots)
	}
	for len(*p) <= index { // the master cuts slots as a job asks for them
		*p = append(*p, slot{})
	}
	t := *p
	for i := range t {
		if i != index && t[i].allocation == alloc && len(t[i].tasks) > 0 {
			return fmt.Errorf("allocation %d is in slot %d already and can't be in slot %d as well", alloc, i, index)
		}
	}
	s := &t[index]
	if len(s.tasks) > 0 && s.allocation != alloc {
		return fmt.Errorf("slot %d is held by allocation %d for %v, not by %d", index, s.allocation, s.tasks, alloc)
	}
	for _, other := range s.tasks {
		if other.Vertex == id.Vertex {
			return fmt.Errorf("slot %d already runs %v, another subtask of vertex %d", index, other, id.Vertex)
		}
	}
	s.allocation = alloc
	s.tasks = append(s.tasks, id)
	return nil
}

// vacate takes an execution that has ended out of its slot.
func (t slotTable) vacate(index int, id cluster.ExecutionID) {
	s := &t[index]
	for i, other := range s.tasks {
		if other == id {
			s.tasks = append(s.tasks[:i], s.tasks[i+1:]...)
			break
		}
	}
	if len(s.tasks) == 0 {
		s.allocation = 0
	}
}
