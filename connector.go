package heddle

import "github.com/heddle-stream/heddle/internal/flow"

// The interfaces of connectors. A connector is a package of its own; it moves typed records (Source, Sink) or,
// more often, messages whose meaning a Format knows (MessageSource, MessageSink). What their methods speak of is in package heddle/connector.
type (
	// Source finds splits in the master and reads them in its subtasks.
	Source[T any] = flow.Input[T]
	// Sink writes records in its subtasks.
	Sink[T any] = flow.Output[T]
	// Batch is records with their event times; see its fields for what may be kept.
	Batch[T any] = flow.Batch[T]

	// MessageSource reads messages and leaves their meaning to a Format.
	MessageSource = flow.MessageSource
	// MessageSink writes messages that a Format made.
	MessageSink = flow.MessageSink
	// Messages is a batch of messages.
	Messages = flow.Messages
	// Format turns messages into records and back.
	Format[T any] = flow.Format[T]
)

// From adds a source of messages, which the format turns into records:
//
//	heddle.From(job, kafkasource.Topics("clicks"), heddle.JSON[Click]())
//
// A message that it can't decode is a failed record: see OnError and DeadLetters.
func From[T any](j *Job, src MessageSource, f Format[T]) Stream[T] {
	p := new(flow.Policy)
	if !j.needs(src != nil, "From", "its source") || !j.needs(f != nil, "From", "its format") {
		return addSource[T](j, nil, p)
	}
	return addSource(j, flow.Decode(src, f, p), p)
}

// FromSource adds a source of typed records.
func FromSource[T any](j *Job, src Source[T]) Stream[T] {
	j.needs(src != nil, "FromSource", "its source")
	return addSource(j, src, nil)
}

func addSource[T any](j *Job, src Source[T], p *flow.Policy) Stream[T] {
	marks, sides := new(Watermarks[T]), new(flow.Sides)
	if src == nil { // the mistake is noted
		s := addNode[T](j, nodeSpec{kind: "source", policy: p, sides: sides})
		s.op.marks = marks
		return s
	}
	s := addNode[T](j, nodeSpec{kind: "source", detail: src.Describe(), source: src,
		policy: p, sides: sides, new: flow.NewSource(src, marks, p, sides)})
	s.op.marks, s.op.node.Needs, s.op.node.Ready = marks, flow.NeedsOf(src), flow.ReadyOf(src)
	return s
}

// To adds a sink of messages, which the format makes of records.
func To[T any](s Stream[T], sink MessageSink, f Format[T]) Terminal {
	if !s.job.needs(sink != nil, "To", "its sink") || !s.job.needs(f != nil, "To", "its format") {
		return addSink[T](s, nil)
	}
	return addSink(s, flow.Encode(sink, f))
}

// ToSink adds a sink of typed records.
func ToSink[T any](s Stream[T], sink Sink[T]) Terminal {
	s.job.needs(sink != nil, "ToSink", "its sink")
	return addSink(s, sink)
}

func addSink[T any](s Stream[T], sink Sink[T]) Terminal {
	spec := nodeSpec{kind: "sink", sink: true}
	if sink != nil {
		spec.detail, spec.new = sink.Describe(), flow.NewSink(sink)
	}
	op := addOp(s.job, spec, nil, s.edges(0))
	op.node.Sole, op.node.Needs, op.node.Ready = flow.SoleOf(sink), flow.NeedsOf(sink), flow.ReadyOf(sink)
	return Terminal{Stream[struct{}]{job: s.job, op: op}}
}

// Terminal is a sink in the graph. Its methods set properties of the operator, as those of Stream do.
type Terminal struct{ s Stream[struct{}] }

// Name names the sink for people.
func (t Terminal) Name(name string) Terminal { t.s.Name(name); return t }

// UID gives the sink an identity that stays when the program changes.
func (t Terminal) UID(uid string) Terminal { t.s.UID(uid); return t }

// Parallelism sets how many subtasks write.
func (t Terminal) Parallelism(p int) Terminal { t.s.Parallelism(p); return t }

// SlotGroup puts the sink into a slot sharing group.
func (t Terminal) SlotGroup(group string) Terminal { t.s.SlotGroup(group); return t }

// CoLocate puts the sink into a co-location group.
func (t Terminal) CoLocate(group string) Terminal { t.s.CoLocate(group); return t }

// Chaining turns off (or on again) that the sink shares a goroutine with the operators before it.
func (t Terminal) Chaining(on bool) Terminal { t.s.Chaining(on); return t }
