package jobspec

import (
	"fmt"
	"strconv"

	"github.com/heddle-stream/heddle"
	"github.com/heddle-stream/heddle/internal/jobspec/row"
)

// builder adds the operators of a checked plan to a job.
type builder struct {
	job  *heddle.Job
	plan *planner
}

// node builds a node, and tells its operators for plans and errors where in the file they come from and what they do.
func (b *builder) node(n node) {
	g := b.job.Graph()
	from := len(g.Nodes)
	n.build(b)
	if len(g.Nodes) == from {
		b.noOperator(n)
	}
	for _, op := range g.Nodes[from:] {
		op.Where = b.plan.name + ":" + strconv.Itoa(n.line())
		if g := n.slotGroup(); g != "" {
			op.SlotGroup = g
		}
		if op.Kind == "apply" {
			op.Kind, op.Detail = n.does(op.Name)
		}
	}
}

// noOperator warns of a slot sharing group of a node that has come to nothing, which a plan does not show.
func (b *builder) noOperator(n node) {
	if n.slotGroup() == "" || b.plan.warn == nil {
		return
	}
	b.plan.warn(fmt.Sprintf("%s:%d: slot_group %s has no effect: this step takes no operator, since nothing reads what it makes or it computes nothing",
		b.plan.name, n.line(), n.slotGroup()))
}

// apply adds an operator that runs functions on rows, one for each subtask.
func apply(in heddle.Stream[row.Row], newFunc func() heddle.Func[row.Row, row.Row]) heddle.Stream[row.Row] {
	return heddle.Apply(in, newFunc)
}

// project adds a projection, unless it would change nothing.
func projectRows(in heddle.Stream[row.Row], p *projection) (heddle.Stream[row.Row], bool) {
	if p.identity() {
		return in, false
	}
	return apply(in, func() heddle.Func[row.Row, row.Row] { return newProjector(p) }), true
}

// finish gives the operator of a step its name, uid and parallelism.
func (c *common) finish(s heddle.Stream[row.Row]) heddle.Stream[row.Row] {
	s = s.Name(c.id)
	if c.spec.UID.IsSet() {
		s = s.UID(c.spec.UID.Value)
	}
	if c.spec.Parallelism.IsSet() {
		s = s.Parallelism(c.spec.Parallelism.Value)
	}
	return s
}

// fallible gives an operator that can fail the step's policy.
func (c *common) fallible(s heddle.Stream[row.Row]) heddle.Stream[row.Row] {
	return policy(s, c.id, c.spec.OnError, c.letters)
}

// policy sets what becomes of records that fail.
func policy(s heddle.Stream[row.Row], name string, e *onError, letters *sinkNode) heddle.Stream[row.Row] {
	switch {
	case letters != nil:
		letters.feed(deadLetterRows(s.DeadLetters(), name).Name(name+" dead letters"), deadLetterSchema)
	case e != nil && e.Policy.Value == "skip":
		return s.OnError(heddle.SkipOnError)
	}
	return s
}

// deadLetterSchema is that of the rows that failed records become.
var deadLetterSchema = row.Schema{Cols: []row.Column{
	{Name: "step", Type: row.StringType}, {Name: "error", Type: row.StringType}, {Name: "record", Type: row.StringType},
}}

// deadLetterRows makes rows of dead letters of the step, which may be more than the operator that failed.
// The record is the message as it was read, where there is one.
func deadLetterRows(s heddle.Stream[heddle.DeadLetter], step string) heddle.Stream[row.Row] {
	return heddle.Map(s, func(d heddle.DeadLetter) row.Row {
		record := d.Record
		if d.Value != nil {
			record = string(d.Value)
		}
		b := row.StringValue(step).Append(nil)
		b = row.StringValue(d.Reason).Append(b)
		return row.Row(row.StringValue(record).Append(b))
	})
}
