package heddle

import "github.com/heddle-stream/heddle/internal/flow"

// OnError says what becomes of a record for which an operator's function returned an error.
type OnError = flow.OnError

const (
	// FailOnError fails the job, naming operator and record: the default.
	FailOnError = flow.Fail
	// SkipOnError leaves the record out and counts it in the operator's "skipped records".
	SkipOnError = flow.Skip
)

// DeadLetter describes a record for which a function returned an error, or a message that could not be decoded.
type DeadLetter = flow.DeadRecord

// OnError sets what becomes of a record for which the operator's function returns an error, or of a message that a
// source can't decode. A panic fails the job in any case.
func (s Stream[T]) OnError(do OnError) Stream[T] {
	if s.op == nil || s.op.policy == nil {
		s.job.errorf("OnError on an operator without a function that returns errors: use TryMap, TryFilter, TryFlatMap, Apply or From")
		return s
	}
	s.op.policy.OnError = do
	return s
}

// deadLetters is the tag of DeadLetters. An author's tag can't be it: a Tag has a name.
const deadLetters = ""

// DeadLetters leaves out the records for which the operator's function returns an error (see OnError), and returns the stream of what is told of them.
func (s Stream[T]) DeadLetters() Stream[DeadLetter] {
	if s.op == nil || s.op.policy == nil {
		s.job.errorf("DeadLetters of an operator without a function that returns errors: use TryMap, TryFilter, TryFlatMap, Apply or From")
		return Stream[DeadLetter]{job: s.job}
	}
	side := sideOutput[DeadLetter](s.job, s.op, deadLetters)
	s.op.policy.OnError = flow.DeadLetter
	s.op.policy.Port = s.op.sides.Port(deadLetters)
	return side
}

// Tag names a side output with records of type U.
type Tag[U any] struct{ name string }

// NewTag returns a tag of that name.
func NewTag[U any](name string) Tag[U] { return Tag[U]{name} }

// Emit emits v into the side output of the operator whose Env it is, with the time of the record at hand. It is for use within the operator's
// function only; where nobody reads the side output, v is dropped. An error means that the task is failing; return it.
func (t Tag[U]) Emit(env Env, v U) error { return flow.EmitFrom(env, t.name, v) }

// SideOutput returns the stream of what the operator that makes s emits into the side output tag.
func SideOutput[U, T any](s Stream[T], tag Tag[U]) Stream[U] {
	if s.op == nil || s.op.sides == nil || s.op.node.Source != nil || tag.name == "" {
		s.job.errorf("side output %q of an operator that has none: use Apply or Process, and a tag with a name", tag.name)
		return Stream[U]{job: s.job}
	}
	return sideOutput[U](s.job, s.op, tag.name)
}

func sideOutput[U any](j *Job, op *operator, tag string) Stream[U] {
	port, err := op.sides.Add(op.node, tag, typeOf[U](j))
	if err != nil {
		j.errorf("%w", err)
	}
	side := outputOf[U](j, op, port)
	side.op = nil // its properties are those of the operator's main output
	return side
}
