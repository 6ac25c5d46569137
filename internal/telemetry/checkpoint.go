package telemetry

import (
	"time"

	"github.com/heddle-stream/heddle/internal/flow"
)

// Checkpoint traces one checkpoint, or one restart from one, over the processes that take part. The spans of a checkpoint:
//
//	checkpoint           from the trigger to the completion, by the master
//	├ trigger            until the sources were told
//	├ alignment          of a subtask, from its first barrier to its last
//	├ snapshot           of a subtask: while records wait
//	├ upload             of a subtask, beside its records
//	├ acknowledge        from a subtask's word to when the master had it
//	└ complete           from the last acknowledgement until all were told
//
// A restart has restart, in place of checkpoint, and below it cancel, allocate, deploy and restore. Context is what the master's messages hand on to
// subtasks, whose parts are below it.
type Checkpoint struct {
	p    *Provider
	span Span
}

// Steps of a checkpoint and of a restart.
const (
	StepTrigger     = "trigger"
	StepAlignment   = "alignment"
	StepSnapshot    = "snapshot"
	StepUpload      = "upload"
	StepAcknowledge = "acknowledge"
	StepComplete    = "complete"
	StepCancel      = "cancel"
	StepRestore     = "restore"
)

// Checkpoint begins the trace of a checkpoint, or of a restart, at a time. Each is a trace of its own.
func (p *Provider) Checkpoint(name string, at time.Time, attrs ...flow.TraceAttr) Checkpoint {
	return Checkpoint{p, p.Start(Start{Name: name, At: at, Attrs: attrs})}
}

// Context is what to hand on.
func (c Checkpoint) Context() flow.TraceContext { return c.span.Context() }

// Step makes the span of a step that is over.
func (c Checkpoint) Step(name string, from, to time.Time, attrs ...flow.TraceAttr) {
	c.p.Step(c.Context(), name, from, to, attrs...)
}

// End ends it; why it came to nothing, or "".
func (c Checkpoint) End(at time.Time, why string) {
	if why != "" {
		c.span.Fail(why)
	}
	c.span.End(at)
}

// Step makes the span of a step that is over, of a checkpoint that another process has begun.
func (p *Provider) Step(of flow.TraceContext, name string, from, to time.Time, attrs ...flow.TraceAttr) {
	p.Child(Start{Parent: of, Name: name, At: from, Attrs: attrs}).End(to)
}
