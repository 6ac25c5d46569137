package heddle

import (
	"slices"

	"github.com/heddle-stream/heddle/internal/flow"
)

// Stream is a stream of records of type T: the output of an operator, or a union of several.
// It is a small value that describes; nothing flows before the job runs.
//
// The methods that return a Stream either set a property of the operator that makes the stream (Name, UID, Parallelism, …)
// or say how records are handed to the next operator (Rebalance, Broadcast, …); they can be chained.
type Stream[T any] struct {
	job *Job
	op  *operator   // what made it; nil for a union
	ups []flow.Edge // outputs that make up the stream, each with how it is partitioned for the consumer
}

// operator is a node with what the vocabulary knows of it beside the graph.
type operator struct {
	node   *flow.Node
	policy *flow.Policy // nil where functions can't fail
	sides  *flow.Sides  // nil where the operator has no side outputs
	marks  any          // *flow.Watermarks[T] of a source
}

// nodeSpec is what an operator's function gives addNode.
type nodeSpec struct {
	kind   string // one word: "map"
	detail string
	keyed  bool
	sink   bool
	source flow.Source
	policy *flow.Policy // non-nil if OnError and DeadLetters apply
	sides  *flow.Sides  // non-nil if SideOutput applies
	new    flow.Factory
}

// autoForward is the edge nobody chose: forward, or rebalance where parallelism differs.
var autoForward = flow.Partitioning{Kind: flow.Forward, Auto: true}

// addNode adds an operator with main output U and returns its stream. in are the edges of all its ports (see Stream.edges).
func addNode[U any](j *Job, spec nodeSpec, in ...flow.Edge) Stream[U] {
	return outputOf[U](j, addOp(j, spec, []flow.Type{typeOf[U](j)}, in), 0)
}

// addOp adds an operator with the given outputs.
func addOp(j *Job, spec nodeSpec, outs []flow.Type, in []flow.Edge) *operator {
	if j == nil {
		panic(errNoJob)
	}
	n := j.graph.Add(&flow.Node{
		Kind: spec.kind, Detail: spec.detail, Where: callSite(), In: in, Outputs: outs,
		Keyed: spec.keyed, Source: spec.source, Sink: spec.sink, New: spec.new,
	})
	return &operator{node: n, policy: spec.policy, sides: spec.sides}
}

// outputOf is the stream of one output port of op.
func outputOf[U any](j *Job, op *operator, port int) Stream[U] {
	return Stream[U]{job: j, op: op, ups: []flow.Edge{{From: op.node, FromPort: port, Part: autoForward}}}
}

// typeOf is the flow.Type of T with the job's codecs.
func typeOf[T any](j *Job) flow.Type {
	if j == nil {
		panic(errNoJob)
	}
	return flow.TypeOf[T](j.codecs)
}

// edges returns the edges that lead the stream into input port `port` of a consumer.
func (s Stream[T]) edges(port int) []flow.Edge {
	es := slices.Clone(s.ups)
	for i := range es {
		es[i].ToPort = port
	}
	return es
}

// with returns the stream partitioned by p for its next consumer.
func (s Stream[T]) with(p flow.Partitioning) Stream[T] {
	s.ups = slices.Clone(s.ups)
	for i := range s.ups {
		s.ups[i].Part = p
	}
	return s
}

// Forward hands each record to the consumer subtask of the same index; parallelism must be equal. It is the default where parallelism is equal.
func (s Stream[T]) Forward() Stream[T] { return s.with(flow.Partitioning{Kind: flow.Forward}) }

// Rebalance spreads records over all subtasks of the consumer, in turn: small batches evenly, at high rates a
// network segment (64 KiB) at a time.
func (s Stream[T]) Rebalance() Stream[T] { return s.with(flow.Partitioning{Kind: flow.Rebalance}) }

// Rescale spreads records like Rebalance, but each subtask only over its own share of the consumer's subtasks.
func (s Stream[T]) Rescale() Stream[T] { return s.with(flow.Partitioning{Kind: flow.Rescale}) }

// Broadcast hands every record to all subtasks of the consumer.
func (s Stream[T]) Broadcast() Stream[T] { return s.with(flow.Partitioning{Kind: flow.Broadcast}) }

// PartitionBy hands each record to the consumer subtask that f returns, 0 ≤ f(v, n) < n for n subtasks.
func (s Stream[T]) PartitionBy(f func(v T, n int) int) Stream[T] {
	s.job.needs(f != nil, "PartitionBy", "its function")
	return s.with(flow.Partitioning{Kind: flow.Custom, Impl: f})
}

// Union merges streams of one type. Records of one stream keep their order; its watermark is the least of all.
func Union[T any](first Stream[T], more ...Stream[T]) Stream[T] {
	if len(more) == 0 {
		return first
	}
	u := Stream[T]{job: first.job, ups: slices.Clone(first.ups)}
	for _, s := range more {
		if s.job != first.job {
			first.job.errorf("union of streams of different jobs")
		}
		u.ups = append(u.ups, s.ups...)
	}
	return u
}
