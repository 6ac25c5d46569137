package heddle

import "github.com/heddle-stream/heddle/internal/flow"

// CoProcessor is the functions of an operator with two inputs, of types A and B.
// One goroutine calls them. Those that are nil are not needed, save First and Second.
type CoProcessor[K comparable, A, B, U any] = flow.CoProcessor[K, A, B, U]

// SharedMap is a map that every subtask of an operator holds the same of: broadcast state. Records of the broadcast input change it.
type SharedMap[MK comparable, MV any] = flow.SharedMap[MK, MV]

// NewSharedMap declares a SharedMap. The name is what checkpoints know it by.
func NewSharedMap[MK comparable, MV any](s *States, name string) *SharedMap[MK, MV] {
	return flow.NewSharedMap[MK, MV](s, name)
}

// NoKey is the key type of operators without keys.
type NoKey = struct{}

// Connect brings together the records of two streams that have the same key: both find the same state and timers.
// Records of the two inputs come in no particular order. setup is as for Process.
func Connect[K comparable, A, B, U any](a Keyed[K, A], b Keyed[K, B], setup func(*States) CoProcessor[K, A, B, U]) Stream[U] {
	p := flow.ConnectParams[K, A, B, U]{First: a.key, Second: b.key, Setup: setup}
	s := addConnect(a.s, b.s, p)
	if a.one && b.one {
		s.op.node.Parallelism = 1
	}
	return s
}

// ConnectBroadcast gives each subtask of a keyed stream's operator all records of another stream, such as rules.
// What those say is kept in a SharedMap; records of the keyed stream have their keyed state beside it.
// For records of the broadcast stream there is no key, so they have neither keyed state nor timers. setup is as for Process.
func ConnectBroadcast[K comparable, A, B, U any](a Keyed[K, A], b Stream[B], setup func(*States) CoProcessor[K, A, B, U]) Stream[U] {
	p := flow.ConnectParams[K, A, B, U]{First: a.key, Broadcast: true, Setup: setup}
	s := addConnect(a.s, b.Broadcast(), p)
	if a.one {
		s.op.node.Parallelism = 1
	}
	return s
}

// ConnectStreams brings together two streams without keys. If b is partitioned by Broadcast, its records may change
// shared state; there is no keyed state and there are no timers. setup is as for Process.
func ConnectStreams[A, B, U any](a Stream[A], b Stream[B], setup func(*States) CoProcessor[NoKey, A, B, U]) Stream[U] {
	broadcast := len(b.ups) > 0
	for _, e := range b.ups {
		broadcast = broadcast && e.Part.Kind == flow.Broadcast
	}
	return addConnect(a, b, flow.ConnectParams[NoKey, A, B, U]{Broadcast: broadcast, Setup: setup})
}

func addConnect[K comparable, A, B, U any](a Stream[A], b Stream[B], p flow.ConnectParams[K, A, B, U]) Stream[U] {
	j := a.job
	if b.job != j {
		j.errorf("cannot connect streams of different jobs")
	}
	if !j.needs(p.Setup != nil, "Connect", "its setup function") {
		p.Setup = func(*States) (c CoProcessor[K, A, B, U]) { return c }
	}
	p.Policy, p.Sides, p.Codecs = new(flow.Policy), new(flow.Sides), j.codecs
	spec := nodeSpec{kind: "connect", keyed: p.First != nil, policy: p.Policy, sides: p.Sides, new: flow.NewConnect(p)}
	s := addNode[U](j, spec, append(a.edges(0), b.edges(1)...)...)
	s.op.node.Check = p.Check
	return s
}
