package heddle

import "github.com/heddle-stream/heddle/internal/flow"

// set applies f to the operator that makes the stream.
func (s Stream[T]) set(what string, f func(n *flow.Node)) Stream[T] {
	if s.op == nil {
		s.job.errorf("%s on a union: set it on the operator before or after it", what)
		return s
	}
	f(s.op.node)
	return s
}

// Name names the operator for people, metrics and logs, by at most 256 bytes.
func (s Stream[T]) Name(name string) Stream[T] {
	return s.set("Name", func(n *flow.Node) { n.Name = name })
}

// UID gives the operator an identity that stays when the program changes: what its state is found by. Unique in the job.
func (s Stream[T]) UID(uid string) Stream[T] {
	return s.set("UID", func(n *flow.Node) { n.UID = uid })
}

// Parallelism sets how many subtasks run the operator.
func (s Stream[T]) Parallelism(p int) Stream[T] {
	if p < 1 {
		s.job.errorf("parallelism %d is not positive", p)
	}
	return s.set("Parallelism", func(n *flow.Node) { n.Parallelism = p })
}

// MaxParallelism sets the number of key groups: the most subtasks that the operator can ever be scaled to.
func (s Stream[T]) MaxParallelism(p int) Stream[T] {
	if p < 1 || p > flow.MaxKeyGroups {
		s.job.errorf("max parallelism %d is not in 1 … %d", p, flow.MaxKeyGroups)
	}
	return s.set("MaxParallelism", func(n *flow.Node) { n.MaxParallelism = p })
}

// SlotGroup puts the operator into a slot sharing group: subtasks of different groups never share a slot. Operators that set
// none are in that of their inputs. Job.SlotGroup says what its slots must have.
func (s Stream[T]) SlotGroup(group string) Stream[T] {
	return s.set("SlotGroup", func(n *flow.Node) { n.SlotGroup = group })
}

// CoLocate puts the operator into a co-location group: subtasks of the same index always share a slot.
func (s Stream[T]) CoLocate(group string) Stream[T] {
	return s.set("CoLocate", func(n *flow.Node) { n.CoLocation = group })
}

// Chaining turns off (or on again) that the operator shares a goroutine with its neighbours.
func (s Stream[T]) Chaining(on bool) Stream[T] {
	return s.set("Chaining", func(n *flow.Node) { n.NoChain, n.NoChainNext = !on, !on })
}

// StartChain begins a chain with the operator: it isn't chained to those before it.
func (s Stream[T]) StartChain() Stream[T] {
	return s.set("StartChain", func(n *flow.Node) { n.NoChain = true })
}
